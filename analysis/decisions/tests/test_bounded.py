"""Limits of a bounded mean, against closed forms and random vectors."""

import numpy as np
import pytest
from scipy import stats

from analysis.decisions.bounded import lower_limit, upper_limit


@pytest.mark.parametrize("events", [0, 1, 3, 9])
@pytest.mark.parametrize("error", [0.025, 0.001])
def test_shares_have_the_limits_of_clopper_and_pearson(events, error):
    """Biometrika 26, 1934: quantiles of the beta distribution, here of ten pairs."""
    values = [1.0] * events + [0.0] * (10 - events)
    assert upper_limit(values, 1.0, error) == pytest.approx(stats.beta.ppf(1 - error, events + 1, 10 - events), abs=1e-6)
    expected = stats.beta.ppf(error, events, 11 - events) if events else 0.0
    assert lower_limit(values, 0.0, error) == pytest.approx(expected, abs=1e-6)


def test_the_limit_is_the_quantile_of_means_weighted_at_random():
    """400,000 vectors of the uniform Dirichlet distribution; four standard errors of the quantile are 0.02."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=12)
    means = rng.dirichlet(np.ones(13), size=400_000) @ np.append(values, 5.0)
    assert upper_limit(values.tolist(), 5.0, 0.025) == pytest.approx(np.quantile(means, 0.975), abs=0.02)


def test_many_normal_values_have_the_limit_of_student():
    """200 values, the bound at the largest: 1.97 standard errors, and 11 % more for the bound."""
    values = stats.norm.ppf((np.arange(200) + 0.5) / 200)
    assert upper_limit(values.tolist(), float(values.max()), 0.025) == pytest.approx(
        1.972 * values.std(ddof=1) / 200**0.5, rel=0.12
    )


def test_values_at_the_bound_leave_nothing_above():
    assert upper_limit([2.0, 2.0, 2.0], 2.0, 0.025) == 2.0
    assert lower_limit([2.0, 2.0, 2.0], 2.0, 0.025) == 2.0


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_limits_scale_with_the_unit(factor):
    values = [1.0, -2.0, 0.5, 4.0]
    scaled = upper_limit([value * factor for value in values], 10 * factor, 0.025)
    assert scaled == pytest.approx(upper_limit(values, 10, 0.025) * factor, rel=1e-6)
