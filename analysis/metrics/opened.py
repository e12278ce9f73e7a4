"""The connections that a `command` flow opened between the two ends of the flow, and its figures from them.

Known are only the stations and the time, so every TCP and UDP four-tuple between their addresses counts that began after the
command, on any port, whoever opened it: several connections, subflows of MPTCP (each is a TCP connection, RFC 8684), QUIC. Not
its own are the packets of the routing protocol, and connections on the port of another flow at the same stations.

TCP is measured and checked as any flow is. Of UDP nothing is known but the datagram: `delivered` is payload that arrived,
retransmissions of QUIC (RFC 9002: new packets) included; a datagram is recognised at the other end by its IP identification,
length and first IDENTITY_BYTES bytes, and copies of one count once. Not modelled: data that MPTCP repeats on another subflow
count on both; ICMP, SCTP and packets to other stations count nowhere.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from analysis.captures.connections import Connection, uses_of
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks
from analysis.metrics.checks import Check, Unmeasured
from analysis.metrics.measured_flow import AIR, NS_PER_S, SILENCES, MeasuredFlow
from analysis.metrics.round_trip_times import round_trip_times_ns
from analysis.metrics.throughput import ReceiverView, SenderView, receiver_view, sender_view
from record.scenario import RunFlow
from scenarios.flows import FIRST_PORT
from traffic.shared.kind import Metric

# Within the snap length of 128 bytes, also of IPv6. QUIC's short header has at most 25 bytes (RFC 9000, 17.3); what follows it is
# encrypted.
IDENTITY_BYTES = 60


@dataclass(frozen=True)
class Opened:
    """One connection, named from the flow's source to its target, and its packets in the captures of both."""

    connection: Connection
    at_source: pl.DataFrame
    at_target: pl.DataFrame

    @property
    def name(self) -> str:
        """`tcp 40000 to 80`."""
        return f"{self.connection.protocol} {self.connection.source_port} to {self.connection.destination_port}"


@dataclass(frozen=True)
class Direction:
    """All connections in one direction, between two instants."""

    tcp: list[tuple[SenderView, ReceiverView]]
    datagrams: list[pl.DataFrame]
    begin_ns: int
    end_ns: int

    def acked_bps(self) -> float:
        """Rate of acknowledged bytes over all TCP connections (bit/s)."""
        return self._rate_bps(sum(sent.acked.rise(self.begin_ns, self.end_ns) for sent, _ in self.tcp))

    def delivered_bps(self) -> float:
        """In-order bytes of TCP and payload of datagrams that arrived."""
        arrived = [self._within(rows, "received_ns")["payload_bytes"].sum() for rows in self.datagrams]
        in_order = sum(received.delivered.rise(self.begin_ns, self.end_ns) for _, received in self.tcp)
        return self._rate_bps(in_order + sum(map(int, arrived)))

    def segments(self, *, repeated: bool = False) -> int:
        """TCP's segments sent, or only the retransmissions."""
        inside = ((sent.segments.within(self.begin_ns, self.end_ns), sent.segments.repeated) for sent, _ in self.tcp)
        return sum(int((mask & again if repeated else mask).sum()) for mask, again in inside)

    def arrivals_ns(self) -> list[int]:
        """The instants at which a connection had further in-order bytes at its receiver, or a datagram arrived."""
        arrived = [self._within(rows, "received_ns")["received_ns"].to_list() for rows in self.datagrams]
        return sorted(chain(*arrived, *(received.delivered.rises_ns(self.begin_ns, self.end_ns) for _, received in self.tcp)))

    def rtts_ns(self) -> np.ndarray:
        """See `round_trip_times_ns`."""
        samples = [round_trip_times_ns(sent, self.begin_ns, self.end_ns) for sent, _ in self.tcp]
        return np.concatenate(samples) if samples else np.empty(0, dtype=np.int64)

    @cached_property
    def sent(self) -> pl.DataFrame:
        """The datagrams that left in the window."""
        return pl.concat(self._within(rows, "sent_ns") for rows in self.datagrams)

    @cached_property
    def delays_ms(self) -> np.ndarray:
        """Of those that arrived."""
        arrived = self.sent.drop_nulls("received_ns")
        return ((arrived["received_ns"] - arrived["sent_ns"]) / 1e6).to_numpy()

    def loss(self) -> float | None:
        """The share of the sent datagrams that never arrived; None without any."""
        return (len(self.sent) - len(self.delays_ms)) / len(self.sent) if len(self.sent) else None

    def _rate_bps(self, payload_bytes: int) -> float:
        return payload_bytes * 8 * NS_PER_S / (self.end_ns - self.begin_ns)

    def _within(self, rows: pl.DataFrame, column: str) -> pl.DataFrame:
        return rows.filter(pl.col(column).is_between(self.begin_ns, self.end_ns, closed="left"))


class OpenedFlow(MeasuredFlow):
    """By what the flow opened. TCP's figures are None if only datagrams went, and theirs if only TCP did; without any connection
    the rates are 0."""

    def __post_init__(self) -> None:
        window = (self.begin_ns, self.end_ns)
        opened = opened_by(self.run, self.flow, self.found)
        self.count, protocols = len(opened), {each.connection.protocol for each in opened}
        self.connections = list(dict.fromkeys(each.connection for each in opened))  # ports may be used twice
        self.has_tcp, self.has_udp = "tcp" in protocols or not opened, "udp" in protocols
        self.there, self.back = _direction(opened, *window, back=False), _direction(opened, *window, back=True)
        self.found += _checked(self.flow.name, opened, *window)
        self.marks_ns = [self.begin_ns, *self.there.arrivals_ns(), self.end_ns]
        self.rtt_ms = np.concatenate([self.there.rtts_ns(), self.back.rtts_ns()]) / 1e6


def _of_tcp(of: Callable[[OpenedFlow], Any]) -> Callable[[OpenedFlow], Any]:
    return lambda flow: of(flow) if flow.has_tcp else None


def _of_udp(of: Callable[[OpenedFlow], Any]) -> Callable[[OpenedFlow], Any]:
    return lambda flow: of(flow) if flow.has_udp else None


OPENED = (
    Metric("acked_bps", "bit/s", "sum over the TCP connections of the flow ([below](#definitions)) of acknowledged payload "
           "bytes; `null` if there were only datagrams", _of_tcp(lambda flow: flow.there.acked_bps()), 0.0),
    Metric("delivered_bps", "bit/s", "TCP's in-order bytes and the payload of datagrams that arrived at the target, over all "
           "connections; 0 without any", lambda flow: flow.there.delivered_bps(), 0.0),
    Metric("goodput_bps", "bit/s", "as `delivered_bps`", lambda flow: flow.there.delivered_bps(), 0.0),
    Metric("back_delivered_bps", "bit/s", "as `delivered_bps`, from the target to the source, such as a download",
           lambda flow: flow.back.delivered_bps(), 0.0),
    AIR,
    Metric("connections", "connections", "TCP and UDP connections of the flow ([below](#definitions))", lambda flow: flow.count),
    Metric("segments", "segments", "TCP's data segments sent", _of_tcp(lambda flow: flow.there.segments())),
    Metric("retransmissions", "segments", "those of them that repeat bytes sent before",
           _of_tcp(lambda flow: flow.there.segments(repeated=True))),
    Metric("back_segments", "segments", "as `segments`, from the target to the source",
           _of_tcp(lambda flow: flow.back.segments()), column=None),
    Metric("back_retransmissions", "segments", "as `retransmissions`, from the target to the source",
           _of_tcp(lambda flow: flow.back.segments(repeated=True))),
    Metric("rtt_ms_mean", "ms", "mean round trip time of the segments of both directions",
           _of_tcp(lambda flow: _mean(flow.rtt_ms))),
    Metric("rtt_ms_p95", "ms", "95th percentile of these times", _of_tcp(lambda flow: _p95(flow.rtt_ms))),
    Metric("sent", "datagrams", "datagrams that the capture at the source has in the window",
           _of_udp(lambda flow: len(flow.there.sent))),
    Metric("loss", "1", "share of them that the target's capture lacks", _of_udp(lambda flow: flow.there.loss())),
    Metric("latency_ms_mean", "ms", "mean time of a datagram between the two captures",
           _of_udp(lambda flow: _mean(flow.there.delays_ms))),
    Metric("latency_ms_p95", "ms", "95th percentile of these times", _of_udp(lambda flow: _p95(flow.there.delays_ms))),
    Metric("back_sent", "datagrams", "as `sent`, from the target to the source", _of_udp(lambda flow: len(flow.back.sent)),
           column=None),
    Metric("back_loss", "1", "as `loss`, from the target to the source", _of_udp(lambda flow: flow.back.loss())),
    Metric("back_latency_ms_mean", "ms", "as `latency_ms_mean`, from the target to the source",
           _of_udp(lambda flow: _mean(flow.back.delays_ms))),
    Metric("back_latency_ms_p95", "ms", "as `latency_ms_p95`, from the target to the source",
           _of_udp(lambda flow: _p95(flow.back.delays_ms)), column=None),
    *SILENCES,
)  # fmt: skip


def opened_by(run: RunDirectory, flow: RunFlow, found: list[Check]) -> list[Opened]:
    """The connections of the flow in the order of their beginning. If another command runs between the same stations, those on
    neither port belong to no flow; a check reports it, which is no contradiction of the run's sources."""
    captures = [_between(run, flow, node) for node in (flow.source, flow.target)]
    begin_ns = round((run.report(flow).first_try_s or 0) * NS_PER_S)
    ends = {flow.source, flow.target}
    own, others = _ports(flow), [other for other in run.flows if other.name != flow.name and {other.source, other.target} == ends]
    foreign = {port for other in others for port in _ports(other)} - own
    rivals = [other.name for other in others if other.kind.measured == flow.kind.measured and _overlap(run, flow, other)]
    of_flow, unowned = [], 0
    for connection, first_ns in _four_tuples(run, flow, captures):
        ports = {(flow.source, connection.source_port), (flow.target, connection.destination_port)}
        if first_ns < begin_ns or ports & foreign:
            continue
        if rivals and not ports & own:
            unowned += 1
            continue
        of_flow.append((first_ns, connection))
    if unowned:
        text = f"{unowned} connections are on a port of none of {flow.name}, {', '.join(rivals)}, which run between the same"
        found.append(Unmeasured(f"{flow.name} connections", False, f"{text} stations at once: let each use its {{port}}"))
    ordered = (connection for _, connection in sorted(of_flow, key=lambda each: each[0]))
    return [opened for connection in ordered for opened in _opened(connection, *captures)]


def _between(run: RunDirectory, flow: RunFlow, node: str) -> pl.DataFrame:
    """The packets between the addresses of the flow's ends in the capture at one of them, without the routing protocol's."""
    packets = run.capture_of(flow, node, IDENTITY_BYTES)
    ends = [list(run.addresses(end)) for end in (flow.source, flow.target)]
    here, there = (pl.col("source").is_in(ends[0]), pl.col("destination").is_in(ends[1]))
    back = pl.col("source").is_in(ends[1]) & pl.col("destination").is_in(ends[0])
    packets = packets.filter(pl.col("protocol").is_in(["tcp", "udp"]) & ((here & there) | back))
    captured = [f"{end}.routing" for end in (flow.source, flow.target)]
    control = {
        port
        for name in captured
        if (run.path / "captures" / f"{name}.pcap").exists()
        for port in run.capture(name)["destination_port"].drop_nulls()
    }
    of_control = pl.col("destination_port").is_in(list(control)) & (pl.col("source_port") == pl.col("destination_port"))
    return packets.filter(~((pl.col("protocol") == "udp") & of_control))


def _four_tuples(run: RunDirectory, flow: RunFlow, captures: Sequence[pl.DataFrame]) -> Iterator[tuple[Connection, int]]:
    """Each connection, from source to target, with the time of its first packet in either capture."""
    firsts: dict[Connection, int] = {}
    sources = run.addresses(flow.source)
    columns = ("protocol", "source", "source_port", "destination", "destination_port")
    for packets in captures:
        for *names, t_ns in packets.group_by(columns).agg(pl.col("t_ns").min()).select(*columns, "t_ns").iter_rows():
            connection = Connection(*names)
            connection = connection if connection.source in sources else connection.reversed()
            firsts[connection] = min(t_ns, firsts.get(connection, t_ns))
    return iter(firsts.items())


def _opened(connection: Connection, at_source: pl.DataFrame, at_target: pl.DataFrame) -> list[Opened]:
    """The uses of a four-tuple in their order: a kernel may give a TCP port again."""
    if connection.protocol == "udp":
        both = [pl.concat([connection.forward(rows), connection.backward(rows)]).sort("t_ns") for rows in (at_source, at_target)]
        return [Opened(connection, *both)]
    there = dict(uses_of(at_target, connection))
    empty = at_target.clear()
    return [
        Opened(connection, packets, there[sequence][1] if sequence in there else empty)
        for sequence, (_, packets) in uses_of(at_source, connection)
    ]


def _direction(opened: Sequence[Opened], begin_ns: int, end_ns: int, *, back: bool) -> Direction:
    tcp, datagrams = [], []
    for each in opened:
        connection = each.connection.reversed() if back else each.connection
        sender, receiver = (each.at_target, each.at_source) if back else (each.at_source, each.at_target)
        if connection.protocol == "udp":
            datagrams.append(_datagrams(connection, sender, receiver))
        elif (views := _views(connection, sender, receiver)) is not None:
            tcp.append(views)
    return Direction(tcp, datagrams, begin_ns, end_ns)


def _views(connection: Connection, at_sender: pl.DataFrame, at_receiver: pl.DataFrame) -> tuple[SenderView, ReceiverView] | None:
    """None if no packet went in this direction."""
    isn = connection.initial_sequence(at_sender, at_receiver)
    return None if isn is None else (sender_view(at_sender, connection, isn), receiver_view(at_receiver, connection, isn))


def _datagrams(connection: Connection, at_sender: pl.DataFrame, at_receiver: pl.DataFrame) -> pl.DataFrame:
    """`payload_bytes`, `sent_ns` (None: the capture at the sender lacks it) and `received_ns` (None: lost) of each datagram."""
    identity = ["identification", "payload_bytes", "stamp"]
    captured = [connection.forward(rows) for rows in (at_sender, at_receiver)]
    known = min(map(_known_bytes, captured))
    left, arrived = (
        rows.with_columns(pl.col("stamp").bin.slice(0, known))
        .unique(subset=identity, keep="first", maintain_order=True)
        .select(*identity, "t_ns")
        for rows in captured
    )
    both = left.rename({"t_ns": "sent_ns"}).join(
        arrived.rename({"t_ns": "received_ns"}), on=identity, how="full", coalesce=True, nulls_equal=True
    )
    return both.select("payload_bytes", "sent_ns", "received_ns")


def _known_bytes(packets: pl.DataFrame) -> int:
    """The bytes that every `stamp` has as far as its payload goes: less than IDENTITY_BYTES with a small snap length."""
    sizes = pl.col("stamp").bin.size()
    cut: int | None = packets.filter(sizes < pl.min_horizontal("payload_bytes", IDENTITY_BYTES)).select(sizes.min()).item()
    return IDENTITY_BYTES if cut is None else cut


def _checked(flow: str, opened: Sequence[Opened], begin_ns: int, end_ns: int) -> list[Check]:
    """The checks of a TCP flow, of every connection and direction; and that no datagram arrived that never left. One line for
    each check, which names the connections that fail it."""
    wrong: dict[str, list[str]] = {f"{flow} capture-complete": [], f"{flow} acked-delivered": []}
    unsent = []
    for each in opened:
        for connection, sender, receiver in (
            (each.connection, each.at_source, each.at_target),
            (each.connection.reversed(), each.at_target, each.at_source),
        ):
            if connection.protocol == "udp":
                alien = _datagrams(connection, sender, receiver)["sent_ns"].null_count()
                unsent += [f"{each.name}: {alien} datagrams arrived that never left"] if alien else []
            elif (views := _views(connection, sender, receiver)) is not None:
                for check in (checks.capture_complete(flow, *views), checks.acked_delivered(flow, *views, begin_ns, end_ns)):
                    wrong[check.name] += [f"{each.name}: {check.detail}"] if not check.ok else []
    protocols = [each.connection.protocol for each in opened]
    lines = wrong if "tcp" in protocols else {}
    lines |= {f"{flow} datagrams-left": unsent} if "udp" in protocols else {}
    return [Check(name, not failed, checks.named(failed, f"{len(opened)} connections agree")) for name, failed in lines.items()]


def _ports(flow: RunFlow) -> set[tuple[str, int]]:
    """The ports that the flow has at its target: its own, and the one that its server names."""
    ready = dict(flow)["ready_port"]
    return {(flow.target, port) for port in (FIRST_PORT + int(flow.name.removeprefix("flow")) - 1, ready) if port}


def _overlap(run: RunDirectory, one: RunFlow, other: RunFlow) -> bool:
    spans = [(each.start, each.start + run.window_s(each)[1]) for each in (one, other)]
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


def _p95(values: np.ndarray) -> float | None:
    return float(np.quantile(values, 0.95)) if values.size else None
