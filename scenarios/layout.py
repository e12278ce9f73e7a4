"""The layout of a scenario: the keys that place its stations (formats/scenario.md)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

import topologies
from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Coordinate, Length, Whole
from mobility.trace import is_inside
from topologies.layouts import MAX_STATIONS, cross_ends

# The layout keys of each topology; any other of them is an error. OPTIONAL need not be given.
LAYOUT_KEYS = {
    "chain": {"hops", "nodes", "spacing"},
    "grid": {"rows", "columns", "spacing"},
    "cross": {"hops", "spacing"},
    "random": {"nodes", "positions"},
    "positions": {"positions"},
    "unplaced": {"nodes"},
}
OPTIONAL = {("random", "positions"), *((topology, "spacing") for topology in LAYOUT_KEYS)}
DEFAULT_SPACING_M = 200.0
UNPLACED = "unplaced"  # stations without positions; maps have them on a circle


class Place(Strict):
    """One explicit position, with a name if it is not `sta<i>`."""

    name: str | None = None
    at: Annotated[tuple[Coordinate, ...], BeforeValidator(as_tuple)]


def _as_place(value: object) -> object:
    return {"at": value} if isinstance(value, list | tuple) else value


class LayoutKeys(Strict):
    """Of all keys of a scenario the first part: each part has those before it as its base."""

    topology: Literal["chain", "grid", "cross", "random", "positions", "unplaced"] = "chain"
    hops: Whole | None = Field(None, ge=1, le=MAX_STATIONS - 1)
    nodes: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    rows: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    columns: Whole | None = Field(None, ge=1, le=MAX_STATIONS)
    spacing: Length | None = None
    places: Annotated[tuple[Annotated[Place, BeforeValidator(_as_place)], ...] | None, BeforeValidator(as_tuple)] = Field(
        None, alias="positions", max_length=MAX_STATIONS
    )
    area: Annotated[tuple[Length, Length] | None, BeforeValidator(as_tuple)] = None

    def positions(self, seed: int = 1) -> list[topologies.Placed]:
        """The positions of all stations at time 0, in the order of their numbers. Only a random layout uses the seed."""
        spacing_m = self.spacing or DEFAULT_SPACING_M
        match self.topology:
            case "chain":
                return topologies.chain(self.hops if self.hops is not None else (self.nodes or 1) - 1, spacing_m)
            case "grid":
                return topologies.grid(self.rows or 0, self.columns or 0, spacing_m)
            case "cross":
                return topologies.cross(self.hops or 0, spacing_m)
            case "unplaced":
                return topologies.circle(self.nodes or 0)
            case "random":
                drawn = topologies.random_uniform(self.nodes or 0, self.area or (0.0, 0.0), seed)
            case _:
                drawn = []
        points = [*((one.x_m, one.y_m, one.z_m) for one in drawn), *(place.at for place in self.places or ())]
        return topologies.explicit(points, self._own_names())

    def still_stations(self) -> list[str]:
        """Stations that a mobility model does not move: those with a position of their own among random ones."""
        return self.station_names()[self.nodes or 0 :] if self.topology == "random" else []

    def station_names(self) -> list[str]:
        """The stations, in the order of their numbers."""
        if self.topology not in ("random", "positions"):
            return [placed.name for placed in self.positions()]
        return topologies.names_of(self._own_names())  # no position is drawn: each takes a generator of its own

    def _own_names(self) -> list[str | None]:
        """The names given to the stations of a random layout and of positions."""
        drawn = self.nodes or 0 if self.topology == "random" else 0
        return [*([None] * drawn), *(place.name for place in self.places or ())]

    def no_such(self, name: str, wired: str = "") -> str:
        """The error for an unknown station; `wired` lists the hosts that could stand there."""
        names = self.station_names()
        listed = ", ".join(names) if self.topology == "positions" else f"sta1 to {names[-1]}"
        return f'there is no station "{name}"; the stations are {listed}{wired}'

    def _complete_layout(self) -> dict[str, Any]:
        """Check that the positions are possible and within the area; returns the spacing, if the topology has one."""
        given_keys = {"hops", "nodes", "rows", "columns", "spacing"} & {k for k, v in self if v is not None}
        given_keys |= {"positions"} if self.places is not None else set()
        for key in sorted(given_keys - LAYOUT_KEYS[self.topology]):
            raise KeyProblem((key,), f'topology "{self.topology}" does not use it; remove it')
        self._check_layout_is_complete(given_keys)
        try:
            positions = self.positions()
        except topologies.LayoutError as problem:
            raise KeyProblem((_blame(self.topology, str(problem), given_keys),), str(problem)) from None
        outsiders = (placed for placed in positions if self.area and not is_inside(placed[1:], self.area))
        if (placed := next(outsiders, None)) and self.area:
            text = f"{placed.name} at ({placed.x_m:g}, {placed.y_m:g}) m is outside {self.area[0]:g} x "
            raise KeyProblem(("area",), text + f"{self.area[1]:g} m; enlarge the area or move the station")
        return {"spacing": self.spacing or DEFAULT_SPACING_M} if "spacing" in LAYOUT_KEYS[self.topology] else {}

    def _check_layout_is_complete(self, given_keys: set[str]) -> None:
        if self.topology == "chain":
            if not given_keys & {"hops", "nodes"}:
                raise KeyProblem((), 'a "chain" needs "hops"; add hops = 5')
            if {"hops", "nodes"} <= given_keys and self.nodes != (self.hops or 0) + 1:
                text = f"{self.nodes} nodes contradict {self.hops} hops; remove one of the two keys"
                raise KeyProblem(("nodes",), text)
            return
        for key in sorted(key for key in LAYOUT_KEYS[self.topology] - given_keys if (self.topology, key) not in OPTIONAL):
            raise KeyProblem((), f'topology "{self.topology}" needs "{key}"; add it')
        if self.topology == UNPLACED and self.area is not None:
            raise KeyProblem(("area",), f'is for stations with positions, which topology "{UNPLACED}" has not; remove it')
        if self.topology == "random" and self.area is None:
            raise KeyProblem((), 'topology "random" needs "area"; add area = [1500, 300]')

    def _ends_of_default_flows(self) -> list[tuple[str, str]]:
        names = self.station_names()
        if len(names) < 2:
            raise KeyProblem((), "a single station has no peer; give at least two stations")
        return cross_ends(self.hops or 0) if self.topology == "cross" else [(names[0], names[-1])]


def _blame(topology: str, problem: str, given_keys: set[str]) -> str:
    """The key that causes a layout's error: of those that the layout has, one that the scenario gives."""
    if topology in ("positions", "random"):
        return "positions"
    if " m, outside " in problem:
        return "spacing"
    counts = [key for key in ("rows", "hops", "nodes") if key in LAYOUT_KEYS[topology]]
    return next((key for key in counts if key in given_keys), counts[0])
