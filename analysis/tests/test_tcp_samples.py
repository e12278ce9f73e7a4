"""Stretches of a connection in which a layer and not the kernel sent, from the events of tcp.csv."""

import polars as pl

from analysis.tcp_samples import fixed_rtos, stand_bys


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
