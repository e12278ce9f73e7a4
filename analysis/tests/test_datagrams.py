"""Metrics of datagrams from captures of a few of them, with each number by hand."""

import struct

import pytest

from analysis.captures.connections import Connection
from analysis.captures.pcap import table_of
from analysis.metrics.datagrams import Schedule, datagram_metrics, datagrams_of, interarrival_jitters_ms
from analysis.tests.craft import MS, T0_NS, udp

PORTS = (50000, 5202)


def test_the_interarrival_jitter_of_rfc_3550_by_hand():
    """Sent each 20 ms, delays 10, 14, 12, 20, 20 ms: |D| = 4, 2, 8, 0 ms. J = 4/16 = 0.25, then 0.25 + (2 - 0.25)/16 = 0.359375,
    + (8 - 0.359375)/16 = 0.8369140625, + (0 - 0.8369140625)/16 = 0.78460693359375."""
    by_hand = [0.25, 0.359375, 0.8369140625, 0.78460693359375]
    assert interarrival_jitters_ms([10, 14, 12, 20, 20]) == by_hand
    assert interarrival_jitters_ms([10]) == interarrival_jitters_ms([]) == []


def test_jitters_and_quantiles_of_five_datagrams():
    """The five of the test above, through captures."""
    sent_ms, delays_ms = [0, 20, 40, 60, 80], [10, 14, 12, 20, 20]
    measured = measured_of(captured(sent_ms, delays_ms))
    assert measured.jitter_rfc3550_ms == 0.78460693359375
    assert measured.jitter_rfc3550_ms_mean == (0.25 + 0.359375 + 0.8369140625 + 0.78460693359375) / 4
    assert measured.jitter_ms == pytest.approx(((5.2**2 + 1.2**2 + 3.2**2 + 4.8**2 + 4.8**2) / 4) ** 0.5)  # mean 15.2
    # ranks 0.2, 2, 3.8 and 3.96 of 10, 12, 14, 20, 20
    quantiles = {"mean": 15.2, "p5": 10 + 0.2 * 2, "p50": 14, "p95": 20, "p99": 20, "max": 20}
    assert measured.latency_ms == pytest.approx(quantiles)
    assert (measured.delivery, measured.loss) == (1, 0)


def test_jitter_follows_the_order_of_arrival():
    """Sent at 0, 20 and 40 ms with delays 10, 50 and 5 ms, so that the third arrives at 45 ms, before the second at 70 ms:
    D = 5 - 10 = -5, then 50 - 5 = 45 ms. J = 5/16 = 0.3125, then 0.3125 + (45 - 0.3125)/16 = 3.10546875. A lost datagram
    takes no part."""
    measured = measured_of(captured([0, 20, 30, 40], [10, 50, None, 5]))
    assert (measured.jitter_rfc3550_ms, measured.delivery) == (3.10546875, 3 / 4)


def test_without_an_arrival_there_is_no_delay():
    measured = measured_of(captured([0, 20], [None, None]))
    assert set(measured.latency_ms.values()) == {None}
    assert (measured.jitter_ms, measured.jitter_rfc3550_ms, measured.jitter_rfc3550_ms_mean) == (None, None, None)
    assert (measured.delivery, measured.loss) == (0, 1)


def test_what_the_source_held_or_never_sent_counts_from_its_writing():
    """Written each 20 ms from 0 to 100 ms. The first two leave at 50 ms, when a route is found, and arrive 5 ms later; the third
    arrives 5 ms after its writing; the others never leave the source. The last is written after the window."""
    ends = captured([50, 51, 52], [5, 5, 5], written_ms=[0, 20, 47])
    schedule = Schedule(T0_NS, 0.02, count=6)
    measured = measured_of(ends, schedule)
    assert (measured.sent, measured.received, measured.delivery, measured.loss) == (5, 3, 3 / 5, 2 / 5)
    assert measured.latency_ms["max"] == 55 and measured.latency_ms["p50"] == 36
    records = datagrams_of(*ends, schedule)
    assert records["number"].to_list() == list(range(6))
    assert records["sent_ns"].null_count() == records["received_ns"].null_count() == records["bytes"].null_count() == 3
    assert [(t_ns - T0_NS) / MS for t_ns in records["written_ns"]] == [0, 20, 47, 60, 80, 100]


def test_a_datagram_counts_in_the_window_in_which_it_was_written():
    """Held from before the window's end until after it: it was offered in the window, and arrived."""
    measured = measured_of(captured([0, 150], [5, 5], written_ms=[0, 90]))
    assert (measured.sent, measured.received) == (2, 2)
    assert measured_of(captured([0, 150], [5, 5], written_ms=[0, 110])).sent == 1


def measured_of(ends, schedule=None):
    """The metrics from 0 to 100 ms of captures and connection."""
    _, receiver, connection = ends
    return datagram_metrics(datagrams_of(*ends, schedule), receiver, connection, T0_NS, T0_NS + 100 * MS)


def captured(sent_ms, delays_ms, written_ms=None):
    """The captures at both ends of datagrams with these times (written then too, if not said) and delays after the sending (None:
    lost), and their connection."""
    written_ms = written_ms or sent_ms
    stamps = [struct.pack("<QI", T0_NS + at * MS, number) for number, at in enumerate(written_ms)]
    sent = list(zip(sent_ms, stamps, strict=True))
    left = [udp(T0_NS + at * MS, 1, 2, PORTS, stamp, 100) for at, stamp in sent]
    arrived = [udp(T0_NS + (at + late) * MS, 1, 2, PORTS, stamp, 100)
               for (at, stamp), late in zip(sent, delays_ms, strict=True) if late is not None]  # fmt: skip
    tables = [
        table_of([(frame.t_ns, frame.data) for frame in sorted(frames, key=lambda frame: frame.t_ns)])
        for frames in (left, arrived)
    ]
    return *tables, Connection("udp", "10.0.0.1", PORTS[0], "10.0.0.2", PORTS[1])
