"""The trace of one run from the scenario's `mobility`: a model's legs, a movement file, or fixed positions."""

import math
import shutil

from mobility import trace
from mobility.models import MODELS
from mobility.trace import Leg, Position, Trace, TraceError
from scenarios.movement import Replay
from scenarios.movement_files import file_for, replayed
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.stages.site import Site

AFTER_TRAFFIC_S = 120.0  # time for the end of a run: iperf3 has a minute, and captures are completed


def write_trace(site: Site) -> None:
    """Write trace.csv of the run: a file in our own format is copied, any other is converted."""
    target = site.directory / "trace.csv"
    movement = site.scenario.mobility
    if isinstance(movement, Replay) and movement.is_unscaled and movement.file.endswith(".csv"):
        path = file_for(movement, site.seed)
        try:
            shutil.copyfile(path, target)
        except OSError as problem:
            raise UsageError(f'{path}: {problem.strerror}; mobility names a movement file, or "static"') from None
        return
    movement_trace = trace_of(site.scenario, site.seed)
    target.write_text(trace.write(movement_trace.legs, movement_trace.end_s, movement_trace.mean_mps))


def planned_trace(scenario: Scenario, seed: int) -> Trace:
    """`trace_of` with the moves of the scenario's events, each a leg, as if the traffic began at `traffic_at`, else at 0."""
    trace = trace_of(scenario, seed)
    moves = [
        Leg((scenario.traffic_at or 0.0) + event.at, event.move, _position(event.to), event.speed or math.inf)
        for event in scenario.events
        if event.move is not None and event.to is not None and not isinstance(event.to, str)
    ]
    return Trace(trace.name, sorted([*trace.legs, *moves], key=lambda leg: leg.start_s), trace.end_s)


def _position(to: tuple[float, ...]) -> Position:
    """The place of an event, which may have no height."""
    x, y, z = (*to, 0.0)[:3]
    return x, y, z


def trace_of(scenario: Scenario, seed: int) -> Trace:
    """The movement of a scenario and a seed, of the stations' own names, on the clock of the medium."""
    movement = scenario.mobility
    places = [(p.name, p.x_m, p.y_m, p.z_m) for p in scenario.positions(seed)]
    begin_s = (scenario.traffic_at or 0.0) if movement.with_traffic else 0.0
    try:
        if isinstance(movement, Replay):
            return replayed(movement, file_for(movement, seed), scenario.station_names(), begin_s)
        if not movement.MADE:
            return Trace("placed", trace.place(places))
        end_s = begin_s + scenario.traffic_seconds() + AFTER_TRAFFIC_S
        model = MODELS[movement.model]
        area = scenario.area or (0.0, 0.0)
        still = set(scenario.still_stations()) if movement.NEEDS_AREA else set()  # a schedule lists who moves
        moved = [place for place in places if place[0] not in still]
        legs = model(moved, area, begin_s=begin_s, end_s=end_s, seed=seed, **movement.parameters())
        return Trace(movement.model, [*legs, *trace.place(place for place in places if place[0] in still)], end_s)
    except TraceError as problem:
        raise UsageError(str(problem)) from None
