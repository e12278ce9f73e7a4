"""One movement at several speeds: the same positions in the same order, at scaled times.

Holland and Vaidya, MobiCom 1999, section 2: a move of time t at 10 m/s takes t/2 at 20 m/s. Pauses are scaled, too.
"""

from collections.abc import Sequence
from dataclasses import replace

from mobility.trace import Leg


def scaled(legs: Sequence[Leg], factor: float, begin_s: float = 0.0) -> list[Leg]:
    """The legs `factor` (above 0) times as fast, with time 0 moved to `begin_s`; the initial placement stays at time 0."""
    seen: set[str] = set()
    played = []
    for leg in legs:
        if leg.station in seen:
            leg = replace(leg, start_s=begin_s + leg.start_s / factor, speed_mps=leg.speed_mps * factor)
        seen.add(leg.station)
        played.append(leg)
    return played
