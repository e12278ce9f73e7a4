"""A session or a view's actions, as events and flows of a scenario: `manet run RUN_DIR` repeats them from the record."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from record.added_flows import added_flows
from record.events_file import SCENARIO, read_events
from record.files import read_object
from record.run import RADIO_CHANGES
from scenarios.events import DONE
from scenarios.scenario import Scenario
from scenarios.sending import MAX_DURATION_S, MIN_DURATION_S

ACTIONS = {done: action for action, done in DONE.items()}


@dataclass(frozen=True)
class ByHand:
    """The scenario with the actions, and one line for each that it has, and for each that it cannot have."""

    scenario: Scenario
    repeated: list[str]
    left_out: list[str]


def with_actions(directory: Path, scenario: Scenario) -> ByHand:
    """The scenario of the run in `directory` with the actions of events.csv and the flows of flows.json. Of a session without its
    traffic and events, which took no part, and as long."""
    repeated: list[str] = []
    left_out: list[str] = []
    run, rows = read_object(directory / "run.json"), read_events(directory)
    if "session_s" in run:
        length_s = max(run["session_s"], MIN_DURATION_S, *(float(row["at_s"] or 0) for row in rows))
        scenario = _changed(scenario, flows=[], events=[], warmup=0, duration=min(length_s, MAX_DURATION_S))
    flows = added_flows(directory)
    if flows:
        scenario = _changed(scenario, flows=[*_tables(scenario)["flows"], *flows])
        repeated += [f"flow from {flow['from']} to {flow['to']} at {flow['start']:g} s" for flow in flows]
    acted = [row for row in rows if row["source"] != SCENARIO and row["event"] != "flow"]
    timed = [row for row in acted if row["at_s"]]
    events = [{"at": float(row["at_s"]), **_keys(row, run.get("commands", []))} for row in timed]
    scenario, refusals = _with_events(scenario, events)
    of_timed = iter(refusals)
    for row in acted:
        text = f"{row['event']} of {row['station']} ({row['detail']})"
        if not row["at_s"]:
            left_out.append(f"{text} before the traffic, from which events count")
        elif refusal := next(of_timed):
            left_out.append(f"{text} at {row['at_s']} s: {refusal}")
        else:
            repeated.append(f"{text} at {row['at_s']} s")
    if (directory / RADIO_CHANGES).exists():
        left_out.append(f"the changes of powers and antennas in {RADIO_CHANGES}, which no event makes")
    return ByHand(scenario, repeated, left_out)


def _with_events(scenario: Scenario, events: list[dict[str, Any]]) -> tuple[Scenario, list[str]]:
    """The scenario with these events too, and for each why it cannot have it; empty for those that it has."""
    with suppress(ValidationError):  # all at once, since a session may have thousands; else one after the other, to know which
        return _changed(scenario, events=[*_tables(scenario)["events"], *events]), [""] * len(events)
    refusals = []
    for event in events:
        try:
            scenario = _changed(scenario, events=[*_tables(scenario)["events"], event])
            refusals.append("")
        except ValidationError as problem:
            refusals.append(problem.errors()[0]["msg"].removeprefix("Value error, "))
    return scenario, refusals


def _tables(scenario: Scenario) -> dict[str, Any]:
    return scenario.model_dump(by_alias=True, mode="json")


def _changed(scenario: Scenario, **keys: object) -> Scenario:
    return Scenario.model_validate({**_tables(scenario), **keys})


def _keys(row: dict[str, str], commands: list[dict[str, Any]]) -> dict[str, Any]:
    """The keys of the event that wrote this row (scenarios/events.py, `worded`). `commands`: of run.json."""
    station, detail = row["station"], row["detail"]
    first, _, rest = detail.partition(" ")
    match row["event"]:
        case "power" | "cut":  # of the same station, whoever relays then
            return {"power": station, "on": detail == "on"}
        case "link":
            return {"link": station.split(), "error_rate": float(rest)}
        case "wire":
            return {"wire": station.split(), "stalled": detail == "stalled"}
        case "daemon":
            return {"daemon": ACTIONS.get(detail), "station": station}
        case "command" if rest == "started":
            argv: list[str] = next((command["argv"] for command in commands if command["name"] == first), [])
            words = [word.replace("{", "{{").replace("}", "}}") for word in argv]
            return {"command": words, "station": station, "name": first}
        case "command":
            return {"command": ACTIONS.get(rest, rest), "name": first}
        case _:
            place, _, speed = rest.partition(" at ")
            keys = {"move": station, "to": [float(word) for word in place.split()]}
            return keys | {"speed": float(speed)} if speed else keys
