"""The throughput of transfers of which every number can be calculated by hand."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.connections import Connection, find_connections
from analysis.captures.pcap import SCHEMA, read_capture
from analysis.metrics.round_trip_times import round_trip_times_ns
from analysis.metrics.throughput import receiver_view, sender_view
from analysis.tests import craft
from analysis.tests.craft import MS, T0_NS, Transfer

CONNECTION = Connection("tcp", "10.0.0.1", 40000, "10.0.0.2", 5201)
TRIP = 10 * MS
LONG_NS = 1000_000 * MS


def _table(folder: Path, frames: list[craft.Frame]) -> pl.DataFrame:
    path = folder / "capture.pcap"
    path.write_bytes(craft.capture_bytes(frames))
    return read_capture(path)


def _views(folder: Path, transfer: Transfer):
    left, right = _table(folder, transfer.at_source), _table(folder, transfer.at_destination)
    isn = CONNECTION.initial_sequence(left, right)
    return sender_view(left, CONNECTION, isn), receiver_view(right, CONNECTION, isn)


def _steady(segments: int, isn: int = 1000, payload: int = 100) -> Transfer:
    """A segment every 20 ms from 0 on, there in 10 ms, its ACK back 10 ms later."""
    transfer = Transfer(1, 2, isn)
    transfer.open(-100 * MS, TRIP)
    for number in range(segments):
        transfer.segment(20 * number * MS, number * payload, payload, TRIP)
        transfer.ack(20 * number * MS + TRIP, (number + 1) * payload, TRIP)
    return transfer


@pytest.mark.parametrize("isn", [1000, 2**32 - 1, 2**32 - 2, 2**32 - 450, 2**31 - 450])
def test_counts_do_not_depend_on_where_sequence_numbers_begin(tmp_path, isn):
    sender, receiver = _views(tmp_path, _steady(10, isn))
    assert (sender.acked.total, receiver.delivered.total) == (1000, 1000)
    assert sender.segments.start.tolist() == list(range(0, 1000, 100))
    assert (sender.unseen_bytes, receiver.unseen_bytes) == (0, 0)


def test_a_window_counts_the_acks_that_arrive_in_it_begin_included_end_not(tmp_path):
    sender, receiver = _views(tmp_path, _steady(10))
    # ACK k arrives at 20 k + 20 ms: in [40, 100) those of k = 1, 2, 3
    assert sender.acked.rise(T0_NS + 40 * MS, T0_NS + 100 * MS) == 300
    # segment k arrives at 20 k + 10 ms: in [30, 70) those of k = 1, 2
    assert receiver.delivered.rise(T0_NS + 30 * MS, T0_NS + 70 * MS) == 200


def test_the_fin_is_no_byte(tmp_path):
    transfer = _steady(3)
    transfer.close(200 * MS, 300, TRIP)
    sender, receiver = _views(tmp_path, transfer)
    assert (sender.acked.total, receiver.delivered.total) == (300, 300)


def test_an_old_ack_does_not_take_bytes_back(tmp_path):
    transfer = _steady(3)
    transfer.ack(100 * MS, 100, TRIP)
    sender, _ = _views(tmp_path, transfer)
    assert sender.acked.total == 300


def test_a_repeated_segment_is_a_retransmission_and_spoils_the_ack_that_covers_it(tmp_path):
    transfer = Transfer(1, 2, 77)
    transfer.open(-100 * MS, TRIP)
    transfer.segment(0, 0, 100, None)
    transfer.segment(5 * MS, 100, 100, TRIP)
    transfer.ack(15 * MS, 0, TRIP)  # duplicate: byte 0 is missing
    transfer.segment(300 * MS, 0, 100, TRIP)
    transfer.ack(310 * MS, 200, TRIP)  # covers the repeated one and the one that waited: no sample of either
    transfer.segment(320 * MS, 200, 100, TRIP)
    transfer.ack(330 * MS, 300, TRIP)
    sender, receiver = _views(tmp_path, transfer)
    assert sender.segments.repeated.tolist() == [False, False, True, False]
    assert round_trip_times_ns(sender, T0_NS, T0_NS + LONG_NS).tolist() == [20 * MS]
    assert receiver.delivered.before(T0_NS + 310 * MS) == 0  # the second segment alone is not in order
    assert receiver.delivered.total == 300


def test_segments_cut_differently_when_repeated_count_once(tmp_path):
    """Linux may join two small segments in one retransmission."""
    transfer = Transfer(1, 2, 77)
    transfer.open(-100 * MS, TRIP)
    transfer.segment(0, 0, 100, None)
    transfer.segment(MS, 100, 100, None)
    transfer.segment(300 * MS, 0, 200, TRIP)
    transfer.ack(310 * MS, 200, TRIP)
    sender, receiver = _views(tmp_path, transfer)
    assert sender.segments.repeated.tolist() == [False, False, True]
    assert receiver.delivered.total == 200
    assert round_trip_times_ns(sender, T0_NS, T0_NS + LONG_NS).size == 0


def test_a_segment_that_left_after_later_ones_is_told_from_a_repeated_one(tmp_path):
    """The second hundred bytes wait in a routing daemon until the third have left; the first hundred are sent twice."""
    transfer = Transfer(1, 2, 77)
    transfer.open(-100 * MS, TRIP)
    for at_ms, first in ((0, 0), (1, 200), (2, 100), (300, 0)):
        transfer.segment(at_ms * MS, first, 100, None)
    sender, _ = _views(tmp_path, transfer)
    assert sender.segments.repeated.tolist() == [False, False, True, True]
    assert sender.segments.late == 1


def test_packets_lost_by_the_sender_s_capture_are_counted_and_do_not_change_the_throughput(tmp_path):
    transfer = _steady(10)
    transfer.at_source = [frame for frame in transfer.at_source if frame.t_ns != 60 * MS or frame.ip_bytes == 40]
    sender, _ = _views(tmp_path, transfer)
    assert sender.unseen_bytes == 100  # segment 3, sent at 60 ms
    assert sender.acked.total == 1000


def test_packets_lost_by_the_receiver_s_capture_are_counted_and_do_not_stop_its_count(tmp_path):
    transfer = _steady(10)
    transfer.at_destination = [frame for frame in transfer.at_destination if frame.t_ns != 70 * MS or frame.ip_bytes == 40]
    _, receiver = _views(tmp_path, transfer)
    assert receiver.unseen_bytes == 100
    assert receiver.delivered.total == 1000


def test_a_capture_that_missed_the_syn_still_counts_from_the_first_segment(tmp_path):
    transfer = _steady(10, isn=2**32 - 50)
    transfer.at_source = [frame for frame in transfer.at_source if frame.t_ns >= 0]
    transfer.at_destination = [frame for frame in transfer.at_destination if frame.t_ns >= 0]
    sender, receiver = _views(tmp_path, transfer)
    assert (sender.acked.total, receiver.delivered.total) == (1000, 1000)


def test_without_packets_there_is_nothing():
    empty = pl.DataFrame(schema=SCHEMA)
    assert CONNECTION.initial_sequence(empty) is None
    assert CONNECTION.start_ns(empty) is None
    sender, receiver = sender_view(empty, CONNECTION, 0), receiver_view(empty, CONNECTION, 0)
    assert (sender.acked.total, receiver.delivered.total, sender.largest_flight_bytes) == (0, 0, 0)
    assert round_trip_times_ns(sender, 0, LONG_NS).size == 0


def test_the_data_connection_is_the_one_with_most_payload(tmp_path):
    control = craft.tcp(0, 1, 2, (39999, 5201), 1, 1, payload=300)
    table = _table(tmp_path, [control, *_steady(10).at_source])
    assert find_connections(table, "tcp", "10.0.0.1", "10.0.0.2")[0] == CONNECTION


def test_flows_between_the_same_hosts_are_kept_apart(tmp_path):
    other = Transfer(1, 2, 5, ports=(40001, 5202))
    other.open(-100 * MS, TRIP)
    other.segment(0, 0, 700, TRIP)
    other.ack(TRIP, 700, TRIP)
    table = _table(tmp_path, _steady(10).at_source + other.at_source)
    second = Connection("tcp", "10.0.0.1", 40001, "10.0.0.2", 5202)
    assert sender_view(table, CONNECTION, 1000).acked.total == 1000
    assert sender_view(table, second, 5).acked.total == 700


@settings(max_examples=60, deadline=None)
@given(isn=st.integers(0, 2**32 - 1), lost=st.lists(st.booleans(), min_size=1, max_size=30), data=st.data())
def test_any_pattern_of_loss_ends_with_all_bytes_counted(tmp_path_factory, isn, lost, data):
    """A sender that repeats each lost segment until it arrives: all bytes delivered and acknowledged, none twice."""
    transfer, now, arrived = Transfer(1, 2, isn), 0, 0
    transfer.open(-100 * MS, TRIP)
    repeats = 0
    for number, is_lost in enumerate(lost):
        length = data.draw(st.integers(1, 1460))
        if is_lost:
            transfer.segment(now, arrived, length, None)
            now, repeats = now + 200 * MS, repeats + 1
        transfer.segment(now, arrived, length, TRIP)
        arrived += length
        transfer.ack(now + TRIP, arrived, TRIP)
        now += data.draw(st.integers(1, 50)) * MS if number % 2 else 25 * MS
    sender, receiver = _views(tmp_path_factory.mktemp("transfer"), transfer)
    assert sender.acked.total == receiver.delivered.total == arrived
    assert int(sender.segments.repeated.sum()) == repeats
    assert (sender.unseen_bytes, receiver.unseen_bytes) == (0, 0)
    assert np.all(np.diff(receiver.delivered.values) >= 0)


def test_a_packet_that_routing_sends_again_is_no_retransmission_and_one_of_tcp_is(tmp_path):
    transfer = _steady(4)
    left = (
        _table(tmp_path, transfer.at_source)
        .with_row_index("identification_")
        .with_columns(pl.col("identification_").cast(pl.Int32).add(1).alias("identification"))
    )
    data = left.filter(pl.col("payload_bytes") > 0)[1]
    again = data.with_columns(pl.col("t_ns") + 5 * MS)
    by_tcp = again.with_columns(pl.lit(999, pl.Int32).alias("identification"))
    isn = CONNECTION.initial_sequence(left)
    by_routing = sender_view(pl.concat([left, again]).sort("t_ns"), CONNECTION, isn)
    retransmitted = sender_view(pl.concat([left, by_tcp]).sort("t_ns"), CONNECTION, isn)
    assert (by_routing.routing_resends, int(by_routing.segments.repeated.sum())) == (1, 0)
    assert (retransmitted.routing_resends, int(retransmitted.segments.repeated.sum())) == (0, 1)
