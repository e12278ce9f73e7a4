"""A drawing: the text of a scenario, the operations of the editor on it, undo and redo. No file, no clock.

An operation is a JSON object, `{"op": "set", "path": ["hops"], "value": 3}`; formats/view.md lists them. Paths are those of the
scenario's keys, whether the file has them at its top or in a table `[scenario]`.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keys.errors import UsageError, shortened
from keys.toml_lines import TOO_LARGE, Path, fits
from scenarios.document import EXPERIMENT_KEYS
from scenarios.scenario import Scenario
from scenarios.toml_file import MAX_FILE_BYTES
from testbed.view.editor import stations
from testbed.view.editor.stations import Append, Edit, Remove, Set, Values
from testbed.view.editor.toml_edits import at, values_of, with_elements, with_value, without
from topologies.layouts import MAX_STATIONS

MAX_STEPS = 500  # that can be undone
MAX_PATH = 12
MAX_DEPTH = 16  # of a value; no key needs more than five levels
ORDER = [field.alias or name for name, field in Scenario.model_fields.items()]  # of keys, as formats/scenario.md has them
BACKGROUND = re.compile(
    r"^#:background (?P<file>\S+) width=(?P<width>\S+) at=(?P<x>[^,\s]+),(?P<y>[^,\s]+)[ \t]*\n?", re.MULTILINE
)
Operation = dict[str, Any]


class Drawing:
    """The text, with the texts before it and those that were undone."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._before: list[str] = []
        self._after: list[str] = []
        self._typing = False

    @property
    def can_undo(self) -> bool:
        """Whether there is a text before this one."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether an undone text can come back."""
        return bool(self._after)

    def apply(self, operation: object) -> None:
        """Carry out one operation; without a change of the text there is no step. Raises UsageError, and changes nothing then."""
        operation, name = _checked(operation)
        if name == "undo":
            self._step(self._before, self._after, "undo")
        elif name == "redo":
            self._step(self._after, self._before, "redo")
        else:
            typing = name == "text"
            self._do(changed(self.text, operation), joins=typing and self._typing and operation.get("joins") is True)
            self._typing = typing

    def _do(self, text: str, joins: bool) -> None:
        if text == self.text:
            return
        if not joins:
            self._before = [*self._before, self.text][-MAX_STEPS:]
        self.text, self._after = text, []

    def _step(self, source: list[str], target: list[str], word: str) -> None:
        if not source:
            raise UsageError(f"there is nothing to {word}")
        target.append(self.text)
        self.text, self._typing = source.pop(), False


def changed(text: str, operation: Operation) -> str:
    """The text after an operation other than undo and redo. Raises UsageError."""
    operation, name = _checked(operation)
    if name == "text":
        return _written(operation)
    if name == "background":
        return _with_background(text, operation)
    values = values_of(text)
    prefix = prefix_of(values)
    for edit in OPERATIONS[name](scenario_values(values), operation):
        text = _edited(text, edit, prefix)
    if len(text.encode()) > MAX_FILE_BYTES:
        raise UsageError(f"a scenario has at most {MAX_FILE_BYTES} bytes; put movements into a file of their own")
    return text


def prefix_of(values: Values) -> Path:
    """The table of the scenario's keys in a file: `[scenario]`, or the top."""
    return ("scenario",) if "scenario" in values or EXPERIMENT_KEYS & values.keys() else ()


def scenario_values(values: Values) -> Values:
    """The scenario's keys of a file's values."""
    inner = at(values, prefix_of(values))
    return inner if isinstance(inner, dict) else {}


def background_of(text: str) -> dict[str, Any] | None:
    """The picture behind the map, `#:background FILE width=METRES at=X,Y`: its file, its width and its lower left corner in m."""
    match = BACKGROUND.search(text)
    if match is None:
        return None
    try:
        width, x, y = (float(match[name]) for name in ("width", "x", "y"))
    except ValueError:
        return None
    return {"file": match["file"], "width": width, "x": x, "y": y} if math.isfinite(width + x + y) and width > 0 else None


def _checked(operation: object) -> tuple[Operation, str]:
    name = operation.get("op") if isinstance(operation, dict) else None
    if not isinstance(operation, dict) or not isinstance(name, str):
        raise UsageError("op: give an object with the name of an operation; formats/view.md lists them")
    if name not in KEYS:
        raise UsageError(f"op {shortened(name)!r}: is no operation; there are {', '.join(KEYS)}")
    stray = next((key for key in operation if key not in {"op", *KEYS[name]}), None)
    if stray is not None:
        raise UsageError(f"{shortened(stray)}: is no key of the operation {name}; it has {', '.join(KEYS[name]) or 'none'}")
    missing = next((key for key in KEYS[name] if key not in operation and key != "joins"), None)
    if missing is not None:
        raise UsageError(f"{missing}: is missing; the operation {name} needs it")
    _check_sizes(operation)
    return operation, name


def _check_sizes(value: object, depth: int = MAX_DEPTH) -> None:
    """Refuse what JSON can say and TOML, or the functions that write it, cannot."""
    if depth == 0:
        raise UsageError(f"tables or lists are nested deeper than {MAX_DEPTH}; no key needs more than five levels")
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_sizes(inner, depth - 1)
    elif isinstance(value, int) and not fits(value):
        raise UsageError(TOO_LARGE)


def _edited(text: str, edit: Edit, prefix: Path) -> str:
    path = (*prefix, *edit.path)
    match edit:
        case Set(value=value):
            return with_value(text, path, value, ORDER)
        case Append(values=values):
            return with_elements(text, path, values, ORDER)
        case Remove():
            return without(text, path)


def _written(operation: Operation) -> str:
    text = operation["text"]
    if not isinstance(text, str):
        raise UsageError("text: is no text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError("text: is no Unicode text") from None
    if size > MAX_FILE_BYTES:
        raise UsageError(f"a scenario has at most {MAX_FILE_BYTES} bytes; shorten the text")
    return text.replace("\r\n", "\n")


def _with_background(text: str, operation: Operation) -> str:
    name, numbers = operation["file"], [operation[key] for key in ("width", "x", "y")]
    rest = BACKGROUND.sub("", text, count=1)
    if name is None:
        return rest
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._/-]{1,200}", name):
        raise UsageError("file: give the name of a picture in the scenario's folder: letters, digits and . _ - /")
    if not all(isinstance(one, int | float) and math.isfinite(one) and abs(one) <= 1e7 for one in numbers) or numbers[0] <= 0:
        raise UsageError("width, x, y: give metres, the width more than 0")
    width, x, y = (f"{one:g}" for one in numbers)
    return f"#:background {name} width={width} at={x},{y}\n{rest}"


def _path(operation: Operation) -> Path:
    path = operation["path"]
    parts = path if isinstance(path, list) and 0 < len(path) <= MAX_PATH else [None]
    if not all(isinstance(part, str) or (isinstance(part, int) and not isinstance(part, bool) and part >= 0) for part in parts):
        raise UsageError(f"path: give a list of 1 to {MAX_PATH} keys, elements by their number from 0")
    if not isinstance(parts[0], str):
        raise UsageError("path: begins with a key")
    return tuple(parts)


def _names(operation: Operation, key: str) -> list[str]:
    names = operation[key]
    if not isinstance(names, list) or not names or len(names) > MAX_STATIONS or not all(isinstance(one, str) for one in names):
        raise UsageError(f"{key}: give the names of stations")
    return names


def _text(operation: Operation, key: str) -> str:
    if not isinstance(operation[key], str):
        raise UsageError(f"{key}: give a name")
    return operation[key]


def _points(places: object) -> Sequence[Sequence[float]]:
    if not isinstance(places, list) or not 0 < len(places) <= MAX_STATIONS:
        raise UsageError(f"at: give 1 to {MAX_STATIONS} places [x, y] in metres")
    return places


def _moved(values: Values, operation: Operation) -> Iterable[Edit]:
    places = operation["places"]
    if not isinstance(places, dict) or not places:
        raise UsageError("places: give an object with the place [x, y] of each station")
    return stations.move(values, places)


def _set(values: Values, operation: Operation) -> Iterable[Edit]:
    if operation["value"] is None:
        raise UsageError("value: TOML has no null; use the operation remove for the default")
    yield Set(_path(operation), operation["value"])


def _remove(values: Values, operation: Operation) -> Iterable[Edit]:
    path = _path(operation)
    yield Remove(path)
    rest = at(values, path[:-1])  # as it was; a table that had this key alone goes, a list stays an element of nothing
    while len(path) > 1 and isinstance(rest, dict) and len(rest) == 1 and isinstance(path[-2], str):
        path = path[:-1]
        yield Remove(path)
        rest = at(values, path[:-1])


def _number(operation: Operation, key: str) -> float:
    value = operation[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{key}: give a number")
    return value


OPERATIONS: dict[str, Callable[[Values, Operation], Iterable[Edit]]] = {
    "set": _set,
    "remove": _remove,
    "append": lambda values, operation: [Append(_path(operation), [operation["value"]])],
    "add_stations": lambda values, operation: stations.add(values, _points(operation["at"])),
    "copy_stations": lambda values, operation: stations.copy(values, _names(operation, "stations"), operation["by"]),
    "move_stations": _moved,
    "remove_stations": lambda values, operation: stations.remove(values, _names(operation, "stations")),
    "rename_station": lambda values, operation: stations.rename(values, _text(operation, "station"), _text(operation, "name")),
    "fix_positions": lambda values, operation: stations.fixed(values),
    "waypoint": lambda values, operation: stations.waypoint(
        values, _text(operation, "station"), stations.rounded(operation["to"]), _number(operation, "speed")
    ),
}
KEYS: dict[str, tuple[str, ...]] = {
    "set": ("path", "value"), "remove": ("path",), "append": ("path", "value"), "add_stations": ("at",),
    "copy_stations": ("stations", "by"),
    "move_stations": ("places",), "remove_stations": ("stations",), "rename_station": ("station", "name"), "fix_positions": (),
    "waypoint": ("station", "to", "speed"), "background": ("file", "width", "x", "y"), "text": ("text", "joins"),
    "undo": (), "redo": (),
}  # fmt: skip
