"""The files of a bundle: a folder of results, the experiment's file, and from the checkout the lock files.

Lock files and an experiment of the checkout are those of the commit that the runs recorded, if git knows it, else those of the
checkout. A user's own experiment is in experiment.json, as it was when its runs began.
"""

import json
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from record import records
from record.files import UNFINISHED, read_object
from testbed.campaigns import library
from testbed.campaigns.missing import words_of
from testbed.errors import UsageError
from testbed.programs import ROOT

DESCRIPTIONS = ("experiment.json", "campaign.json")  # of a folder of results, of a campaign's folder
CAPTURES, CAPTURED = "captures", (".pcap", ".pcapng")
LOCKS = ("requirements.lock", "requirements.in", "Cargo.lock")
MAX_BASES = 10  # files that an experiment's `base` may lead through


@dataclass
class Contents:
    """Names in the archive, each with its file or its bytes; and the files of the folder that stay out, with the reason."""

    name: str
    runs: list[str] = field(default_factory=list)  # names of the runs' folders
    members: dict[str, Path | bytes] = field(default_factory=dict)
    left_out: dict[str, tuple[Path, str]] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)


def contents_of(directory: Path, captures: bool) -> Contents:
    """All files that belong in the bundle of a folder of results, or of a campaign's folder. UsageError for another folder."""
    if not any((directory / name).is_file() for name in DESCRIPTIONS):
        raise UsageError(f"{directory}: holds neither experiment.json nor campaign.json; give a folder that `manet run` has made")
    contents = Contents(directory.resolve().name or "results")
    for path in sorted(directory.rglob("*")):
        _place(contents, directory, path, captures)
    experiments = [read_object(path) for path in _experiments(directory)]
    contents.questions = [str(experiment["question"]) for experiment in experiments if experiment.get("question")]
    contents.provenance = provenance(
        [records.read(path) for path in contents.members.values() if isinstance(path, Path) and path.name == records.RUN]
    )
    commit = _only(contents.provenance["commits"])
    for name in [*LOCKS, *(file for experiment in experiments for file in _definition(experiment))]:
        content = _at(commit, name)
        if content is not None:
            contents.members[f"checkout/{name}"] = content
    for path in _experiments(directory):
        contents.members |= {name: text.encode() for name, text in _own_definition(path)}
    contents.members["provenance.json"] = (json.dumps(contents.provenance, indent=1, sort_keys=True) + "\n").encode()
    return contents


def provenance(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The origins of the runs, as run.json records them: each distinct value once, sorted."""
    started = sorted(run["started"] for run in runs if run.get("started"))
    ended = sorted(run["ended"] for run in runs if run.get("ended"))
    versions: dict[str, set[str]] = {}
    for name, version in ((name, version) for run in runs for name, version in (run.get("versions") or {}).items()):
        versions.setdefault(name, set()).add(str(version))
    return {
        "runs": len(runs),
        "started": started[0] if started else None,
        "ended": ended[-1] if ended else None,
        "commits": _distinct(run.get("commit") for run in runs),
        "kernels": _distinct(run.get("kernel") for run in runs),
        "hosts": _distinct((run.get("host") or {}).get("name") for run in runs),
        "seeds": sorted({run["seed"] for run in runs if isinstance(run.get("seed"), int)}),
        "tcp": _distinct(tcp for run in runs for tcp in (run.get("tcp") or {}).values()),
        "versions": {name: sorted(texts) for name, texts in sorted(versions.items())},
    }


def _place(contents: Contents, directory: Path, path: Path, captures: bool) -> None:
    """Sort one path below the folder into the bundle, or out of it."""
    name = f"results/{contents.name}/{path.relative_to(directory)}"
    hidden = any(part.startswith(".") for part in path.relative_to(directory).parts)
    if path.is_symlink():
        contents.left_out[name] = (path, "a symbolic link")
    elif not name.isprintable():
        raise UsageError(f"{path!r}: has characters in its name that an archive cannot hold; rename it")
    elif not path.is_file() or hidden or path.suffix == UNFINISHED:
        return
    elif not captures and (path.parent.name == CAPTURES or path.suffix in CAPTURED):
        contents.left_out[name] = (path, "a capture; --captures includes it")
    else:
        contents.members[name] = path
        if path.name == "run.json":
            contents.runs.append(str(Path(name).parent))


def _experiments(directory: Path) -> list[Path]:
    return sorted(path for path in (directory / "experiment.json", *directory.glob("*/experiment.json")) if path.is_file())


def _own_definition(path: Path) -> Iterator[tuple[str, str]]:
    """Name in the archive and text of each file of a user's own experiment. UsageError for an edited experiment.json."""
    entries = read_object(path).get("definition", [])
    for entry in entries if isinstance(entries, list) else [entries]:
        name, text = (entry.get("name"), entry.get("text")) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(text, str) or not _is_inside(name):
            raise UsageError(f'{path}: "definition" holds no name and text of a file; run again with --resume to rewrite it')
        yield f"definition/{path.resolve().parent.name}/{name}", text


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return name.isprintable() and not path.is_absolute() and ".." not in path.parts


def _definition(experiment: dict[str, Any]) -> Iterator[str]:
    """The experiment's file and those that it is based on, as paths in the checkout; none for a file elsewhere."""
    command = words_of(experiment.get("resume"))
    name = command[2] if command[1:2] == ["run"] and len(command) > 2 else str(experiment.get("name"))
    try:
        path = library.find(name).resolve()
    except UsageError:
        return
    for _ in range(MAX_BASES):
        if not path.is_file() or not path.is_relative_to(ROOT):
            return
        yield str(path.relative_to(ROOT))
        try:
            base = tomllib.loads(path.read_text()).get("base")
        except (ValueError, OSError):
            return
        if not isinstance(base, str):
            return
        path = (path.parent / base).resolve()


def _at(commit: str | None, name: str) -> bytes | None:
    """A file of the checkout at a commit, or as it is now if git does not know it there."""
    if commit is not None:
        shown = subprocess.run(["git", "-C", str(ROOT), "show", f"{commit.rstrip('+')}:{name}"], capture_output=True, check=False)
        if shown.returncode == 0:
            return shown.stdout
    return (ROOT / name).read_bytes() if (ROOT / name).is_file() else None


def _only(values: list[str]) -> str | None:
    return values[0] if len(values) == 1 and values[0][:40].isalnum() else None


def _distinct(values: Any) -> list[str]:
    return sorted({str(value) for value in values if value})
