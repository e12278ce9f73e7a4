"""The rounds of a campaign over several experiments: which runs are wanted, in batches, until every question is answered.

The first round has every cell with the seeds of its size; each later one the seeds that open questions need at their next look
(analysis/decisions). What is wanted follows from the runs and kept rows (analysis/tables/kept_rows.py) in the folders alone, so
that a campaign that was killed goes on where it was. A run that stays void after its reruns, or fails, is not repeated; the
report names it. The runs of a round are ordered by seed over all experiments, so that a round that the time limit ends is
balanced.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from analysis.decisions.answers import Answered, answers_of, cells_wanted
from analysis.decisions.question import VARIANT
from analysis.tables.kept_rows import runs_in
from analysis.tables.results import collect_runs, joined, plain
from record.files import read_object, write_atomic
from testbed.campaigns.batch import TARGET_S, Batch, split
from testbed.campaigns.cells import Cell
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.folder import BATCHES
from testbed.campaigns.schedule import RETRIES, Task, is_complete, read_verdict, tries
from testbed.campaigns.time_limit import Cut, TimeLimit
from testbed.errors import RunError

DONE = ".done.json"
Workflow = Callable[[Path], None]  # carries out the batches in a folder


@dataclass(frozen=True)
class Member:
    """An experiment of the campaign in its folder of results; `asked_only`: without the cells that no question compares."""

    experiment: Experiment
    directory: Path
    asked_only: bool = False

    def answers(self) -> list[Answered]:
        """The answers by the runs so far."""
        if not self.experiment.questions:
            return []
        runs = collect_runs(self.directory, tuple(self.experiment.axes))
        return answers_of(self._description, joined(runs, self.kept()))

    def kept(self) -> dict[tuple[str, int], dict[str, Any]]:
        """The rows of earlier runs that count as done, by cell and seed."""
        return runs_in(self.directory, self._description)

    @cached_property
    def _description(self) -> dict[str, Any]:
        return json.loads(self.experiment.to_json())

    def wanted(self) -> list[Task]:
        """The runs that the size and the open questions want and that have not ended, all cells at one seed before the next."""
        answers = self.answers()
        compared = {tuple(cell.items()) for answer in answers for cell in answer.asked.cells}
        more = cells_wanted(answers)
        seeds = {
            cell.name: max(self.experiment.seeds, more.get(self._key(cell), 0))
            if not self.asked_only or self._key(cell) in compared else 0
            for cell in self.experiment.cells
        }  # fmt: skip
        tasks = [
            Task(self.experiment.name, cell, seed, self.directory / cell.name / f"seed-{seed}")
            for seed in range(1, max(seeds.values()) + 1)
            for cell in self.experiment.cells
            if seed <= seeds[cell.name]
        ]
        done = self.kept()
        return [task for task in tasks if (task.cell.name, task.seed) not in done and not has_ended(task)]

    def _key(self, cell: Cell) -> tuple[tuple[str, Any], ...]:
        values = {axis: plain(cell.axes.get(axis)) for axis in self.experiment.axes} | {VARIANT: cell.variant or ""}
        return tuple(values.items())


def has_ended(task: Task) -> bool:
    """Whether the run is complete, or will not be repeated: it failed, or stayed void after its reruns."""
    if is_complete(task):
        return True
    run = read_object(task.directory / "run.json")
    if read_object(task.directory / "scenario.json") != json.loads(task.cell.scenario.to_json()):
        return False
    if run.get("status") == "failed" and not run.get("host_late"):
        return True
    void = run.get("host_late") or (run.get("status") == "complete" and read_verdict(task.directory) == "void")
    return bool(void) and (tries(task.directory) >= RETRIES or task.cell.scenario.clock == "virtual")


@dataclass
class Rounds:
    """The rounds in `directory`; `request` is what the batches have in common."""

    directory: Path
    members: list[Member]
    request: Batch
    workflow: Workflow
    say: Callable[[str], None]
    batch_jobs: int = 8  # runs side by side and wall time (s), by which batches are cut
    batch_s: float = TARGET_S
    limit: TimeLimit = field(default_factory=TimeLimit)
    folders: list[Path] = field(default_factory=list)
    cut: Cut | None = None  # the round that the time limit ended

    def run(self) -> None:
        """Carry out rounds until nothing is wanted or the time limit is reached. RunError if a round brings nothing."""
        for number in itertools.count(1):
            folder = self.directory / BATCHES / f"round-{number}"
            tasks: list[Task] = []
            if not folder.exists():
                tasks = sorted((task for member in self.members for task in member.wanted()), key=attrgetter("seed"))
                if not tasks or self._is_cut(number, tasks):
                    return
                self._write(folder, tasks)
            self.folders.append(folder)
            if not is_done(folder):
                self.limit.write(folder)
                self._say_round(number, folder)
                self.workflow(folder)
                if self._is_cut(number, [task for path in batches_in(folder) for task in Batch.read(path).tasks]):
                    return
            if tasks and not any(has_ended(task) for task in tasks):
                text = f"round {number} brought no run to its end, the first of them {tasks[0].full_name}"
                raise RunError(f"{text}; see its log, then start again")

    def _is_cut(self, number: int, tasks: list[Task]) -> bool:
        """Whether the time limit ends the campaign with some of a round's `tasks` to do."""
        left = sum(not has_ended(task) for task in tasks) if self.limit.is_reached else 0
        self.cut = Cut(number, len(tasks), left) if left else None
        return bool(left)

    def _write(self, folder: Path, tasks: list[Task]) -> None:
        """The batches of a round: written aside, so that a round exists complete or not at all."""
        aside = folder.with_name(f".{folder.name}")
        aside.mkdir(parents=True, exist_ok=True)
        for old in aside.iterdir():
            old.unlink()
        for number, part in enumerate(split(tasks, self.batch_jobs, self.batch_s), 1):
            common = self.request
            Batch(part, common.jobs, common.captures, common.kernel, common.allow_internet).write(aside / f"batch-{number}.json")
        aside.rename(folder)

    def _say_round(self, number: int, folder: Path) -> None:
        counts = [len(read_object(path)["runs"]) for path in batches_in(folder)]
        batches = "1 batch" if len(counts) == 1 else f"{len(counts)} batches"
        self.say(f"round {number}: {sum(counts)} runs in {batches}")


def batches_in(folder: Path) -> list[Path]:
    """The batches of a round, in order."""
    return sorted(
        (path for path in folder.glob("batch-*.json") if not path.name.endswith(DONE)), key=lambda path: _number(path.name)
    )


def is_done(folder: Path) -> bool:
    """Whether every batch of the round has its record."""
    return all(path.with_name(path.stem + DONE).exists() for path in batches_in(folder))


def done_records(directory: Path) -> Iterator[dict[str, Any]]:
    """The record of each batch that has ended (testbed/workers), with `round` and `batch`."""
    for path in sorted(
        (directory / BATCHES).glob(f"round-*/batch-*{DONE}"), key=lambda path: (_number(path.parent.name), _number(path.name))
    ):
        yield {"round": _number(path.parent.name), "batch": _number(path.name)} | read_object(path)


def _number(name: str) -> int:
    return int(name.split("-")[1].split(".")[0])


def now() -> str:
    """The time in UTC, ISO 8601, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_record(directory: Path, head: dict[str, Any], ended: bool) -> dict[str, Any]:
    """campaign.json (formats/answers.md) from the batches that have ended; returns its content."""
    records = list(done_records(directory))
    runs = [run for record in records for run in record["runs"] if run["status"] != "kept"]
    last = {(run["experiment"], run["cell"], run["seed"]): run for record in records for run in record["runs"]}
    verdicts = {
        kind: sum(run["verdict"] == kind and run["status"] != "failed" for run in last.values())
        for kind in ("valid", "suspect", "void")
    }
    content = {"format": "manet-campaign/1"} | head | {
        "ended": now() if ended else None,
        "rounds": [_sum(number, list(group)) for number, group in itertools.groupby(records, key=lambda record: record["round"])],
        "batches": [_line(record) for record in records],
        "wall_s": round(sum(record["wall_s"] for record in records), 1),
        "emulated_s": round(sum(record["emulated_s"] for record in records), 1),
        "verdicts": verdicts | {"failed": sum(run["status"] == "failed" for run in last.values())},
        "reruns": sum(run["voids"] for run in runs),
        "dropped": {key: sum(record["dropped"][key] for record in records) for key in ("runs", "bytes")},
    }  # fmt: skip
    write_atomic(directory / "campaign.json", json.dumps(content, indent=1) + "\n")
    return content


def _sum(number: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    return {"round": number, "batches": len(records), "runs": sum(len(record["runs"]) for record in records),
            "wall_s": round(sum(record["wall_s"] for record in records), 1),
            "emulated_s": round(sum(record["emulated_s"] for record in records), 1)}  # fmt: skip


def _line(record: dict[str, Any]) -> dict[str, Any]:
    keys = ("round", "batch", "host", "cores", "jobs", "wall_s", "emulated_s", "core_s", "timers_us")
    return {key: record[key] for key in keys} | {
        "runs": len(record["runs"]), "void": sum(run["verdict"] == "void" for run in record["runs"])
    }  # fmt: skip
