"""The rounds of a campaign over several experiments: which runs are wanted, in batches, until every question is answered.

The first round has every cell with the seeds of its size; each later one the seeds that open questions need at their next look
(analysis/decisions). What is wanted follows from the runs and kept rows (analysis/tables/kept_rows.py) in the folders alone, so
that a campaign that was killed goes on where it was. A run that stays void after its reruns, or fails, is not repeated; the
report names it.

An automaton without I/O decides (plan.py). Here its inputs are read: all folders before the first round, then only the runs of
the round that has just ended. A run that is changed while the campaign goes on is noticed by the report, which reads all files
once more.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.decisions.answers import Answered
from analysis.tables.kept_rows import runs_in
from analysis.tables.results import collect_runs, place, run_row
from record.files import read_object, write_atomic
from record.found_runs import SEED, exclusion_reason
from testbed.campaigns.batch import TARGET_S, Batch, renew, split
from testbed.campaigns.experiment import Experiment
from testbed.campaigns.folder import BATCHES
from testbed.campaigns.plan import MemberPlan, next_round
from testbed.campaigns.schedule import RETRIES, is_of, is_sound, read_verdict, tries
from testbed.campaigns.task import Task
from testbed.campaigns.time_limit import Cut, TimeLimit
from testbed.errors import RunError

DONE = ".done.json"
Workflow = Callable[[Path], None]  # carries out the batches in a folder


@dataclass(frozen=True)
class Member:
    """An experiment of the campaign in its folder of results."""

    experiment: Experiment
    directory: Path

    @cached_property
    def plan(self) -> MemberPlan:
        """Which of its runs are wanted next, by the runs and the kept rows that the folder has now; `take` enters later ones."""
        experiment: Experiment = self.experiment
        description = json.loads(experiment.to_json())
        kept = runs_in(self.directory, description)
        plan = MemberPlan(experiment.name, description, experiment.cells, experiment.seeds, self.directory, kept)
        folders = self._folders()
        rows = {place(row): row for row in collect_runs(self.directory, tuple(experiment.axes))} if folders else {}
        for task in folders:
            plan.ended(task.cell.name, task.seed, rows.get((task.cell.name, task.seed)), has_ended(task))
        return plan

    def answers(self) -> list[Answered]:
        """The answers by the runs so far."""
        return self.plan.answers()

    def take(self, task: Task) -> bool:
        """Enter a run of a round that was carried out; returns whether it has ended."""
        is_over, row = has_ended(task), None
        if (task.directory / "run.json").exists() and exclusion_reason(task.directory) is None:
            row = run_row(task.directory, self.directory, tuple(self.experiment.axes))
        self.plan.ended(task.cell.name, task.seed, row, is_over)
        return is_over

    def _folders(self) -> list[Task]:
        """The runs of its cells that the folder has."""
        return [
            Task(self.experiment.name, cell, int(match.group(1)), path)
            for cell in self.experiment.cells
            for path in (self.directory / cell.name).glob("seed-*")
            if (match := SEED.fullmatch(path.name)) is not None
        ]


def has_ended(task: Task) -> bool:
    """Whether the run is complete, or will not be repeated: it failed, or stayed void after its reruns."""
    run = read_object(task.directory / "run.json")
    status, host_late = run.get("status"), run.get("host_late")
    if not is_of(task.directory, task.cell):
        return False
    if (status == "failed" and not host_late) or (status == "complete" and is_sound(task.directory)):
        return True
    void = host_late or (status == "complete" and read_verdict(task.directory) == "void")
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
                tasks = next_round([member.plan for member in self.members])
                if not tasks or self._is_cut(number, tasks):
                    return
                self._write(folder, tasks)
            else:
                self._renew(folder)
            self.folders.append(folder)
            if not is_done(folder):
                self.limit.write(folder)
                self._say_round(number, folder, tasks)
                self.workflow(folder)
                if self.limit.is_reached:  # a round that an earlier call left is known by its batches alone
                    left = tasks or [task for path in batches_in(folder) for task in Batch.read(path).tasks]
                    if self._is_cut(number, left):
                        return
            if tasks and not self._take(tasks):
                text = f"round {number} brought no run to its end, the first of them {tasks[0].full_name}"
                raise RunError(f"{text}; see its log, then start again")

    def _take(self, tasks: list[Task]) -> int:
        """Enter the runs of a round; returns how many of them have ended."""
        members = {member.directory: member for member in self.members}
        return sum(members[task.results].take(task) for task in tasks)

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
            replace(self.request, tasks=part).write(aside / f"batch-{number}.json")
        aside.rename(folder)

    def _renew(self, folder: Path) -> None:
        """Give the batches that an earlier call left the present `--jobs` and `--captures`."""
        for path in batches_in(folder):
            if not _has_record(path):
                renew(path, self.request.jobs, self.request.captures)

    def _say_round(self, number: int, folder: Path, tasks: list[Task]) -> None:
        paths = batches_in(folder)
        runs = len(tasks) or sum(len(read_object(path)["runs"]) for path in paths)
        batches = "1 batch" if len(paths) == 1 else f"{len(paths)} batches"
        self.say(f"round {number}: {runs} runs in {batches}")


def batches_in(folder: Path) -> list[Path]:
    """The batches of a round, in order."""
    return sorted(
        (path for path in folder.glob("batch-*.json") if not path.name.endswith(DONE)), key=lambda path: _number(path.name)
    )


def is_done(folder: Path) -> bool:
    """Whether every batch of the round has its record."""
    return all(map(_has_record, batches_in(folder)))


def _has_record(batch: Path) -> bool:
    return batch.with_name(batch.stem + DONE).exists()


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
