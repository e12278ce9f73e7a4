"""The medium in virtual time beside Debian's ns-2.35: CPU time of six cases of `manet validate`, the same on both sides.

Saturated stations around one receiver, unequal powers, hidden terminals, a UDP chain. The two programs run in turn, ROUNDS times,
so that the machine's changes meet both; ns-2 writes no trace. CPU time is per second of traffic, start of the program included.
"""

import resource
import shutil
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from testbed.validate import checks, ns2, simulate
from tests.bench import Table

ROUNDS = 3
SEED = 1
MEASURED_S = 120.0  # longer than the cases of `manet validate`, so that the start of the programs does not count
# name of the case in testbed/validate/checks.py: columns of ns-2's run
CASES: dict[str, dict[str, object]] = {
    "ns2/saturation/rts-off/n=2": {"senders": 2, "rts": "off", "offered_kbps": 2400},
    "ns2/saturation/rts-on/n=10": {"senders": 10, "rts": "on"},
    "ns2/saturation/rts-on/n=50": {"senders": 50, "rts": "on"},
    "ns2/near-far/rts-off/n=6/total": {"senders": 6, "rts": "off", "near_m": ns2.NEAR_M},
    "ns2/hidden/200m-200m/2400k/rts-on/capture-on": {
        "distance_a_m": 200, "distance_c_m": 200, "rts": "on", "capture": "on", "offered_kbps": 2400,
    },
    "ns2/udp-chain/10-hops/1000k": {"hops": 10, "offered_kbps": 1000},
}  # fmt: skip


def measure() -> Table:
    columns = ["case", "traffic s", "medium, CPU ms/s", "ns-2, CPU ms/s", "ns-2 / medium"]
    table = Table("The medium beside ns-2.35, virtual time, one core", columns, "not slower than ns-2")
    if shutil.which("ns") is None:
        table.rows.append(["ns-2 is absent: apt-get install ns2", "-", "-", "-", "-"])
        return table
    for name, columns_of_run in CASES.items():
        layout = next(replace(case.layout, measured_s=MEASURED_S) for case in checks.cases() if case.name == name)
        theirs = _run_of_ns2(name.split("/")[1], columns_of_run)
        ours_s, theirs_s = [], []
        with tempfile.TemporaryDirectory(prefix="manet-bench-ns2-") as folder:
            arguments = {**theirs.arguments, "seed": SEED, "measured_s": MEASURED_S}
            for _ in range(ROUNDS):
                ours_s.append(cpu_s(partial(simulate.run, layout, SEED)))
                theirs_s.append(cpu_s(partial(ns2.call_ns, theirs.scenario, arguments, folder)))
        traffic_s = layout.warmup_s + layout.measured_s
        ours, other = (statistics.median(values) / traffic_s * 1e3 for values in (ours_s, theirs_s))
        table.rows.append([name.removeprefix("ns2/"), traffic_s, ours, other, other / ours])
    return table


def _run_of_ns2(kind: str, columns: dict[str, object]) -> ns2.Run:
    """The run with these columns of the table of this kind of case."""
    wanted = {**columns, "seed": SEED}
    name = f"ns2_{kind.replace('-', '_')}"
    return next(run for run in ns2.runs() if run.table == name and wanted.items() <= run.columns.items())


def cpu_s(call: Callable[[], object]) -> float:
    """CPU time of the program that the call runs, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
