"""The rule by which a campaign answers a question and stops.

After each batch of paired seeds the mean difference gets an interval. Two kinds decide, and share the error of 5 %.

*Bounds*, at every look, with a fifth of the error: the limit of the mean of bounded values (bounded.py), which needs no normality
and reckons with events that no pair has shown. No interval of a mean can do that without a bound (Bahadur and Savage, Annals of
Mathematical Statistics 27, 1956). The bound is the question's `range`; without one, each end is the furthest of

- the difference if one cell fell to zero beside the largest value seen in the other;
- one more spread of the sample (largest minus smallest difference) beyond its last difference;
- ten times what matters, for counters that are zero in all pairs.

An answer by bounds of the runs holds if no pair is beyond them. Each end is at least that of Student's repeated interval.

*Student's t*, from ENOUGH pairs on, with four fifths of the error and without a bound. It assumes that no event matters that
happens in less than one pair of ten: so many pairs miss one of that rate with a probability of 0.9^30 = 4.2 %. Fewer pairs look
the same whether a collapse is impossible or happens in one pair of ten. It is

- the repeated confidence interval (Jennison and Turnbull, *Repeated confidence intervals for group sequential clinical trials*,
  Controlled Clinical Trials 5, 1984), the error spent over the looks (spending.py), boundaries of known variance becoming
  those of Student's t at equal significance (Jennison and Turnbull, *Group Sequential Methods*, 2000, section 4.4);
- corrected for skew (Johnson, *Modified t tests and confidence intervals for asymmetrical populations*, J. American Statistical
  Association 73, 1978) at the end that this widens. A sample's skewness is below that of its distribution, for lognormal
  differences by half: SKEW times it is used;
- widened for pairs that depend on the one before: a first-order autoregression of coefficient r has (1 + r) / (1 - r) times the
  variance of the mean. Used is the estimate, plus its bias of 1 / n (Kendall, Biometrika 41, 1954), plus DEPENDENCE of its
  standard errors 1 / sqrt(n) (Bartlett, J. Royal Statistical Society Suppl. 8, 1946), if the sum is positive.

Pairs without spread have no such interval; bounds alone answer. Of fewer pairs than ENOUGH that the bounds do not decide, the
interval shown is that of Student's t for a single look, corrected for skew, and the answer is open.

Alternatives: a sign test speaks about the median, which one collapse in ten pairs does not move; the papers' claims are about
means. The bootstrap sees nothing where the sample has no spread. Bounds alone are far from the sample at a high level: with 50
pairs they add 7 % of the level to each end. Gaffke's limit with the sample's own extremes as bounds is 12 % wider than Student's
if differences are normal, and errs more often with lognormal ones. Hall's cubic transformation (J. Royal Statistical Society
B 54, 1992) errs as Johnson's, but is twice as wide if three pairs of forty collapse.

tests/campaigns.py simulates campaigns, tests/bench/decisions.py prints the table: at most 5 % of them err.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache, partial
from itertools import pairwise
from math import hypot
from statistics import fmean, stdev

import scipy  # imports its parts at their first use: of few pairs nothing is calculated

from analysis.decisions.bounded import lower_limit, upper_limit
from analysis.decisions.question import ENOUGH
from analysis.decisions.spending import boundaries, linear

FLOOR = 10  # times what matters: at least so far are the bounds of a difference without a range
BOUNDED = 0.2  # share of the error for the bounds; the rest is for Student's t
SKEW = 2.0  # times the sample's skewness
DEPENDENCE = 0.75  # standard errors, by which successive pairs may depend on each other more than the estimate says
MAX_DEPENDENCE = 0.9  # the largest coefficient that is used
NO_SPREAD = 1e-9  # of the distance of the bounds: rounding errors
FURTHEST = 1_000_000  # pairs: no question needs more, or none answers it


class Method(StrEnum):
    """What the interval is by."""

    T = "student-t"
    FEW = "student-t, few pairs"  # of fewer than ENOUGH: decides nothing
    RANGE = "bounds of the range"
    RUNS = "bounds of the runs"


class Outcome(StrEnum):
    """What the pairs say about the mean difference."""

    MORE = "more"
    LESS = "less"
    SAME = "no difference that matters"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Rule:
    """`matters`: the smallest difference that matters, in the metric's unit, above 0. `max_pairs`: the limit, at least 2.
    `edge`: the difference beyond which the answer is `more` or `less`, from 0 to `matters`. `range`: no difference of a pair is
    larger, if that is known; at least `matters`."""

    matters: float
    max_pairs: int
    confidence: float = 0.95
    edge: float = 0.0
    range: float | None = None

    def __post_init__(self) -> None:
        known = self.range is None or self.range >= self.matters
        if not (
            self.matters > 0 and self.max_pairs >= 2 and 0 < self.confidence < 1 and 0 <= self.edge <= self.matters and known
        ):
            text = "a rule needs 0 <= edge <= matters <= range, matters > 0, max_pairs >= 2 and a confidence between 0 and 1"
            raise ValueError(f"{text}, not {self}")


@dataclass(frozen=True)
class Answer:
    """The state of a question after a look: mean difference and interval in the metric's unit, with its method and the bounds of
    a pair's difference, all None for fewer than two pairs. `needed`: pairs that an undecided question would take if mean and
    spread stayed as they are, None if no number would do."""

    outcome: Outcome
    pairs: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    method: Method | None = None
    bounds: tuple[float, float] | None = None
    needed: int | None = None


Says = Callable[[float, float], Outcome]  # what an interval says


def answer(rule: Rule, looks: Sequence[int], differences: Sequence[float], collapse: tuple[float, float] = (0.0, 0.0)) -> Answer:
    """The answer at the last of the `looks`: ascending numbers of pairs, of which the last is that of `differences`.

    `collapse`: the difference if the compared cell fell to zero, and if its base did (collapses). A difference that is not zero
    but certainly smaller than `rule.matters` is "no difference that matters".
    """
    pairs = len(differences)
    if not looks or looks[-1] != pairs:
        raise ValueError(f"the last look is at {pairs} pairs, not {looks[-1] if looks else 'none'}")
    if pairs < 2:
        return Answer(Outcome.UNDECIDED, pairs)
    if rule.range is not None and max(map(abs, differences)) <= rule.range:  # else a pair has refuted the range
        bounds, source = (-rule.range, rule.range), Method.RANGE
    else:
        bounds, source = _bounds(differences, collapse, FLOOR * rule.matters), Method.RUNS
    says = partial(outcome_of, rule.matters, rule.edge)
    sample = Sample.of(differences, bounds)
    result = _answer(sample, differences, source, Looks(tuple(looks), rule.max_pairs, rule.confidence), says)
    return replace(result, needed=_needed(sample, rule, says)) if result.outcome == Outcome.UNDECIDED else result


def comparison(differences: Sequence[float], collapse: tuple[float, float], confidence: float = 0.95) -> Answer:
    """The interval of pairs about which no question was asked: a single look, at which any difference matters."""
    pairs = len(differences)
    if pairs < 2:
        return Answer(Outcome.UNDECIDED, pairs)
    sample = Sample.of(differences, _bounds(differences, collapse, 0.0))
    return _answer(sample, differences, Method.RUNS, Looks((pairs,), pairs, confidence), partial(outcome_of, 0.0, 0.0))


def collapses(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The differences if one of two cells fell to zero beside the largest value of the other; `values`: both of each pair."""
    return -max(base for _, base in values), max(compared for compared, _ in values)


def outcome_of(matters: float, edge: float, low: float, high: float) -> Outcome:
    """What an interval of the mean difference says; with `matters` 0 no difference is too small."""
    if -matters < low and high < matters:
        return Outcome.SAME
    if low > edge or high < -edge:
        return Outcome.MORE if low > edge else Outcome.LESS
    return Outcome.UNDECIDED


def _bounds(differences: Sequence[float], collapse: tuple[float, float], floor: float) -> tuple[float, float]:
    """Between which differences a pair lies, by the runs (see the head)."""
    low, high = min(differences), max(differences)
    spread = high - low
    return min(low - spread, collapse[0], -floor), max(high + spread, collapse[1], floor)


@dataclass(frozen=True)
class Looks:
    """At these numbers of pairs one looks, up to the present; at most at `max_pairs`."""

    pairs: tuple[int, ...]
    max_pairs: int
    confidence: float

    def boundary(self, share: float, first: int) -> float:
        """Of the last look, in standard deviations of a mean of known variance: `share` of the error is spent from `first` pairs
        on."""
        return boundary(tuple(pairs for pairs in self.pairs if pairs >= first), self.max_pairs, share * (1 - self.confidence))


@dataclass(frozen=True)
class Sample:
    """Of the differences; `skewness` and `autocorrelation` (of successive pairs) as estimated."""

    pairs: int
    mean: float
    spread: float
    bounds: tuple[float, float]
    skewness: float = 0.0
    autocorrelation: float = 0.0

    @classmethod
    def of(cls, differences: Sequence[float], bounds: tuple[float, float]) -> "Sample":
        """The sample of at least two pairs' differences, none of them beyond the `bounds`."""
        pairs, mean, spread = len(differences), fmean(differences), stdev(differences)
        if spread <= NO_SPREAD * (bounds[1] - bounds[0]):
            return cls(pairs, mean, 0.0, bounds)
        parts = [(each - mean) / spread for each in differences]
        successive = sum(one * other for one, other in pairwise(parts)) / (pairs - 1)
        skewness = fmean(part**3 for part in parts) * (pairs / (pairs - 1)) ** 1.5
        return cls(pairs, mean, spread, bounds, skewness, successive)

    def student(self, normal: float, pairs: int) -> tuple[float, float]:
        """The interval with the significance of the `normal` boundary, if so many pairs have the figures of this sample; of fewer
        than ENOUGH not widened for dependence."""
        bound = float(scipy.special.stdtrit(pairs - 1, scipy.special.ndtr(normal)))
        shift = SKEW * self.skewness / pairs**0.5 * (1 + 2 * bound**2) / 6
        usual = self.autocorrelation + 1 / pairs + DEPENDENCE / pairs**0.5 if pairs >= ENOUGH else 0.0
        dependence = min(max(usual, 0.0), MAX_DEPENDENCE)
        error = self.spread * ((1 + dependence) / (1 - dependence) / pairs) ** 0.5
        return self.mean - error * (bound + max(0.0, -shift)), self.mean + error * (bound + max(0.0, shift))


def _answer(sample: Sample, differences: Sequence[float], source: Method, looks: Looks, says: Says) -> Answer:
    """The interval that decides, else the one that is shown (see the head)."""
    pairs, mean, few = sample.pairs, sample.mean, sample.pairs < ENOUGH
    usual = (mean, mean)
    if sample.spread:
        usual = sample.student(boundary((1,), 1, 1 - looks.confidence) if few else looks.boundary(1 - BOUNDED, ENOUGH), pairs)
        if not few and says(*usual) != Outcome.UNDECIDED:
            return Answer(says(*usual), pairs, mean, *usual, Method.T, sample.bounds)
    half, error = half_width(looks.boundary(BOUNDED, 2), sample.spread, pairs), BOUNDED * (1 - looks.confidence) / 2
    low = min(mean - half, lower_limit(differences, sample.bounds[0], error))
    high = max(mean + half, upper_limit(differences, sample.bounds[1], error))
    if says(low, high) != Outcome.UNDECIDED or not sample.spread:
        return Answer(says(low, high), pairs, mean, low, high, source, sample.bounds)
    return Answer(Outcome.UNDECIDED, pairs, mean, *usual, Method.FEW if few else Method.T, sample.bounds)


def half_width(normal: float, spread: float, pairs: int) -> float:
    """Of Student's interval without corrections, with the significance of the `normal` boundary."""
    return float(scipy.special.stdtrit(pairs - 1, scipy.special.ndtr(normal))) * spread / pairs**0.5


def _needed(sample: Sample, rule: Rule, says: Says) -> int | None:
    """The smallest number of further pairs, of the same figures, that decides, at a single look; approximate for the bounds: the
    normal limit and that of an event without a pair, as two independent errors."""
    mean, spent = sample.mean, 1 - rule.confidence
    error = BOUNDED * spent / 2

    def decides(pairs: int) -> bool:
        usual, share = scipy.special.ndtri(1 - error) * sample.spread / pairs**0.5, 1 - error ** (1 / pairs)
        by_bounds = mean - hypot(usual, share * (mean - sample.bounds[0])), mean + hypot(usual, share * (sample.bounds[1] - mean))
        intervals = [by_bounds]
        if sample.spread and pairs >= ENOUGH:
            tail = (1 - BOUNDED) * spent * min(1.0, pairs / rule.max_pairs) / 2
            intervals.append(sample.student(-scipy.special.ndtri(tail), pairs))
        return any(says(*each) != Outcome.UNDECIDED for each in intervals)

    below = sample.pairs
    above = below + 1
    while not decides(above):
        below, above = above, 2 * above
        if above > FURTHEST:
            return None
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if decides(middle) else (middle, above)
    return above


@lru_cache(maxsize=4096)
def boundary(looks: tuple[int, ...], max_pairs: int, error: float) -> float:
    """The two-sided boundary of the last look, in standard deviations of a mean of known variance."""
    return boundaries([look / max_pairs for look in looks], linear(error))[-1]
