"""Changes of stations: each is a series of changes of keys, so that everything that names a station follows it.

A station without a name of its own is named by its number (`sta3`). If one before it is removed, its number and name change, and
so do the flows, events and other keys that name it; those that name the removed station go with it.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from keys.errors import UsageError
from keys.toml_lines import Path
from scenarios.layout import LAYOUT_KEYS, LayoutKeys
from testbed.view.editor.toml_edits import at, matching
from topologies import LayoutError, Placed, names_of

DECIMALS = 1  # of metres, as the map places stations
PLACES = "positions"
Values = dict[str, Any]
# The keys that name stations, `*` for each element; a list or table in which a removed station leaves a gap goes as a whole.
REFERENCES: tuple[tuple[str | int, ...], ...] = (
    ("flows", "*", "from"), ("flows", "*", "to"),
    *(("events", "*", key) for key in ("power", "move", "station", "from", "to")),
    *(("events", "*", key, end) for key in ("link", "wire") for end in (0, 1)),
    ("wires", "*", "station"), ("radios", "*", "station"), ("jammers", "*", "follows"), ("stations", "*", "name"),
    ("links", "*", "from"), ("links", "*", "to"),
    ("mobility", "moves", "*", "station"), ("propagation", "matrix", "*", "from"), ("propagation", "matrix", "*", "to"),
)  # fmt: skip
# What a copy of stations takes along: lists of tables, and the keys of an element that must all name one of the stations.
COPIED: dict[Path, tuple[str, ...]] = {
    ("flows",): ("from", "to"), ("radios",): ("station",), ("stations",): ("name",), ("mobility", "moves"): ("station",),
}  # fmt: skip
WORDS = (("events", "*", "command"),)  # words in which `{sta3}` stands for an address


@dataclass(frozen=True)
class Set:
    """A key and its new value."""

    path: Path
    value: Any


@dataclass(frozen=True)
class Remove:
    """A key or an element of a list."""

    path: Path


@dataclass(frozen=True)
class Append:
    """A list and its new last elements."""

    path: Path
    values: list[Any]


Edit = Set | Remove | Append


def layout_of(values: Values) -> list[Placed]:
    """The stations of a scenario's keys, at their first places with seed 1, whatever its other keys are. Raises UsageError."""
    topology = values.get("topology", "chain")
    names = {*LAYOUT_KEYS.get(topology, ())} if isinstance(topology, str) else set()
    if not any(key in values for key in ("topology", *names)) or (topology == "positions" and not values.get(PLACES)):
        return []  # nothing is drawn yet
    try:
        layout = LayoutKeys.model_validate({key: value for key, value in values.items() if key in {*names, "topology", "area"}})
        return layout.positions()
    except (ValidationError, LayoutError):
        raise UsageError("the stations' places are unknown while a key of the layout is wrong; correct it first") from None


def add(values: Values, places: Sequence[Sequence[float]]) -> Iterator[Edit]:
    """Add stations at these places (m)."""
    yield from fixed(values, keep_random=True)
    yield Append((PLACES,), [rounded(place) for place in places])


def copy(values: Values, names: Sequence[str], by: Sequence[float]) -> Iterator[Edit]:
    """Add a copy of each station, `by` (x, y in m) beside it, with the flows between the stations, their radios and root file
    systems, and their moves of the schedule. A copy has no name of its own."""
    placed = {one.name: one for one in layout_of(values)}
    for name in names:
        _place_of([*placed], name)
    (dx, dy), first, own = rounded(by)[:2], len(placed), [one.name for one in placed.values()]
    drawn: list[str | None] = [*own, *[None] * len(names)]
    copies = dict(zip(names, names_of(drawn)[first:], strict=True))
    points = [(placed[name].x_m + dx, placed[name].y_m + dy, placed[name].z_m) for name in names]
    yield from add(values, [list(point) if point[2] else list(point[:2]) for point in points])
    for path, ends in COPIED.items():
        listed = at(values, path)
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        chosen = [row for row in rows if all(_is_one_of(row.get(end), copies) for end in ends)]
        new = [row | {end: copies[row[end]] for end in ends} for row in chosen]
        if path == ("mobility", "moves"):
            new = [row | {"to": _moved(row["to"], dx, dy)} for row in new if _is_place(row.get("to"))]
        if new:
            yield Append(path, new)


def move(values: Values, places: dict[str, Sequence[float]]) -> Iterator[Edit]:
    """Move stations to places (m); a height that a station has stays."""
    names = [placed.name for placed in layout_of(values)]
    for name in places:
        _place_of(names, name)
    first, given = _own_places(values, names, list(places))
    yield from fixed(values, keep_random=first > 0)
    for name, place in places.items():
        index = names.index(name) - first
        old = given[index]
        point = old.get("at", []) if isinstance(old, dict) else old
        new = [*rounded(place)[:2], *(point[2:3] if isinstance(point, list) else [])]
        yield Set((PLACES, index, "at") if isinstance(old, dict) else (PLACES, index), new)


def remove(values: Values, names: Sequence[str]) -> Iterator[Edit]:
    """Remove stations, and everything that names one of them."""
    known = [placed.name for placed in layout_of(values)]
    gone = [_place_of(known, name) for name in names]
    first, given = _own_places(values, known, names)
    yield from fixed(values, keep_random=first > 0)
    drawn: list[str | None] = [None] * first
    left = [place for index, place in enumerate(given) if index + first not in gone]
    kept = [name for index, name in enumerate(known) if index not in gone]
    renamed: dict[str, str | None] = dict(zip(kept, names_of(drawn + [_own_name(place) for place in left]), strict=True))
    yield from _referring(values, renamed | dict.fromkeys(names))
    for index in sorted(gone, reverse=True):
        yield Remove((PLACES, index - first))


def rename(values: Values, name: str, new: str) -> Iterator[Edit]:
    """Give a station a name of its own. Whether the name may be one is the scenario's check."""
    known = [placed.name for placed in layout_of(values)]
    index = _place_of(known, name)
    if new in known:
        raise UsageError(f'there is a station "{new}" already; give another name')
    first, given = _own_places(values, known, [name])
    yield from fixed(values, keep_random=first > 0)
    old = given[index - first]
    yield Set((PLACES, index - first), {"name": new, "at": old["at"] if isinstance(old, dict) else old})
    yield from _referring(values, {name: new})


def fixed(values: Values, keep_random: bool = False) -> Iterator[Edit]:
    """Write the places of a layout as positions, those of seed 1 if they are drawn. `keep_random`: stations drawn at random stay
    so, and others stand beside them."""
    if _is_explicit(values) or (keep_random and values.get("topology") == "random"):
        return
    yield Set(("topology",), "positions")
    if values.get("topology") is None and not any(key in values for key in LAYOUT_KEYS["chain"]):
        if PLACES not in values:
            yield Set((PLACES,), [])
        return
    yield Set((PLACES,), _positions(values))
    for key in sorted({key for keys in LAYOUT_KEYS.values() for key in keys} - {PLACES}):
        if key in values:
            yield Remove((key,))


def waypoint(values: Values, name: str, to: Sequence[float], speed: float) -> Iterator[Edit]:
    """Let a station go on to a place (m) at `speed` (m/s), from where and when its last move of the schedule ends."""
    placed = next((one for one in layout_of(values) if one.name == name), None)
    if placed is None:
        raise UsageError(f'there is no station "{name}"; choose one of the map')
    if not (math.isfinite(speed) and speed > 0):
        raise UsageError(f"a speed of {speed:g} m/s; give more than 0")
    mobility = values.get("mobility", "static")
    model = mobility.get("model") if isinstance(mobility, dict) else mobility
    if model not in ("static", "schedule"):
        raise UsageError('key "mobility": waypoints are moves of the model "schedule"; choose it, or "static", first')
    moves = mobility.get("moves", []) if isinstance(mobility, dict) else []
    at_s, (x, y) = 0.0, (placed.x_m, placed.y_m)
    for one in moves if isinstance(moves, list) else []:
        begin_s, target = one.get("at"), one.get("to")
        if one.get("station") != name or not _are_numbers([begin_s]) or not _are_numbers(target):
            continue
        pace = one.get("speed")
        took_s = math.dist((x, y), target[:2]) / pace if _are_numbers([pace]) and pace > 0 else 0.0
        at_s, (x, y) = max(at_s, begin_s + took_s), target[:2]
    new = {"at": _short(math.ceil(at_s * 10) / 10), "station": name, "to": rounded(to), "speed": _short(speed)}
    if model == "schedule" and isinstance(mobility, dict):
        yield Append(("mobility", "moves"), [new])
    else:
        yield Set(("mobility",), {"model": "schedule", "moves": [new]})


def rounded(place: Sequence[float]) -> list[float]:
    """A place to DECIMALS of a metre, whole numbers without a point. Raises UsageError for what is no place."""
    if not _are_numbers(place) or not 2 <= len(place) <= 3:
        raise UsageError("a place is [x, y] or [x, y, z] in metres")
    return [_short(round(value, DECIMALS)) for value in place]


def _is_one_of(name: Any, names: dict[str, str]) -> bool:
    return isinstance(name, str) and name in names


def _moved(place: Sequence[float], dx: float, dy: float) -> list[float]:
    return rounded([place[0] + dx, place[1] + dy, *place[2:]])


def _is_place(value: Any) -> bool:
    return isinstance(value, list) and 2 <= len(value) <= 3 and _are_numbers(value)


def _are_numbers(values: Any) -> bool:
    listed = values if isinstance(values, list | tuple) else [None]
    return all(isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in listed)


def _short(value: float) -> float:
    return int(value) if value == int(value) else value


def _is_explicit(values: Values) -> bool:
    return values.get("topology") == "positions" and isinstance(values.get(PLACES), list)


def _own_places(values: Values, known: Sequence[str], named: Sequence[str]) -> tuple[int, list[Any]]:
    """The number of stations drawn at random before those with a position, if all `named` ones have a position, else 0; and the
    positions of the others."""
    drawn = values.get("nodes") if values.get("topology") == "random" else None
    own = drawn if isinstance(drawn, int) and isinstance(values.get(PLACES), list) else 0
    first = own if own and all(known.index(name) >= own for name in named) else 0
    return first, values[PLACES] if _is_explicit(values) or first else _positions(values)


def _positions(values: Values) -> list[Any]:
    """The places of a layout as `positions`; a station with a name of its own keeps it."""
    placed = layout_of(values)
    points = [rounded((one.x_m, one.y_m, one.z_m) if one.z_m else (one.x_m, one.y_m)) for one in placed]
    own = [placed.name != name for placed, name in zip(placed, names_of([None] * len(placed)), strict=True)]
    return [
        {"name": one.name, "at": point} if has_name else point
        for one, point, has_name in zip(placed, points, own, strict=True)
    ]  # fmt: skip


def _own_name(place: Any) -> str | None:
    return place.get("name") if isinstance(place, dict) else None


def _place_of(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise UsageError(f'there is no station "{name}"; choose one of the map')
    return names.index(name)


def _referring(values: Values, renamed: dict[str, str | None]) -> Iterator[Edit]:
    """Rename stations in the keys that name them; without a new name the element of the list goes."""
    gone: list[Path] = []
    for path, name in _found(values, REFERENCES, lambda value: isinstance(value, str) and renamed.get(value, value) != value):
        new = renamed[name]
        if new is None:
            gone.append(_element(path))
        else:
            yield Set(path, new)
    for path, words in _found(values, WORDS, lambda value: isinstance(value, list)):
        new_words = [re.sub(r"(?<!\{)\{([a-z0-9-]+)\}(?!\})", lambda match: _field(match, renamed), str(word)) for word in words]
        if new_words != words:
            yield Set(path, new_words)
    for path in sorted(set(gone), key=lambda path: path[-1], reverse=True):
        yield Remove(path)


def _element(path: Path) -> Path:
    """The element of a list of tables that a reference is in: ("events", 3) of ("events", 3, "link", 0)."""
    return next(path[: place + 1] for place, part in enumerate(path) if isinstance(part, int))


def _field(match: re.Match[str], renamed: dict[str, str | None]) -> str:
    new = renamed.get(match[1], match[1])
    return match[0] if new is None else f"{{{new}}}"


def _found(
    values: Values, patterns: Sequence[tuple[str | int, ...]], wanted: Callable[[Any], bool]
) -> Iterator[tuple[Path, Any]]:
    return ((path, value) for pattern in patterns for path, value in matching(values, pattern) if wanted(value))
