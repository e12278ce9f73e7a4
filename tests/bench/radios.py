"""How long the kernel's own radios take: 30 stations of mac80211_hwsim, beside as many of TAPs.

`up`: from the first namespace until all radios are made, moved, joined, addressed and routed. `of it`: the medium's share, which
makes, moves and joins all of them from one process. `in all`: from the call, with the start of the run's own process.
On a kernel without mac80211_hwsim (Debian's have it) it is asked in a guest, in software emulation, as CI would.
"""

import json
import subprocess
import sys

from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.host.requirements import require_radios
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.runs import bench_folder, timed_run

STATIONS = 30
GUEST = ["vm", "--no-kvm", "--kernel", "6.12", "--cpus", "2", "shell", "--"]


def measure() -> Table:
    try:
        require_radios("hwsim")
    except UsageError:
        return _in_guest()
    columns = ["stations", "kind", "up s", "of it s", "in all s"]
    table = Table("Start of radios", columns, f"{STATIONS} of hwsim in less than 20 s in software emulation")
    for kind in ("hwsim", "tap"):
        with bench_folder() as folder:
            stages = timed_run(_grid(kind), folder / kind).stages
        up_s = stages["kernel-tcp"] - stages["stations"]
        table.rows.append([STATIONS, kind, up_s, stages["routing"] - stages["medium"], stages["kernel-tcp"]])
    return table


def _in_guest() -> Table:
    command = [ROOT / "manet", *GUEST, sys.executable, "-P", "-m", "tests.bench", "radios", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"radios: in a guest: {(done.stderr.strip().splitlines() or ['no words'])[-1]}")
    return Table(**json.loads(done.stdout)[0])


def _grid(kind: str) -> Scenario:
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000.0, "bytes": 512}
    keys = {"topology": "grid", "rows": 5, "columns": 6, "spacing": 200, "warmup": 0.0, "duration": 0.5}
    return Scenario.model_validate({**keys, "stations": kind, "routing": "static", "flows": [flow]})
