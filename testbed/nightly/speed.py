"""Part `speed`: the medium's processor time for a simulated second, as a ratio to a fixed reference program.

The reference is the medium's program of the history's first night, kept in the history. Both simulate the same configuration by
turns (reference first in one pair, second in the next). A repetition is PAIRS pairs, and its value the ratio of the mean
processor times of each program's fastest simulations. A simulation is short: what slows both programs down, such as other work on
the machine or its temperature, is the same for a pair and cancels out, and some simulations are not disturbed at all. (At a load
of 14 on two cores, values of 24 pairs have a standard deviation of 0.9 %; the median of 24 ratios 1.2 %, one ratio 12 %.) A
reference that cannot run the workload any more, or that is removed, is replaced by tonight's program: the series begin anew.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

from testbed.errors import RunError, UsageError
from testbed.nightly.figure import Figure, Part
from testbed.programs import BUILT
from testbed.validate import simulate
from testbed.validate.simulate import Layout

REPETITIONS = 15
PAIRS = 24  # of a repetition; even, so that each program is first as often as the other
FASTEST = PAIRS // 4
RELEVANT = 0.03
SEED = 1
TIMEOUT_S = 300
REFERENCE = Path("reference") / "manet-medium"
CIRCLE = 30  # senders around one receiver
HOPS = 10
# about 70 ms of work each on the machine of docs/validation.md
WORKLOADS = {
    "circle30": Layout(
        "ns2-dsss-2m", simulate.circle(CIRCLE, 10.0), [simulate.saturated(i, 0) for i in range(1, CIRCLE + 1)],
        measured_s=40.0, warmup_s=1.0,
    ),
    "chain10": Layout(
        "dot11g-54m", [(20.0 * i, 1.0) for i in range(HOPS + 1)], [simulate.cbr(range(HOPS + 1), 2_000_000)],
        measured_s=12.0, warmup_s=1.0,
    ),
}  # fmt: skip


def figures(history: Path, repetitions: int = REPETITIONS, medium: Path = BUILT.medium) -> Part:
    """The ratio of each workload, and the processor time itself, which is recorded and not watched."""
    if not medium.exists():
        raise UsageError(f"{medium}: not found; build it with ./setup.sh")
    with tempfile.TemporaryDirectory(prefix="manet-nightly-") as folder:
        configurations = {name: _written(Path(folder) / f"{name}.json", layout) for name, layout in WORKLOADS.items()}
        reference = _reference(history, medium, configurations.values())
        digest = hashlib.sha256(reference.read_bytes()).hexdigest()[:12]
        ours, theirs = _copied(medium, Path(folder) / "medium-1"), _copied(reference, Path(folder) / "medium-2")
        part = Part()
        for name, path in configurations.items():
            blocks = [_pairs(path, ours, theirs) for _ in range(repetitions)]
            simulated_s = WORKLOADS[name].warmup_s + WORKLOADS[name].measured_s
            fastest = [tuple(fmean(sorted(times)[:FASTEST]) for times in zip(*pairs, strict=True)) for pairs in blocks]
            ratios = tuple(cost / base for cost, base in fastest)
            costs = tuple(cost / simulated_s for cost, _ in fastest)
            part.figures.append(Figure(f"speed/{name}/cpu-ratio", "of reference", ratios, RELEVANT, reference=digest))
            part.figures.append(Figure(f"speed/{name}/cpu", "CPU s per simulated s", costs, None, reference=digest))
    return part


def _pairs(path: Path, medium: Path, reference: Path) -> list[tuple[float, float]]:
    """Processor times in s of medium and reference, by turns."""
    times = []
    for number in range(PAIRS):
        if number % 2:
            ours = _cpu_s(medium, path)
            theirs = _cpu_s(reference, path)
        else:
            theirs = _cpu_s(reference, path)
            ours = _cpu_s(medium, path)
        times.append((ours, theirs))
    return times


def _reference(history: Path, medium: Path, paths: Iterable[Path]) -> Path:
    """The reference program, replaced if it cannot run these workloads."""
    reference = history / REFERENCE
    try:
        for path in paths:
            _cpu_s(reference, path)
    except (OSError, RunError):
        reference.parent.mkdir(parents=True, exist_ok=True)
        part = reference.with_name(f".{reference.name}.{os.getpid()}")
        shutil.copy2(medium, part)
        part.replace(reference)
    return reference


def _copied(program: Path, place: Path) -> Path:
    """A copy under names of the same length in the same file system: both begin with the same stack and page cache."""
    shutil.copy2(program, place)
    return place


def _written(path: Path, layout: Layout) -> Path:
    path.write_text(json.dumps(simulate.medium_json(layout, SEED)))
    return path


def _cpu_s(program: Path, path: Path) -> float:
    """Processor time in s of one simulation, user and system. RunError if it fails."""
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen([str(program), "sim", str(path)], stdout=subprocess.DEVNULL, stderr=stderr)
        watchdog = threading.Timer(TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            _, status, used = os.wait4(process.pid, 0)  # of this child alone, in us; os.times() counts in steps of 10 ms
        finally:
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        lines = stderr.read().decode(errors="replace").strip().splitlines()
    if process.returncode != 0:
        raise RunError(f"{program.name} sim: exit {process.returncode}: {(lines or ['no message'])[-1]}; rebuild with ./setup.sh")
    return used.ru_utime + used.ru_stime
