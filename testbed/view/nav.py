"""NAV of each station of a recorded run (IEEE 802.11-2020, 10.3.2.4), from a replay of the medium.

The air log has no NAV. The medium computes it again from the log of inputs (`manet-medium replay --nav`): the same program with
the same inputs, so it is the NAV of the run as long as both air logs are equal byte for byte.
"""

import tempfile
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import polars as pl

from testbed.errors import UsageError
from testbed.runs.replayed import replay

SCHEMA = {"t_ns": pl.Int64, "station": pl.String, "until_ns": pl.Int64}
MAX_TIMES = 4000  # of a station in one answer


@dataclass(frozen=True)
class Nav:
    """The reserved times [begin, end] of each station in ns, in order; they do not touch each other."""

    times: dict[str, list[tuple[int, int]]]

    def between(self, begin_ns: int, end_ns: int) -> dict[str, list[tuple[int, int]]]:
        """The reserved times that overlap a window, at most MAX_TIMES of each station."""
        reserved = {}
        for name, times in self.times.items():
            first = bisect_right(times, begin_ns, key=itemgetter(1))
            reserved[name] = times[first : bisect_right(times, end_ns, lo=first, key=itemgetter(0))][:MAX_TIMES]
        return reserved


def read_nav(directory: Path, stations: tuple[str, ...]) -> Nav:
    """The NAV of the run in `directory`. Raises UsageError without a log of inputs, or if the replay gives another air log."""
    with tempfile.TemporaryDirectory(prefix="manet-nav-") as folder:
        path = Path(folder) / "nav.csv"
        comparison = replay(directory, nav=path)
        if comparison.line is not None:
            raise UsageError(f"{directory}: NAV is unknown: this version's replay differs from air.csv in line {comparison.line}")
        rows = pl.read_csv(path, schema=SCHEMA)
    changes: dict[str, list[tuple[int, int]]] = {name: [] for name in stations}
    for at_ns, station, until_ns in rows.iter_rows():
        changes[station].append((at_ns, until_ns))
    return Nav({name: _times(rows) for name, rows in changes.items()})


def _times(changes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Reserved times from changes (when, end from then on). A change replaces the end before it, also by an earlier one: a
    station that is switched off forgets its NAV."""
    times: list[tuple[int, int]] = []
    for at_ns, until_ns in changes:
        if times and times[-1][1] >= at_ns:
            begin_ns, _ = times.pop()
            if max(at_ns, until_ns) > begin_ns:
                times.append((begin_ns, max(at_ns, until_ns)))
        elif until_ns > at_ns:
            times.append((at_ns, until_ns))
    return times
