"""The progress of long work, on a terminal and elsewhere."""

import io

import pytest

from testbed.campaigns.progress import Progress, duration_text
from testbed.campaigns.remaining import DEFAULT_COSTS, Work


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (48, "48 s"), (185, "3 min 05 s"), (4320, "1 h 12 min"), (-3, "0 s")],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration_text(seconds) == text


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


def made(count, *, jobs=1, starts=8, stream=None, traffic_s=30.0, **work):
    """Runs `1`, `2`, ... of so much traffic each, and the clock by which their time goes."""
    clock = Clock()
    progress = Progress(stream or io.StringIO(), now=clock)
    progress.expect([Work(str(number), 0.0, traffic_s, **work) for number in range(1, count + 1)], jobs, starts)
    return progress, clock


def pass_through(progress, clock, *names, start_s=4.0, traffic_s=30.0, stop_s=3.0):
    """These runs in parallel, from their beginning to their end, before any of them is reported."""
    for name in names:
        progress.stage(name, "starts")
    clock.now_s += start_s
    for name in names:
        progress.stage(name, "traffic", 0.0)
    clock.now_s += traffic_s
    for name in names:
        progress.stage(name, "stop")
    clock.now_s += stop_s


def test_without_a_terminal_there_is_a_line_per_run_and_no_control_codes():
    progress, _ = made(2, stream=(stream := io.StringIO()))
    progress.stage("1", "traffic", 0.1)
    progress.finished("1", "valid")
    progress.finished("2", "void")
    progress.close()
    first, second = stream.getvalue().splitlines()
    assert first.startswith("[1/2] 1: valid, about ")
    assert first.endswith(" left")
    assert second == "[2/2] 2: void"
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_a_line_is_rewritten_and_wiped_at_the_end():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    progress, _ = made(3, stream=(stream := Terminal()))
    progress.stage("1", "starts")
    progress.finished("1", "valid")
    progress.close()
    assert "1/3 runs, about" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_quiet_prints_nothing():
    stream = io.StringIO()
    progress = Progress(stream, quiet=True)
    progress.expect([Work("a", 0.0, 1.0)], 1, 1)
    progress.finished("a", "valid")
    progress.note("more")
    assert stream.getvalue() == ""


def test_before_the_first_run_the_time_left_is_that_of_the_scenarios_over_the_jobs():
    whole_s = DEFAULT_COSTS[False].whole_s(Work("", 0.0, 30.0))
    assert 30 < whole_s < 45
    for jobs, in_turn in ((1, 4), (2, 2), (3, 2), (4, 1), (9, 1)):
        assert made(4, jobs=jobs)[0].seconds_left() == pytest.approx(in_turn * whole_s)


@pytest.mark.parametrize(
    ("count", "jobs", "traffic_s", "text"),
    [
        (1, 4, 30.0, "1 run of 30 s: about 35 s"),
        (36, 8, 65.0, "36 runs of 1 min 05 s, 8 side by side: about 5 min 50 s"),  # five times 70 s
        (150, 12, 65.0, "150 runs of 1 min 05 s, 12 side by side: about 15 min 10 s"),
        (2, 8, 5400.0, "2 runs of 1 h 30 min, 2 side by side: about 1 h 30 min"),
    ],
)
def test_the_plan_names_runs_their_length_jobs_and_hours_or_minutes(count, jobs, traffic_s, text):
    assert made(count, jobs=jobs, traffic_s=traffic_s)[0].plan() == text


def test_the_plan_of_runs_of_several_lengths_has_the_shortest_and_the_longest():
    progress, _ = made(1)
    progress.expect([Work("a", 10.0, 20.0), Work("b", 0.0, 200.0)], 2, 2)
    assert progress.plan() == "2 runs of 30 s to 3 min 20 s, 2 side by side: about 3 min 25 s"


def test_runs_that_end_together_do_not_distort_the_estimate():
    """Eight parallel runs take 37 s. When the first is reported, seven are about to end, so the pace is not 37 s per run."""
    progress, clock = made(8, jobs=8)
    pass_through(progress, clock, *"12345678")
    progress.finished("1", "valid")
    assert progress.seconds_left() <= 2


def test_runs_that_have_ended_correct_the_guess_of_starting_and_stopping():
    progress, clock = made(3)
    pass_through(progress, clock, "1", start_s=20, stop_s=10)
    progress.finished("1", "valid")
    assert progress.seconds_left() == pytest.approx(2 * 60)


def test_runs_that_start_in_turn_are_counted_in_turn():
    """Ten runs all at once, one start at a time: the tenth begins when nine have started."""
    start_s = DEFAULT_COSTS[False].start_s
    one, ten = (made(count, jobs=10, starts=1)[0].seconds_left() for count in (1, 10))
    assert ten - one == pytest.approx(9 * start_s)


def test_a_run_s_own_progress_decides_once_its_traffic_has_begun():
    progress, clock = made(1, traffic_s=100.0)
    progress.stage("1", "starts")
    clock.now_s += 3
    progress.stage("1", "traffic", 0.0)
    clock.now_s += 60
    progress.stage("1", "traffic", 0.6)
    assert progress.seconds_left() == pytest.approx(40 + DEFAULT_COSTS[False].stop_s)


@pytest.mark.parametrize("virtual", [False, True])
def test_a_start_that_takes_longer_than_expected_leaves_all_the_traffic_to_come(virtual):
    progress, clock = made(1, virtual=virtual)
    progress.stage("1", "starts")
    clock.now_s += 600
    assert progress.seconds_left() > 30


def test_in_virtual_time_the_traffic_s_own_pace_counts():
    """A tenth of 30 s took 12 s of this machine: another 108 s."""
    progress, clock = made(1, virtual=True)
    progress.stage("1", "starts")
    clock.now_s += 50
    progress.stage("1", "traffic", 0.0)
    clock.now_s += 12
    progress.stage("1", "traffic", 0.1)
    assert progress.seconds_left() == pytest.approx(108 + DEFAULT_COSTS[True].stop_s)


def test_a_repeated_run_is_one_more_and_alone():
    progress, clock = made(2, jobs=2)
    pass_through(progress, clock, "1", "2")
    for name in "12":
        progress.finished(name, "void")
    for name in "12":
        progress.rerun(Work(name, 0.0, 30.0), "void")
    progress.side_by_side(1)
    assert progress.seconds_left() == pytest.approx(2 * 37)


def test_a_run_that_waits_for_its_traffic_lets_others_start():
    """Ten runs of 3 + 30 + 30 + 2 s, ten side by side, two starts at a time: the last begins after 4 * 3 s."""
    progress = Progress(io.StringIO(), now=Clock())
    progress.expect([Work(str(number), 30.0, 30.0) for number in range(10)], jobs=10, starts=2)
    assert progress.seconds_left() == pytest.approx(4 * 3 + 65)
