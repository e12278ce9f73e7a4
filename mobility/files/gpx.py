"""GPX 1.1 tracks (topografix.com/GPX/1/1): every `trk` is a station, its points are positions with times.

Degrees become metres on a plane that touches the earth in the middle of all points (mobility/plane.py); the lower left corner of
all points is (0, 0). Time 0 is the earliest point of all tracks: a station stands at its first point until its own first time,
goes straight from point to point, and stays at its last. Segments of a track are joined. Heights (`ele`) are kept where every
point has one, counted from the lowest. A point without a time is an error: the speed would be unknown.
"""

import re
from datetime import UTC, datetime

from mobility.files.xml_events import XmlReader
from mobility.plane import Plane
from mobility.trace import MAX_COORDINATE_M, MAX_STATIONS, MAX_TIME_S, Leg, Trace, TraceError, joined, through

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")
Point = tuple[float, float, float | None, float]  # latitude, longitude, height, time since 1970


def parse(data: bytes, name: str) -> Trace:
    """A checked movement; errors call it `name`. TraceError names the line. Stations are `sta1`, `sta2`, ... in the order of the
    tracks."""
    tracks = _Reader(name).run(data)
    points = [point for track in tracks for point in track]
    begin = min(point[3] for point in points)
    heights = [point[2] for point in points if point[2] is not None]
    lowest = min(heights) if len(heights) == len(points) else None
    plane = Plane.around([point[:2] for point in points])
    legs: list[list[Leg]] = []
    for number, track in enumerate(tracks, start=1):
        station, own = f"sta{number}", []
        for latitude, longitude, height, time in track:
            x, y = plane.metres(latitude, longitude)
            z = 0.0 if lowest is None or height is None else height - lowest
            if time - begin > MAX_TIME_S or max(map(abs, (x, y, z))) > MAX_COORDINATE_M:
                text = f"{station} goes further than {MAX_COORDINATE_M:g} m or {MAX_TIME_S:g} s; cut the tracks to one outing"
                raise TraceError(f"{name}: {text}")
            own.append((time - begin, (x, y, z)))
        legs.append(through(station, own))
    return joined(name, legs, max(point[3] for point in points) - begin)


class _Reader(XmlReader):
    def __init__(self, name: str) -> None:
        super().__init__(name, "GPX 1.1")
        self.tracks: list[list[Point]] = []
        self.at: tuple[float, float] | None = None
        self.texts: dict[str, str] = {}
        self.key: str | None = None

    def run(self, data: bytes) -> list[list[Point]]:
        self.feed(data)
        self.tracks = [track for track in self.tracks if track]
        if not self.tracks:
            raise TraceError(f"{self.name}: has no track with points; export tracks (trk), not routes or waypoints")
        if len(self.tracks) > MAX_STATIONS:
            raise TraceError(f"{self.name}: {len(self.tracks)} tracks; a trace has at most {MAX_STATIONS} stations")
        return self.tracks

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "trk":
            self.tracks.append([])
        elif tag == "trkpt":
            latitude = self.number("lat", attributes.get("lat", ""), 90)
            self.at = (latitude, self.number("lon", attributes.get("lon", ""), 180))
            self.texts = {}
        elif tag in ("time", "ele") and self.at is not None:
            self.key = tag
            self.texts[tag] = ""

    def text(self, text: str) -> None:
        if self.key is not None:
            self.texts[self.key] += text

    def end(self, tag: str) -> None:
        self.key = None
        if tag != "trkpt" or self.at is None:
            return
        if not self.tracks:
            self.fail("a point outside of a track; give a GPX 1.1 file")
        time = self._time(self.texts.get("time", "").strip())
        track = self.tracks[-1]
        if track and time < track[-1][3]:
            self.fail("time goes back in the track; sort its points")
        height = self.number("ele", self.texts["ele"].strip(), MAX_COORDINATE_M) if "ele" in self.texts else None
        track.append((*self.at, height, time))
        self.at = None

    def _time(self, text: str) -> float:
        match = _TIME.fullmatch(text)
        try:
            whole = datetime.fromisoformat(match.group(1) + (match.group(3) or "Z")) if match else None
        except ValueError:
            whole = None
        if whole is None or match is None:
            self.fail(f'the time "{text[:40]}" of a point must be written like 2026-05-01T12:00:00Z')
        seconds = (whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
        return seconds + float(match.group(2) or 0)
