"""Events requested while a network runs: at a prompt, in a view, by a script, by a test process."""

from collections.abc import Mapping, Sequence
from typing import Any

from keys.errors import UsageError
from keys.models import KeyProblem
from keys.toml_lines import Path as KeyPath
from scenarios.events import Event, check_events
from scenarios.refusal import validated
from scenarios.scenario import Scenario


def live_event(
    scenario: Scenario, keys: Mapping[str, Any], named: Mapping[str, str] | None = None, *,
    before: Sequence[Event] = (), without_daemon: str | None = None,
) -> Event:  # fmt: skip
    """The event of these keys (`events` of formats/scenario.md), with all checks of one in a file. UsageError: `key: text`.
    `named`: what the messages call a key, if not by its own name. `before`: the events that started commands; one without a name
    gets its number. Whether a daemon runs is the daemon's to say. `without_daemon`: as of check_events."""

    def refusal(path: KeyPath, text: str) -> UsageError:
        return UsageError(f"{(named or {}).get(str(path[0]), path[0])}: {text}" if path else text)

    if "at" in keys:
        raise UsageError("at: the event is carried out now; leave it out")
    event = validated(Event, {"at": 0, **keys}, refusal)
    if event.words and event.name is None:
        event = event.model_copy(update={"name": f"command{len(before) + 1}"})
    stopped = [event.model_copy(update={"daemon": "stop"})] if event.daemon == "start" else []
    wires = {frozenset((wire.station, wire.host)) for wire in scenario.wires}
    nodes = scenario.station_names(), scenario.host_names()
    try:
        check_events([*before, *stopped, event], *nodes, 0.0, scenario.area, wires, without_daemon)
    except KeyProblem as problem:
        raise refusal(problem.path[2:], str(problem)) from None
    return event
