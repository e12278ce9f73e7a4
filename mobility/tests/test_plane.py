"""Degrees and metres, and the sentences of a GPS receiver."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.nmea import _sentence, gga, rmc
from mobility.plane import Plane

AT = datetime(1994, 3, 23, 12, 35, 19, 250_000, UTC)


def fields(sentence: str) -> list[str]:
    """The fields of a sentence, whose checksum is right."""
    assert sentence.startswith("$") and sentence.endswith("\r\n")
    text, _, checksum = sentence[1:-2].partition("*")
    total = 0
    for letter in text:
        total ^= ord(letter)
    assert checksum == f"{total:02X}"
    return text.split(",")


def degrees(angle: str, side: str) -> float:
    whole, minutes = angle[: angle.index(".") - 2], angle[angle.index(".") - 2 :]
    return (int(whole) + float(minutes) / 60) * (-1 if side in "SW" else 1)


@given(st.floats(-85, 85), st.floats(-179, 179), st.floats(-50_000, 50_000), st.floats(-50_000, 50_000))
def test_degrees_lead_back_to_the_metres(south: float, west: float, x: float, y: float) -> None:
    plane = Plane(south, west, south)
    assert plane.metres(*plane.degrees(x, y)) == pytest.approx((x, y), abs=1e-3)


def test_a_degree_of_latitude_is_111_km_and_one_of_longitude_shrinks() -> None:
    # 6371 km x pi / 180 = 111.195 km; cos 60 = 0.5
    plane = Plane(60, 10, 60)
    assert plane.metres(61, 10) == pytest.approx((0, 111_194.93), abs=0.01)
    assert plane.metres(60, 11) == pytest.approx((111_194.93 / 2, 0), abs=0.01)
    assert Plane.around([(59, 20), (61, 10)]) == Plane(59, 10, 60)


def test_the_checksum_is_that_of_a_known_sentence() -> None:
    known = "GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,"  # of many manuals
    assert _sentence(known) == f"${known}*47\r\n"


def test_a_fix_has_time_place_and_height() -> None:
    found = fields(gga(AT, 48.1173, 11.516667, 545.44))
    assert found == [
        "GPGGA",
        "123519.25",
        "4807.03800",
        "N",
        "01131.00002",
        "E",
        "1",
        "08",
        "1.0",
        "545.4",
        "M",
        "0.0",
        "M",
        "",
        "",
    ]
    assert fields(gga(AT, -0.5, -179.999999999, 0))[2:6] == ["0030.00000", "S", "18000.00000", "W"]


def test_the_minimum_has_knots_course_and_date() -> None:
    # 10 m/s x 3600 s / 1852 m = 19.44 knots
    found = fields(rmc(AT, 48.1173, 11.516667, 10.0, -90.0))
    assert found[7:] == ["19.44", "270.0", "230394", "", "", "A"] and found[:3] == ["GPRMC", "123519.25", "A"]


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_any_place_is_read_back(latitude: float, longitude: float) -> None:
    for sentence, first in ((gga(AT, latitude, longitude, 0), 2), (rmc(AT, latitude, longitude, 0, 0), 3)):
        one, north, other, east = fields(sentence)[first : first + 4]
        assert (one.index("."), other.index(".")) == (4, 5)
        assert degrees(one, north) == pytest.approx(latitude, abs=1e-7)
        assert degrees(other, east) == pytest.approx(longitude, abs=1e-7)
