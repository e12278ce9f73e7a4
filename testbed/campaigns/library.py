"""The experiments and ready-made scenarios of the project, by name."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from testbed.errors import UsageError, did_you_mean, shortened
from testbed.programs import ROOT

FOLDER = ROOT / "experiments"


def names() -> list[str]:
    """The experiments that can be run by name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def is_folder(name: str) -> bool:
    """Whether `name` is a folder, and not the name of an experiment or a ready-made scenario."""
    with suppress(OSError):  # a name too long for a file
        return Path(name).is_dir() and not any(named.is_file() for named in _files_of(name))
    return False


def find(name: str, others: Iterable[str] = ()) -> Path:
    """The file of an experiment or a ready-made scenario, by name or path; UsageError if there is none. `others`: further names
    that the command knows, for the error."""
    with suppress(OSError):  # a name too long for a file
        for named in (*_files_of(name), Path(name)):
            if named.is_file():
                return named
    candidates = [*others, *names(), *sorted(path.stem for path in FOLDER.glob("scenarios/*.toml"))]
    if "/" in name or name.endswith(".toml"):
        raise UsageError(f"{shortened(name)}: there is no such file{_nearest_file(Path(name), candidates)}")
    text = f"{shortened(name)}: there is no experiment or file of this name"
    close = did_you_mean(name, candidates)
    raise UsageError(f"{text}; {close}" if close else f"{text}; there are {', '.join(candidates)}")


def _files_of(name: str) -> tuple[Path, Path]:
    return FOLDER / f"{name}.toml", FOLDER / "scenarios" / f"{name}.toml"


def _nearest_file(path: Path, candidates: list[str]) -> str:
    """The remedy for a missing file: a similar name of its folder, or of `candidates` if the path names no folder."""
    try:
        if not path.parent.is_dir():
            return f", and no folder {shortened(str(path.parent))}; correct the path"
        if path.exists():
            return " that could be read as TOML; give the path of a plain file"
        close = did_you_mean(path.name, [file.name for file in path.parent.iterdir() if file.is_file()])
        if close is None and path.name == str(path):
            close = did_you_mean(path.stem, candidates)
    except OSError:  # a name too long for a file, or a folder that may not be read
        close = None
    return f"; {close}" if close else "; give the path of a TOML file"
