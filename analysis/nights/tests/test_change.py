"""The test of a night against earlier nights, on simulated nights."""

import numpy as np
import pytest
from scipy import stats

from analysis.nights.change import FOUND, MIN_NIGHTS, NIGHTS_OF_MONTH, Night, holm, judge, relative
from analysis.nights.tests.nights import judged, months_with_an_alarm, noisy_night, quiet_values, series, simulated


def history(seed, nights, **more):
    random = np.random.default_rng(seed)
    return random, [noisy_night(random, number, **more) for number in range(nights)]


def test_thirty_quiet_nights_raise_no_alarm():
    (month,) = quiet_values(np.random.default_rng(0), 1)
    assert judged(month, relevant=0.03) == [False] * NIGHTS_OF_MONTH


def test_the_simulation_of_many_months_follows_the_programs_rule():
    months = quiet_values(np.random.default_rng(1), 10)
    often = 10.0  # errors of a month, so that there are alarms to compare
    expected = [judged(month, month=often) for month in months]
    assert simulated(months, month=often).tolist() == expected
    assert 10 < np.sum(expected) < 290


@pytest.mark.parametrize("month", [0.05, 0.5])
def test_a_month_has_a_false_alarm_as_often_as_claimed_and_not_far_less(month):
    count = 20_000
    alarms = months_with_an_alarm(count, month=month)  # without a smallest change that matters
    assert stats.binomtest(alarms, count, month, alternative="greater").pvalue > 0.01
    assert alarms > 0.75 * month * count, "independent nights: 0.049 and 0.39 of the months"


@pytest.mark.parametrize("seed", range(10))
def test_a_slowdown_of_ten_percent_is_caught_after_ten_nights(seed):
    random, nights = history(seed, 10)
    tonight = noisy_night(random, 10, mean=1.10)
    (verdict,) = judge([series([*nights, tonight])])
    assert verdict.alarm and 0.05 < verdict.change < 0.15
    assert verdict.commits == "c9..c10"


def test_a_change_below_the_relevant_size_is_no_alarm_however_certain():
    _, nights = history(1, 10, spread=0.0005)
    nights = [Night(night.night, night.commit, (night.value,)) for night in nights]
    tonight = Night("t", "c", (1.1 * nights[0].value,))
    (small,) = judge([series([*nights, tonight], relevant=0.2)])
    (large,) = judge([series([*nights, tonight], relevant=0.03)])
    assert (small.alarm, large.alarm) == (False, True)


def test_the_interval_is_of_nights_not_of_repetitions():
    # levels of nights differ by 10 %, repetitions hardly: 10 % more tonight is nothing
    values = (1.0, 1.1, 0.9, 1.05, 0.95, 1.1, 0.9)
    nights = [Night(str(n), "c", tuple(value + 1e-6 * k for k in range(15))) for n, value in enumerate(values)]
    (verdict,) = judge([series([*nights, Night("t", "c", (1.1,) * 15)])])
    assert not verdict.alarm and verdict.low < 0.9 and verdict.high > 1.1


@pytest.mark.parametrize("nights", [6, 20])
def test_the_smallest_change_that_a_night_finds_is_found_nine_times_in_ten(nights):
    found, tried = 0, 400
    for seed in range(tried):
        random, earlier = history(seed, nights)
        (quiet,) = judge([series([*earlier, noisy_night(random, nights)])])
        (changed,) = judge([series([*earlier, noisy_night(random, nights, mean=1 + quiet.smallest)])])
        found += changed.alarm
    assert stats.binomtest(found, tried, FOUND).pvalue > 0.01


def test_six_nights_of_three_repetitions_find_a_change_of_five_percent():
    """With the spread of the part speed's repetitions, 0.3 % between nights included (docs/archive/validation.md)."""
    found = []
    for seed in range(200):
        _, nights = history(seed, 7, spread=0.003, repetition_spread=0.003)
        nights = [Night(night.night, night.commit, night.values[:3]) for night in nights]
        (verdict,) = judge([series(nights)])
        found.append(verdict.smallest)
    assert np.median(found) < 0.05


def test_the_error_of_a_night_is_divided_among_the_parts_that_ran_in_it():
    _, nights = history(5, 7)
    (alone,) = judge([series(nights)])
    among_four = judge([series(nights, part=part) for part in ("a", "b", "c", "speed")])
    assert among_four[3].high - among_four[3].low > alone.high - alone.low
    assert among_four[3].smallest > alone.smallest


def test_too_few_nights_are_not_tested():
    _, nights = history(2, MIN_NIGHTS)
    (verdict,) = judge([series(nights)])  # one of them is tonight's
    assert verdict.p is None and verdict.old is None and not verdict.alarm


def test_a_night_of_an_alarm_is_no_reference_and_the_alarm_is_repeated():
    random, nights = history(3, 10)
    bad = noisy_night(random, 10, mean=1.3)
    bad = Night(bad.night, bad.commit, bad.values, alarm=True)
    (verdict,) = judge([series([*nights, bad, noisy_night(random, 11, mean=1.3)])])
    assert verdict.alarm and verdict.nights == 10 and verdict.commits == "c9..c11"


def test_a_series_begins_anew_at_a_baseline():
    random, nights = history(4, 10)
    later = [noisy_night(random, number, mean=1.3) for number in range(10, 17)]
    later[0] = Night(later[0].night, later[0].commit, later[0].values, baseline=True)
    (verdict,) = judge([series([*nights, *later])])
    assert not verdict.alarm and verdict.nights == 6


def exact(old, new):
    (verdict,) = judge(
        [series([Night("a", "c1", old), Night("b", "c2", new)], "validation/x", 0.01, exact=True, part="validation")]
    )
    return verdict


def test_a_protocol_bug_changes_an_exact_figure_beyond_its_seeds():
    # ns2/saturation/rts-off/n=50, kbit/s under five seeds, with and without growth of the contention window
    # (docs/archive/validation.md)
    assert exact((1185.3, 1182.2, 1176.8, 1182.2, 1176.8), (378.2, 379.0, 370.8, 367.4, 370.5)).alarm


def test_another_order_of_random_numbers_is_no_change():
    verdict = exact((1216.0, 1221.0, 1213.0, 1219.0, 1217.0), (1214.0, 1219.0, 1222.0, 1218.0, 1216.0))
    assert not verdict.alarm and 0.01 < verdict.p < 1


def test_an_exact_figure_that_is_repeated_has_significance_one():
    assert exact((1.0, 2.0), (1.0, 2.0)).p == 1.0
    assert exact((1.0, 1.0), (1.5, 1.5)).alarm  # no spread at all: any relevant difference is a change


def test_holm_rejects_step_by_step():
    assert holm([0.01, 0.04, 0.03], 0.05) == [pytest.approx(0.05 / 3), None, None]
    assert holm([0.01, 0.02, 0.04], 0.05) == [pytest.approx(0.05 / 3), pytest.approx(0.025), pytest.approx(0.05)]


def test_a_change_from_zero_is_infinite():
    assert relative(0, 0) == 0 and relative(1, 0) == float("inf")
