"""The simulated campaign at a small size: the program's decisions with nodes that fail, slow runs and a slow file system."""

from collections import Counter

import pytest

from tests.bench.scale import Result, Size, simulated

# 2 * 2 * 5 * 100 = 2,000 runs; a node fails every five hours
SIZE = Size(nodes=20, experiments=2, hops=5, pairs=100, jobs=4, mtbf_s=20_000.0, ops_per_s=2000.0)
CLEAR = Size(nodes=20, experiments=1, hops=10, pairs=100, jobs=4, mtbf_s=20_000.0)


@pytest.fixture(scope="module")
def result() -> Result:
    """Seed 1."""
    return simulated(SIZE, 1)


def test_no_run_is_lost_and_none_is_counted_twice(result):
    assert result.lost > 0 and result.voids > 0, "the course had no failure to survive"
    assert set(result.ended.values()) == {1}
    assert result.runs == sum(result.rounds)
    seeds_of_cells = Counter((experiment, cell) for experiment, cell, _ in result.ended)
    for (experiment, cell), seeds in seeds_of_cells.items():
        assert {seed for name, of, seed in result.ended if (name, of) == (experiment, cell)} == set(range(1, seeds + 1))


def test_every_question_is_decided_or_at_its_limit(result):
    assert len(result.answers) == 10
    assert all(answer.seeds is None and answer.looks for answer in result.answers)


def test_a_clear_question_takes_fewer_pairs_than_an_open_one():
    answers = simulated(CLEAR, 1).answers
    pairs = {answer.asked.where["hops"]: answer.answer.pairs for answer in answers}
    assert pairs[10] < 50 and max(pairs.values()) > 90


def test_a_node_starts_the_runs_of_a_round_in_the_order_of_their_seeds():
    """So that a round that the time limit ends has all cells at one seed before the next, whatever fails."""
    alone = simulated(Size(nodes=1, experiments=2, hops=5, pairs=20, jobs=4, mtbf_s=20_000.0), 1)
    assert alone.failures > 0
    assert all(order == sorted(order) for order in alone.order)


def test_nodes_get_the_batches_in_the_order_of_their_seeds(result):
    """The first runs of all nodes are those of the first batches."""
    for order in result.order:
        firsts = order[: SIZE.jobs]
        assert firsts == [min(order)] * SIZE.jobs


def test_the_same_seed_gives_the_same_course(result):
    again = simulated(SIZE, 1)
    assert (again.wall_s, again.order, again.lost) == (result.wall_s, result.order, result.lost)
    assert simulated(SIZE, 2).wall_s != result.wall_s
