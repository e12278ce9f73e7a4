"""Sequence space: unwrapping and coverage."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.captures.sequence import MODULUS, Coverage, unwrap


def test_numbers_go_on_rising_past_the_wrap():
    assert unwrap([2**32 - 1, 0, 1, 2**32 - 2], origin=2**32 - 1).tolist() == [0, 1, 2, -1]


@given(
    origin=st.integers(0, MODULUS - 1),
    steps=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50),
)
def test_unwrap_undoes_the_modulus(origin, steps):
    true = np.cumsum(np.array(steps, dtype=np.int64))
    assert unwrap((true + origin) % MODULUS, origin).tolist() == true.tolist()


def test_a_filled_hole_joins_what_lies_behind_it():
    coverage = Coverage()
    coverage.add(0, 10)
    coverage.add(20, 30)
    coverage.add(40, 50)
    assert coverage.prefix == 10
    coverage.add(10, 20)
    assert coverage.prefix == 30


def test_skipping_counts_only_the_bytes_not_seen():
    coverage = Coverage()
    coverage.add(20, 30)
    assert coverage.skip_to(25) == 20
    assert coverage.prefix == 30  # 25..29 were seen before
    assert coverage.skip_to(10) == 0


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.booleans()), max_size=40))
def test_coverage_agrees_with_a_set_of_bytes(operations):
    """The plain model: a set of seen bytes, and skipping adds what is missing."""
    coverage, seen = Coverage(), set()
    for start, length, skip in operations:
        if skip:
            missing = set(range(start)) - seen
            assert coverage.skip_to(start) == len(missing)
            seen |= missing
        else:
            coverage.add(start, start + length)
            seen |= set(range(start, start + length))
        prefix = next(byte for byte in range(200) if byte not in seen)
        assert coverage.prefix == prefix
