"""Degrees and metres: a plane that touches the earth, a sphere of 6371 km.

0.3 % off the ellipsoid at most, and good for areas of some tens of kilometres. x is east, y is north.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

EARTH_M = 6_371_000.0
DEGREE_M = math.radians(1) * EARTH_M  # of latitude


@dataclass(frozen=True)
class Plane:
    """`south`, `west`: latitude and longitude of (0, 0), degrees. `touches`: the latitude at which lengths east are true."""

    south: float
    west: float
    touches: float

    @classmethod
    def around(cls, points: Sequence[tuple[float, float]]) -> "Plane":
        """The plane of these latitudes and longitudes: it touches in their middle, and (0, 0) is their lower left corner."""
        latitudes = [latitude for latitude, _ in points]
        south, north = min(latitudes), max(latitudes)
        return cls(south, min(longitude for _, longitude in points), (south + north) / 2)

    def metres(self, latitude: float, longitude: float) -> tuple[float, float]:
        """x and y (m)."""
        return (longitude - self.west) * DEGREE_M * self._shrink, (latitude - self.south) * DEGREE_M

    def degrees(self, x_m: float, y_m: float) -> tuple[float, float]:
        """Latitude and longitude."""
        return self.south + y_m / DEGREE_M, self.west + x_m / (DEGREE_M * self._shrink)

    @property
    def _shrink(self) -> float:
        return math.cos(math.radians(self.touches))
