"""Jain's index."""

import pytest

from analysis.metrics.fairness import fairness, jain_index


def test_fairness_of_flows_of_one_kind():
    """(1 + 2 + 3)^2 / (3 * (1 + 4 + 9)) = 36/42; equal rates 1; one of two has all 1/2."""
    assert jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert (jain_index([5, 5]), jain_index([5, 0]), jain_index([0, 0])) == (1, 0.5, None)
    flows = [("bulk", 1.0), ("cbr", 2.0), ("bulk", 3.0), ("vbr", 1.0), ("vbr", None)]
    entries = {f"flow{i}": {"traffic": kind, "goodput_bps": rate} for i, (kind, rate) in enumerate(flows, 1)}
    assert fairness(entries) == {"bulk": 16 / 20, "vbr": None}
