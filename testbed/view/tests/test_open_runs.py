"""What stays in memory: made once, however many threads ask, and dropped when others were asked about since."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.view.open_runs import OpenRuns
from testbed.view.recorded import Once

A, B, C = (Path(name) for name in "abc")
THREADS = 8


def test_the_run_that_was_asked_about_least_recently_is_dropped():
    runs: OpenRuns[object] = OpenRuns(2)
    first = runs.opened(A, object)
    runs.opened(B, object)
    assert runs.opened(A, object) is first
    runs.opened(C, object)
    assert runs.kept(A) is first and runs.kept(B) is None


def test_a_run_that_is_not_current_is_opened_anew():
    runs: OpenRuns[list[int]] = OpenRuns(2)
    runs.opened(A, lambda: [1])
    assert runs.opened(A, lambda: [2], lambda run: run == [2]) == [2]
    assert runs.opened(A, lambda: [3], lambda run: run == [2]) == [2]


def test_threads_that_ask_at_once_get_the_same_run():
    runs: OpenRuns[object] = OpenRuns(1)

    def make() -> object:
        time.sleep(0.05)  # the others come meanwhile
        return object()

    with ThreadPoolExecutor(THREADS) as pool:
        assert len({id(run) for run in pool.map(lambda _: runs.opened(A, make), range(THREADS))}) == 1


def test_a_part_is_made_once_and_again_after_an_error():
    made: list[int] = []

    def make() -> int:
        made.append(1)
        time.sleep(0.05)
        if len(made) == 1:
            raise ValueError("the first")
        return len(made)

    part = Once(make)
    with pytest.raises(ValueError, match="the first"):
        part()
    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(lambda _: part(), range(THREADS))) == {2}
