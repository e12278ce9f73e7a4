"""Sentences of a GPS receiver for a position: GGA and RMC of NMEA 0183 (version 2.3), as gpsd and other programs read them.

Fields that a receiver measures and nobody has here are constants: 8 satellites, HDOP 1.0, a geoid separation of 0 m, no magnetic
variation. Minutes have five decimals (18 mm of latitude).
"""

from datetime import datetime
from functools import reduce

KNOT_MPS = 1852 / 3600


def gga(at: datetime, latitude: float, longitude: float, height_m: float) -> str:
    """The fix: time (UTC), place (degrees), height."""
    return _sentence(f"GPGGA,{_time(at)},{_place(latitude, longitude)},1,08,1.0,{height_m:.1f},M,0.0,M,,")


def rmc(at: datetime, latitude: float, longitude: float, speed_mps: float, course_deg: float) -> str:
    """The recommended minimum: time and date (UTC), place, speed over ground and its direction, clockwise from north."""
    motion = f"{speed_mps / KNOT_MPS:.2f},{course_deg % 360:.1f}"
    return _sentence(f"GPRMC,{_time(at)},A,{_place(latitude, longitude)},{motion},{at:%d%m%y},,,A")


def _sentence(text: str) -> str:
    """With `$`, the checksum (the exclusive or of all characters between `$` and `*`) and the line's end."""
    return f"${text}*{reduce(lambda total, letter: total ^ ord(letter), text, 0):02X}\r\n"


def _time(at: datetime) -> str:
    return f"{at:%H%M%S}.{at.microsecond // 10_000:02d}"


def _place(latitude: float, longitude: float) -> str:
    return f"{_angle(latitude, 2)},{'S' if latitude < 0 else 'N'},{_angle(longitude, 3)},{'W' if longitude < 0 else 'E'}"


def _angle(degrees: float, digits: int) -> str:
    """Degrees and minutes as one number; rounded as a whole, so that 59.999999 minutes are the next degree."""
    whole, part = divmod(round(abs(degrees) * 60 * 100_000), 60 * 100_000)
    return f"{whole:0{digits}d}{part // 100_000:02d}.{part % 100_000:05d}"
