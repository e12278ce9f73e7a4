"""A night: its parts run one after the other, its rows in the history, its figures judged against earlier nights."""

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from analysis.nights import table
from analysis.nights.change import Verdict, judge
from record.errors import RecordError
from testbed.errors import ManetError
from testbed.nightly.figure import Part
from testbed.runs import metadata

MACHINE_ID, PROCESSORS = Path("/etc/machine-id"), Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Night:
    """The outcome of a night. `commits`: old..new since the night before on this machine."""

    name: str
    date: datetime
    commits: str
    parts: dict[str, Part]
    verdicts: list[Verdict]

    @property
    def alarms(self) -> list[Verdict]:
        """The figures that changed beyond noise."""
        return [verdict for verdict in self.verdicts if verdict.alarm]

    @property
    def failures(self) -> list[str]:
        """The failures of all parts."""
        return [failure for part in self.parts.values() for failure in part.failures]


def run(history: Path, jobs: Mapping[str, Callable[[str], Part]]) -> Night:
    """Run each part, called with the night's name; judge its figures and enter them into the history."""
    date = datetime.now(UTC)
    name = _name(date)
    before = table.read(history).to_pylist()  # first: a history that cannot be read would cost the night
    parts = {part: _part(part, partial(job, name)) for part, job in jobs.items()}
    head = _head(name, date, before)
    rows = [row for part, outcome in parts.items() for row in rows_of(part, outcome, head)]
    verdicts = judged(before, rows)
    table.append(history, rows)
    return Night(name, date, head["commits"], parts, verdicts)


def _name(date: datetime) -> str:
    return date.strftime("%Y%m%d-%H%M%S")


def rows_of(part: str, outcome: Part, head: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a part's figures."""
    return [
        dict(head)
        | {
            "part": part, "metric": figure.metric, "unit": figure.unit, "value": value, "repetition": number,
            "run": figure.runs[number - 1] if figure.runs else f"repetition {number}",
            "kernel": figure.kernel or head["kernel"], "reference": figure.reference,
            "exact": figure.exact, "relevant": figure.relevant,
        }
        for figure in outcome.figures
        for number, value in enumerate(figure.values, start=1)
    ]  # fmt: skip


def judged(before: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[Verdict]:
    """The verdicts on tonight's rows, which get their entries `p` and `alarm`."""
    tonight = {table.place_of(row) for row in rows}
    earlier = [row for row in before if table.place_of(row) in tonight]
    verdicts = judge(table.series_of([*earlier, *rows]))
    of_place = {verdict.series.place: verdict for verdict in verdicts}
    for row in rows:
        verdict = of_place.get(table.place_of(row))
        row |= {"p": verdict and verdict.p, "alarm": bool(verdict and verdict.alarm)}
    return verdicts


def _part(name: str, job: Callable[[], Part]) -> Part:
    """A part that cannot run has failed; the others run."""
    try:
        return job()
    except (ManetError, RecordError, OSError) as problem:
        return Part(failures=[f"{name}: {problem}"])


def machine() -> str:
    """Twelve hexadecimal digits of a hash of the machine's id (else its name), its processor's model and its number of cores.
    Only nights of the same machine are compared."""
    try:
        name = MACHINE_ID.read_text().strip()
    except OSError:
        name = ""
    models = [line for line in PROCESSORS.read_text().splitlines() if line.startswith("model name")]
    return hashlib.sha256("\n".join([name or platform.node(), *models]).encode()).hexdigest()[:12]


def _head(name: str, date: datetime, before: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns that all rows of a night have in common."""
    commit, here = metadata.commit() or "unknown", machine()
    last = next((row["commit"] for row in reversed(before) if row["machine"] == here), None)
    return {
        "night": name, "date": date, "commit": commit, "commits": f"{last}..{commit}" if last else commit,
        "machine": here, "kernel": metadata.kernel(), "alarm": False, "baseline": False,
    }  # fmt: skip
