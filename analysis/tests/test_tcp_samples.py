"""Stretches of a connection in which a layer and not the kernel sent, from the events of tcp.csv."""

import polars as pl

from analysis.captures.tcp_samples import fixed_rtos, held_from, mean_held, stand_bys


def rows(*of: tuple[int, str, str]) -> pl.DataFrame:
    return pl.DataFrame(of, schema=["t_ns", "event", "detail"], orient="row")


def test_reno_f_sends_from_the_second_timeout_in_a_row_to_the_next_segment_received():
    samples = rows(
        (1, "algorithm", "reno-f(reno)"), (2, "", ""), (5, "timeout", "1"), (9, "", ""), (20, "timeout", "1"),
        (22, "timeout", "2"), (24, "timeout", "3"), (31, "", ""), (40, "timeout", "1"), (42, "timeout", "2"),
    )  # fmt: skip
    assert fixed_rtos(samples) == [(22, 31), (42, None)]


def test_timeouts_of_other_tcps_are_the_kernels_own():
    assert fixed_rtos(rows((1, "algorithm", "reno"), (5, "timeout", "1"), (9, "timeout", "2"))) == []


def test_a_stand_by_lasts_until_the_repair_or_is_open():
    samples = rows((3, "stand-by", "unreachable"), (4, "probe", "seq=1"), (7, "repair", "ack"), (9, "stand-by", "held"))
    assert stand_bys(samples) == [(3, 7), (9, None)]


def test_the_mean_window_is_weighted_by_the_time_for_which_it_was_held():
    """A row has the window before its ACK is processed: 2 until 10, 4 until 20, 3 until 40, and that is the last known."""
    table = pl.DataFrame(
        [(10, "", 2), (20, "", 4), (40, "", 3)], schema=["t_ns", "event", "snd_cwnd"], orient="row"
    )  # fmt: skip
    held = held_from(table, "snd_cwnd")
    assert mean_held(held, 10, 50) == (10 * 4 + 30 * 3) / 40  # the first value's beginning is unknown
    assert mean_held(held, 15, 30) == (5 * 4 + 10 * 3) / 15
    assert mean_held(held, 0, 10) is None and mean_held([], 0, 10) is None
