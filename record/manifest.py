"""manifest.json of a run directory: the size and SHA-256 of every file at the end of the run (formats/results.md).

It is written last, when the run has ended. A later reader detects missing, truncated and changed files by it. Pictures are not
listed: they are drawn from the other files and may be redrawn. metrics.json and the records of datagrams are entered when they
are made.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from record.errors import RunFileError
from record.files import UNFINISHED, plain_file, read_object, read_text, write_atomic

NAME = "manifest.json"
FORMAT = "manet-manifest/1"
DERIVED = re.compile(r"metrics\.json|datagrams/[^/]+\.csv")  # calculated from the rest; recalculated if missing
PICTURES = (".png", ".pdf", ".svg")
READ_AT_ONCE = 1 << 20  # bytes; file_digest allocates a buffer for each file, most of which are small
NAMED_FILES = 3  # at most so many different files in one line

_checked: dict[Path, tuple[tuple[Any, ...], str | None]] = {}  # results, valid while no file changes, for reports


def write(run_dir: Path) -> None:
    """Enter all files that exist now."""
    paths = sorted(path for path in run_dir.rglob("*") if path.is_file() and not path.is_symlink() and _belongs(path))
    _save(run_dir, {str(path.relative_to(run_dir)): entry_of(path) for path in paths}, dropped_files(run_dir))


def enter(run_dir: Path, *names: str) -> None:
    """Enter files that the testbed made or changed later; a run without a manifest gets none."""
    if (run_dir / NAME).exists():
        files, dropped = _read(run_dir)
        _save(run_dir, dict(sorted((files | {name: entry_of(run_dir / name) for name in names}).items())), dropped)


def drop(run_dir: Path, names: Iterable[str]) -> int:
    """Delete files that the manifest lists, and keep their sizes and hashes in it, as `dropped`; returns the bytes.

    The manifest is written first: a file that a crash leaves is deleted by the next call."""
    files, dropped = _read(run_dir)
    dropped_now = {name: files[name] for name in names if name in files}
    if dropped_now:
        remaining = {name: entry for name, entry in files.items() if name not in dropped_now}
        _save(run_dir, remaining, dropped | dropped_now)
    for name in dropped | dropped_now:
        (run_dir / name).unlink(missing_ok=True)
    return sum(entry["bytes"] for entry in dropped_now.values())


def dropped_files(run_dir: Path) -> dict[str, dict[str, Any]]:
    """Size and hash of each file that a campaign's rule has deleted."""
    return read_object(run_dir / NAME).get("dropped", {})


def lists(run_dir: Path, name: str) -> bool:
    """Whether the manifest lists this file; False without a readable manifest."""
    try:
        return name in _read(run_dir)[0]
    except RunFileError:
        return False


def only_derived_differ(run_dir: Path) -> bool:
    """Whether recalculated metrics would make the run complete; what was dropped is needed for them."""
    try:
        files, dropped = _read(run_dir)
    except RunFileError:
        return False
    measured = {name: entry for name, entry in files.items() if not DERIVED.fullmatch(name)}
    return not dropped and _difference(run_dir, measured, remakes=True) is None


def difference(run_dir: Path) -> str | None:
    """Differences from the manifest, in one line; None without any."""
    try:
        files, dropped = _read(run_dir)
    except RunFileError as problem:
        return str(problem)
    state = tuple(_state(f"{run_dir}/{name}") for name in (NAME, *files))
    known = _checked.get(run_dir)
    if known is None or known[0] != state:
        known = _checked[run_dir] = (state, _difference(run_dir, files, remakes=not dropped))
    return known[1]


def changed_since(run_dir: Path, since_ns: int) -> str | None:
    """Like `difference`, for a run that agreed at this time (CLOCK_REALTIME): a file that has its size and was not touched later
    (ctime) is not read."""
    try:
        files, dropped = _read(run_dir)
    except RunFileError as problem:
        return str(problem)
    return _difference(run_dir, files, remakes=not dropped, since_ns=since_ns)


def _difference(run_dir: Path, files: dict[str, dict[str, Any]], remakes: bool, since_ns: int = 0) -> str | None:
    compared = (_compared(run_dir, name, entry, remakes, since_ns) for name, entry in files.items())
    differences = [text for text in compared if text is not None]
    more = [f"and {len(differences) - NAMED_FILES} more"] if len(differences) > NAMED_FILES else []
    return "; ".join([*differences[:NAMED_FILES], *more]) or None


def _compared(run_dir: Path, name: str, entry: dict[str, Any], remakes: bool, since_ns: int) -> str | None:
    """The difference of one file; a derived one may be missing if the run `remakes` it, which takes its captures."""
    derived = DERIVED.fullmatch(name) is not None
    try:
        status = os.stat(f"{run_dir}/{name}")  # noqa: PTH116 (as in _state)
    except PermissionError:
        raise
    except (OSError, ValueError):  # as Path.is_file
        status = None
    if status is None or not stat.S_ISREG(status.st_mode):
        return None if derived and remakes else f"{name} is missing"
    size = status.st_size
    if size != entry["bytes"] and not derived:
        return f"{name} has {size} bytes instead of {entry['bytes']}"
    if size == entry["bytes"] and (status.st_ctime_ns <= since_ns or _sha256(run_dir / name) == entry["sha256"]):
        return None
    return f"{name} was changed" + ("; `manet report --again` recalculates it" if derived and remakes else "")


def _belongs(path: Path) -> bool:
    return path.name != NAME and path.suffix not in (*PICTURES, UNFINISHED)


def entry_of(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with plain_file(path) as file:
        if os.fstat(file.fileno()).st_size <= READ_AT_ONCE:
            return hashlib.sha256(file.read()).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 (a Path for each of many files takes as long as their stat)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _save(run_dir: Path, files: dict[str, dict[str, Any]], dropped: dict[str, dict[str, Any]]) -> None:
    text = {"format": FORMAT, "files": files}
    write_atomic(run_dir / NAME, json.dumps(text | ({"dropped": dropped} if dropped else {}), indent=1) + "\n")


def _read(run_dir: Path) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The files and the dropped files; a RunFileError for a manifest that is none."""
    path = run_dir / NAME
    try:
        content = json.loads(read_text(path))
        if content["format"] == FORMAT and all({"bytes", "sha256"} <= entry.keys() for entry in content["files"].values()):
            return content["files"], content.get("dropped", {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise RunFileError(f'{NAME} is no "{FORMAT}"')
