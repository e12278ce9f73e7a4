"""Changes of the stations' settings during the traffic that no event of the scenario made (docs/verdict.md).

The addresses, links, queueing disciplines, routes and sysctls of a station are the testbed's and its routing daemon's. Another
program of the station, or a person, may change them: the run goes on, and its numbers are not those of the scenario.
rtnetlink(7) reports changes as they happen (testbed/host/changes.py); sysctls are compared at the end with the beginning.
"""

import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host.changes import Changes, Instruction

MAX_REASONS = 5
MAX_CHANGES = 8  # of a station, in its reason
GRACE_S = 0.5  # after an event has ended: a killed daemon's device vanishes a moment later
Expected = Callable[[str, float], bool]
Sysctls = Callable[[], Mapping[str, Mapping[str, str]]]


@dataclass
class ChangeSummary:
    """Descriptions of the changes of each station."""

    changes: dict[str, list[str]] = field(default_factory=dict)

    def add(self, station: str, changes: Sequence[str]) -> None:
        """Add changes of a station; each counts once."""
        known = self.changes.setdefault(station, [])
        known += [change for change in dict.fromkeys(changes) if change not in known]

    def judgement(self) -> tuple[str, list[str]]:
        """`valid` or `suspect`, as in the medium's verdict, and the reasons."""
        if not self.changes:
            return "valid", []
        return "suspect", [
            f"the settings of {station} changed during the traffic, and no event of the scenario did it "
            f"({'; '.join(changes[:MAX_CHANGES])}): find the program that did it, and run it again"
            for station, changes in list(self.changes.items())[:MAX_REASONS]
        ]

    def report(self) -> dict[str, list[str]]:
        """`changed` of verdict.json (formats/air.md)."""
        return self.changes


class StationChanges:
    """Follows the settings of the stations from `begin` to `end`."""

    def __init__(
        self,
        namespaces: Mapping[str, Path],
        of_routes: list[Instruction],
        before: Mapping[str, Mapping[str, str]],
        sysctls: Sysctls,
        expected: Expected,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`namespaces`: of each station and host. `of_routes`: the routes that count (testbed/host/changes.py). `before`: the
        sysctls, by station; `sysctls` reads them again. `expected`: whether an event of the scenario acted on a station since a
        monotonic instant."""
        self.summary = ChangeSummary()
        self._namespaces, self._of_routes, self._before, self._sysctls = namespaces, of_routes, before, sysctls
        self._expected, self._clock = expected, clock
        self._stations: dict[int, tuple[str, Changes]] = {}
        self._begin_s = self._at_s = 0.0

    def begin(self) -> None:
        """Start: earlier changes are the testbed's."""
        self._begin_s = self._at_s = self._clock()
        self._poll = select.epoll()
        for station, namespace in self._namespaces.items():
            changes = Changes(namespace, self._of_routes)
            for descriptor in changes.descriptors():
                self._stations[descriptor] = station, changes
                self._poll.register(descriptor, select.EPOLLIN)

    def tick(self) -> None:
        """Read the changes so far."""
        now_s, since_s = self._clock(), self._at_s
        for descriptor, _event in self._poll.poll(0):
            station, changes = self._stations[descriptor]
            texts = changes.read()
            if texts and not self._expected(station, since_s - GRACE_S):
                self.summary.add(station, texts)
        self._at_s = now_s

    def end(self) -> ChangeSummary:
        """The traffic is over: read the last changes, and compare sysctls."""
        if self._stations:
            self.tick()
            self._compare()
            self._poll.close()
        for _station, changes in self._stations.values():
            changes.close()
        self._stations = {}
        return self.summary

    def _compare(self) -> None:
        after = self._sysctls()
        for station, values in self._before.items():
            changed = [
                f"sysctl {name} {value} -> {after[station].get(name, 'none')}"
                for name, value in values.items()
                if after[station].get(name) != value
            ]
            if changed and not self._expected(station, self._begin_s):
                self.summary.add(station, changed)
