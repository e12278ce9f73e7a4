"""The results of a job that has ended: tables, figures, files, and single runs with their air log and stories."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from record import records
from record.errors import RunFileError
from record.files import plain_file, special
from testbed.errors import ManetError, shortened
from testbed.serve.job import Job
from testbed.serve.queue import WrongState
from testbed.view.open_runs import OpenRuns
from testbed.view.recorded import RecordedRun

TABLES = {"runs": "table.csv", "summary": "summary.csv"}
PICTURES = (".png", ".svg", ".pdf")
MAX_FILES = 20_000  # of a list
MAX_ROWS = 10_000  # of an answer about the air log
KEPT = 2  # runs whose files stay in memory
Answer = dict[str, Any]


class NotThere(ManetError):
    """The results have no such part."""


class Results:
    """The results of the jobs. Methods raise NotThere, WrongState, or an RecordError for files that cannot be read."""

    def __init__(self) -> None:
        self._open: OpenRuns[RecordedRun] = OpenRuns(KEPT)

    def table(self, job: Job, name: str) -> Path:
        """The CSV file of a table of TABLES."""
        path = _ended(job).results / TABLES[name]
        if special(path) is None and not path.exists():
            raise NotThere(f"run {job.id}: has no table {name}; its state is {job.state}: {job.error or 'no run was measured'}")
        return path

    def rows(self, job: Job, name: str) -> list[dict[str, Any]]:
        """The rows of a table; an empty field is None."""
        import polars as pl

        path = self.table(job, name)
        try:
            with plain_file(path, beneath=job.folder) as file:
                return pl.read_csv(file, infer_schema_length=None).to_dicts()
        except pl.exceptions.PolarsError as problem:
            raise RunFileError(f"{path}: no table: {str(problem).splitlines()[0]}") from None

    def figures(self, job: Job) -> list[str]:
        """The names of the pictures beside the tables."""
        folder = _ended(job).results
        return sorted(name for name, _ in _walk(folder) if "/" not in name and Path(name).suffix in PICTURES)

    def figure(self, job: Job, name: str) -> Path:
        """The file of a figure."""
        if name not in self.figures(job):
            raise NotThere(f"figure {shortened(name)}: run {job.id} has none of this name; /figures lists them")
        return job.results / name

    def files(self, job: Job) -> list[dict[str, Any]]:
        """Path and size of each file, relative to the results."""
        entries = [{"path": name, "bytes": size} for name, size in _walk(_ended(job).results)]
        if len(entries) > MAX_FILES:
            raise WrongState(f"run {job.id}: has {len(entries)} files, above {MAX_FILES}; read them in {job.results}")
        return sorted(entries, key=lambda entry: str(entry["path"]))

    def file(self, job: Job, name: str) -> Path:
        """The file of exactly this name in the list: a name that leads elsewhere is in no list."""
        if not any(name == listed for listed, _ in _walk(_ended(job).results)):
            raise NotThere(f"file {shortened(name)}: run {job.id} has none of this name; /files lists them")
        return job.results / name

    def air(self, job: Job, cell: str, seed: int, begin_ns: int, end_ns: int | None, limit: int) -> dict[str, Any]:
        """The rows of the air log in a window of model time, in ns, in the order of the log; at most `limit` of `total`."""
        import numpy as np

        frames = self._run(job, cell, seed).frames
        times = frames.rows["t_ns"]
        chosen = np.flatnonzero((times >= begin_ns) & (times < (end_ns if end_ns is not None else 1 << 62)))
        rows = [{**frames.as_text(int(row)), "t_ns": int(times[row])} for row in chosen[:limit]]
        return {"total": len(chosen), "rows": rows}

    def story(self, job: Job, cell: str, seed: int, flow: str, segment: int | None, t: float, span: float) -> dict[str, Any]:
        """The story of a flow's segment, or of what was sent from `t` on for `span` seconds (formats/view.md)."""
        return self._run(job, cell, seed).story(flow, segment, t, span)

    def _run(self, job: Job, cell: str, seed: int) -> RecordedRun:
        directory = _ended(job).results / _cell(job, cell) / f"seed-{seed}"
        try:
            plain_file(directory / records.RUN, beneath=job.folder).close()
        except FileNotFoundError:
            text = f"cell {shortened(cell)}, seed {seed}: run {job.id} has no such run; its table lists them"
            raise NotThere(text) from None
        return self._open.opened(directory, lambda: RecordedRun(directory))


def _ended(job: Job) -> Job:
    if job.is_open:
        raise WrongState(f"run {job.id}: is {job.state}; results follow at its end, /events tells when")
    return job


def _cell(job: Job, name: str) -> str:
    """The cell's name, if experiment.json has it: the only names that become paths."""
    try:
        with plain_file(job.results / records.EXPERIMENT, beneath=job.folder) as file:
            cells = [cell["name"] for cell in json.load(file)["cells"]]
    except (OSError, ValueError, KeyError, TypeError):
        cells = []
    if name not in cells:
        raise NotThere(f"cell {shortened(name)}: run {job.id} has none of this name; its table lists them")
    return name


def _walk(folder: Path) -> Iterator[tuple[str, int]]:
    """Name and size of each plain file below the folder; no link is followed or listed, nor is a folder that is one."""
    if folder.is_symlink():
        return
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            try:
                status = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield str(path.relative_to(folder)), status.st_size
