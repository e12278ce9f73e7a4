"""The runs in a folder of results: `<cell>/seed-<n>`.

A run counts if it agrees with its place, the scenario of its cell and its manifest, and each run counts once. Other runs are
left out of every table and figure, and are listed with the reason. Runs that were put aside (`<cell>/void/`) are not results and
are not listed here.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from record import manifest, records
from record.errors import RunFileError
from record.files import read_object, read_text

SEED = re.compile(r"seed-([1-9][0-9]*)")
ASIDE = "void"


@dataclass
class FoundRuns:
    """`left_out` and `not_checked` name runs as paths relative to the folder of results."""

    runs: list[Path] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    not_checked: list[str] = field(default_factory=list)  # without a manifest: they count, but changes to them are not detected


_known: ContextVar[Mapping[Path, FoundRuns]] = ContextVar("known", default={})  # noqa: B039 (never changed, only replaced)


@contextmanager
def known(out_dir: Path, found: FoundRuns) -> Iterator[None]:
    """Within the block the runs below `out_dir` are `found`: a report checks each file once, and its figures use the same
    runs."""
    token = _known.set({**_known.get(), out_dir: found})
    try:
        yield
    finally:
        _known.reset(token)


def folders_of_runs(out_dir: Path) -> Iterator[Path]:
    """The runs below `out_dir` in any order, without those put aside.

    Hidden folders are not entered: the store's comes and goes while runs end.
    """
    for folder, names, files in os.walk(out_dir):
        names[:] = [name for name in names if name != ASIDE and not name.startswith(".")]
        if "run.json" in files:
            yield Path(folder)


def title_of(folder: Path) -> str:
    """The name of a folder on pages and maps: the last parts of its path, as `hv-fig1/ns2-hops3/seed-1`."""
    return str(Path(*folder.parts[-3:]))


def find_run(path: Path) -> Path:
    """The run directory `path`, or the only one below it; a RunFileError that lists the candidates."""
    if (path / "run.json").exists():
        return path
    if not path.is_dir():
        raise RunFileError(f"{path}: no such folder; name the directory of a run, results/NAME/CELL/seed-N")
    run_dirs = sorted(folders_of_runs(path))
    if not run_dirs:
        raise RunFileError(f"{path}: no run in it (no run.json); name the directory of a run, results/NAME/CELL/seed-N")
    if len(run_dirs) > 1:
        raise RunFileError(f"{path}: {len(run_dirs)} runs are in it; name one of them, such as {run_dirs[0]}")
    return run_dirs[0]


def find_runs(out_dir: Path) -> FoundRuns:
    """Every run below `out_dir`, in the order of cells and seeds; the files are read in parallel."""
    if out_dir in _known.get():
        return _known.get()[out_dir]
    found, ids = FoundRuns(), dict[str, str]()
    run_dirs = sorted(folders_of_runs(out_dir), key=_in_order)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:  # hashlib and reading do not hold Python's lock
        reasons = list(pool.map(exclusion_reason, run_dirs))
    for run_dir, reason in zip(run_dirs, reasons, strict=True):
        name = str(run_dir.relative_to(out_dir))
        why = reason or _copied(run_dir, name, ids)
        if why is not None:
            found.left_out[name] = why
            continue
        found.runs.append(run_dir)
        if not (run_dir / manifest.NAME).exists():
            found.not_checked.append(name)
    return found


def exclusion_reason(run_dir: Path) -> str | None:
    """The contradiction between a run and its place, the scenario of its cell, its run.json or its manifest; None for a run that
    counts."""
    return misplaced(run_dir) or changed(run_dir)


def changed(run_dir: Path, since_ns: int | None = None) -> str | None:
    """The difference between a run and its manifest; `since_ns` as of `manifest.changed_since`. A run without a manifest counts
    only in results without sums of scenarios, which may be older than manifests."""
    if not (run_dir / manifest.NAME).exists():
        known = _scenarios_of(run_dir.parents[1]).get(run_dir.parent.name)
        return None if known is None else "has no manifest.json, by which changes would show; rerun it with --resume"
    return manifest.difference(run_dir) if since_ns is None else manifest.changed_since(run_dir, since_ns)


def misplaced(run_dir: Path) -> str | None:
    """Like `exclusion_reason`, but without a look at the manifest."""
    match = SEED.fullmatch(run_dir.name)
    if match is None:
        return "is no seed-<n>; a run has one place, and a copy does not count: move it out of the results"
    record = _record(run_dir)
    if record is None:
        return "run.json is no JSON object; move the run out of the results and rerun it with --resume"
    if (wrong := records.wrong_value(records.RUN, record)) is not None:
        return f"run.json: {wrong}; move the run out of the results and rerun it with --resume"
    seed, cell = record.get("seed"), record.get("cell")
    if seed is not None and seed != int(match.group(1)):
        return f"is seed {seed} by its run.json; a copy is no second seed: move it out of the results"
    if cell and cell != run_dir.parent.name:
        return f'is of cell "{cell}" by its run.json; move it back, or out of the results'
    wanted = _scenarios_of(run_dir.parents[1]).get(run_dir.parent.name)
    if wanted is not None and wanted != scenario_sum(read_object(run_dir / "scenario.json")):
        return "is of another scenario than its cell (scenario.json); move it out of the results, and rerun it with --resume"
    return None


def scenario_sum(scenario: dict[str, Any]) -> str:
    """SHA-256 of the content of a scenario.json, whatever its layout: `scenario_sha256` of experiment.json."""
    return hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()


def _scenarios_of(out_dir: Path) -> dict[str, str]:
    """The sum of each cell's scenario, by the cell's name; none of results older than these sums."""
    path = out_dir / records.EXPERIMENT
    try:
        status = path.stat()
    except OSError:
        return {}
    return _sums_in(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _sums_in(path: Path, _mtime_ns: int, _size: int) -> dict[str, str]:
    cells = read_object(path).get("cells")
    cells = [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
    return {str(cell.get("name")): cell["scenario_sha256"] for cell in cells if cell.get("scenario_sha256")}


def _copied(run_dir: Path, name: str, ids: dict[str, str]) -> str | None:
    """Runs with the id of another run; the first of them counts."""
    identity = (_record(run_dir) or {}).get("id")
    first = ids.setdefault(identity, name) if identity else name
    return None if first == name else f"is a copy of {first}, by the id in its run.json; move it out of the results"


def _record(run_dir: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(read_text(run_dir / "run.json"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _in_order(run_dir: Path) -> tuple[Path, int, str]:
    match = SEED.fullmatch(run_dir.name)
    return run_dir.parent, int(match.group(1)) if match else 0, run_dir.name
