"""A campaign at 1,000 nodes and a million runs, simulated: `python -m tests.bench scale`.

The decisions are those of the program: which runs are wanted (testbed/campaigns/plan.py), how they are cut into batches
(batch.split), which run of a worker starts next and which are rerun (turn.py, schedule.RERUN_DIVISORS). Simulated, with a clock
of its own, are

- runs: the time on the air and RUN_EXTRA_S, times a heavy-tailed factor (Pareto, 1 in SLOW_SHARE of them), some of them void;
- nodes: a queue that gives the first waiting batch to a free node, which begins START_S later (Slurm and the worker's checks). A
  node fails after an exponential time, which is noticed after NOTICED_S (SlurmdTimeout). Its batch waits again, and only the runs
  under way are lost;
- a shared file system with a limited rate of operations on names (create, rename, open, stat), of which a run needs START_OPS and
  END_OPS, first come, first served;
- the coordinator: one process. Its own CPU time is measured here; for the files of an ended run it needs TAKE_S more.

Departures: Snakemake's 40 s between two looks at its jobs are not in START_S, nor its limit of jobs at once; `--jobs` is fixed
(SafeLoad reads /proc/stat); nothing is written.
"""

import argparse
import heapq
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.decisions.answers import Answered
from testbed.campaigns.batch import split
from testbed.campaigns.experiment import Experiment, load
from testbed.campaigns.plan import MemberPlan, next_round
from testbed.campaigns.request import Request
from testbed.campaigns.schedule import RERUN_DIVISORS, RETRIES
from testbed.campaigns.task import Outcome, Task
from testbed.campaigns.turn import Turn
from tests.bench import Table

RUN_EXTRA_S = 5.0  # start and stop of a run beside its time on the air
SLOW_SHARE, PARETO = 0.01, 1.5  # runs that take longer, and the exponent of their factor (no finite variance)
MAX_FACTOR = 20.0  # a run has a deadline
VOID_SHARE = 0.01
NOTICED_S = 300.0
REPAIR_S = 3600.0
START_S = 20.0
START_OPS, END_OPS = 250, 640  # of a run of five stations, 51 files, counted by strace: docs/scaling.md
TAKE_S = 0.006  # on a local disk; TAKE_OPS operations on names
TAKE_OPS, REMOTE_S = 220, 0.0003  # time of an operation on a file system over the network
DURATION_S = 60
QUESTION = """
[[questions]]
question = "cubic carries {claim}"
claim = "{claim}"
metric = "acked_kbps"
compared = "cubic"
with = "reno"
where = {{ hops = {hops} }}
matters = {matters}
max_pairs = {pairs}
"""
SCENARIO = """question = "Which of them are open at the limit?"
[scenario]
topology = "chain"
hops = 1
duration = {duration}
[axes]
hops = {hops}
[[variants]]
name = "reno"
set = {{ tcp = "reno" }}
[[variants]]
name = "cubic"
set = {{ tcp = "cubic" }}
[full]
seeds = 4
"""


@dataclass(frozen=True)
class Size:
    """`experiments` of `hops` times two cells, of which one in ten is decided early and the others take `pairs` pairs."""

    nodes: int
    experiments: int
    hops: int
    pairs: int
    jobs: int = 20
    mtbf_s: float = 30 * 86400.0
    ops_per_s: float = 20_000.0
    batch_s: float = 600.0
    take_s: float = TAKE_S

    @property
    def runs(self) -> int:
        """The runs of a campaign in which all questions stay open to their limit."""
        return self.experiments * 2 * self.hops * self.pairs


@dataclass
class Node:
    """A node with the batch that it carries out; `life` changes at each failure, so that events of an earlier one are void."""

    number: int
    batch: tuple[Task, ...] | None = None
    turn: Turn | None = None
    divisors: list[float] = field(default_factory=list)
    jobs: int = 0
    life: int = 0


@dataclass
class Result:
    """The course of a simulated campaign. `ended`: how often each run has ended; `order`: the seeds by their first starts."""

    wall_s: float = 0.0
    ideal_s: float = 0.0
    rounds: list[int] = field(default_factory=list)
    batches: int = 0
    ended: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    order: list[list[int]] = field(default_factory=list)  # of each round
    answers: list[Answered] = field(default_factory=list)
    lost: int = 0  # runs under way on a node that failed
    failures: int = 0
    voids: int = 0
    requeued: Counter[int] = field(default_factory=Counter)  # how often a batch was queued again, by batch
    coordinator_s: float = 0.0  # measured CPU
    reading_s: float = 0.0  # simulated: the files of ended runs
    waited_s: float = 0.0  # sum over runs, for the file system
    tail_s: float = 0.0  # sum over rounds: from the first node without work to the round's end

    @property
    def runs(self) -> int:
        """The runs that have ended."""
        return len(self.ended)


class Storage:
    """A file system that serves operations on names one after another."""

    def __init__(self, ops_per_s: float) -> None:
        self._ops_per_s, self._free_s = ops_per_s, 0.0

    def served(self, now_s: float, ops: int) -> float:
        """When operations that are requested now have been served."""
        self._free_s = max(self._free_s, now_s) + ops / self._ops_per_s
        return self._free_s


class Simulation:
    """One campaign; the same seed gives the same course."""

    def __init__(self, size: Size, seed: int, folder: Path) -> None:
        self.size, self.result = size, Result()
        self._rng = random.Random(seed)
        self._plans = {plan.directory: plan for plan in plans_of(size, folder)}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._now_s = 0.0
        self._storage = Storage(size.ops_per_s)
        self._nodes = [Node(number) for number in range(size.nodes)]
        self._queue: deque[tuple[Task, ...]] = deque()
        self._free: deque[Node] = deque(self._nodes)
        self._complete: dict[Path, float] = {}  # runs of the round that have ended well, or stay as they are
        self._tries: Counter[Path] = Counter()
        self._values: dict[Path, tuple[float, str]] = {}
        self._started: set[Path] = set()
        self._left = 0  # batches of the round that have not ended
        self._idle_s: float | None = None  # since when a node has had no work
        self._busy_s = 0.0

    def run(self) -> Result:
        """The whole campaign."""
        for node in self._nodes:
            self._at(self._rng.expovariate(1 / self.size.mtbf_s), lambda node=node: self._fail(node))
        while True:
            began = time.process_time()
            tasks = next_round(list(self._plans.values()))
            batches = split(tasks, self.size.jobs, self.size.batch_s)
            self.result.coordinator_s += time.process_time() - began
            if not tasks:
                break
            self._round(tasks, batches)
        self.result.wall_s = self._now_s
        self.result.ideal_s = self._busy_s / (self.size.nodes * self.size.jobs)
        self.result.answers = [answer for plan in self._plans.values() for answer in plan.answers()]
        return self.result

    def _round(self, tasks: list[Task], batches: list[tuple[Task, ...]]) -> None:
        self._queue.extend(batches)
        self._left, self._idle_s = len(batches), None
        self._complete.clear()
        self.result.order.append([])
        self._deal()
        while self._left:
            self._now_s, _, event = heapq.heappop(self._events)
            event()
        self.result.tail_s += self._now_s - (self._now_s if self._idle_s is None else self._idle_s)
        self.result.rounds.append(len(tasks))
        self.result.batches += len(batches)
        began = time.process_time()
        for task in tasks:
            self._plans[task.results].ended(task.cell.name, task.seed, self._row(task), True)
        self.result.coordinator_s += time.process_time() - began
        self.result.reading_s += self.size.take_s * len(tasks)
        self._now_s += self.size.take_s * len(tasks)

    def _deal(self) -> None:
        """Give waiting batches to free nodes."""
        while self._queue and self._free:
            node = self._free.popleft()
            node.batch = self._queue.popleft()
            self._at(START_S, lambda node=node, life=node.life: self._begin(node, life))
        if self._free and self._idle_s is None:
            self._idle_s = self._now_s

    def _begin(self, node: Node, life: int) -> None:
        if node.life != life or node.batch is None:
            return
        todo = [task for task in node.batch if task.directory not in self._complete]
        node.jobs, node.divisors = self.size.jobs, [*RERUN_DIVISORS]
        node.turn = Turn.of(todo, node.jobs, adapts=True)
        self._go_on(node)

    def _go_on(self, node: Node) -> None:
        """Start what may start; at the end of a turn rerun its void runs, at the end of the last one free the node."""
        assert node.turn is not None
        for task in node.turn.starts():
            self._start(node, task)
        while node.turn.is_over:
            if not node.divisors or not node.turn.voids:
                self._left, node.batch, node.turn = self._left - 1, None, None
                self._free.append(node)
                self._deal()
                return
            jobs = max(1, int(node.jobs // node.divisors.pop(0)))
            again = [outcome.task for outcome in node.turn.voids if outcome.task.directory not in self._complete]
            node.turn = Turn.of(again, jobs, adapts=False)
            for task in node.turn.starts():
                self._start(node, task)

    def _start(self, node: Node, task: Task) -> None:
        if task.directory not in self._started:
            self._started.add(task.directory)
            self.result.order[-1].append(task.seed)
        factor = min(MAX_FACTOR, self._rng.paretovariate(PARETO)) if self._rng.random() < SLOW_SHARE else 1.0
        length_s = factor * (DURATION_S + RUN_EXTRA_S)
        begun_s = self._storage.served(self._now_s, START_OPS)
        self.result.waited_s += begun_s - self._now_s
        self._at(begun_s - self._now_s + length_s, lambda life=node.life: self._write(node, life, task, length_s))

    def _write(self, node: Node, life: int, task: Task, length_s: float) -> None:
        if node.life == life:
            written_s = self._storage.served(self._now_s, END_OPS)
            self.result.waited_s += written_s - self._now_s
            self._at(written_s - self._now_s, lambda: self._end(node, life, task, length_s))

    def _end(self, node: Node, life: int, task: Task, length_s: float) -> None:
        if node.life != life or node.turn is None:
            return
        self._busy_s += length_s
        verdict = "void" if self._rng.random() < VOID_SHARE else "valid"
        outcome = Outcome(task, "complete", verdict)
        if outcome.should_rerun:
            self.result.voids += 1
            self._tries[task.directory] += 1
        if not outcome.should_rerun or self._tries[task.directory] > RETRIES:
            self._complete[task.directory] = self._now_s
            self._values[task.directory] = (self._kbps(task), verdict)
            self.result.ended[task.experiment, task.cell.name, task.seed] += 1
        node.turn.ended(outcome)
        self._go_on(node)

    def _fail(self, node: Node) -> None:
        """The node goes down: its runs are lost at once, its batch waits again when that is noticed."""
        self.result.failures += 1
        batch, node.batch = node.batch, None
        if node.turn is not None:
            self.result.lost += len(node.turn.running)
        node.life, node.turn = node.life + 1, None
        if batch is not None:
            self.result.requeued[id(batch)] += 1
            self._at(NOTICED_S, lambda: self._again(batch))
        elif node in self._free:
            self._free.remove(node)
        self._at(REPAIR_S, lambda: self._repair(node))

    def _again(self, batch: tuple[Task, ...]) -> None:
        self._queue.append(batch)
        self._deal()

    def _repair(self, node: Node) -> None:
        self._free.append(node)
        self._at(self._rng.expovariate(1 / self.size.mtbf_s), lambda: self._fail(node))
        self._deal()

    def _kbps(self, task: Task) -> float:
        """One in ten places has a clear difference; in the others it just matters."""
        clear = task.cell.axes["hops"] % 10 == 0
        return self._rng.gauss(300.0 + (100.0 if clear else 1.0) * (task.cell.variant == "cubic"), 20.0)

    def _row(self, task: Task) -> dict[str, Any] | None:
        kbps, verdict = self._values[task.directory]
        return {
            **task.cell.axes, "variant": task.cell.variant, "seed": task.seed, "status": "complete", "verdict": verdict,
            "host_late": False, "acked_kbps": kbps, "emulated_s": float(DURATION_S),
        }  # fmt: skip

    def _at(self, in_s: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now_s + in_s, next(self._numbers), event))


def plans_of(size: Size, folder: Path) -> list[MemberPlan]:
    """The experiments, read from a file as each campaign reads its own."""
    experiment = _experiment(size, folder / "scale.toml")
    description = json.loads(experiment.to_json())
    return [
        MemberPlan(f"e{number}", description, experiment.cells, experiment.seeds, folder / f"e{number}")
        for number in range(size.experiments)
    ]


def _experiment(size: Size, path: Path) -> Experiment:
    hops = list(range(1, size.hops + 1))
    words = {"duration": DURATION_S, "hops": hops, "matters": 0.5, "pairs": size.pairs}
    text = SCENARIO.format(**words) + "".join(QUESTION.format(claim="more", **(words | {"hops": each})) for each in hops)
    path.write_text(text)
    return load(path, Request())


def simulated(size: Size, seed: int) -> Result:
    """The course of a campaign of this size."""
    with tempfile.TemporaryDirectory() as folder:
        return Simulation(size, seed, Path(folder)).run()


# 10^4, 10^5 and 10^6 runs; then one limit at a time
SIZES = {
    "10,000 runs": Size(10, 10, 10, 50),
    "100,000 runs": Size(100, 20, 25, 100),
    "1,000,000 runs": Size(1000, 40, 25, 500),
    "1,000,000, 2,000 operations/s": Size(1000, 40, 25, 500, ops_per_s=2000.0),
    "1,000,000, coordinator reads by NFS": Size(1000, 40, 25, 500, take_s=TAKE_S + TAKE_OPS * REMOTE_S),
    "1,000,000, batches of 2 min": Size(1000, 40, 25, 500, batch_s=120.0),
    "1,000,000, nodes fail each day": Size(1000, 40, 25, 500, mtbf_s=86400.0),
}


def measure() -> Table:
    return table_of(SIZES)


def table_of(sizes: dict[str, Size], seed: int = 7) -> Table:
    columns = [
        "campaign", "nodes", "runs", "rounds", "batches", "wall h", "ideal h", "of it reading h", "tails h", "file system s/run",
        "coordinator CPU us/run", "failures", "lost runs", "batches failed 3 times", "undecided",
    ]  # fmt: skip
    table = Table("A simulated campaign", columns, "coordinator's CPU per run the same from 10^4 to 10^6")
    for name, size in sizes.items():
        result = simulated(size, seed)
        table.rows.append([
            name, size.nodes, result.runs, len(result.rounds), result.batches, result.wall_s / 3600, result.ideal_s / 3600,
            result.reading_s / 3600, result.tail_s / 3600, result.waited_s / result.runs,
            1e6 * result.coordinator_s / result.runs, result.failures, result.lost,
            sum(count > 2 for count in result.requeued.values()), sum(each.verdict == "undecided" for each in result.answers),
        ])  # fmt: skip
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SIZES)}; default: all")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    for name in options.names:
        if name not in SIZES:
            parser.error(f'"{name}" is no size')
    table = table_of({name: SIZES[name] for name in options.names or SIZES}, options.seed)
    json.dump({"columns": table.columns, "rows": table.rows}, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
