"""The rule that stops a campaign: its answers, and the rate of false ones in simulated campaigns."""

import numpy as np
import pytest
from scipy import special

from analysis.decisions.answers import schedule
from analysis.decisions.rule import Outcome, Rule, answer

CAMPAIGNS = 1000
MOST = 50
# 5 % and three standard errors of a share of 1000
ALLOWED = 0.05 + 3 * (0.05 * 0.95 / CAMPAIGNS) ** 0.5


def outcome_of(rule: Rule, differences: list[float]) -> Outcome:
    """The outcome of a campaign that stops at the first look which decides."""
    looks: list[int] = []
    for seeds in schedule(4, rule.max_pairs):
        looks.append(seeds)
        found = answer(rule, looks, differences[:seeds])
        if found.outcome != Outcome.UNDECIDED:
            return found.outcome
    return Outcome.UNDECIDED


def share(outcomes: list[Outcome], *which: Outcome) -> float:
    return sum(outcome in which for outcome in outcomes) / len(outcomes)


def campaigns(rule: Rule, mean: float, draw: str) -> list[Outcome]:
    """Outcomes of simulated campaigns; the differences have a standard deviation of 1."""
    random = np.random.default_rng(7)
    size = (CAMPAIGNS, rule.max_pairs)
    noise = random.normal(size=size) if draw == "normal" else random.standard_t(3, size=size) / 3**0.5
    return [outcome_of(rule, row.tolist()) for row in mean + noise]


@pytest.mark.parametrize("draw", ["normal", "t(3)"])
def test_without_a_difference_at_most_one_campaign_in_twenty_finds_one(draw):
    found = campaigns(Rule(0.3, MOST), 0.0, draw)
    assert share(found, Outcome.MORE, Outcome.LESS) <= ALLOWED


@pytest.mark.parametrize("draw", ["normal", "t(3)"])
def test_a_difference_that_matters_is_seldom_called_none(draw):
    found = campaigns(Rule(0.8, MOST), 0.8, draw)
    assert share(found, Outcome.SAME, Outcome.LESS) <= ALLOWED


def test_looking_often_without_a_rule_would_find_false_differences():
    """The test above can fail: with Student's intervals at each look some 15 % of the campaigns err."""
    random, wrong = np.random.default_rng(7), 0
    for row in random.normal(size=(CAMPAIGNS, MOST)):
        looks = (answer(Rule(0.3, seeds), [seeds], row[:seeds].tolist()).outcome for seeds in schedule(4, MOST))
        wrong += any(outcome in (Outcome.MORE, Outcome.LESS) for outcome in looks)
    assert wrong / CAMPAIGNS > 2 * ALLOWED


def test_a_large_difference_is_decided_with_few_pairs_and_none_with_more():
    rule = Rule(1.0, MOST)
    few = answer(rule, [4, 6], [5.0, 5.5, 4.8, 5.2, 5.1, 4.9])
    assert (few.outcome, few.pairs, few.needed) == (Outcome.MORE, 6, None)
    assert answer(rule, [4, 6], [-value for value in (5.0, 5.5, 4.8, 5.2, 5.1, 4.9)]).outcome == Outcome.LESS


def test_a_difference_certainly_smaller_than_what_matters_is_none():
    found = answer(Rule(10.0, MOST), [4, 6], [1.0, -1.0, 0.5, -0.5, 0.2, -0.1])
    assert (found.outcome, found.needed) == (Outcome.SAME, None)


def test_a_claim_of_equality_fails_only_beyond_what_matters():
    differences = [6.0, 6.5, 5.8, 6.2, 6.1, 5.9]
    assert answer(Rule(10.0, MOST, edge=10.0), [6], differences).outcome == Outcome.SAME
    assert answer(Rule(6.0, MOST, edge=6.0), [6], differences).outcome == Outcome.UNDECIDED
    assert answer(Rule(3.0, MOST, edge=3.0), [6], differences).outcome == Outcome.MORE


def test_an_open_question_says_how_many_pairs_it_would_take():
    few = answer(Rule(1.0, MOST), [4], [1.0, -2.0, 3.0, 0.5])
    assert few.outcome == Outcome.UNDECIDED and few.needed is not None and few.needed > 4
    more_noise = answer(Rule(1.0, MOST), [4], [10.0, -19.0, 21.0, -9.5])
    assert more_noise.needed is not None and more_noise.needed > few.needed


def test_fewer_than_two_pairs_decide_nothing():
    assert answer(Rule(1.0, MOST), [1], [100.0]).outcome == Outcome.UNDECIDED


@pytest.mark.parametrize("wrong", [{"matters": 0.0}, {"max_pairs": 1}, {"confidence": 1.0}, {"edge": 2.0}])
def test_a_rule_without_meaning_is_refused(wrong):
    with pytest.raises(ValueError, match="a rule needs"):
        Rule(**({"matters": 1.0, "max_pairs": 10} | wrong))


def test_the_pairs_that_it_would_take_follow_student_s_t():
    """Two pairs with a spread of 9.9 want three by the normal boundary; the interval of three has t with two degrees."""
    rule = Rule(matters=20, max_pairs=20)
    found = answer(rule, [2], [-9.4, 4.6])
    assert found.outcome == Outcome.UNDECIDED and found.needed is not None
    bound = special.ndtri(special.stdtr(1, (found.high - found.low) / 2 / 9.9 * 2**0.5))  # of the look, as a normal quantile
    half = special.stdtrit(found.needed - 1, special.ndtr(bound)) * 9.9 / found.needed**0.5
    assert half <= 20 - 2.4 < special.stdtrit(found.needed - 2, special.ndtr(bound)) * 9.9 / (found.needed - 1) ** 0.5
