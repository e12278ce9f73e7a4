"""Turns of a worker's runs, without threads: which start next, and what follows from their ends."""

from pathlib import Path
from types import SimpleNamespace

from testbed.campaigns.task import Outcome, Task
from testbed.campaigns.turn import Turn


def tasks(count):
    cell = SimpleNamespace(name="c", scenario=SimpleNamespace(clock="real"))
    return [Task("e", cell, seed, Path(f"c/seed-{seed}")) for seed in range(1, count + 1)]


def complete(task, verdict="valid"):
    return Outcome(task, "complete", verdict)


def test_runs_start_in_order_as_places_become_free():
    turn = Turn.of(tasks(5), 2, adapts=True)
    first = turn.starts()
    assert ([task.seed for task in first], turn.starts()) == ([1, 2], [])
    turn.ended(complete(first[1]))
    assert [task.seed for task in turn.starts()] == [3]


def test_a_turn_is_over_when_its_last_run_has_ended():
    turn = Turn.of(tasks(1), 2, adapts=True)
    assert not turn.is_over
    (task,) = turn.starts()
    assert not turn.is_over
    turn.ended(complete(task))
    assert turn.is_over


def test_two_void_runs_at_the_beginning_halve_the_number_once():
    turn = Turn.of(tasks(8), 4, adapts=True)
    jobs = [turn.ended(complete(task, "void")) for task in turn.starts()]
    assert jobs == [4, 2, 2, 2]
    assert len(turn.voids) == 4


def test_void_runs_after_a_valid_one_do_not_lower_the_number():
    turn = Turn.of(tasks(4), 4, adapts=True)
    verdicts = ("valid", "void", "void", "void")
    assert [turn.ended(complete(task, verdict)) for task, verdict in zip(turn.starts(), verdicts, strict=True)] == [4] * 4


def test_runs_that_are_withdrawn_do_not_start():
    turn = Turn.of(tasks(3), 1, adapts=True)
    (first,) = turn.starts()
    assert [task.seed for task in turn.withdraw()] == [2, 3]
    turn.ended(complete(first))
    assert turn.is_over and turn.starts() == []


def test_a_run_that_weighs_more_than_all_places_runs_alone():
    turn = Turn.of(tasks(3), 2, adapts=False, weight_of=lambda task: 5.0 if task.seed == 2 else 1.0)
    order = []
    while not turn.is_over:
        started = turn.starts()
        order.append([task.seed for task in started])
        for task in started:
            turn.ended(complete(task))
    assert order == [[1], [2], [3]]
