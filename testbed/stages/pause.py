"""A movement that can be interrupted and continued, or changed for some stations while it goes on."""

import threading
from collections.abc import Callable, Mapping, Sequence

from mobility.trace import NS_PER_S, Leg, Position, Trace
from testbed.stages import replay
from testbed.stages.medium import Medium

LEAD_S = 0.1  # so that the stop is still ahead when the medium hears of it
LegsFrom = Callable[[float, Position], Sequence[Leg]]  # from a time of the movement on, which is their 0, and a place


class LiveMovement:
    """The movement of a run. `trace` is the one that the medium follows from model time 0 on, if stations move by themselves;
    none may leave `area`."""

    def __init__(self, medium: Medium, trace: Trace | None = None, area: tuple[float, float] | None = None) -> None:
        self.medium, self._trace, self._area, self._begin_ns = medium, trace, area, 0
        self._gone_s = 0.0  # of the movement, at _begin_ns
        self._paused_s: float | None = None  # time since _begin_ns at which it was interrupted
        self._turn = threading.RLock()  # a thread of a script changes what the prompt interrupts
        self.played = 0  # movements so far

    def play(self, trace: Trace) -> replay.Playing:
        """Follow another movement from now on. Raises UsageError, RunError."""
        with self._turn:
            playing = replay.play(self.medium, trace, self._area)
            self._follows(trace, playing.begin_ns, 0.0)
            self.played += 1
            return playing

    def _follows(self, trace: Trace, begin_ns: int, gone_s: float) -> None:
        self._trace, self._begin_ns, self._gone_s, self._paused_s = trace, begin_ns, gone_s, None

    def time_s(self) -> float | None:
        """The time of the movement, without interruptions; negative just before it begins; None while it is interrupted."""
        with self._turn:
            if self._paused_s is not None:
                return None
            return self._gone_s + (self.medium.ask("status")["model_ns"] - self._begin_ns) / NS_PER_S

    def change(self, changed: Mapping[str, LegsFrom]) -> None:
        """Let some stations follow other legs from an instant on, shortly ahead; the others go on. Raises RunError."""
        with self._turn:
            old, old_begin_ns, gone_s = self._trace, self._begin_ns, self._gone_s
            assert old is not None and self._paused_s is None
            now_s = (self.medium.ask("status")["model_ns"] - old_begin_ns) / NS_PER_S
            still = self.medium.ask("positions")["positions"]  # also of stations that were moved by hand
            latest: list[Trace] = []

            def trace_at(begin_ns: int) -> Trace:
                at_s = max(0, begin_ns - old_begin_ns) / NS_PER_S
                going = {
                    name: tuple(still[name]) if _stands(old, name, now_s, at_s) else old.position(name, at_s)
                    for name in old.stations()
                    if _goes_on(old, name, at_s)
                }
                others = [leg for leg in old.legs if leg.station in going and leg.station not in changed]
                legs = rest(Trace(old.name, others), at_s, going).legs
                for name, legs_from in changed.items():
                    here = going.get(name) or tuple(still[name])
                    legs += [Leg(0.0, name, here, 0.0), *legs_from(gone_s + at_s, here)]
                latest[:] = [Trace(old.name, legs)]
                return latest[0]

            begin_ns = replay.play(self.medium, trace_at, self._area).begin_ns
            self._follows(latest[0], begin_ns, gone_s + (begin_ns - old_begin_ns) / NS_PER_S)

    def pause(self) -> bool:
        """Stop all stations where they are; False if there is no movement, or it stands still already."""
        with self._turn:
            if self._paused_s is not None:
                return False
            at_ns = self.medium.ask("status")["model_ns"] + round(LEAD_S * NS_PER_S)
            self.medium.ask("halt", at_ns=at_ns)
            if self._trace is None:
                return False
            self._paused_s = max(0.0, (at_ns - self._begin_ns) / NS_PER_S)
            return True

    def resume(self) -> bool:
        """Continue, from where each station is now; False if nothing was interrupted. Raises RunError."""
        with self._turn:
            if self._trace is None or self._paused_s is None:
                return False
            left = rest(self._trace, self._paused_s, self.medium.ask("positions")["positions"])
            self._follows(left, replay.play(self.medium, left).begin_ns, self._gone_s + self._paused_s)
            return True


def _goes_on(trace: Trace, station: str, at_s: float) -> bool:
    """Whether the station still moves at `at_s` or later."""
    last = trace.courses(station)[-1]
    return last.start_s > at_s or (last.speed_mps > 0 and last.arrival_s > at_s)


def _stands(trace: Trace, station: str, begin_s: float, end_s: float) -> bool:
    """Whether the station stands still between two times."""
    last = [course for course in trace.courses(station) if course.start_s <= end_s][-1]
    return last.start_s <= begin_s and not (last.speed_mps > 0 and last.arrival_s > begin_s)


def rest(trace: Trace, at_s: float, places: Mapping[str, Sequence[float]]) -> Trace:
    """The rest of a movement from `at_s` on, whose time 0 is `at_s`, for stations at these positions (m)."""
    legs: list[Leg] = []
    for station in trace.stations():
        x, y, z = places[station]
        legs.append(Leg(0.0, station, (x, y, z), 0.0))
        own = sorted((leg for leg in trace.legs if leg.station == station), key=lambda leg: leg.start_s)
        begun = [leg for leg in own if leg.start_s <= at_s]
        if begun and 0 < begun[-1].speed_mps < float("inf"):
            legs.append(Leg(0.0, station, begun[-1].to, begun[-1].speed_mps))
        legs += [Leg(leg.start_s - at_s, station, leg.to, leg.speed_mps) for leg in own if leg.start_s > at_s]
    return Trace(trace.name, legs)
