"""The rule by which a campaign answers a question and stops.

After each batch of paired seeds the mean difference gets an interval, the wider of two at each end.

*Student's t.* The repeated confidence interval (Jennison and Turnbull, *Repeated confidence intervals for group sequential
clinical trials*, Controlled Clinical Trials 5, 1984): wide enough that with probability `confidence` all intervals of all looks
contain the true difference. Boundaries of known variance become those of Student's t at equal significance (Jennison and
Turnbull, *Group Sequential Methods*, 2000, section 4.4). It needs near-normal means: alone it errs in 53 % of the campaigns if
85 % of the pairs are equal, in a quarter with lognormal differences or one collapse in ten pairs, and in 21 % with seeds that
depend on each other.

*Bounds.* The limit of the mean of bounded values (bounded.py), which needs no normality. It is always computed, and not only
after a test of the sample: pairs without a collapse look the same whether a collapse is impossible or happens in one pair of ten.
For the same reason no interval of a mean can do without a bound (Bahadur and Savage, Annals of Mathematical Statistics 27, 1956).
The bound is the question's `range`; without one, each end is the furthest of

- the difference if one cell fell to zero beside the largest value seen in the other;
- one more spread of the sample (largest minus smallest difference) beyond its last difference;
- ten times what matters, for counters that are zero in all pairs.

So an answer without `range` holds if no pair is beyond bounds that the runs suggest; it names them. These limits are at the
single look's error: an event that no pair has shown is missed most likely at the first look that can decide.

Alternatives: a sign test speaks about the median, which one collapse in ten pairs does not move; the papers' claims are about
means. Transformations for skew and the bootstrap see nothing where the sample has no spread.

tests/campaigns.py simulates campaigns, tests/bench/decisions.py prints the table: at most 5 % of them err.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import hypot
from statistics import fmean, stdev

from scipy import special

from analysis.decisions.bounded import lower_limit, upper_limit
from analysis.decisions.spending import boundaries, linear

FLOOR = 10  # times what matters: at least so far are the bounds of a difference without a range
FURTHEST = 1_000_000  # pairs: no question needs more, or none answers it


class Method(StrEnum):
    """What set the interval: Student's t both ends, or the bound at least one; the bound's source."""

    T = "student-t"
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
    normal = boundary(tuple(look for look in looks if look >= 2), rule.max_pairs, rule.confidence)
    if rule.range is not None and max(map(abs, differences)) <= rule.range:  # else a pair has refuted the range
        bounds, source = (-rule.range, rule.range), Method.RANGE
    else:
        bounds, source = _bounds(differences, collapse, FLOOR * rule.matters), Method.RUNS
    low, high, method = _interval(differences, bounds, source, normal, rule.confidence)
    outcome = outcome_of(rule, low, high)
    needed = _needed(rule, normal, bounds, differences) if outcome == Outcome.UNDECIDED else None
    return Answer(outcome, pairs, fmean(differences), low, high, method, bounds, needed)


def comparison(differences: Sequence[float], collapse: tuple[float, float], confidence: float = 0.95) -> Answer:
    """The interval of pairs about which no question was asked: a single look, at which any difference matters."""
    pairs = len(differences)
    if pairs < 2:
        return Answer(Outcome.UNDECIDED, pairs)
    bounds = _bounds(differences, collapse, 0.0)
    low, high, method = _interval(differences, bounds, Method.RUNS, boundary((pairs,), pairs, confidence), confidence)
    outcome = Outcome.MORE if low > 0 else Outcome.LESS if high < 0 else Outcome.UNDECIDED
    return Answer(outcome, pairs, fmean(differences), low, high, method, bounds)


def collapses(values: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The differences if one of two cells fell to zero beside the largest value of the other; `values`: both of each pair."""
    return -max(base for _, base in values), max(compared for compared, _ in values)


def outcome_of(rule: Rule, low: float, high: float) -> Outcome:
    """What an interval of the mean difference says."""
    if -rule.matters < low and high < rule.matters:
        return Outcome.SAME
    if low > rule.edge or high < -rule.edge:
        return Outcome.MORE if low > rule.edge else Outcome.LESS
    return Outcome.UNDECIDED


def _bounds(differences: Sequence[float], collapse: tuple[float, float], floor: float) -> tuple[float, float]:
    """Between which differences a pair lies, by the runs (see the head)."""
    low, high = min(differences), max(differences)
    spread = high - low
    return min(low - spread, collapse[0], -floor), max(high + spread, collapse[1], floor)


def _interval(
    differences: Sequence[float], bounds: tuple[float, float], source: Method, normal: float, confidence: float
) -> tuple[float, float, Method]:
    """The wider limit at each end, and the method."""
    mean, half = fmean(differences), half_width(normal, stdev(differences), len(differences))
    error = (1 - confidence) / 2
    low = min(mean - half, lower_limit(differences, bounds[0], error))
    high = max(mean + half, upper_limit(differences, bounds[1], error))
    return low, high, Method.T if (low, high) == (mean - half, mean + half) else source


def half_width(normal: float, spread: float, pairs: int) -> float:
    """Of Student's interval, with the significance of the `normal` boundary."""
    return float(special.stdtrit(pairs - 1, special.ndtr(normal))) * spread / pairs**0.5 if spread else 0.0


def _needed(rule: Rule, normal: float, bounds: tuple[float, float], differences: Sequence[float]) -> int | None:
    """The smallest number of further pairs, of the same mean and spread, that decides; approximate for the bounds: the normal
    limit and that of an event without a pair, as two independent errors."""
    mean, spread, error = fmean(differences), stdev(differences), (1 - rule.confidence) / 2

    def decides(pairs: int) -> bool:
        half, share = half_width(normal, spread, pairs), 1 - error ** (1 / pairs)
        usual = special.ndtri(1 - error) * spread / pairs**0.5
        low = mean - max(half, hypot(usual, share * (mean - bounds[0])))
        high = mean + max(half, hypot(usual, share * (bounds[1] - mean)))
        return outcome_of(rule, low, high) != Outcome.UNDECIDED

    below = len(differences)
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
def boundary(looks: tuple[int, ...], max_pairs: int, confidence: float) -> float:
    """The two-sided boundary of the last look, in standard deviations of a mean of known variance."""
    return boundaries([look / max_pairs for look in looks], linear(1 - confidence))[-1]
