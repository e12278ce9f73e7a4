"""The estimated time left of a campaign, from the length of each scenario, its progress and the number of parallel runs.

The time of a run outside its traffic (processes, daemons, a guest's boot) and the speed of its traffic (with a virtual clock) are
defaults until a run has ended, and means of the finished runs from then on.
"""

import heapq
from dataclasses import dataclass, field
from itertools import islice
from typing import Self

from scenarios.scenario import Scenario

MIN_LEFT_S = 1.0  # of a stage that takes longer than estimated
PLANNED = 200  # waiting runs that an estimate looks at; more of them, in the same order of cells, take as long in proportion
TRAFFIC, STOP = "traffic", "stop"  # stages of testbed.runs.run


@dataclass(frozen=True)
class Work:
    """A run as its scenario plans it: earliest start and length of its traffic (s), and its clock."""

    name: str
    before_s: float
    traffic_s: float
    virtual: bool = False

    @classmethod
    def of(cls, name: str, scenario: Scenario) -> Self:
        """The work of a scenario's run."""
        return cls(name, scenario.traffic_at or 0.0, scenario.traffic_seconds(), scenario.clock == "virtual")


@dataclass(frozen=True)
class Cost:
    """The cost of a run, s of this machine: `start_s` on top of `before_s`, `pace` per second of traffic, `stop_s`."""

    start_s: float
    pace: float
    stop_s: float

    def whole_s(self, work: Work) -> float:
        """Estimated time of the whole run, s."""
        return self.start_s + work.before_s + self.pace * work.traffic_s + self.stop_s


@dataclass
class Seen:
    """The sum of the costs of the runs that have ended."""

    runs: int = 0
    start_s: float = 0.0
    pace: float = 0.0
    stop_s: float = 0.0

    def add(self, cost: Cost) -> None:
        """Count one more run."""
        self.runs += 1
        self.start_s += cost.start_s
        self.pace += cost.pace
        self.stop_s += cost.stop_s

    def mean(self) -> Cost:
        """The mean; needs a run."""
        return Cost(self.start_s / self.runs, self.pace / self.runs, self.stop_s / self.runs)


# On two cores: two to five stations; a guest of docs/virtual-time.md.
DEFAULT_COSTS = {False: Cost(3.0, 1.0, 2.0), True: Cost(40.0, 1.0, 8.0)}


@dataclass
class _Run:
    """A running run, by the clock of the caller."""

    work: Work
    began_s: float
    traffic_at_s: float | None = None
    stop_at_s: float | None = None
    reported: tuple[float, float] = (0.0, 0.0)  # time of the last report, and the fraction of the traffic that was over

    def left_s(self, cost: Cost, now_s: float) -> float:
        traffic_s = cost.pace * self.work.traffic_s
        if self.stop_at_s is not None:
            return max(cost.stop_s - (now_s - self.stop_at_s), MIN_LEFT_S)
        if self.traffic_at_s is None:
            start_s = cost.start_s + self.work.before_s - (now_s - self.began_s)
            return max(start_s, MIN_LEFT_S) + traffic_s + cost.stop_s
        reported_s, fraction = self.reported
        if self.work.virtual and fraction > 0:
            traffic_s = (reported_s - self.traffic_at_s) / fraction
        return max((1 - fraction) * traffic_s - (now_s - reported_s), 0.0) + cost.stop_s


@dataclass
class Remaining:
    """`jobs` parallel runs, of which `starts` may start up at once."""

    jobs: int = 1
    starts: int = 1
    waiting: dict[str, Work] = field(default_factory=dict)
    repeats: dict[str, Work] = field(default_factory=dict)  # reruns of void runs, after all others
    _running: dict[str, _Run] = field(default_factory=dict)
    _seen: dict[bool, Seen] = field(default_factory=lambda: {False: Seen(), True: Seen()})

    def stage(self, name: str, stage: str, fraction: float | None, now_s: float) -> None:
        """The run has come to `stage`; its first stage begins it."""
        if name not in self._running:
            if name not in self.waiting:
                return
            self._running[name] = _Run(self.waiting.pop(name), now_s)
        run = self._running[name]
        if stage == TRAFFIC:
            run.traffic_at_s = now_s if run.traffic_at_s is None else run.traffic_at_s
            run.reported = (now_s, fraction or 0.0)
        elif stage == STOP:
            run.stop_at_s = now_s

    def finished(self, name: str, now_s: float) -> None:
        """The run has ended; its cost counts for the estimates if it passed all stages."""
        self.waiting.pop(name, None)
        run = self._running.pop(name, None)
        if run is None or run.traffic_at_s is None or run.stop_at_s is None:
            return  # it failed early: no measure of complete runs
        start_s = max(run.traffic_at_s - run.began_s - run.work.before_s, 0.0)
        pace = (run.stop_at_s - run.traffic_at_s) / run.work.traffic_s
        self._seen[run.work.virtual].add(Cost(start_s, pace, now_s - run.stop_at_s))

    def cost(self, virtual: bool) -> Cost:
        """The mean cost of the finished runs of this clock; a guess before the first."""
        seen = self._seen[virtual]
        return seen.mean() if seen.runs else DEFAULT_COSTS[virtual]

    def seconds_left(self, now_s: float) -> float:
        """Estimated time (s) until the last run ends: waiting runs start in order as places become free, then reruns,
        as if one by one."""
        return self._side_by_side_s(now_s) + sum(self.cost(work.virtual).whole_s(work) for work in self.repeats.values())

    def _side_by_side_s(self, now_s: float) -> float:
        ends = [run.left_s(self.cost(run.work.virtual), now_s) for run in self._running.values()]
        ends += [0.0] * (min(self.jobs, len(ends) + len(self.waiting)) - len(ends))
        if not ends:
            return 0.0
        heapq.heapify(ends)
        started_s = 0.0  # time at which this many runs have started
        costs = {virtual: self.cost(virtual) for virtual in (False, True)}
        for work in islice(self.waiting.values(), PLANNED):
            cost = costs[work.virtual]
            started_s += cost.start_s / self.starts  # a run that waits for its traffic does not start any more
            free_s = heapq.heappop(ends)
            heapq.heappush(ends, max(free_s, started_s - cost.start_s) + cost.whole_s(work))
        return max(ends) * max(1.0, len(self.waiting) / PLANNED)
