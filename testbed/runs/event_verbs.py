"""Events at the prompt: `event` carries out one of a scenario's (formats/scenario.md) now, `link` is Mininet's verb for links.

Each is checked as in a file, and is a row of events.csv with the source `prompt`.
"""

import tomllib
from collections.abc import Callable

from record.events_file import PROMPT
from testbed.errors import UsageError
from testbed.runs.place_verbs import PromptVerbs, say

EXAMPLE = 'event link = ["sta1", "sta2"], error_rate = 0.5'
LINK_USAGE = "link station station up|down, or the error rate of its frames (0 to 1)"


class EventVerbs(PromptVerbs):
    """The verbs that carry out events."""

    def do_event(self, line: str) -> None:
        "Carry out an event of a scenario now.\nUsage: event KEYS, a scenario's without `at`: event power = 'sta1', on = false"
        try:
            keys = tomllib.loads(f"event = {{ {line} }}")["event"]
        except tomllib.TOMLDecodeError as problem:
            raise UsageError(f"event: {problem}; write the keys as in a scenario: {EXAMPLE}") from None
        if not keys or "at" in keys:
            raise UsageError(f"event: it is carried out now, so it has no `at`; write its other keys: {EXAMPLE}")
        self._give(self.live.do, keys)

    def do_link(self, line: str) -> None:
        "Take a radio link or a wire down, or up again.\nUsage: link station station up|down|error rate"
        words = line.split()
        if len(words) != 3 or words[0] == words[1]:
            say(f"usage: {LINK_USAGE}        (two different ones)")
        elif all([self._is_node(name) for name in words[:2]]):
            one, other, state = words
            if {one, other} in [{wire.gateway.name, wire.host.name} for wire in self.live.network.net.wires]:
                self._set_wire(one, other, state)
            else:
                self._set_link(one, other, state)

    def _set_wire(self, one: str, other: str, state: str) -> None:
        if state not in ("up", "down"):
            raise UsageError(f"link {one} {other} {state}: a wire has no error rate; write up, or down: its packets wait then")
        self._give(self.live.do, {"wire": [one, other], "stalled": state == "down"})

    def _set_link(self, one: str, other: str, state: str) -> None:
        if state in ("up", "down"):
            self._give(self.live.break_link if state == "down" else self.live.restore_link, one, other)
            return
        try:
            rate = float(state)
        except ValueError:
            say(f"usage: {LINK_USAGE}")
            return
        self._give(self.live.do, {"link": [one, other], "error_rate": rate})

    def _give(self, carry_out: Callable[..., tuple[str, str]], *wanted: object) -> None:
        """Carry out, record and print an event. Raises UsageError for a wrong one, RunError if it fails."""
        try:
            station, detail = carry_out(*wanted, PROMPT)
        except UsageError as problem:
            raise UsageError(f"event: {problem}") from None
        say(f"{station}: {detail}")
