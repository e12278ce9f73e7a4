"""Events at the prompt: `event` carries out one of a scenario's (formats/scenario.md) now, `link` is Mininet's verb for links.

Each is checked as in a file, and is a row of events.csv with the source `prompt`.
"""

import tomllib
from typing import Any

from record.events_file import PROMPT
from record.run_file import RunFile
from scenarios.events import ACTIONS, Event
from scenarios.refusal import validated
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.runs.place_verbs import say
from testbed.stages.commands import Commands
from testbed.stages.event_log import EventLog
from testbed.stages.events import carry_out, of_process
from testbed.stages.routing import Network, Protocol

EXAMPLE = 'event link = ["sta1", "sta2"], error_rate = 0.5'
LINK_USAGE = "link station station up|down, or the error rate of its frames (0 to 1)"


class EventVerbs:
    """Mixed into a prompt, which has the network and `_is_node`."""

    network: Network
    protocol: Protocol

    def prepare_events(self) -> None:
        """Set up events; called before the first verb."""
        self._log = EventLog(self.network.site.directory, of_run=False)
        self._commands = Commands(self.network.children, self.network.net)
        self._started: list[dict[str, Any]] = []  # the events that started commands
        self._before: dict[frozenset[str], float] = {}  # error rates of links that are down

    def end_events(self) -> None:
        """End the commands that still run, and record them."""
        self._commands.end_all()
        if self._commands.started:
            RunFile.open(self.network.site.directory / "run.json").update(commands=self._commands.entries())

    def do_event(self, line: str) -> None:
        "Carry out an event of a scenario now.\nUsage: event KEYS, a scenario's without `at`: event power = 'sta1', on = false"
        try:
            keys = tomllib.loads(f"event = {{ {line} }}")["event"]
        except tomllib.TOMLDecodeError as problem:
            raise UsageError(f"event: {problem}; write the keys as in a scenario: {EXAMPLE}") from None
        if not keys or "at" in keys:
            raise UsageError(f"event: it is carried out now, so it has no `at`; write its other keys: {EXAMPLE}")
        self.give(keys)

    def do_link(self, line: str) -> None:
        "Take a radio link or a wire down, or up again.\nUsage: link station station up|down|error rate"
        words = line.split()
        if len(words) != 3 or words[0] == words[1]:
            say(f"usage: {LINK_USAGE}        (two different ones)")
        elif all([self._is_node(name) for name in words[:2]]):  # type: ignore[attr-defined]
            one, other, state = words
            ends = frozenset((one, other))
            if ends in {frozenset((wire.gateway.name, wire.host.name)) for wire in self.network.net.wires}:
                self._set_wire(one, other, state)
            else:
                self._set_link(one, other, state)

    def _set_wire(self, one: str, other: str, state: str) -> None:
        if state not in ("up", "down"):
            raise UsageError(f"link {one} {other} {state}: a wire has no error rate; write up, or down: its packets wait then")
        self.give({"wire": [one, other], "stalled": state == "down"})

    def _set_link(self, one: str, other: str, state: str) -> None:
        ends = frozenset((one, other))
        if state == "down":
            links = self.network.medium.ask("links")["links"]
            now = next((link["error_rate"] for link in links if (link["from"], link["to"]) == (one, other)), 0.0)
            self._before.setdefault(ends, now)
            rate = 1.0
        elif state == "up":
            rate = self._before.pop(ends, 0.0)
        else:
            try:
                rate = float(state)
            except ValueError:
                say(f"usage: {LINK_USAGE}")
                return
            self._before.pop(ends, None)
        self.give({"link": [one, other], "error_rate": rate})

    def give(self, keys: dict[str, Any]) -> None:
        """Carry out, record and print an event. Raises UsageError for a wrong one, RunError if it fails."""
        event, log = self._checked(keys), self._log
        name = event.name or f"command{len(self._started) + 1}"
        if event.kind in ("daemon", "command"):
            station, detail = of_process(self.network, self.protocol, self._commands, event, name)
        else:
            station, detail = carry_out(self.network.medium, event)
        if event.words:
            self._started.append({**keys, "name": name})
        log.write(self.network.medium, None, event.kind, station, detail, PROMPT)
        say(f"{station}: {detail}")

    def _checked(self, keys: dict[str, Any]) -> Event:
        """The event, checked against the scenario and the commands that were started here."""
        before: list[dict[str, Any]] = list(self._started)
        if keys.get("daemon") == "start":  # whether it runs is the daemon's to say
            before.append({"daemon": "stop", "station": keys.get("station")})
        if isinstance(keys.get("command"), str) and keys["command"] in ACTIONS and not self._started:
            raise UsageError(f'event: command = "{keys["command"]}": no event here has started a command')
        scenario = self.network.site.scenario.model_dump(by_alias=True, mode="json")

        def refusal(path: tuple[str | int, ...], text: str) -> UsageError:
            return UsageError(f"event: {'.'.join(map(str, path[2:]))}: {text}" if len(path) > 2 else f"event: {text}")

        events = [{"at": 0, **one} for one in [*before, keys]]
        return validated(Scenario, {**scenario, "events": events}, refusal).events[-1]
