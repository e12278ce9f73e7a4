"""The content of a definition file, with the file and line of each key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keys.errors import UsageError, printable, shortened
from keys.toml_lines import Path as KeyPath

EXPERIMENT_KEYS = {"question", "axes", "variants"}  # any of them at the top makes a file an experiment


@dataclass(frozen=True)
class Place:
    """A line of a file; `name` is the file as messages name it."""

    path: Path
    name: str
    line: int


class RefusedKey(UsageError):
    """The refusal of a key of a file: its path in the file, and the line of it or of the nearest key around it (None: none)."""

    def __init__(self, text: str, path: KeyPath, line: int | None) -> None:
        super().__init__(text)
        self.path, self.line = path, line


@dataclass(frozen=True)
class Document:
    """The tables of a file (and of its bases), or of a script, which has no lines. `texts`: of each of these files, its text.
    `foreign`: keys at the top of the scenario that a request from elsewhere gave (scenarios/confined.py). `within`: the folder
    outside of which no file that a key names is opened; None: any file is."""

    path: Path
    name: str
    tables: dict[str, Any]
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    texts: Mapping[Path, str] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    within: Path | None = None

    @property
    def is_experiment(self) -> bool:
        """Whether it has a table that only experiments have."""
        return bool(EXPERIMENT_KEYS & self.tables.keys())

    def place(self, path: KeyPath) -> Place | None:
        """The place of `path`, or of the nearest enclosing key that has one, at last of the file; None without any."""
        paths = (path[:length] for length in range(len(path), -1, -1))
        return next((self.places[each] for each in paths if each in self.places), None)

    def holds(self, file: Path) -> bool:
        """Whether a file that a key names may be opened: links on the way are followed before the answer."""
        try:
            return self.within is None or file.resolve().is_relative_to(self.within)
        except (OSError, RuntimeError, ValueError):  # too long, a circle of links, with a NUL in it
            return False

    def refusal(self, path: KeyPath, text: str) -> UsageError:
        """The error for a key; `path` is the whole key path in the file, including a table `scenario`."""
        key = shortened(dotted(path[1:] if path[:1] == ("scenario",) else path))
        place = self.place(path)
        begin = f"{place.name}: line {place.line}: " if place else f"{self.name}: "
        return RefusedKey(begin + (f'key "{key}": ' if key else "") + printable(text), path, place.line if place else None)


def dotted(path: KeyPath) -> str:
    """The path in the notation of `--set` (formats/scenario.md): dotted, lists counted from 0."""
    return ".".join(str(part) for part in path)
