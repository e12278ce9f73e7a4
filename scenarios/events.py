"""Events of stations, links, routing daemons and commands during a run (`events` of formats/scenario.md)."""

import re
import string
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from keys.errors import shortened
from keys.models import KeyProblem, Strict, as_tuple, check_length
from keys.quantities import Coordinate, Seconds, Speed
from mobility.trace import is_inside, outside
from scenarios import owned

# The kinds of events, by the key that selects them: required keys, optional keys.
KINDS: dict[str, tuple[set[str], set[str]]] = {
    "power": ({"on"}, set()),
    "link": ({"error_rate"}, set()),
    "move": ({"to"}, {"speed"}),
    "cut": ({"from", "to"}, set()),
    "wire": ({"stalled"}, set()),
    "daemon": ({"station"}, set()),
    "command": ({"station"}, {"name"}),
}
OF_STARTED_COMMANDS: tuple[set[str], set[str]] = ({"name"}, set())  # the keys of `command = "kill"`: an action, no words
ACTIONS = ("stop", "kill", "restart")  # on a command that an earlier event started
Action = Annotated[str, Field(json_schema_extra={"enum": list(ACTIONS)})]
DONE = {"start": "started", "stop": "stopped", "restart": "restarted", "kill": "killed"}
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")  # of a command: it is part of the name of its log
BRACES = "write {{ and }} for braces of the word itself"


class Event(Strict):
    """One event, `at` seconds after the start of the traffic."""

    at: Seconds = Field(ge=0, le=86_400)
    power: str | None = None
    on: bool | None = None
    link: Annotated[tuple[str, str] | None, BeforeValidator(as_tuple)] = None
    error_rate: Annotated[float, owned.number("medium", "links.error_rate")] | None = None
    move: str | None = None
    to: Annotated[str | tuple[Coordinate, ...] | None, BeforeValidator(as_tuple)] = None
    speed: Speed | None = None
    cut: Literal["next-hop"] | None = None
    source: str | None = Field(None, alias="from")
    wire: Annotated[tuple[str, str] | None, BeforeValidator(as_tuple)] = None
    stalled: bool | None = None
    daemon: Literal["start", "stop", "restart", "kill"] | None = None
    command: Annotated[Action | tuple[str, ...] | None, BeforeValidator(as_tuple)] = None
    station: str | None = None
    name: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a command that the event starts; empty for any other event."""
        return self.command if isinstance(self.command, tuple) else ()

    @property
    def kind(self) -> str:
        """The key of KINDS that the event sets."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        fields = {"from" if name == "source" else name: value for name, value in self}
        given_keys = {key for key, value in fields.items() if value is not None} - {"at"}
        kinds = [kind for kind in KINDS if kind in given_keys]
        if len(kinds) != 1:
            which = f'says both "{kinds[0]}" and "{kinds[1]}"; make two events of it' if kinds else "has no kind of event"
            raise KeyProblem((kinds[1],) if kinds else (), which if kinds else f"{which}; add one of {', '.join(KINDS)}")
        needed, optional = OF_STARTED_COMMANDS if isinstance(self.command, str) else KINDS[kinds[0]]
        for key in sorted(given_keys - needed - optional - {kinds[0]}):
            raise KeyProblem((key,), f'a "{kinds[0]}" event has no "{key}"; remove it')
        for key in sorted(needed - given_keys):
            raise KeyProblem((), f'a "{kinds[0]}" event needs "{key}"; add it')
        self._check_target()
        self._check_command()
        return self

    def _check_target(self) -> None:
        if self.move is not None and (isinstance(self.to, str) or len(self.to or ()) not in (2, 3)):
            raise KeyProblem(("to",), 'a "move" goes to a place; give to = [x, y], in metres')
        if self.cut is not None and not isinstance(self.to, str):
            raise KeyProblem(("to",), 'a "cut" is of the path to a station or host; give its name')
        for key, ends in (("link", self.link), ("to", (self.source, self.to) if self.cut else None)):
            if ends is not None and ends[0] == ends[1]:
                raise KeyProblem((key,), f'"{ends[0]}" is named twice; name two stations')

    def _check_command(self) -> None:
        if isinstance(self.command, str) and self.command not in ACTIONS:
            actions = ", ".join(f'"{action}"' for action in ACTIONS)
            text = f'"{shortened(self.command)}" is not known; give the words of a command as a list, or one of {actions}'
            raise KeyProblem(("command",), text)
        if self.name is not None and NAME.fullmatch(self.name) is None:
            text = f'"{shortened(self.name)}" is no name of a command; use at most 32 of a-z, 0-9 and "-"'
            raise KeyProblem(("name",), text)
        if not isinstance(self.command, tuple):
            return
        if not self.command or not self.command[0] or fields_of(self.command[:1]):
            raise KeyProblem(("command",), "its first word must be the name or path of a program; write it there")
        check_length(self.command)
        fields_of(self.command)

    @model_serializer(mode="wrap")
    def _without_the_other_kinds_keys(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in as_usual(self).items() if value is not None}

    def stations(self) -> list[tuple[tuple[str | int, ...], str]]:
        """The stations that the event names, each with its key path."""
        named: list[tuple[tuple[str | int, ...], object]] = [(("power",), self.power), (("move",), self.move)]
        named += [(("station",), self.station)]
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
    without_daemon: str | None = None,
    jammers: Collection[str] = (),
) -> None:
    """Check events against the scenario's stations, wires (pairs of ends) and length of traffic; KeyProblem for the first
    error. `without_daemon`: the scenario's routing, if it has no daemon that an event could end. `jammers` can be switched."""
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
            if event.power is not None and name in jammers:
                continue
            # the path to a host leads over a gateway; any node runs commands
            if name in hosts and not (event.cut and path == ("to",)) and not event.words:
                text = f'"{name}" is a wired host, which has no radio; name a station'
                raise KeyProblem(("events", index, *path), text)
            if name not in stations and name not in hosts:
                raise KeyProblem(("events", index, *path), f'there is no station "{name}"; name one of the scenario\'s')
    _check_daemons(events, without_daemon)
    _check_commands(events, {*stations, *hosts})


def by_time(events: Collection[Event]) -> list[tuple[int, Event]]:
    """The events in the order in which they are carried out, each with its place in the list."""
    return sorted(enumerate(events), key=lambda entry: entry[1].at)


def worded(event: Event, command: str | None = None) -> tuple[str, str]:
    """Station and detail of an event as events.csv has them. `command`: the name of the one that it starts. Empty is the station
    that only a run knows: the relay of a cut, and that of a command which an earlier event started."""
    match event.kind:
        case "power":
            return str(event.power), "on" if event.on else "off"
        case "link":
            return " ".join(event.link or ()), f"error_rate {event.error_rate:g}"
        case "wire":
            return " ".join(event.wire or ()), "stalled" if event.stalled else "goes on"
        case "move":
            *plane, height = [*map(float, event.to or ()), 0.0][:3]
            place = " ".join(f"{value:g}" for value in (*plane, height)[: 3 if height else 2])
            return str(event.move), f"to {place}" + ("" if event.speed is None else f" at {event.speed:g}")
        case "cut":
            return "", f"off, next hop of {event.source} to {event.to}"
        case "daemon":
            return str(event.station), DONE[str(event.daemon)]
        case _:
            return str(event.station or ""), f"{command} started" if event.words else f"{event.name} {DONE[str(event.command)]}"


def command_names(events: Collection[Event]) -> dict[int, str]:
    """The name of each command that an event starts, by the event's place in the list: its own, else `command1`, ... in the
    order of the list."""
    started = [(index, event) for index, event in enumerate(events) if event.words]
    return {index: event.name or f"command{number}" for number, (index, event) in enumerate(started, start=1)}


def fields_of(words: Sequence[str]) -> list[str]:
    """The fields of the words of a command, as of str.format. KeyProblem for malformed braces."""
    names = []
    for word in words:
        try:
            parts = list(string.Formatter().parse(word))
        except ValueError as problem:
            raise KeyProblem(("command",), f'"{shortened(word)}": {problem}; {BRACES}') from None
        for _text, name, spec, conversion in parts:
            if name is not None and (not name or spec or conversion):
                raise KeyProblem(("command",), f'"{shortened(word)}" has a field without a station\'s name; {BRACES}')
            names += [] if name is None else [name]
    return names


def _check_daemons(events: Collection[Event], without_daemon: str | None) -> None:
    """A daemon runs from the start of the run: an event finds it as the events before have left it."""
    stopped: set[str] = set()
    for index, event in by_time(events):
        if event.daemon is None or event.station is None:
            continue
        if without_daemon is not None:
            text = f'routing "{without_daemon}" has no daemon; choose a protocol with a daemon'
            raise KeyProblem(("events", index, "daemon"), text)
        if event.daemon == "start" and event.station not in stopped:
            text = f'the daemon of {event.station} runs at {event.at:g} s; write "restart", or stop it before'
            raise KeyProblem(("events", index, "daemon"), text)
        if event.daemon != "start" and event.station in stopped:
            text = f'the daemon of {event.station} does not run at {event.at:g} s; write "start"'
            raise KeyProblem(("events", index, "daemon"), text)
        (stopped.add if event.daemon in ("stop", "kill") else stopped.discard)(event.station)


def _check_commands(events: Collection[Event], nodes: Collection[str]) -> None:
    names, started = command_names(events), set[str]()
    for index, event in by_time(events):
        if event.words:
            if names[index] in started:
                text = f'"{names[index]}" is the name of an earlier command; give another'
                raise KeyProblem(("events", index, "name"), text)
            started.add(names[index])
            for field in fields_of(event.words):
                if field not in nodes:
                    text = f"{{{field}}} stands for the address of a station, and there is none of that name; {BRACES}"
                    raise KeyProblem(("events", index, "command"), text)
        elif event.command is not None and event.name not in started:
            known = f"; those before are {', '.join(sorted(started))}" if started else ""
            raise KeyProblem(("events", index, "name"), f'no event before starts a command "{event.name}"{known}')
