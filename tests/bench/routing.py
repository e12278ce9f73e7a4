"""The cost of a hundred idle routing daemons: a real run of a chain, each station with its daemon.

For the length of the measurement nobody sends anything but the daemons. `start`: from the first daemon to the last
`ready`, devices set. `CPU`: of all daemons together, as a share of one core. `RSS` is what a daemon has in memory, `PSS`
the same with what daemons share (the program itself) counted once among them.
"""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from scenarios.scenario import Scenario
from tests.bench import Table
from tests.bench.runs import bench_folder, number_of, timed_run

DAEMONS = 100
# after the start, until the first updates of those protocols that send some are through
SETTLE_S = 5.0
SECONDS = 20.0
AIM = "AODV: all idle daemons together below 5 % of one core, each below 8 MB"
CASES: dict[str, dict] = {
    "aodv, feedback": {"protocol": "aodv"},
    "aodv, hello": {"protocol": "aodv", "link": "hello", "hello_while_active": False},
    "dsr": {"protocol": "dsr"},
    "dsdv": {"protocol": "dsdv", "settle": 0.0},
    "olsr": {"protocol": "olsr", "settle": 0.0},
    "tora": {"protocol": "tora"},
}


def measure() -> Table:
    columns = ["protocol", "daemons", "start s", "CPU", "wake-ups /s", "RSS max kB", "RSS median", "PSS max kB", "PSS median"]
    table = Table(f"Idle routing daemons, {SECONDS:g} s", columns, AIM)
    for name, routing in CASES.items():
        with bench_folder() as folder:
            table.rows.append(_row(name, routing, folder / routing["protocol"]))
    return table


def _row(name: str, routing: dict, folder: Path) -> list[str | float]:
    at_traffic = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_cost, folder, at_traffic)
        try:
            run = timed_run(_brief(routing), folder, entered=lambda stage: at_traffic.set() if stage == "traffic" else None)
        finally:
            at_traffic.set()
        cost = waiting.result()
    start_s = run.stages["kernel-tcp"] - run.stages["routing"]
    memory = [f(kb) for kb in (cost.rss_kb, cost.pss_kb) for f in (max, statistics.median)]
    return [name, len(cost.rss_kb), start_s, f"{cost.share:.3%}", cost.wakes_per_s, *memory]


def _brief(routing: dict) -> Scenario:
    """Its one flow begins when all has been measured."""
    start = SETTLE_S + SECONDS + 2.0
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000.0, "bytes": 512, "start": start}
    scenario = {"topology": "chain", "nodes": DAEMONS, "warmup": 0.0, "duration": 0.5, "flows": [flow], "routing": routing}
    return Scenario.model_validate(scenario)


@dataclass
class _Cost:
    share: float
    wakes_per_s: float
    rss_kb: list[int]
    pss_kb: list[int]


def _cost(folder: Path, at_traffic: threading.Event) -> _Cost:
    at_traffic.wait()
    time.sleep(SETTLE_S)
    daemons = _daemons(folder)
    used, woken, since = _used_s(daemons), _woken(daemons), time.monotonic()
    time.sleep(SECONDS)
    passed = time.monotonic() - since
    return _Cost(
        (_used_s(daemons) - used) / passed,
        (_woken(daemons) - woken) / passed,
        [number_of(daemon / "status", "VmRSS:") for daemon in daemons],
        [number_of(daemon / "smaps_rollup", "Pss:") for daemon in daemons],
    )


def _daemons(folder: Path) -> list[Path]:
    """Their folders in /proc: they are the processes of this run with a configuration in its `routing/`."""
    config_prefix = str(folder.resolve() / "routing").encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                # it has ended
                continue
            if b"/manet-" in words[0] and len(words) > 2 and words[1] == b"run" and words[2].startswith(config_prefix):
                found.append(process)
    return found


def _used_s(daemons: list[Path]) -> float:
    """By the scheduler's own clock: `stat` counts whole hundredths of a second, which an idle daemon does not fill."""
    return sum(int((daemon / "schedstat").read_text().split()[0]) for daemon in daemons) / 1e9


def _woken(daemons: list[Path]) -> int:
    return sum(number_of(daemon / "status", "voluntary_ctxt_switches:") for daemon in daemons)
