"""Boundaries of alpha spending, against published tables."""

import numpy as np
import pytest
from scipy import stats

from analysis.decisions.spending import boundaries, linear

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


def obrien_fleming(share: float) -> float:
    """Lan and DeMets (1983), spending function alpha 1*, 2.5 % on each side."""
    return 4 * float(stats.norm.sf(stats.norm.ppf(1 - 0.05 / 4) / share**0.5))


def pocock(share: float) -> float:
    """Lan and DeMets (1983), spending function alpha 2*, two-sided 5 %."""
    return 0.05 * float(np.log(1 + (np.e - 1) * share))


def test_boundaries_agree_with_published_tables_of_five_looks():
    """Five equal looks: as the packages ldbounds and rpact print them (Reboussin et al., Controlled Clinical Trials 21, 2000)."""
    assert boundaries(FIFTHS, obrien_fleming) == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)
    assert boundaries(FIFTHS, pocock) == pytest.approx([2.4380, 2.4268, 2.4101, 2.3966, 2.3859], abs=2e-4)


def test_boundaries_agree_with_those_of_rpact():
    """Critical values of its tests (version 3, test-f_design_group_sequential.R), one-sided 3 %: "asHSD" with gammaA = 0, which
    is linear spending, and "asKD" (Kim and DeMets) with gammaA = 2.2. Two-sided ones of 6 % differ by the paths that cross on
    both sides."""
    assert boundaries([0.2, 0.4, 1.0], linear(0.06)) == pytest.approx([2.5121443, 2.4228747, 2.0280392], abs=3e-4)
    kim_demets = boundaries([0.3, 0.7, 1.0], lambda share: 0.06 * share**2.2)
    assert kim_demets == pytest.approx([2.8594012, 2.2435708, 1.9735737], abs=3e-4)


def test_a_single_look_has_the_boundary_of_a_fixed_sample():
    assert boundaries([1.0], linear(0.05)) == pytest.approx([stats.norm.ppf(0.975)], abs=1e-8)


def test_paths_cross_with_the_error_that_is_spent():
    """200,000 Brownian paths without drift, looked at five times: 5 % cross, within four standard errors (0.2 points)."""
    steps = np.random.default_rng(1).normal(size=(200_000, 5)).cumsum(axis=1) / np.sqrt(np.arange(1, 6))
    crossed = (np.abs(steps) > boundaries(FIFTHS, linear(0.05))).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize("shares", [[0.0, 1.0], [0.5, 0.5], [0.6, 0.4], [0.5, 1.2]])
def test_shares_that_do_not_ascend_to_one_are_refused(shares):
    with pytest.raises(ValueError, match="shares of the data ascend"):
        boundaries(shares, linear(0.05))
