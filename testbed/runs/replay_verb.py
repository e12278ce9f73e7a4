"""The prompt's `replay`: stations follow a movement file from now on (testbed/stages/replay.py)."""

from collections.abc import Callable
from pathlib import Path

from keys.quantities import of_word
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.stages import replay
from testbed.stages.pause import LiveMovement

USAGE = "replay FILE [speed=M/S | factor=N] | replay off"


class ReplayVerb:
    """The verb. `say` prints an answer."""

    def __init__(self, movement: LiveMovement, scenario: Scenario, say: Callable[[str], None]) -> None:
        self._medium, self._movement, self._scenario, self._say = movement.medium, movement, scenario, say
        self._playing: replay.Playing | None = None

    def __call__(self, line: str) -> None:
        """Execute one line of the prompt. Raises UsageError or RunError."""
        words = line.split()
        if not words:
            self._say(self._state())
        elif words in (["off"], ["stop"]):
            replay.halt(self._medium)
            self._playing = None
            self._say("all stations stop where they are; the rest of the movement is dropped")
        else:
            trace = replay.movement(Path(words[0]), self._scenario, **_options(words[1:]))
            self._playing = self._movement.play(trace)
            self._say(self._state())

    def _state(self) -> str:
        now = self._playing
        if now is None:
            return f"no movement file is being replayed; usage: {USAGE}"
        gone_s = self._medium.ask("status")["model_ns"] / 1e9 - now.begin_ns / 1e9
        where = f"begins in {-gone_s:.1f} s" if gone_s < 0 else f"at {gone_s:.1f} s"
        rest = len(self._scenario.station_names()) - now.stations
        others = f"; {rest} stations are not in it and stand still" if rest else ""
        return f"{now.file}: {now.stations} stations, {now.legs} rows until {now.last_s:g} s, {where}{others}"


def _options(words: list[str]) -> dict[str, float | str]:
    """`speed` or `factor`, as keys of a scenario's `mobility`."""
    pairs = [word.partition("=") for word in words]
    if len(pairs) > 1 or any(key not in ("speed", "factor") for key, _, _ in pairs):
        raise UsageError(f"usage: {USAGE}        ({' '.join(words)}: one of the two)")
    return {key: of_word(value) for key, _, value in pairs}
