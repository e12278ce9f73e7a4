"""CPU per emulated second of a campaign, by program: hv-fig3's cells (thirty moving stations, DSR, one TCP flow) side by side.

With `--against DIR`, another built checkout, both run in turn, so that the machine's own changes meet both. The total is exact:
the kernel counts all processes that the command waited for. The share of each program is sampled from /proc, so that
`short-lived` has the processes shorter than SAMPLE_S (`ip`, `mnexec`), and the ends of all others. Analysis,
tables and figure are included, as in a campaign.

With `--campaign` it is `manet campaign` with a question that stays open for two rounds (or more: `--pairs`), so that planning,
deciding and the end of each round are in it. `between runs` is the share of all processes that are no part of a run: coordinator,
worker, analysis. With `--load N` as many busy loops run beside it, at the priority of the campaign.

`PYTHONPATH=. .venv/bin/python -P -m tests.bench.pace [--against DIR] [--rounds N] [--duration S] [--jobs N] [--load N]
[--campaign [--pairs N] [--experiment FILE]]`
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import RunError
from testbed.programs import ROOT
from tests.bench import Table
from tests.bench.runs import bench_folder, python_of

EXPERIMENT = ROOT / "experiments" / "hv-fig3.toml"
JOBS = 8  # hv-fig3 has eight cells
DURATION_S = 30.0  # after 30 s without traffic
SAMPLE_S = 0.5
QUESTION = """
[[questions]]
question = "ELFN carries more"
claim = "more"
metric = "acked_kbps"
compared = "elfn-2s"
with = "reno"
matters = 0.001
"""
ROLES = {  # the name of a Python process or a word of its command line: its name in the table
    "python-run": "python, a run",  # its name
    "testbed.runs.template": "python, a run",
    "iperf_client.py": "iperf3",
    "iperf_server.py": "iperf3",
    "testbed.campaigns.measuring": "python, analysis",
    "batch": "python, worker",
    "testbed": "python, the campaign",
}
SHORT_LIVED = "short-lived"
BETWEEN = ("python, analysis", "python, worker", "python, the campaign")


@dataclass
class Cost:
    """CPU seconds of a campaign by program, its emulated seconds, its wall time, its verdicts, and the reasons of those that are
    not `valid`, without their figures."""

    cpu_s: Counter[str]
    emulated_s: float
    wall_s: float
    verdicts: Counter[str]
    reasons: Counter[str]

    def per_second_ms(self, program: str) -> float:
        """CPU milliseconds of a program per emulated second."""
        return self.cpu_s[program] / self.emulated_s * 1e3

    @property
    def total_ms(self) -> float:
        """CPU milliseconds of all programs per emulated second."""
        return self.cpu_s.total() / self.emulated_s * 1e3


def measure() -> Table:
    return table_of({"this checkout": [campaign(ROOT)]})


def table_of(costs: dict[str, list[Cost]]) -> Table:
    """One column for each checkout, the first the reference of the ratio: the median of its rounds."""
    names = list(costs)
    columns = ["program", *(f"{name}, CPU ms/s" for name in names), *(["ratio"] if len(names) == 2 else [])]
    rounds = len(next(iter(costs.values())))
    title = f"CPU per emulated second, median of {rounds}"
    table = Table(title, columns, "0.04 of a core per run: 35 emulated seconds per second on two cores")

    def row(name: str, values: list[float]) -> None:
        ratio = [values[1] / values[0] if values[0] else "-"] if len(values) == 2 else []
        table.rows.append([name, *values, *ratio])

    programs = {program: None for each in costs.values() for cost in each for program, _ in cost.cpu_s.most_common()}
    for program in programs:
        row(program, [statistics.median(cost.per_second_ms(program) for cost in each) for each in costs.values()])
    between = [[sum(cost.per_second_ms(name) for name in BETWEEN) / cost.total_ms for cost in each] for each in costs.values()]
    row("between runs, share of all", [statistics.median(each) for each in between])
    row("all", [statistics.median(cost.total_ms for cost in each) for each in costs.values()])
    row("emulated s per wall s", [statistics.median(cost.emulated_s / cost.wall_s for cost in each) for each in costs.values()])
    verdicts = [sum((cost.verdicts for cost in each), Counter()) for each in costs.values()]
    reasons = [sum((cost.reasons for cost in each), Counter()) for each in costs.values()]
    for title, counted in (("verdicts", verdicts), ("reasons", reasons)):
        words = [", ".join(f"{count} {word}" for word, count in found.items()) for found in counted]
        table.rows.append([title, *words, *([""] if len(names) == 2 else [])])
    return table


def campaign(
    checkout: Path, *, jobs: int = JOBS, duration_s: float = DURATION_S, seeds: int = 1, pairs: int | None = None,
    experiment: Path | None = None, cells: Path = EXPERIMENT,
) -> Cost:  # fmt: skip
    """Run the cells with the programs of `checkout`; with `pairs` as a campaign whose questions stay open to this limit, of
    hv-fig3's `cells` or another `experiment` with its own questions. RunError if a run failed."""
    with bench_folder() as folder:
        file = folder / "pace.toml"
        # without the expected throughput, which is measured once for a machine
        lines = cells.read_text().splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(("expected =", "figure =")))
        text = text.replace('base = "', f'base = "{cells.parent}/')
        file.write_text(text if pairs is None else text[: text.index("[[questions]]")] + QUESTION)
        if experiment is not None:
            file.write_text(experiment.read_text())
        words = ["--set", f"duration={duration_s:g}", "--seeds", seeds, "--jobs", jobs, "--out", folder / "results"]
        verb = ["run", file, "--json"] if pairs is None else ["campaign", file, "--max-pairs", pairs, "--captures", "none"]
        began = time.monotonic()
        with (folder / "out.json").open("wb") as out, (folder / "err").open("wb") as err:
            child = python_of(checkout, "-m", "testbed", *verb, *words, stdout=out, stderr=err, start_new_session=True)
            try:
                seen, used = _follow(child)
            except BaseException:
                child.terminate()
                child.wait()
                raise
        wall_s = time.monotonic() - began
        if child.returncode != 0:
            said = (folder / "err").read_text().splitlines()[-1:]
            raise RunError(f"{checkout}: the campaign ended with status {child.returncode}: {' '.join(said)}")
        if pairs is None:
            answer = json.loads((folder / "out.json").read_text())
            verdicts, emulated_s = Counter(run["verdict"] for run in answer["runs"]), answer["pace"]["emulated_s"]
        else:
            answer = json.loads((folder / "results" / "campaign.json").read_text())
            verdicts, emulated_s = +Counter(answer["verdicts"]), answer["emulated_s"]
        reasons = _reasons(folder / "results")
        shutil.rmtree(folder / "results")
    seen[SHORT_LIVED] = max(0.0, used - seen.total())
    return Cost(seen, emulated_s, wall_s, verdicts, reasons)


def _reasons(results: Path) -> Counter[str]:
    """Why the runs below `results` are not `valid`, each number as N."""
    judged = [json.loads(file.read_text()) for file in results.rglob("verdict.json")]
    return Counter(re.sub(r"\d[\d.]*", "N", reason) for verdict in judged for reason in verdict["reasons"])


@contextmanager
def _load(loops: int) -> Iterator[None]:
    """Busy loops beside the block."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def _follow(child: subprocess.Popen) -> tuple[Counter[str], float]:
    """CPU seconds by program as sampled until the child ends, and of all processes that it waited for."""
    last: dict[tuple[int, str], tuple[str, float]] = {}
    while True:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            break
        last |= descendants(child.pid)
        time.sleep(SAMPLE_S)
    seen: Counter[str] = Counter()
    for name, cpu_s in last.values():
        seen[name] += cpu_s
    return seen, used.ru_utime + used.ru_stime


def descendants(root: int) -> dict[tuple[int, str], tuple[str, float]]:
    """Name and CPU seconds of a process and all below it, by pid and start time."""
    stats, children = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            head, _, tail = (folder / "stat").read_text().rpartition(") ")
        except OSError:
            continue
        fields = tail.split()
        stats[int(folder.name)] = (head.partition("(")[2], fields)
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats:
            name, fields = stats[pid]
            found[pid, fields[19]] = (_program(pid, name), _cpu_s(pid))
        waiting += children.get(pid, [])
    return found


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process's threads. /proc/PID/stat counts hundredths of a second, longer than tcpdump runs in all."""
    ran_ns = 0
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            ran_ns += int((task / "schedstat").read_text().split()[0])
    return ran_ns / 1e9


def _program(pid: int, name: str) -> str:
    if not name.startswith("python"):
        return name
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return name
    names = {name, *(Path(word).name for word in words)}
    return next((role for word, role in ROLES.items() if word in names), name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pace", description=__doc__.splitlines()[0])
    parser.add_argument("--against", metavar="DIR", type=Path, help="another built checkout, to compare with")
    parser.add_argument("--rounds", metavar="N", type=int, default=1, help="campaigns of each checkout")
    parser.add_argument("--duration", metavar="S", type=float, default=DURATION_S, help="seconds of traffic of each run")
    parser.add_argument("--jobs", metavar="N", type=int, default=JOBS, help="runs side by side; above eight with more seeds")
    parser.add_argument("--campaign", action="store_true", help="a campaign of several rounds instead of one experiment")
    parser.add_argument("--pairs", metavar="N", type=int, default=6, help="pairs of a campaign's questions, which stay open")
    parser.add_argument("--experiment", metavar="FILE", type=Path, help="of the campaign, instead of hv-fig3's cells")
    parser.add_argument("--load", metavar="N", type=int, default=0, help="busy loops beside it")
    options = parser.parse_args()
    checkouts = {"before": options.against.resolve(), "now": ROOT} if options.against else {"this checkout": ROOT}
    # an older checkout does not know all keys of today's cells
    cells = (options.against or ROOT).resolve() / "experiments" / EXPERIMENT.name
    costs: dict[str, list[Cost]] = {name: [] for name in checkouts}
    for number in range(options.rounds):
        order = list(checkouts) if number % 2 == 0 else list(reversed(checkouts))
        for name in order:
            seeds = -(-options.jobs // JOBS)
            pairs = options.pairs if options.campaign else None
            with _load(options.load):
                cost = campaign(
                    checkouts[name], jobs=options.jobs, duration_s=options.duration, seeds=seeds, pairs=pairs,
                    experiment=options.experiment, cells=cells,
                )  # fmt: skip
            costs[name].append(cost)
    from rich.console import Console

    from tests.bench.__main__ import draw

    draw(Console(width=None if sys.stdout.isatty() else 120), table_of(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
