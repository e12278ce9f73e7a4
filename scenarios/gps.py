"""The key `gps` of a scenario: a GPS receiver for each station, which tells its programs where they are (docs/drive.md)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from keys.models import Strict, as_tuple

MAX_RATE_HZ = 10.0  # of usual receivers
MAX_LATITUDE_DEG = 85.0  # lengths east shrink too fast nearer to a pole
Latitude = Annotated[float, Field(ge=-MAX_LATITUDE_DEG, le=MAX_LATITUDE_DEG)]
Longitude = Annotated[float, Field(ge=-180, le=180)]


class Gps(Strict):
    """`origin`: latitude and longitude (degrees) of the point (0, 0); x is east, y is north. `rate`: fixes per second."""

    origin: Annotated[tuple[Latitude, Longitude], BeforeValidator(as_tuple)] = (0.0, 0.0)
    rate: float = Field(1.0, ge=0.1, le=MAX_RATE_HZ)
