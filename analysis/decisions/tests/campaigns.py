"""Simulated campaigns: how often the rule answers falsely, and how many pairs it takes (tests/bench/decisions.py prints the
table).

A cell is a distribution of paired values with a known mean difference. Differences have a standard deviation of about 1 where
it exists; a campaign looks at 4, 6, 9, 14, 21, 32, 48 and 50 pairs. Where a cell has no collapse, its level is 0, so that the
bounds have nothing but the sample and what matters: higher levels widen them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import e
from typing import Any

import numpy as np

from analysis.decisions.answers import FIRST_LOOK, schedule
from analysis.decisions.rule import Outcome, Rule, answer, boundary, collapses, half_width, outcome_of

MAX_PAIRS = 50
SINGLE = 1.959964  # standard deviations: the boundary of a single look at 95 %
Values = np.ndarray[Any, np.dtype[np.float64]]
Decide = Callable[[Rule, Sequence[int], Sequence[tuple[float, float]]], Outcome]


@dataclass(frozen=True)
class Cell:
    """`draw` gives differences; the base's value is `level` in each pair. `false`: the outcomes that are wrong."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], Values]
    matters: float
    false: tuple[Outcome, ...]
    level: float = 0.0

    def campaigns(self, number: int, seed: int) -> list[list[tuple[float, float]]]:
        """`number` campaigns, each of MAX_PAIRS pairs of values."""
        differences = self.draw(np.random.default_rng(seed), (number, MAX_PAIRS))
        return [[(self.level + each, self.level) for each in row] for row in differences.tolist()]


def by_rule(rule: Rule, looks: Sequence[int], values: Sequence[tuple[float, float]]) -> Outcome:
    """The outcome of a look. All intervals are wider than Student's of a single look, and a wider one decides nothing more: most
    looks end at his, which is computed faster."""
    if _by_student(rule, SINGLE, values) == Outcome.UNDECIDED:
        return Outcome.UNDECIDED
    return answer(rule, looks, [one - other for one, other in values], collapses(values)).outcome


def by_student_alone(rule: Rule, looks: Sequence[int], values: Sequence[tuple[float, float]]) -> Outcome:
    """The outcome of a look by Student's repeated interval, without corrections and bounds: the rule until November 2026."""
    return _by_student(rule, boundary(tuple(looks), rule.max_pairs, 1 - rule.confidence), values)


def _by_student(rule: Rule, normal: float, values: Sequence[tuple[float, float]]) -> Outcome:
    differences = np.array([one - other for one, other in values])
    spread = float(differences.std(ddof=1)) if np.ptp(differences) else 0.0
    half, mean = half_width(normal, spread, len(values)), float(differences.mean())
    return outcome_of(rule.matters, rule.edge, mean - half, mean + half)


def end_of(
    rule: Rule, values: Sequence[tuple[float, float]], decide: Decide = by_rule, first: int = FIRST_LOOK
) -> tuple[Outcome, int]:
    """The outcome of a campaign that stops at the first look which decides, and its pairs."""
    looks: list[int] = []
    for pairs in schedule(first, rule.max_pairs):
        looks.append(pairs)
        found = decide(rule, looks, values[:pairs])
        if found != Outcome.UNDECIDED:
            return found, pairs
    return Outcome.UNDECIDED, rule.max_pairs


def false_share(cell: Cell, number: int, seed: int, decide: Decide = by_rule, first: int = FIRST_LOOK) -> float:
    """The share of campaigns that end in a false answer."""
    rule = Rule(cell.matters, MAX_PAIRS)
    return sum(end_of(rule, values, decide, first)[0] in cell.false for values in cell.campaigns(number, seed)) / number


def _normal(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    return rng.normal(size=size)


def _autocorrelated(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    """Each pair depends on the one before by 0.3."""
    noise = rng.normal(size=size)
    found = noise.copy()
    for pair in range(1, size[1]):
        found[:, pair] = 0.3 * found[:, pair - 1] + (1 - 0.3**2) ** 0.5 * noise[:, pair]
    return found


def _lognormal(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    return (rng.lognormal(size=size) - e**0.5) / ((e - 1) * e) ** 0.5


def _collapses(noise: float) -> Callable[[np.random.Generator, tuple[int, int]], Values]:
    """One pair in ten falls from 10 to 0, beside 9."""
    return lambda rng, size: np.where(rng.random(size) < 0.1, -9.0, 1.0) + noise * rng.normal(size=size)


def _counter(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    return np.where(rng.random(size) < 0.15, 1.0, 0.0)


def _bursts(rng: np.random.Generator, size: tuple[int, int]) -> Values:
    return np.where(rng.random(size) < 0.1, -1.0, 0.0) + 0.1 * rng.normal(size=size)


DRAWS = {
    "normal": _normal,
    "t(3)": lambda rng, size: rng.standard_t(3, size=size) / 3**0.5,
    "t(2)": lambda rng, size: rng.standard_t(2, size=size),  # without a standard deviation
    "uniform": lambda rng, size: rng.uniform(-1, 1, size) * 3**0.5,
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "lognormal": _lognormal,
    "autocorrelated 0.3": _autocorrelated,
}


def _shifted(draw: Callable[..., Values], sign: float, mean: float) -> Callable[[np.random.Generator, tuple[int, int]], Values]:
    return lambda rng, size: sign * draw(rng, size) + mean


ANY = (Outcome.MORE, Outcome.LESS)
SKEWED = ("exponential", "lognormal")
MISSED = (Outcome.SAME, Outcome.LESS)
CELLS = [
    *(Cell(f"{name}, mean 0", draw, 0.1, ANY) for name, draw in DRAWS.items()),
    *(Cell(f"{name}, mean 0.8, which matters", _shifted(draw, 1, 0.8), 0.8, MISSED) for name, draw in DRAWS.items()),
    *(Cell(f"-{name}, mean 0.8, which matters", _shifted(DRAWS[name], -1, 0.8), 0.8, MISSED) for name in SKEWED),
    Cell("one collapse in ten, no noise, mean 0", _collapses(0), 0.3, ANY, 9.0),
    Cell("one collapse in ten, noise 0.5, mean 0", _collapses(0.5), 0.3, ANY, 9.0),
    Cell("one collapse in ten, noise 1, mean 0", _collapses(1), 0.3, ANY, 9.0),
    Cell("one collapse in ten, noise 2, mean 0", _collapses(2), 0.3, ANY, 9.0),
    Cell("one burst in ten, mean -0.1, which matters", _bursts, 0.1, (Outcome.SAME, Outcome.MORE), 1.0),
    Cell("counter, 15 % are 1, mean 0.15, which matters", _counter, 0.15, MISSED),
    Cell("counter, 15 % are -1, mean -0.15, which matters", _shifted(_counter, -1, 0), 0.15, (Outcome.SAME, Outcome.MORE), 1.0),
]


@dataclass(frozen=True)
class Effect:
    """Normal differences of mean `size` (standard deviations), beside a base of value `level`; 0.3 of the size matters."""

    size: float
    level: float

    def pairs(self, number: int, seed: int, decide: Decide = by_rule, range_: float | None = None) -> tuple[float, float]:
        """The median number of pairs to the answer, infinite if most have none; and the share of campaigns without an answer."""
        cell = Cell("", _shifted(_normal, 1, self.size), 0.3 * self.size, (), self.level)
        rule = Rule(cell.matters, MAX_PAIRS, range=range_)
        ends = [end_of(rule, values, decide) for values in cell.campaigns(number, seed)]
        pairs = [float("inf") if outcome == Outcome.UNDECIDED else float(pairs) for outcome, pairs in ends]
        return float(np.median(pairs)), sum(outcome == Outcome.UNDECIDED for outcome, _ in ends) / number


EFFECTS = [Effect(size, level) for size in (0.5, 1.0, 1.5, 4.0) for level in (0.0, 5.0, 10.0)]
