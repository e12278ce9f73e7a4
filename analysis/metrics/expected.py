"""Expected throughput of a movement (Holland and Vaidya, MobiCom 1999, section 3, equation 1): the throughput of TCP if movement
caused no losses.

While the shortest path between a flow's ends has i hops, the flow gets the throughput of a static chain of i hops; while there is
no path it gets nothing. The result is the mean over time of curve[hops]. It does not depend on the speed of the movement. It is a
yardstick, not a bound: routes may be longer than the shortest path, and finding new ones takes time; but a flow may also gain
from a path whose stations do not all hear each other as those of a chain do.

The curve must be of the same radio, TCP and kernel as the measurement that is compared. This file neither measures nor stores
curves.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from record.errors import RecordError


class ExpectedError(RecordError):
    """A curve that is none, or that does not reach as far as the paths do."""


@dataclass(frozen=True)
class Curve:
    """Throughput over a static chain: `values[hops]` in any unit, which results then have; `source` names its origin."""

    values: Mapping[int, float]
    source: str

    def __post_init__(self) -> None:
        hops = sorted(self.values)
        if not hops or hops != list(range(1, len(hops) + 1)):
            text = "a chain curve needs 1, 2, 3, ... hops without a gap; measure those that are missing"
            raise ExpectedError(f"{self.source}: {text}")
        if any(not 0 <= value < float("inf") for value in self.values.values()):
            raise ExpectedError(f"{self.source}: a throughput is not a number of 0 or more; repeat the measurement")

    @property
    def longest(self) -> int:
        """The largest number of hops that the curve has."""
        return max(self.values)

    def at(self, hops: int, beyond: bool = False) -> float:
        """0 for no path (0 hops). A path longer than the curve is an error, or with `beyond` gets the last value."""
        if hops == 0:
            return 0.0
        if hops > self.longest and not beyond:
            text = f"the curve ends at {self.longest} hops and a path has {hops}; measure longer chains"
            raise ExpectedError(f"{self.source}: {text}")
        return self.values[min(hops, self.longest)]


def expected(seconds: Mapping[int, float], curve: Curve, beyond: bool = False) -> float:
    """The mean over time, in the curve's unit.

    `seconds[hops]` is the time for which the shortest path has this number of hops; 0 hops: the time without a path
    (`Profile.seconds()` of mobility.connectivity). `beyond`: see Curve.at.
    """
    whole_s = sum(seconds.values())
    if not whole_s > 0 or min(seconds.values()) < 0:
        raise ExpectedError(f"{whole_s:g} s of movement have no mean; give times of 0 or more that add up to more than 0")
    return sum(lasts_s * curve.at(hops, beyond) for hops, lasts_s in seconds.items() if lasts_s > 0) / whole_s


def percent(measured: float, of_expected: float) -> float | None:
    """Measured throughput as a percentage of the expected one; None if nothing is expected."""
    return 100 * measured / of_expected if of_expected > 0 else None
