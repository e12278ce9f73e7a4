"""The key `mobility` of a scenario: a model's name, a movement file, or a table with either and its options
(formats/scenario.md).

A class per model, selected by `model`; the head of mobility/models/<model>.py explains the options, its function has their
defaults. A bare text that is no model's name is a file: `mobility = "walk.csv"` is `{ file = "walk.csv" }`, inside `model =
"file"`. testbed/stages/movement.py makes the run's trace of a movement.
"""

import inspect
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_serializer, model_validator

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Coordinate, Length, Metres, Seconds, Speed, Whole
from mobility.files import is_movement
from mobility.models import MODELS
from mobility.trace import TraceError
from scenarios.layout import UNPLACED
from scenarios.wires import WireKeys
from topologies.layouts import MAX_COORDINATE_M

Spread = Annotated[float, Field(ge=0, lt=1)]
Reach = Annotated[Metres, Field(ge=0, le=MAX_COORDINATE_M)]
Interval = Annotated[Seconds, Field(ge=0.01, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]
Blocks = Annotated[Whole, Field(ge=1, le=1000)]


def _default(model: str, option: str) -> Any:
    return inspect.signature(MODELS[model]).parameters[option].default


class Movement(Strict):
    """Common part of all movements. `WITH_TRAFFIC`: it begins with the traffic; `MADE`: mobility/models generates it; `SCALES`:
    a seed's stations pass the same points in the same order at any mean speed."""

    WITH_TRAFFIC: ClassVar[bool] = True
    MADE: ClassVar[bool] = True
    NEEDS_AREA: ClassVar[bool] = True
    SCALES: ClassVar[bool] = False
    model: str

    @property
    def moving(self) -> bool:
        """Whether stations move at all."""
        return True

    @property
    def with_traffic(self) -> bool:
        """Whether the movement begins with the traffic; else with the medium."""
        return self.WITH_TRAFFIC

    def parameters(self) -> dict[str, Any]:
        """The options, as the model's function takes them."""
        return {key: value for key, value in self.model_dump().items() if key != "model"}


class Still(Movement):
    """Stations stay at the positions of the layout. Written as the bare name."""

    WITH_TRAFFIC = MADE = NEEDS_AREA = False
    model: Literal["static"] = "static"

    @property
    def moving(self) -> bool:
        """False."""
        return False

    @model_serializer(mode="plain")
    def _name(self) -> str:
        return self.model


class RandomWaypoint(Movement):
    """Random waypoint (Johnson and Maltz 1996): straight moves to random points of the area, with pauses."""

    SCALES = True
    model: Literal["random-waypoint"]
    speed: Speed | None = None
    spread: Share = _default("random-waypoint", "spread")
    pause: Annotated[Seconds, Field(ge=0, le=86_400)] | None = None
    pauses: Literal["fixed", "uniform"] = _default("random-waypoint", "pauses")
    edges: Literal["inside", "wrap"] = _default("random-waypoint", "edges")
    legs: Literal["to-point", "timed"] = _default("random-waypoint", "legs")
    start: Literal["placed", "steady"] = _default("random-waypoint", "start")


class RandomWalk(Movement):
    """Random walk: straight steps of one length in random directions."""

    SCALES = True
    model: Literal["random-walk"]
    speed: Speed | None = None
    spread: Spread = _default("random-walk", "spread")
    step: Length = _default("random-walk", "step")
    edges: Literal["bounce", "wrap"] = _default("random-walk", "edges")


class GaussMarkov(Movement):
    """Gauss-Markov (Liang and Haas 1999): speed and direction change gradually."""

    model: Literal["gauss-markov"]
    speed: Speed | None = None
    deviation: Annotated[float, Field(ge=0, le=2)] = _default("gauss-markov", "deviation")
    turn: Annotated[float, Field(ge=0, le=10)] = _default("gauss-markov", "turn")
    memory: Share = _default("gauss-markov", "memory")
    interval: Interval = _default("gauss-markov", "interval")
    edges: Literal["bounce", "wrap"] = _default("gauss-markov", "edges")


class Group(Movement):
    """Reference point group mobility (Hong et al. 1999): members move about the centre of their group."""

    model: Literal["group"]
    speed: Speed | None = None
    spread: Spread = _default("group", "spread")
    groups: Annotated[Whole, Field(ge=1, le=1000)] = _default("group", "groups")
    radius: Reach = _default("group", "radius")
    wander: Reach = _default("group", "wander")
    interval: Interval = _default("group", "interval")


class Manhattan(Movement):
    """Manhattan grid (ETSI TR 101 112): stations move along streets and turn at crossings."""

    SCALES = True
    model: Literal["manhattan"]
    speed: Speed | None = None
    spread: Spread = _default("manhattan", "spread")
    columns: Blocks = _default("manhattan", "columns")
    rows: Blocks = _default("manhattan", "rows")


class Move(Strict):
    """A move of a schedule; `at` counts from the start of the traffic."""

    at: Annotated[Seconds, Field(ge=0, le=1e6)]
    station: str
    to: Annotated[tuple[Coordinate, ...], BeforeValidator(as_tuple), Field(min_length=2, max_length=3)]
    speed: Speed | None = None


class Schedule(Movement):
    """Listed moves at listed times."""

    NEEDS_AREA = False
    model: Literal["schedule"]
    moves: Annotated[tuple[Move, ...], BeforeValidator(as_tuple), Field(max_length=100_000)] = _default("schedule", "moves")


class Replay(Movement):
    """A movement file, or of a pattern with `*` as many as there are seeds: seed n takes the nth in the order of their names."""

    MADE = NEEDS_AREA = False
    SCALES = True
    model: Literal["file"]
    file: str = Field(min_length=1)
    factor: Annotated[float, Field(gt=0, le=1000)] | None = None
    speed: Speed | None = None
    at: Literal["medium", "traffic"] = "medium"

    @property
    def with_traffic(self) -> bool:
        """Whether the movement starts with the traffic."""
        return self.at == "traffic"

    @property
    def is_unscaled(self) -> bool:
        """Whether the run uses the file's own times and speeds."""
        return self.factor is None and self.speed is None and self.at == "medium"

    @model_validator(mode="after")
    def _one_speed(self) -> Self:
        if self.factor is not None and self.speed is not None:
            raise KeyProblem(("factor",), "and speed both set the speed; remove one of the two")
        return self


_Any = Still | RandomWaypoint | RandomWalk | GaussMarkov | Group | Manhattan | Schedule | Replay
MOVEMENTS: dict[str, type[Movement]] = {get_args(model.model_fields["model"].annotation)[0]: model for model in get_args(_Any)}
MODEL_NAMES = tuple(name for name in MOVEMENTS if name != "file")


def _as_table(value: object) -> object:
    """A name, a file, or a table of either. (`--set mobility.factor=2` makes `model` of what the key was before, and so does
    `--set mobility.file=other.csv`.)"""
    if isinstance(value, str):
        value = {"model": value}
    if not isinstance(value, dict):
        return value
    name = value.get("model")
    if "file" in value and (name is None or (isinstance(name, str) and name not in MOVEMENTS and is_movement(name))):
        return {**value, "model": "file"}
    if isinstance(name, str) and name not in MOVEMENTS and "file" not in value and (len(value) == 1 or is_movement(name)):
        return {**value, "model": "file", "file": name}
    return value


def completed(movement: Movement, short_forms: dict[str, float | None]) -> Movement:
    """The movement with the scenario's keys `speed` and `pause`, which are short forms of its options."""
    for key, value in short_forms.items():
        own = getattr(movement, key, None)
        if value is not None and key not in type(movement).model_fields:
            raise KeyProblem((key,), f'mobility "{movement.model}" has no {key} of its own; remove it')
        if None not in (value, own) and value != own:
            raise KeyProblem((key,), f"{value:g} contradicts mobility.{key} = {own:g}; remove one of the two")
        if own is None and key in type(movement).model_fields:
            movement = movement.model_copy(update={key: 0.0 if key == "pause" and value is None else value})
    if isinstance(movement, Replay):
        return type(movement).model_validate(movement.model_dump())  # the combination of factor and speed is checked only now
    if movement.MADE and getattr(movement, "speed", 1.0) is None:
        raise KeyProblem((), f'mobility "{movement.model}" needs "speed"; add speed = 10')
    return movement


def seconds_of(movement: Movement, travel_m: float | None) -> float:
    """Time in which a station at the mean speed travels `travel_m`, s: the same part of the movement at any speed. KeyProblem if
    the movement is not the same at any speed."""
    if travel_m is None:
        text = '"movement" needs "travel", the way of a station at the mean speed, m; add travel = 3600'
        raise KeyProblem(("duration",), text)
    if not movement.SCALES:
        names = ", ".join(f'"{name}"' for name, model in MOVEMENTS.items() if model.SCALES and model.MADE)
        text = f'mobility "{movement.model}" is not the same at every speed; take {names} or a file, or give a time in s'
        raise KeyProblem(("duration",), text)
    if getattr(movement, "pause", None):
        text = 'lasts as long at every speed, so duration = "movement" needs pause = 0; or give a time in s'
        raise KeyProblem(("pause",), text)
    if isinstance(movement, Replay) and not movement.with_traffic:
        text = 'begins before the traffic, by the same time at every speed; duration = "movement" needs at = "traffic"'
        raise KeyProblem(("mobility", "at"), text)
    speed: float | None = getattr(movement, "speed", None)
    if speed is None:
        raise KeyProblem(("duration",), '"movement" needs the mean speed; add speed = 10 (in place of "factor")')
    return travel_m / speed


def refuse_misfit(movement: Movement, places: list[tuple[str, float, float, float]], area: tuple[float, float] | None) -> None:
    """KeyProblem if the model refuses the places or the area, before anything starts."""
    if movement.NEEDS_AREA and area is None:
        raise KeyProblem((), f'mobility "{movement.model}" needs "area"; add area = [1500, 300]')
    if not movement.MADE:
        return
    try:
        MODELS[movement.model](places, area or (0.0, 0.0), begin_s=0.0, end_s=0.0, seed=1, **movement.parameters())
    except TraceError as problem:
        raise KeyProblem(("mobility",), str(problem)) from None


Mobility = Annotated[Annotated[_Any, Field(discriminator="model")], BeforeValidator(_as_table)]


class MovementKeys(WireKeys):
    """The keys of the movement; `speed` and `pause` are short forms of its options."""

    mobility: Mobility = Still()
    speed: Speed | None = None
    pause: Seconds | None = Field(None, ge=0, le=86_400)

    def _complete_mobility(self) -> dict[str, Any]:
        """Merge `speed` and `pause` with the movement's options of that name; both are equal afterwards."""
        movement = completed(self.mobility, {"speed": self.speed, "pause": self.pause})
        return {"mobility": movement, **{key: getattr(movement, key, None) for key in ("speed", "pause")}}

    def _check_places(self) -> None:
        """Refuse places and an area that the model refuses, before anything starts."""
        if self.topology == UNPLACED and self.mobility.moving:
            raise KeyProblem(("mobility",), f'moves stations, which topology "{UNPLACED}" does not place; take "static"')
        places = [(placed.name, placed.x_m, placed.y_m, placed.z_m) for placed in self.positions()]
        refuse_misfit(self.mobility, places, self.area)
