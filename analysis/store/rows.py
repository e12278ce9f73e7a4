"""The rows of the result store: each from a row of table.csv and the files of its run."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.store.schema import GROUPS, OF_FLOWS, RUNS
from analysis.tables.results import counts, ending, run_row, scaled
from record.doubt import doubt
from record.files import read_bytes, read_object
from record.found_runs import ASIDE

TIMES = ("started", "ended", "written")


def now() -> datetime:
    """The time that `written` of a row holds."""
    return datetime.now(UTC)


def row_of_directory(run_dir: Path, out_dir: Path) -> dict[str, Any]:
    """The row of a run that has ended, whose metrics may be missing yet; its axes are those of its run.json."""
    run = read_object(run_dir / "run.json")
    axes = tuple(run.get("axes") or {})
    return row_of(run_row(run_dir, out_dir, axes), out_dir, run.get("experiment") or out_dir.name, axes)


def row_of(row: Mapping[str, Any], out_dir: Path, experiment: str, axes: tuple[str, ...]) -> dict[str, Any]:
    """A row of runs.parquet, with the values of the axes in `axes`; `row` is that of table.csv."""
    run_dir = out_dir / row["run_dir"]
    run, verdict = read_object(run_dir / "run.json"), read_object(run_dir / "verdict.json")
    aside = ASIDE in Path(row["run_dir"]).parts[:-1]
    started, ended = _time(run.get("started")), _time(run.get("ended"))
    return dict(row) | {
        "experiment": experiment,
        "cell": run.get("cell") or Path(row["run_dir"]).parts[0],
        "axes": {axis: row[axis] for axis in axes},
        "ending": ending(row),
        "counts": counts(row) and not aside,
        "aside": aside,
        "error": doubt(run_dir),
        "run_id": run.get("id"),
        "started": started,
        "ended": ended,
        "wall_s": (ended - started).total_seconds() if started and ended else None,
        "emulated_s": verdict.get("model_ns", 0) / 1e9 or None,
        "clock": (run.get("clock") or {}).get("kind") or "real",
        "tcp": (run.get("tcp") or {}).get("flow1"),
        "commit": run.get("commit"),
        "kernel": run.get("kernel"),
        "versions": json.dumps(run.get("versions") or {}, sort_keys=True),
        "host": (run.get("host") or {}).get("name"),
        "cpus": (run.get("host") or {}).get("cpus"),
        "scenario_sha256": _sha256(run_dir / "scenario.json"),
        "written": now(),
    }


def as_json(row: Mapping[str, Any]) -> str:
    """A row of runs.parquet as text, until it is moved there."""
    names = [field.name for group in GROUPS[RUNS] for field in group]
    return json.dumps({"format": RUNS, "axes": row["axes"], "row": {name: row.get(name) for name in names}}, default=_as_text)


def from_json(text: str) -> dict[str, Any]:
    """The row of `as_json`. Raises ValueError, KeyError, TypeError for another text."""
    content = json.loads(text)
    if content["format"] != RUNS:
        raise ValueError(f'is no "{RUNS}"')
    row: dict[str, Any] = {**content["row"], "axes": dict(content["axes"])}
    return row | {name: _time(row.get(name)) for name in TIMES}


def flow_rows(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of flows.parquet of a run, from its row of runs.parquet."""
    for name, flow in row["flow_metrics"].items():
        ends = {"flow": name, "traffic": flow.get("traffic"), "source": flow.get("from"), "target": flow.get("to")}
        values = {metric: scaled(flow.get(entry), divisor) for metric, (_, entry, divisor) in OF_FLOWS.items()}
        yield dict(row) | ends | values


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _time(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (TypeError, ValueError):
        return None


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(read_bytes(path)).hexdigest() if path.exists() else None
