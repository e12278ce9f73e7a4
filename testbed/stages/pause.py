"""A movement that can be interrupted and continued: `stop` and `start` of the prompt and of scripts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mobility.trace import NS_PER_S, Leg, Trace
from testbed.stages import replay

if TYPE_CHECKING:
    from testbed.stages.medium import Medium

LEAD_S = 0.1  # so that the stop is still ahead when the medium hears of it


class Movement:
    """The movement of a run. `made` is the one that the medium follows from model time 0 on, if stations move by themselves."""

    def __init__(self, medium: "Medium", made: Trace | None = None) -> None:
        self._medium, self._made, self._begin_ns = medium, made, 0
        self._paused_s: float | None = None  # time of the movement at which it was interrupted

    def play(self, made: Trace) -> replay.Playing:
        """Follow another movement from now on. Raises RunError."""
        playing = replay.play(self._medium, made)
        self._made, self._begin_ns, self._paused_s = made, playing.begin_ns, None
        return playing

    def pause(self) -> bool:
        """Stop all stations where they are; False if there is no movement, or it stands still already."""
        if self._paused_s is not None:
            return False
        at_ns = self._medium.ask("status")["model_ns"] + round(LEAD_S * NS_PER_S)
        self._medium.ask("halt", at_ns=at_ns)
        if self._made is None:
            return False
        self._paused_s = max(0.0, (at_ns - self._begin_ns) / NS_PER_S)
        return True

    def resume(self) -> bool:
        """Continue, from where each station is now; False if nothing was interrupted. Raises RunError."""
        if self._made is None or self._paused_s is None:
            return False
        self.play(rest(self._made, self._paused_s, self._medium.ask("positions")["positions"]))
        return True


def rest(made: Trace, at_s: float, places: Mapping[str, Sequence[float]]) -> Trace:
    """What is left of a movement at `at_s`, with its time 0 there, for stations that are at these places (m)."""
    legs: list[Leg] = []
    for station in made.stations():
        x, y, z = places[station]
        legs.append(Leg(0.0, station, (x, y, z), 0.0))
        own = sorted((leg for leg in made.legs if leg.station == station), key=lambda leg: leg.start_s)
        begun = [leg for leg in own if leg.start_s <= at_s]
        if begun and 0 < begun[-1].speed_mps < float("inf"):
            legs.append(Leg(0.0, station, begun[-1].to, begun[-1].speed_mps))
        legs += [Leg(leg.start_s - at_s, station, leg.to, leg.speed_mps) for leg in own if leg.start_s > at_s]
    return Trace(made.name, legs)
