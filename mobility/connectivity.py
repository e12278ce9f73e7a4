"""Links and shortest paths over time, from a movement alone: the reference for measured networks.

Two stations have a link while they are at most `range_m` apart (a disc, as in topologies/connectivity.py; exactly the range is in
range, as in ns-2). Nothing is sampled: movements are straight pieces, so the instants at which two stations enter and leave each
other's range are the roots of a quadratic per pair of pieces. Between two such instants the graph is constant, and the search
for shortest paths handles all these spans at once: a set of spans is an integer with one bit per span, and a hop is an AND and
an OR. Instants closer than a nanosecond, the resolution of a trace, count as one.

A path change (Holland and Vaidya, MobiCom 1999, figure 5: the ticks): of the shortest paths the one whose next station comes
first in the list is followed until one of its links breaks or a shorter path appears; both are changes, as are the loss of
every path and its return.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from mobility.files.ns2 import God
from mobility.trace import MAX_TIME_S, Trace, TraceError

RANGE_M = 250.0  # two-ray ground of the papers' radio
NANOSECOND_S = 1e-9
ROUNDING_S = 1e-3  # of the times in `god` lines


@dataclass(frozen=True)
class Contact:
    """Two stations are in each other's range from `begin_s` to `end_s`."""

    ends: tuple[str, str]
    begin_s: float
    end_s: float


class Links:
    """All contacts of a movement between two instants (s), for the search of paths."""

    def __init__(self, stations: Sequence[str], contacts: Sequence[Contact], begin_s: float, end_s: float) -> None:
        self.stations, self.contacts = list(stations), list(contacts)
        self.begin_s, self.end_s = begin_s, end_s
        self._number = {name: index for index, name in enumerate(self.stations)}

    @cached_property
    def times_s(self) -> np.ndarray:
        """The bounds of the spans without a link change, s; sorted float array."""
        inner = np.array([time for contact in self.contacts for time in (contact.begin_s, contact.end_s)])
        inside = np.unique(inner[(inner > self.begin_s) & (inner < self.end_s)]) if inner.size else inner
        return np.concatenate(([self.begin_s], inside, [self.end_s]))

    @property
    def changes(self) -> int:
        """The number of link changes."""
        times = [time for contact in self.contacts for time in (contact.begin_s, contact.end_s)]
        return sum(self.begin_s < time < self.end_s for time in times)

    def between(self, begin_s: float, end_s: float) -> "Links":
        """The links in a part of the time."""
        contacts = [
            Contact(contact.ends, max(begin_s, contact.begin_s), min(end_s, contact.end_s))
            for contact in self.contacts
            if contact.end_s > begin_s and min(end_s, contact.end_s) - contact.begin_s > NANOSECOND_S
        ]
        return Links(self.stations, contacts, begin_s, end_s)

    def hops(self, source: str, target: str) -> "Profile":
        """The shortest path between two stations over time."""
        for name in (source, target):
            if name not in self._number:
                names = self.stations
                listed = ", ".join(names) if len(names) <= 5 else f"{names[0]} to {names[-1]}"
                raise TraceError(f'there is no station "{name}"; the stations are {listed}')
        if source == target:
            raise TraceError(f'"{source}" is both ends; name two stations')
        # from the target: the path is followed by the distance to it
        reached = self._reached(self._number[target])
        hops = np.zeros(len(self.times_s) - 1, dtype=np.int64)
        for count, stations in enumerate(reached):
            hops[_members(stations[self._number[source]], len(hops))] = count
        return Profile(source, target, self.times_s, hops, self._follow(self._number[source], hops, reached))

    def partitioned_share(self) -> float:
        """The share of the time (0 to 1) in which some station cannot reach some other."""
        reached = self._reached(0)
        whole = self._all
        for station in range(len(self.stations)):
            ever = 0
            for at_hop in reached:
                ever |= at_hop[station]
            whole &= ever
        lasts_s = np.diff(self.times_s)
        return float(1 - lasts_s[_members(whole, len(lasts_s))].sum() / lasts_s.sum())

    def mean_hops(self) -> float:
        """The mean hops of the shortest path, over all connected pairs at 100 evenly spaced times, fewer with more than 150
        stations; nan without a connected pair."""
        size, count = len(self.stations), len(self.times_s) - 1
        instants = max(5, min(100, round(100 * (150 / size) ** 2)))
        instants_s = self.begin_s + (self.end_s - self.begin_s) * (np.arange(instants) + 0.5) / instants
        spans = np.clip(np.searchsorted(self.times_s, instants_s, side="right") - 1, 0, count - 1)
        joined = np.zeros((instants, size, size), dtype=np.float32)
        for (a, b), mask in self._bits.items():
            joined[:, a, b] = _flags(mask, count)[spans]
        pairs, total = 0, 0
        for near in joined:
            seen = front = np.eye(size, dtype=bool)
            hop = 0
            while front.any():
                hop += 1
                front = (front.astype(np.float32) @ near > 0) & ~seen
                seen = seen | front
                new = int(front.sum())
                pairs, total = pairs + new, total + hop * new
        return total / pairs if pairs else float("nan")

    # --- the search over all spans at once ----------------------------------------------------------------------------

    @property
    def _all(self) -> int:
        return (1 << (len(self.times_s) - 1)) - 1

    @cached_property
    def _bits(self) -> dict[tuple[int, int], int]:
        """For both directions of each pair that ever meets: the spans in which it has a link."""
        bits: dict[tuple[int, int], int] = {}
        begins = np.searchsorted(self.times_s, [contact.begin_s for contact in self.contacts])
        ends = np.searchsorted(self.times_s, [contact.end_s for contact in self.contacts])
        for contact, begin, end in zip(self.contacts, begins.tolist(), ends.tolist(), strict=True):
            a, b = (self._number[name] for name in contact.ends)
            bits[a, b] = bits[b, a] = bits.get((a, b), 0) | ((1 << end) - (1 << begin))
        return bits

    def _reached(self, source: int) -> list[list[int]]:
        """`[hops][station]`: the spans in which the shortest path to the station has this many hops."""
        near: list[list[tuple[int, int]]] = [[] for _ in self.stations]
        for (a, b), spans in self._bits.items():
            near[a].append((b, spans))
        front = [self._all if station == source else 0 for station in range(len(self.stations))]
        missing = [self._all & ~spans for spans in front]
        at_hops = []
        while any(front):
            at_hops.append(front)
            following = [0] * len(front)
            for station, spans in enumerate(front):
                if spans:
                    for other, joined in near[station]:
                        following[other] |= spans & joined
            front = [new & left for new, left in zip(following, missing, strict=True)]
            missing = [left & ~new for left, new in zip(missing, front, strict=True)]
        return at_hops

    def _follow(self, source: int, hops: np.ndarray, from_target: list[list[int]]) -> list[tuple[int, list[str]]]:
        """(first span, path) for each path in use; an empty list of stations if there is no path."""
        same_hops = {int(count): _pack(hops == count) for count in np.unique(hops)}
        paths: list[tuple[int, list[str]]] = []
        span = 0
        while span < len(hops):
            stations = self._first_path(source, int(hops[span]), from_target, span)
            paths.append((span, [self.stations[station] for station in stations]))
            good = same_hops[int(hops[span])]
            for one, other in pairwise(stations):
                good &= self._bits[one, other]
            broken = ~good >> span
            span += (broken & -broken).bit_length() - 1
        return paths

    def _first_path(self, source: int, hops: int, from_target: list[list[int]], span: int) -> list[int]:
        """The shortest path in a span whose next station always comes first in the list."""
        path = [source] if hops else []
        for left in range(hops - 1, -1, -1):
            near = (other for other, spans in enumerate(from_target[left]) if spans >> span & 1)
            path.append(next(other for other in near if self._bits.get((path[-1], other), 0) >> span & 1))
        return path


@dataclass(frozen=True)
class Profile:
    """Hops of the shortest path between two stations over time: `hops[i]` from `times_s[i]` to `times_s[i + 1]`, 0 where there is
    none; `paths`: the path followed, from which span on."""

    source: str
    target: str
    times_s: np.ndarray
    hops: np.ndarray
    paths: list[tuple[int, list[str]]]

    @property
    def lasts_s(self) -> np.ndarray:
        """Duration of each span, s; float array, one shorter than `times_s`."""
        return np.diff(self.times_s)

    def seconds(self) -> dict[int, float]:
        """Duration (s) of each length of the shortest path, by hops (0: no path)."""
        return {int(count): float(self.lasts_s[self.hops == count].sum()) for count in np.unique(self.hops)}

    def shares(self) -> dict[int, float]:
        """`seconds` as shares of the whole time."""
        return {count: seconds / float(self.lasts_s.sum()) for count, seconds in self.seconds().items()}

    @property
    def mean_hops(self) -> float:
        """The mean over the time with a path; nan without any."""
        some = self.hops > 0
        return float(np.average(self.hops[some], weights=self.lasts_s[some])) if some.any() else float("nan")

    def steps(self) -> list[tuple[float, float, int]]:
        """(from, until, hops) with equal neighbours joined."""
        starts = [0, *(np.flatnonzero(np.diff(self.hops)) + 1).tolist()]
        bounds = [*starts, len(self.hops)]
        return [(float(self.times_s[a]), float(self.times_s[b]), int(self.hops[a])) for a, b in pairwise(bounds)]

    def partitions(self) -> list[tuple[float, float]]:
        """The times without a path: (from, until), s."""
        return [(begin_s, end_s) for begin_s, end_s, hops in self.steps() if hops == 0]

    def path_changes_s(self) -> list[float]:
        """The times at which the path in use changes, s."""
        return [float(self.times_s[span]) for span, _ in self.paths[1:]]

    def at(self, time_s: float) -> int:
        """Hops at an instant; 0: no path."""
        index = bisect.bisect_right(self.times_s, time_s) - 1
        return int(self.hops[min(max(index, 0), len(self.hops) - 1)])


def links(trace: Trace, range_m: float = RANGE_M, begin_s: float = 0.0, end_s: float | None = None) -> Links:
    """The links of a movement between two instants; `end_s` None: the end that the trace states, or until all stations rest."""
    if end_s is None:
        end_s = end_of(trace)
    if not begin_s < end_s:
        raise TraceError(f"{trace.name}: nothing lies between {begin_s:g} s and {end_s:g} s; give an end after the beginning")
    pieces = [_pieces(trace, station, end_s) for station in trace.stations()]
    # the pieces of all stations as rows, with the number of the station of each row
    owner = np.concatenate([np.full(len(rows), number) for number, rows in enumerate(pieces)])
    flat = np.concatenate(pieces)
    contacts: list[Contact] = []
    names = trace.stations()
    for number, rows in enumerate(pieces):
        later = owner > number
        for other, up_s, down_s in _in_range(rows, flat[later], owner[later], range_m, end_s):
            if down_s > begin_s:
                contacts.append(Contact((names[number], names[other]), max(begin_s, up_s), down_s))
    return Links(names, contacts, begin_s, end_s)


def disagreeing(links_over_time: Links, gods: Sequence[God]) -> list[God]:
    """The `god` lines of an ns-2 script that contradict the movement: the shortest path has another length at all instants within
    a millisecond of the line's time. (`setdest` rounds its times.)"""
    profiles: dict[tuple[str, str], Profile] = {}
    wrong = []
    for god in gods:
        if not links_over_time.begin_s <= god.time_s <= links_over_time.end_s:
            continue
        profile = profiles.get(god.ends) or profiles.setdefault(god.ends, links_over_time.hops(*god.ends))
        near = [begin_s for begin_s, _, _ in profile.steps() if abs(begin_s - god.time_s) <= ROUNDING_S]
        seen = {profile.at(time_s) for time_s in (god.time_s, god.time_s - ROUNDING_S, god.time_s + ROUNDING_S, *near)}
        if (god.hops or 0) not in seen:
            wrong.append(god)
    return wrong


def end_of(trace: Trace) -> float:
    """The end of a movement (s): the stated one, or when all stations rest; a second if none ever moves."""
    if trace.end_s:
        return trace.end_s
    courses = [course for station in trace.stations() for course in trace.courses(station)]
    ends = (course.arrival_s if course.speed_mps > 0 else course.start_s for course in courses)
    return min(max(ends, default=0.0) or 1.0, MAX_TIME_S)


def _pieces(trace: Trace, station: str, end_s: float) -> np.ndarray:
    """Rows t, x, y, z, vx, vy, vz: from t until the next row, the station is at (x, y, z) + v (time - t)."""
    rows: list[tuple[float, ...]] = []
    for course, next_s in trace.courses_until(station, end_s):
        if course.start_s >= end_s:
            break
        moving = 0 < course.speed_mps < float("inf") and course.arrival_s > course.start_s
        if not moving:
            rows.append((course.start_s, *(course.origin if course.speed_mps == 0 else course.to), 0.0, 0.0, 0.0))
            continue
        lasts_s = course.arrival_s - course.start_s
        velocity = ((b - a) / lasts_s for a, b in zip(course.origin, course.to, strict=True))
        rows.append((course.start_s, *course.origin, *velocity))
        if course.arrival_s < min(end_s, next_s):
            rows.append((course.arrival_s, *course.to, 0.0, 0.0, 0.0))
    return np.array(rows)


def _in_range(
    one: np.ndarray, others: np.ndarray, owner: np.ndarray, range_m: float, end_s: float
) -> list[tuple[int, float, float]]:
    """(station, from, until) for every time that a station of `others` is in range of the one; in order of station and time."""
    if not len(others):
        return []
    numbers = np.unique(owner)
    # a row for every instant at which one station of a pair begins a piece; the other's first, so simultaneous ones both count
    times = np.concatenate((others[:, 0], np.tile(one[:, 0], len(numbers))))
    row_station = np.concatenate((owner, np.repeat(numbers, len(one))))
    piece = np.concatenate((np.arange(len(others)), np.zeros(len(numbers) * len(one), dtype=np.int64)))
    order = np.lexsort((times, row_station))
    times, row_station, piece = times[order], row_station[order], np.maximum.accumulate(piece[order])
    until = np.append(times[1:], end_s)
    until[np.append(row_station[1:] != row_station[:-1], True)] = end_s
    mine = np.searchsorted(one[:, 0], times, side="right") - 1
    some = until > times
    times, until, row_station = times[some], until[some], row_station[some]
    a, b = one[mine[some]], others[piece[some]]
    apart = (b[:, 1:4] + b[:, 4:7] * (times - b[:, 0])[:, None]) - (a[:, 1:4] + a[:, 4:7] * (times - a[:, 0])[:, None])
    up_s, down_s = _roots(apart, b[:, 4:7] - a[:, 4:7], range_m, until - times)
    met = down_s > up_s
    return _joined(row_station[met], times[met] + up_s[met], np.minimum(times + down_s, until)[met])


def _roots(apart: np.ndarray, velocity: np.ndarray, range_m: float, lasts_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The times (s from each row's beginning, 0 to `lasts_s`) with |apart + velocity s| at most the range: begin and end; an
    empty interval for none."""
    square, half = (velocity**2).sum(axis=1), (apart * velocity).sum(axis=1)
    beyond = (apart**2).sum(axis=1) - range_m**2
    still = square == 0
    depth = half**2 - square * beyond
    root = np.sqrt(np.maximum(depth, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # the form of the root that does not subtract nearly equal numbers
        far = -(half + np.copysign(root, half))
        first, second = far / square, beyond / far
        both = np.where(far == 0, 0.0, second)
    low, high = np.minimum(first, both), np.maximum(first, both)
    up = np.where(still, 0.0, np.maximum(low, 0.0))
    down = np.where(still, np.where(beyond <= 0, lasts_s, 0.0), np.minimum(high, lasts_s))
    missed = ~still & (depth <= 0)
    return np.where(missed, 0.0, up), np.where(missed, 0.0, down)


def _joined(row_station: np.ndarray, up_s: np.ndarray, down_s: np.ndarray) -> list[tuple[int, float, float]]:
    """The rows' times in range, with adjacent ones merged."""
    if not len(row_station):
        return []
    new = np.append(True, (row_station[1:] != row_station[:-1]) | (up_s[1:] > down_s[:-1] + NANOSECOND_S))
    first = np.flatnonzero(new)
    last = np.append(first[1:] - 1, len(row_station) - 1)
    joined = zip(row_station[first].tolist(), up_s[first].tolist(), down_s[last].tolist(), strict=True)
    return [(station, up, down) for station, up, down in joined if down - up > NANOSECOND_S]


def _flags(mask: int, count: int) -> np.ndarray:
    raw = np.frombuffer(mask.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, bitorder="little", count=count).astype(bool)


def _members(mask: int, count: int) -> np.ndarray:
    return np.flatnonzero(_flags(mask, count))


def _pack(flags: np.ndarray) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
