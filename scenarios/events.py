"""Events of stations and links during a run (`events` of formats/scenario.md)."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from mobility.trace import is_inside, outside
from scenarios import owned
from scenarios.models import STRICT, KeyProblem, as_tuple
from scenarios.quantities import Metres, MetresPerSecond, Seconds
from topologies.layouts import MAX_COORDINATE_M

# The kinds of events, by the key that selects them: required keys, optional keys.
KINDS: dict[str, tuple[set[str], set[str]]] = {
    "power": ({"on"}, set()),
    "link": ({"error_rate"}, set()),
    "move": ({"to"}, {"speed"}),
    "cut": ({"from", "to"}, set()),
    "wire": ({"stalled"}, set()),
}


class Event(BaseModel):
    """One event, `at` seconds after the start of the traffic."""

    model_config = STRICT
    at: Seconds = Field(ge=0, le=86_400)
    power: str | None = None
    on: bool | None = None
    link: Annotated[tuple[str, str] | None, BeforeValidator(as_tuple)] = None
    error_rate: Annotated[float, owned.number("medium", "links.error_rate")] | None = None
    move: str | None = None
    to: Annotated[str | tuple[Metres, ...] | None, BeforeValidator(as_tuple)] = None
    speed: MetresPerSecond | None = Field(None, gt=0, le=1000)
    cut: Literal["next-hop"] | None = None
    source: str | None = Field(None, alias="from")
    wire: Annotated[tuple[str, str] | None, BeforeValidator(as_tuple)] = None
    stalled: bool | None = None

    @property
    def kind(self) -> str:
        """The key of KINDS that the event sets."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        fields = {"from" if name == "source" else name: value for name, value in self}
        given = {key for key, value in fields.items() if value is not None} - {"at"}
        kinds = [kind for kind in KINDS if kind in given]
        if len(kinds) != 1:
            which = f'says both "{kinds[0]}" and "{kinds[1]}"; make two events of it' if kinds else "has no kind of event"
            raise KeyProblem((kinds[1],) if kinds else (), which if kinds else f"{which}; add one of {', '.join(KINDS)}")
        needed, optional = KINDS[kinds[0]]
        for key in sorted(given - needed - optional - {kinds[0]}):
            raise KeyProblem((key,), f'a "{kinds[0]}" event has no "{key}"; remove it')
        for key in sorted(needed - given):
            raise KeyProblem((), f'a "{kinds[0]}" event needs "{key}"; add it')
        self._check_target()
        return self

    def _check_target(self) -> None:
        if self.move is not None:
            if isinstance(self.to, str) or len(self.to or ()) not in (2, 3):
                raise KeyProblem(("to",), 'a "move" goes to a place; give to = [x, y], in metres')
            if any(not 0 <= value <= MAX_COORDINATE_M for value in self.to or ()):
                raise KeyProblem(("to",), f"a coordinate is outside 0 to {MAX_COORDINATE_M:g} m; give a place within")
        if self.cut is not None and not isinstance(self.to, str):
            raise KeyProblem(("to",), 'a "cut" is of the path to a station or host; give its name')
        for key, ends in (("link", self.link), ("to", (self.source, self.to) if self.cut else None)):
            if ends is not None and ends[0] == ends[1]:
                raise KeyProblem((key,), f'"{ends[0]}" is named twice; name two stations')

    @model_serializer(mode="wrap")
    def _without_the_other_kinds_keys(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in as_usual(self).items() if value is not None}

    def stations(self) -> list[tuple[tuple[str | int, ...], str]]:
        """The stations that the event names, each with its key path."""
        named: list[tuple[tuple[str | int, ...], object]] = [(("power",), self.power), (("move",), self.move)]
        named += [(("link", index), name) for index, name in enumerate(self.link or ())]
        named += [(("from",), self.source), (("to",), self.to)]
        return [(path, name) for path, name in named if isinstance(name, str)]


def check_events(
    events: Collection[Event],
    stations: Collection[str],
    hosts: Collection[str],
    length_s: float,
    area: tuple[float, float] | None = None,
    wires: Collection[frozenset[str]] = (),
) -> None:
    """Check events against the scenario's stations, wires (pairs of ends) and length of traffic; KeyProblem for the first
    error."""
    for index, event in enumerate(events):
        if event.move and area is not None and isinstance(event.to, tuple) and not is_inside(event.to, area):
            text = f"{event.move} would go to {outside(event.to, area)}; correct the place, or give a larger area"
            raise KeyProblem(("events", index, "to"), text)
        if event.at > length_s:
            text = f"{event.at:g} s is after the end of the traffic at {length_s:g} s; give an earlier time"
            raise KeyProblem(("events", index, "at"), text)
        if event.wire is not None and frozenset(event.wire) not in wires:
            text = f'there is no wire between "{event.wire[0]}" and "{event.wire[1]}"; name a station and a host of [[wires]]'
            raise KeyProblem(("events", index, "wire"), text)
        for path, name in event.stations():
            if name in hosts and not (event.cut and path == ("to",)):  # the path to a host leads over a gateway
                text = f'"{name}" is a wired host, which has no radio; name a station'
                raise KeyProblem(("events", index, *path), text)
            if name not in stations and name not in hosts:
                raise KeyProblem(("events", index, *path), f'there is no station "{name}"; name one of the scenario\'s')
