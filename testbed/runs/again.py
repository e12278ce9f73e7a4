"""Run a recorded run again (`manet run RUN_DIR`): its scenario and seed, into a new directory."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from record.files import read_text
from testbed.errors import UsageError
from testbed.runs.by_hand import with_actions
from testbed.runs.recorded import Recorded
from testbed.runs.run import Progress, RunResult
from testbed.runs.verdict import verdict_of

FOLDER = "again"  # below the results; in its experiment's folder the run would count twice
SESSIONS = ("cli", "script")


def require_repeatable(recorded: Recorded) -> None:
    """Raise UsageError for a session that has no record of its events. (Its repetition is a run.)"""
    if recorded.run.get("experiment") in SESSIONS and not {"session_s", "repeats"} & recorded.run.keys():
        text = "is a session that did not begin, or whose events an earlier version did not record"
        raise UsageError(f"{recorded.directory}: {text}; `manet replay` repeats its air")


def new_directory(results: Path, recorded: Recorded) -> Path:
    """`results/again/<experiment>-<cell>-seed-<n>`, with a number appended if that exists."""
    words = [str(recorded.run.get(key) or "") for key in ("experiment", "cell")]
    name = "-".join([*filter(None, words), f"seed-{recorded.seed}"])
    directory, number = results / FOLDER / name, 1
    while directory.exists():
        number += 1
        directory = results / FOLDER / f"{name}-{number}"
    return directory


def run_again(recorded: Recorded, directory: Path, runner: Callable[..., RunResult], progress: Progress) -> dict[str, Any]:
    """Run, measure, and compare both runs: the object that `manet run RUN_DIR --json` prints."""
    from analysis.metrics.analyse import analyse_run

    of_record = {**recorded.experiment_fields, "repeats": str(recorded.directory)}
    by_hand = with_actions(recorded.directory, recorded.scenario)
    ended = runner(by_hand.scenario, recorded.seed, directory, progress=progress, **of_record)
    metrics = analyse_run(directory) if ended.status == "complete" else {"flows": {}}
    return {
        "format": "manet-again/1",
        "repeats": str(recorded.directory),
        "directory": str(directory),
        "seed": recorded.seed,
        "profile": recorded.scenario.profile,
        "clock": recorded.scenario.clock,
        "status": ended.status,
        "verdict": verdict_of(directory),  # with the cross-checks
        "error": ended.error,
        "differences": recorded.differences()
        + _inputs(recorded.directory, directory)
        + [f"not repeated: {action}" for action in by_hand.left_out],
        "by_hand": by_hand.repeated,
        "flows": _side_by_side(recorded, metrics),
        "remarks": metrics.get("remarks", []),
    }


def _side_by_side(recorded: Recorded, metrics: dict[str, Any]) -> dict[str, dict[str, float | None]]:
    """The rates that each flow delivered in both runs, in bit/s."""
    path = recorded.directory / "metrics.json"
    before = json.loads(read_text(path)).get("flows", {}) if path.exists() else {}
    return {
        name: {"recorded_bps": before.get(name, {}).get("delivered_bps"), "again_bps": flow.get("delivered_bps")}
        for name, flow in metrics["flows"].items()
    }


def _inputs(was: Path, now: Path) -> list[str]:
    """A line for each copy of an input that differs: a file may have changed since."""
    changed = {
        "trace.csv": "the stations stand or move differently than in the record; was a movement file changed?",
        "radio.toml": "the radio's profile differs from that of the record; was its file changed, or is this another version?",
        "links.csv": "the links differ from those of the record; was the file of propagation changed?",
    }
    return [f"{name}: {text}" for name, text in changed.items() if not _same(was / name, now / name)]


def _same(was: Path, now: Path) -> bool:
    """Whether two files have the same content; true also where one is missing."""
    try:
        return was.read_bytes() == now.read_bytes()
    except OSError:
        return True
