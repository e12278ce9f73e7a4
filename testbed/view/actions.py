"""The actions of a page on a run under way, with --control: each is done and recorded by the medium."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.runs.under_way import medium_of, under_way
from topologies.layouts import MAX_COORDINATE_M


class Actions:
    """Actions on the run in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def are_possible(self) -> bool:
        """Whether the run is under way."""
        return under_way(self._directory) is not None

    def do(self, wanted: object) -> dict[str, Any]:
        """Carry out `{"op": ...}`. Raises UsageError for a wrong one, RunError if the medium refuses it."""
        if not isinstance(wanted, dict) or not isinstance(wanted.get("op"), str) or wanted["op"] not in OPERATIONS:
            raise UsageError(f"op: use one of {', '.join(OPERATIONS)}")
        arguments = OPERATIONS[wanted["op"]](wanted)
        control = medium_of(self._directory)
        if control is None:
            raise UsageError("the run has ended; actions are for a run under way")
        try:
            for request in arguments:
                control.ask(**request)
        finally:
            control.close()
        return {"ok": True}


def _move(wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    place = wanted.get("position")
    if not isinstance(place, list) or len(place) not in (2, 3) or not all(_is_coordinate(value) for value in place):
        raise UsageError("position: give [x, y], in metres")
    return [{"op": "move", "station": _name(wanted, "station"), "position": [*map(float, place), 0.0][:3]}]


def _power(wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(wanted.get("on"), bool):
        raise UsageError("on: give true or false")
    return [{"op": "power", "station": _name(wanted, "station"), "on": wanted["on"]}]


def _link(wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    rate = wanted.get("error_rate", 1)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise UsageError("error_rate: give a number of 0 to 1")
    a, b = _name(wanted, "from"), _name(wanted, "to")
    return [{"op": "link", "from": one, "to": other, "error_rate": float(rate)} for one, other in ((a, b), (b, a))]


OPERATIONS = {"move": _move, "power": _power, "link": _link}


def _name(wanted: Mapping[str, Any], key: str) -> str:
    name = wanted.get(key)
    if not isinstance(name, str) or not 0 < len(name) <= 20:
        raise UsageError(f"{key}: give the name of a station")
    return name


def _is_coordinate(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_COORDINATE_M
