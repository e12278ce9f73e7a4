"""What long work says, on a terminal and elsewhere."""

import io

import pytest

from testbed.campaigns.progress import Progress, duration_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (48, "48 s"), (185, "3 min 05 s"), (4320, "1 h 12 min"), (-3, "0 s")],
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration_text(seconds) == text


def test_without_a_terminal_there_is_a_line_per_run_and_no_control_codes():
    stream = io.StringIO()
    progress = Progress(2, 100, stream)
    progress.stage("a seed 1", "traffic 10 %")
    progress.finished("a seed 1", "valid")
    progress.finished("b seed 1", "void")
    progress.close()
    first, second = stream.getvalue().splitlines()
    assert first.startswith("[1/2] a seed 1: valid, about ")
    assert first.endswith(" left")
    assert second == "[2/2] b seed 1: void"
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_a_line_is_rewritten_and_wiped_at_the_end():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    progress = Progress(3, 100, stream)
    progress.stage("a seed 1", "starts")
    progress.finished("a seed 1", "valid")
    progress.close()
    assert "1/3 runs, about" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_before_the_first_run_ends_the_time_left_is_that_of_the_scenarios():
    assert 99 < Progress(4, 100, io.StringIO()).seconds_left() <= 100


def test_quiet_says_nothing():
    stream = io.StringIO()
    progress = Progress(1, 1, stream, quiet=True)
    progress.finished("a", "valid")
    progress.note("more")
    assert stream.getvalue() == ""


def test_after_the_expected_time_the_pace_so_far_decides():
    progress = Progress(4, 0.0, io.StringIO())
    progress._began -= 30
    progress.finished("a", "valid")
    assert 89 < progress.seconds_left() < 95
