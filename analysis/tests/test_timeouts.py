"""Timeouts: needed ones, and spurious ones of a delay, by crafted captures of both ends."""

import struct

import polars as pl
import pytest

from analysis.captures.connections import Connection
from analysis.captures.pcap import table_of
from analysis.metrics.timeouts import timeouts_of
from analysis.tests.craft import MS, Frame, over_ipv6, tcp

PORTS = (40000, 5201)
CONNECTION = Connection("tcp", "10.0.0.1", PORTS[0], "10.0.0.2", PORTS[1])
FIRST = 2**32 - 500  # its segment ends after the numbers begin again
SIZE = 1000
TRIP_NS = 10 * MS
RTO_NS = 300 * MS


class Ends:
    """Captures at both ends; each packet has an IP identification of its own, as the kernel gives it."""

    def __init__(self) -> None:
        self.at: dict[int, list[Frame]] = {1: [], 2: []}
        self.packets = 0

    def data(self, t_ns: int, arrives_ns: int | None, sequence: int = FIRST) -> None:
        self._travel(tcp(t_ns, 1, 2, PORTS, sequence, 1, SIZE), arrives_ns)

    def ack(self, t_ns: int, arrives_ns: int | None, acknowledged: int = FIRST + SIZE) -> None:
        self._travel(tcp(t_ns, 2, 1, PORTS[::-1], 1, acknowledged), arrives_ns)

    def _travel(self, frame: Frame, arrives_ns: int | None) -> None:
        self.packets += 1
        named = frame.data[:18] + struct.pack("!H", self.packets) + frame.data[20:]
        source = frame.data[11]
        self.at[source].append(Frame(frame.t_ns, named, frame.ip_bytes))
        if arrives_ns is not None:
            self.at[3 - source].append(Frame(arrives_ns, named, frame.ip_bytes))

    def measured(self, *timeouts_ns: int, ipv6: bool = False) -> tuple[int | None, int | None]:
        """Of [0, 10 s)."""
        captures = [
            table_of((frame.t_ns, (over_ipv6(frame) if ipv6 else frame).data) for frame in self.at[number]) for number in (1, 2)
        ]
        rows = [(t_ns, "timeout", FIRST, (FIRST + SIZE) % 2**32) for t_ns in timeouts_ns] + [(0, "", FIRST, FIRST)]
        table = pl.DataFrame(rows, schema=["t_ns", "event", "snd_una", "snd_nxt"], orient="row")
        connection = Connection("tcp", *(("fd6d:616e:6574::1", PORTS[0], "fd6d:616e:6574::2", PORTS[1]))) if ipv6 else CONNECTION
        return tuple(timeouts_of(table, *captures, connection, 0, 10_000 * MS).values())


@pytest.fixture
def ends() -> Ends:
    return Ends()


def test_a_timeout_after_a_loss_was_needed(ends):
    ends.data(0, None)
    ends.data(RTO_NS, RTO_NS + TRIP_NS)
    ends.ack(RTO_NS + TRIP_NS, RTO_NS + 2 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 0)


def test_a_timeout_before_a_late_segment_arrives_is_spurious(ends):
    """The first copy waits on the way, as for a route, and arrives before the second."""
    ends.data(0, RTO_NS + TRIP_NS)
    ends.data(RTO_NS, RTO_NS + 2 * TRIP_NS)
    ends.ack(RTO_NS + TRIP_NS, RTO_NS + 3 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 1)


def test_a_timeout_while_the_acknowledgement_is_on_its_way_is_spurious_though_the_segment_sent_again_is_lost(ends):
    ends.data(0, TRIP_NS)
    ends.ack(TRIP_NS, RTO_NS + TRIP_NS)
    ends.data(RTO_NS, None)
    assert ends.measured(RTO_NS) == (1, 1)


def test_a_timeout_after_the_loss_of_the_acknowledgement_was_needed(ends):
    ends.data(0, TRIP_NS)
    ends.ack(TRIP_NS, None)
    ends.data(RTO_NS, RTO_NS + TRIP_NS)
    ends.ack(RTO_NS + TRIP_NS, RTO_NS + 2 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 0)


def test_the_second_of_two_timeouts_is_spurious_if_the_first_one_s_segment_was_only_late(ends):
    """Backed off, the second comes two RTOs after the first (RFC 6298, 5.5)."""
    ends.data(0, None)
    ends.data(RTO_NS, 3 * RTO_NS + TRIP_NS)
    ends.data(3 * RTO_NS, 3 * RTO_NS + 2 * TRIP_NS)
    ends.ack(3 * RTO_NS + TRIP_NS, 3 * RTO_NS + 3 * TRIP_NS)
    assert ends.measured(RTO_NS, 3 * RTO_NS) == (2, 1)


def test_timeouts_of_an_outage_were_needed(ends):
    """Of three copies the last arrives, RTO (1 + 2) after the first timeout (RFC 6298, 5.5)."""
    ends.data(0, None)
    ends.data(RTO_NS, None)
    ends.data(3 * RTO_NS, 3 * RTO_NS + TRIP_NS)
    ends.ack(3 * RTO_NS + TRIP_NS, 3 * RTO_NS + 2 * TRIP_NS)
    assert ends.measured(RTO_NS, 3 * RTO_NS) == (2, 0)


def test_a_timeout_while_a_routing_daemon_holds_the_segment_is_spurious(ends):
    """Both copies leave when there is a route, the older first; both interface's captures are after the timeout."""
    ends.data(2 * RTO_NS, 2 * RTO_NS + TRIP_NS)
    ends.data(2 * RTO_NS + MS, 2 * RTO_NS + 2 * TRIP_NS)
    ends.ack(2 * RTO_NS + TRIP_NS, 2 * RTO_NS + 2 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 1)


def test_a_timeout_while_the_daemon_holds_a_segment_that_it_loses_was_needed(ends):
    ends.data(2 * RTO_NS, None)
    ends.data(2 * RTO_NS + MS, 2 * RTO_NS + 2 * TRIP_NS)
    ends.ack(2 * RTO_NS + 2 * TRIP_NS, 2 * RTO_NS + 3 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 0)


def test_a_duplicate_acknowledgement_decides_nothing(ends):
    ends.data(0, None)
    ends.ack(TRIP_NS, RTO_NS + MS, acknowledged=FIRST)
    ends.data(RTO_NS, RTO_NS + TRIP_NS)
    ends.ack(RTO_NS + TRIP_NS, RTO_NS + 2 * TRIP_NS)
    assert ends.measured(RTO_NS) == (1, 0)


def test_nothing_arrives_after_the_last_timeout(ends):
    ends.data(0, None)
    ends.data(RTO_NS, None)
    assert ends.measured(RTO_NS) == (1, 0)
    assert ends.measured() == (0, 0)


def test_packets_of_ipv6_cannot_be_told_apart(ends):
    ends.data(0, None)
    ends.data(RTO_NS, RTO_NS + TRIP_NS)
    assert ends.measured(RTO_NS, ipv6=True) == (1, None)


def test_without_samples_nothing_is_known():
    assert set(timeouts_of(pl.DataFrame(), *[table_of([])] * 2, CONNECTION, 0, 1).values()) == {None}
