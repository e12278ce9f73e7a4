"""The test of a night's figures against earlier nights.

A *series* is one metric on one machine and kernel, against one reference program. The value of a night is the median of its
repetitions: one number a night, so that what differs between nights (load, temperature, memory layout) is in the spread.

- Series with noise: tonight's value against the prediction interval of Student's t for one further value,
  mean +- t s sqrt(1 + 1/n) of the n earlier values (Hahn and Meeker, *Statistical Intervals*, 1991, section 4.8).
- Exact series, in virtual time with fixed seeds: a night without a change repeats the last one to the bit. If it does not,
  Welch's t test compares tonight's repetitions with those of the last night, because a new order of random
  numbers is no change of what is measured.

The error of a month of NIGHTS_OF_MONTH nights, ALARMS_OF_MONTH, is divided among its nights, a night's among the parts that ran
in it (both Bonferroni), a part's among its series by Holm's step-down procedure (*A simple sequentially rejective multiple test
procedure*, Scand. J. Statistics 6, 1979). So the probability of any false alarm in a month is at most ALARMS_OF_MONTH if the
values of a series are normal. A change must also be as large as the series' `relevant` share to be an alarm.

A night with an alarm is no earlier night for later ones: the alarm is repeated until the figure is back, or until the change is
accepted, and the series begins anew (`baseline`).

The smallest change that a night finds is given with each verdict. It is beyond the interval by the quantile FOUND of the same t
distribution, since tonight's value has the spread of the nights, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean, median, stdev

import numpy as np
import scipy  # imports its parts at their first use: a query of results needs none

NIGHTS_OF_MONTH = 30
ALARMS_OF_MONTH = 0.05
MIN_NIGHTS, MAX_NIGHTS = 5, 20  # earlier nights that a test takes
FOUND = 0.9  # the probability that a night finds the smallest change that it is said to find


@dataclass(frozen=True)
class Night:
    """The repetitions of a series in one night, at least one. `runs`: where they are, as text."""

    night: str
    commit: str
    values: tuple[float, ...]
    runs: tuple[str, ...] = ()
    alarm: bool = False
    baseline: bool = False

    @property
    def value(self) -> float:
        """The night's one number."""
        return median(self.values)


@dataclass(frozen=True)
class Series:
    """A metric with its nights, the last one tonight's. `relevant`: the smallest change that matters, as a share of
    the old value."""

    part: str
    metric: str
    unit: str
    relevant: float
    exact: bool
    nights: tuple[Night, ...]
    place: tuple[str, ...] = ()  # what tells it from other series of the history

    @property
    def tonight(self) -> Night:
        """The night that is tested."""
        return self.nights[-1]

    @property
    def earlier(self) -> tuple[Night, ...]:
        """The nights it is compared with: since the last baseline, without those of an alarm, at most MAX_NIGHTS."""
        begin = max((number for number, night in enumerate(self.nights[:-1]) if night.baseline), default=0)
        return tuple(night for night in self.nights[begin:-1] if not night.alarm)[-MAX_NIGHTS:]


@dataclass(frozen=True)
class Verdict:
    """The outcome for one series. `old` is the value of the earlier nights; None, like `p`, where there are too few of them.
    `low`, `high`: the interval in which tonight's value would be no change, None for an exact series. `smallest`: the smallest
    change that such a night finds with probability FOUND, as a share of the old value."""

    series: Series
    nights: int
    old: float | None
    p: float | None
    alarm: bool
    low: float | None = None
    high: float | None = None
    smallest: float | None = None

    @property
    def new(self) -> float:
        """Tonight's value: the mean of an exact series, else the median."""
        return fmean(self.series.tonight.values) if self.series.exact else self.series.tonight.value

    @property
    def change(self) -> float | None:
        """The change as a share of the old value."""
        return None if self.old is None else relative(self.new, self.old)

    @property
    def commits(self) -> str:
        """The commits since the last night without an alarm: `old..new`."""
        earlier = self.series.earlier
        return f"{earlier[-1].commit}..{self.series.tonight.commit}" if earlier else self.series.tonight.commit


def judge(series: Iterable[Series], month: float = ALARMS_OF_MONTH) -> list[Verdict]:
    """A verdict for each series of one night, with all parts that ran in it. `month`: the error of a month."""
    families: dict[str, list[Series]] = {}
    for one in series:
        families.setdefault(one.part, []).append(one)
    error = month / NIGHTS_OF_MONTH / max(len(families), 1)
    return [verdict for family in families.values() for verdict in _judge_family(family, error)]


def relative(new: float, old: float) -> float:
    """The change from `old` to `new` as a share of `old`; infinite from 0."""
    if new == old:
        return 0.0
    return (new - old) / abs(old) if old else inf if new > 0 else -inf


def holm(significances: Sequence[float], error: float) -> list[float | None]:
    """Holm's procedure: of each hypothesis the error at which it is rejected, None if it is not."""
    limits: list[float | None] = [None] * len(significances)
    for rank, place in enumerate(np.argsort(significances, kind="stable")):
        limit = error / (len(significances) - rank)
        if significances[place] > limit:
            break
        limits[place] = limit
    return limits


def significance(series: Series) -> float | None:
    """Two-sided probability of such a difference without a change; None with too few earlier nights."""
    earlier = series.earlier
    if series.exact:
        return _exact_significance(earlier[-1].values, series.tonight.values) if earlier else None
    if len(earlier) < MIN_NIGHTS:
        return None
    values = [night.value for night in earlier]
    spread = stdev(values) * sqrt(1 + 1 / len(values))
    difference = abs(series.tonight.value - fmean(values))
    if spread == 0:
        return 1.0 if difference == 0 else 0.0
    return float(2 * scipy.stats.t.sf(difference / spread, len(values) - 1))


def _exact_significance(old: Sequence[float], new: Sequence[float]) -> float:
    if list(old) == list(new):
        return 1.0
    if min(len(old), len(new)) < 2 or (np.ptp(old) == 0 and np.ptp(new) == 0):
        return 0.0 if fmean(old) != fmean(new) else 1.0
    return float(scipy.stats.ttest_ind(old, new, equal_var=False).pvalue)


def _judge_family(family: list[Series], error: float) -> list[Verdict]:
    found = [(one, significance(one)) for one in family]
    tested = [(one, p) for one, p in found if p is not None]
    limits = holm([p for _, p in tested], error)
    rejected: Mapping[int, float | None] = {id(one): limit for (one, _), limit in zip(tested, limits, strict=True)}
    return [_verdict(one, p, rejected.get(id(one)), error / max(1, len(tested))) for one, p in found]


def _verdict(series: Series, p: float | None, rejected_at: float | None, strictest: float) -> Verdict:
    earlier = series.earlier
    if p is None:
        return Verdict(series, len(earlier), None, None, False)
    if series.exact:
        old = fmean(earlier[-1].values)
        large = abs(relative(fmean(series.tonight.values), old)) >= series.relevant
        return Verdict(series, len(earlier), old, p, rejected_at is not None and large, smallest=series.relevant)
    values = [night.value for night in earlier]
    old = fmean(values)
    spread = stdev(values) * sqrt(1 + 1 / len(values))
    margin = max(float(scipy.stats.t.isf(strictest / 2, len(values) - 1)) * spread, series.relevant * abs(old))
    smallest = relative(abs(old) + margin + float(scipy.stats.t.ppf(FOUND, len(values) - 1)) * spread, abs(old))
    large = abs(relative(series.tonight.value, old)) >= series.relevant
    return Verdict(series, len(earlier), old, p, rejected_at is not None and large, old - margin, old + margin, smallest)
