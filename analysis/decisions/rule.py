"""The rule by which a campaign answers a question and stops.

After each batch of paired seeds the mean difference gets a repeated confidence interval (Jennison and Turnbull, *Repeated
confidence intervals for group sequential clinical trials*, Controlled Clinical Trials 5, 1984): wide enough that with probability
`confidence` all intervals of all looks contain the true difference. So a false answer has a probability of at most 1 -
`confidence`, however often one looks. Boundaries of known variance become those of Student's t at equal significance (Jennison
and Turnbull, *Group Sequential Methods*, 2000, section 4.4). That is approximate. In simulations (tests/test_rule.py) normal and
heavy-tailed differences keep the claim; exponential ones, far more skewed than differences of two like runs, err in up to 11 % of
the campaigns instead of 5 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import ceil
from statistics import fmean, stdev

from scipy import special

from analysis.decisions.spending import boundaries, linear


class Outcome(StrEnum):
    """What the pairs say about the mean difference."""

    MORE = "more"
    LESS = "less"
    SAME = "no difference that matters"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Rule:
    """`matters`: the smallest difference that matters, in the metric's unit, above 0. `max_pairs`: the limit, at least 2.
    `edge`: the difference beyond which the answer is `more` or `less`, from 0 to `matters`."""

    matters: float
    max_pairs: int
    confidence: float = 0.95
    edge: float = 0.0

    def __post_init__(self) -> None:
        if not (self.matters > 0 and self.max_pairs >= 2 and 0 < self.confidence < 1 and 0 <= self.edge <= self.matters):
            text = "a rule needs matters > 0, max_pairs >= 2, a confidence between 0 and 1 and an edge from 0 to matters"
            raise ValueError(f"{text}, not {self}")


@dataclass(frozen=True)
class Answer:
    """The state of a question after a look: mean difference and repeated interval in the metric's unit, all None for fewer than
    two pairs. `needed`: pairs that an undecided question would take if mean and spread stayed as they are."""

    outcome: Outcome
    pairs: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    needed: int | None = None


def answer(rule: Rule, looks: Sequence[int], differences: Sequence[float]) -> Answer:
    """The answer at the last of the `looks`: ascending numbers of pairs, of which the last is that of `differences`.

    A difference that is not zero but certainly smaller than `rule.matters` is "no difference that matters".
    """
    pairs = len(differences)
    if not looks or looks[-1] != pairs:
        raise ValueError(f"the last look is at {pairs} pairs, not {looks[-1] if looks else 'none'}")
    if pairs < 2:
        return Answer(Outcome.UNDECIDED, pairs)
    bound = _bound(tuple(look for look in looks if look >= 2), rule.max_pairs, rule.confidence)
    mean, spread = fmean(differences), stdev(differences)
    half = float(special.stdtrit(pairs - 1, special.ndtr(bound))) * spread / pairs**0.5 if spread else 0.0
    low, high = mean - half, mean + half
    if -rule.matters < low and high < rule.matters:
        return Answer(Outcome.SAME, pairs, mean, low, high)
    if low > rule.edge or high < -rule.edge:
        return Answer(Outcome.MORE if low > rule.edge else Outcome.LESS, pairs, mean, low, high)
    reach = max(abs(mean) - rule.edge, rule.matters - abs(mean))  # the interval's half width that decides
    needed = _needed(bound, spread, reach, pairs) if reach > 0 else None
    return Answer(Outcome.UNDECIDED, pairs, mean, low, high, needed)


def _needed(bound: float, spread: float, reach: float, pairs: int) -> int:
    """The smallest number of pairs, above `pairs`, whose interval of Student's t is within +-reach."""
    number = max(pairs + 1, ceil((bound * spread / reach) ** 2))  # with the normal boundary, a lower limit
    while float(special.stdtrit(number - 1, special.ndtr(bound))) * spread > reach * number**0.5:
        number += 1
    return number


@lru_cache(maxsize=4096)
def _bound(looks: tuple[int, ...], max_pairs: int, confidence: float) -> float:
    return boundaries([look / max_pairs for look in looks], linear(1 - confidence))[-1]
