"""Metrics of a flow from captures, in the measured window. Each row of a tuple is a metric; tables, store and formats/results.md
follow from the rows.

A traffic kind selects one of MEASURED (`measured`, traffic/shared/kind.py): for one TCP connection, for datagrams, for
the connections that a command opened, for requests on any number of connections.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analysis.captures import tcp_samples
from analysis.captures.iperf import IperfReport
from analysis.captures.routing_notes import segments_given_up, too_big
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks
from analysis.metrics.datagrams import FOLDER, Schedule, datagram_metrics, datagrams_of, write_records
from analysis.metrics.exchanges import EXCHANGES, ExchangedFlow
from analysis.metrics.measured_flow import AIR, NS_PER_S, RATES, SILENCES, MeasuredFlow
from analysis.metrics.movement import MOVEMENT
from analysis.metrics.opened import OPENED, OpenedFlow
from analysis.metrics.reaction import reaction_s
from analysis.metrics.round_trip_times import round_trip_times_ns
from analysis.metrics.route_history import ROUTES
from analysis.metrics.throughput import Staircase, receiver_view, sender_view
from analysis.metrics.timeouts import timeouts_of
from record.scenario import RunFlow
from traffic.shared.datagrams import DatagramKind
from traffic.shared.kind import Kind, Metric

TCP_RTO_MIN_S = 0.2  # TCP_RTO_MIN of net/tcp.h


class TcpFlow(MeasuredFlow):
    """By the packets of its connection in the captures of both ends, and by tcp.csv."""

    def __post_init__(self) -> None:
        run, flow, report, begin_ns, end_ns = self.run, self.flow, self.report, self.begin_ns, self.end_ns
        (connection,) = self.connections
        at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
        isn = connection.initial_sequence(at_sender, at_receiver)
        assert isn is not None  # the flow has a first packet
        self.sender, self.receiver = sender_view(at_sender, connection, isn), receiver_view(at_receiver, connection, isn)
        self.found.append(checks.capture_complete(flow.name, self.sender, self.receiver))
        self.found.append(checks.acked_delivered(flow.name, self.sender, self.receiver, begin_ns, end_ns))
        self.samples = run.tcp_rows(flow, connection)
        if report:
            self.found.append(checks.iperf_delivered(flow.name, report, self.sender, self.receiver, flow.kind.preamble_bytes))
            unsent = segments_given_up(run.path, flow.source, connection) + too_big(run.path, flow.source)
            # iperf3 reports after the window, before the capture ends; a sender that sends nothing more has no packets until then
            counted_ns = begin_ns + round((report.counted_s - run.window_s(flow)[0]) * NS_PER_S)
            reported_ns = max([end_ns, counted_ns, *at_sender["t_ns"].tail(1)])
            layers, off = _layers_part(self.samples, reported_ns), _tries_while_off(run, flow, counted_ns)
            self.found.append(checks.iperf_retransmissions(flow.name, report, self.sender, unsent, layers, off))
        self.inside = self.sender.segments.within(begin_ns, end_ns)
        self.rtt_ms = round_trip_times_ns(self.sender, begin_ns, end_ns) / 1e6
        open_until_ns = min(end_ns, self.receiver.closed_ns or end_ns)  # what has been sent whole is not silent
        rises_ns = self.receiver.delivered.rises_ns(begin_ns, open_until_ns)
        self.marks_ns = [begin_ns, *rises_ns, max(begin_ns, open_until_ns)]
        self.timeouts = timeouts_of(self.samples, at_sender, at_receiver, connection, begin_ns, end_ns)

    def rate_bps(self, payload: Staircase) -> float:
        """Of the payload in the window."""
        return payload.rise(self.begin_ns, self.end_ns) * 8 / self.window_s

    def goodput_bps(self) -> float:
        """Without the bytes with which the sender opens the connection."""
        read = checks.application_bytes(self.receiver, self.begin_ns, self.end_ns, self.flow.kind.preamble_bytes)
        return read * 8 / self.window_s

    def cwnd_mean(self) -> float | None:
        """Over the time of the window."""
        return tcp_samples.mean_held(tcp_samples.held_from(self.samples, "snd_cwnd"), self.begin_ns, self.end_ns)

    def acked_bps_by_second(self) -> list[int]:
        """Payload bits acknowledged in each whole second from the flow's first packet to the window's end."""
        start_ns = self.begin_ns - round(self.run.window_s(self.flow)[0] * NS_PER_S)
        begins = range(start_ns, self.end_ns - NS_PER_S + 1, NS_PER_S)
        return [self.sender.acked.rise(begin, begin + NS_PER_S) * 8 for begin in begins]


IPERF3 = Metric("iperf3_bps", "bit/s", "result of the receiver in the program's own report, whole test: of iperf3; of `transfer` "
                "the bytes that its receiver read, from the flow's start to the last of them; of `cbr` and `vbr` the datagrams",
                lambda flow: flow.report and flow.report.received_bps, 0.0)  # fmt: skip
TCP = (
    Metric("acked_bps", "bit/s", "increase of the highest cumulative ACK at the sender, payload bytes",
           lambda tcp: tcp.rate_bps(tcp.sender.acked), 0.0),
    Metric("delivered_bps", "bit/s", "increase of the in-order payload bytes at the receiver",
           lambda tcp: tcp.rate_bps(tcp.receiver.delivered), 0.0),
    Metric("goodput_bps", "bit/s", "bytes that the receiver's TCP had in order for its application, by the capture at the "
           "receiver, without the 37 bytes with which iperf3 opens a connection", lambda tcp: tcp.goodput_bps(), 0.0),
    IPERF3,
    AIR,
    Metric("segments", "segments", "data segments sent", lambda tcp: int(tcp.inside.sum()), 0),
    Metric("retransmissions", "segments", "those of them that repeat bytes sent before",
           lambda tcp: int((tcp.inside & tcp.sender.segments.repeated).sum()), 0),
    Metric("rtt_ms_mean", "ms", "mean time from sending to the first ACK that covers the segment; no sample from an ACK that "
           "covers a retransmitted segment (Karn)", lambda tcp: float(tcp.rtt_ms.mean()) if tcp.rtt_ms.size else None),
    Metric("rtt_ms_p95", "ms", "95th percentile of these times",
           lambda tcp: float(np.quantile(tcp.rtt_ms, 0.95)) if tcp.rtt_ms.size else None),
    Metric("cwnd_mean", "segments", "mean of the congestion window over the window's time, by `tcp.csv`: each value counts as "
           "long as it was held ([tcp](tcp.md)); `null` without samples", lambda tcp: tcp.cwnd_mean()),
    Metric("timeouts", "timeouts", "expirations of the retransmission timer, by the `timeout` events of `tcp.csv`; `null` "
           "without that file", lambda tcp: tcp.timeouts["timeouts"]),
    Metric("spurious_timeouts", "timeouts", "those of them that waiting longer would have avoided (RFC 3522, 1), by the captures "
           "of both ends ([below](#definitions)); `null` over IPv6", lambda tcp: tcp.timeouts["spurious_timeouts"]),
    *SILENCES,
    *RATES,
    Metric("acked_bps_by_second", "bit/s", "list: payload bits acknowledged in each second after the flow's first packet",
           lambda tcp: tcp.acked_bps_by_second(), lambda run, flow, _report: [0] * int(run.window_s(flow)[1]), column=None),
    Metric("routing_resends", "segments", "segments that a routing daemon got back from a broken link and sent again (same IP "
           "identification; whole test); they are not retransmissions", lambda tcp: tcp.sender.routing_resends, column=None,
           always=False),
)  # fmt: skip


class DatagramFlow(MeasuredFlow):
    """By its datagrams in the captures of both ends. Writes the record of each datagram."""

    def __post_init__(self) -> None:
        run, flow, report, begin_ns, end_ns = self.run, self.flow, self.report, self.begin_ns, self.end_ns
        (connection,) = self.connections
        at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
        datagrams = datagrams_of(at_sender, at_receiver, connection, schedule_of(run, flow, report))
        self.window = datagram_metrics(datagrams, at_receiver, connection, begin_ns, end_ns)
        self.marks_ns = self.window.marks_ns
        write_records(run.path / FOLDER / f"{flow.name}.csv", datagrams, begin_ns, end_ns)
        if report:
            self.found.append(checks.iperf_datagrams(flow.name, report, at_receiver, connection))
        self.reaction = reaction_s(run, flow)
        if self.reaction is not None:
            self.found.append(self.reaction.check)

    def delivered_bps(self) -> float:
        """The receiver reads each datagram when it arrives."""
        return self.window.delivered_bytes * 8 / self.window_s


def schedule_of(run: RunDirectory, flow: RunFlow, report: IperfReport | None) -> Schedule | None:
    """The schedule of the flow's datagrams; None if its generator has not reported."""
    counts = report.content.get("end", {}).get("sum_sent", {}) if report else {}
    if report is None or report.first_try_s is None or "refused" not in counts or not isinstance(flow.kind, DatagramKind):
        return None
    interval_s, at_once = flow.kind.interval_s(dict(flow)), flow.kind.at_once(dict(flow))
    return Schedule(round(report.first_try_s * NS_PER_S), interval_s, counts["packets"] + counts["refused"], at_once)


def _sent_of_nothing(run: RunDirectory, flow: RunFlow, report: IperfReport) -> int:
    """The datagrams written in the window of a flow of which none left its station: they are lost."""
    schedule = schedule_of(run, flow, report)
    if schedule is None:
        return 0
    begin_ns, end_ns = (schedule.first_ns + round(edge_s * NS_PER_S) for edge_s in run.window_s(flow))
    return sum(begin_ns <= schedule.written_ns(number) < end_ns for number in range(schedule.count))


DATAGRAMS = (
    Metric("delivered_bps", "bit/s", "payload of the datagrams that arrived", lambda udp: udp.delivered_bps(), 0.0),
    Metric("goodput_bps", "bit/s", "as `delivered_bps`: the receiver reads each datagram when it arrives",
           lambda udp: udp.delivered_bps(), 0.0),
    IPERF3,
    AIR,
    Metric("sent", "datagrams", "datagrams that the application wrote in the window: also those that the source's routing daemon "
           "held or dropped and those that the kernel refused", lambda udp: udp.window.sent, _sent_of_nothing),
    Metric("loss", "1", "share of them that never arrived", lambda udp: udp.window.loss,
           lambda *flow: 1.0 if _sent_of_nothing(*flow) else None),
    Metric("latency_ms_mean", "ms", "mean delay from the writing to the arrival", lambda udp: udp.window.latency_ms["mean"]),
    Metric("latency_ms_p95", "ms", "95th percentile of the delay", lambda udp: udp.window.latency_ms["p95"]),
    Metric("jitter_ms", "ms", "standard deviation of the delay", lambda udp: udp.window.jitter_ms),
    Metric("reaction_s", "s", "if the scenario has a `cut`: time from the last datagram delivered over the relay that is cut off "
           "to the first over another relay, by the air log ([below](#definitions)); `null` and a failed check if there is none",
           lambda udp: udp.reaction.seconds if udp.reaction else None),
    *SILENCES,
    Metric("delivery", "1", "delivered fraction, 1 - `loss`", lambda udp: udp.window.delivery,
           lambda *flow: 0.0 if _sent_of_nothing(*flow) else None),
    Metric("latency_ms_p5", "ms", "5th percentile of the delay", lambda udp: udp.window.latency_ms["p5"]),
    Metric("latency_ms_p50", "ms", "median of the delay", lambda udp: udp.window.latency_ms["p50"]),
    Metric("latency_ms_p99", "ms", "99th percentile of the delay", lambda udp: udp.window.latency_ms["p99"]),
    Metric("latency_ms_max", "ms", "maximum of the delay", lambda udp: udp.window.latency_ms["max"]),
    Metric("jitter_rfc3550_ms", "ms", "interarrival jitter of RFC 3550, 6.4.1, after the last arrival ([below](#definitions))",
           lambda udp: udp.window.jitter_rfc3550_ms),
    Metric("jitter_rfc3550_ms_mean", "ms", "mean of its values from the second arrival on",
           lambda udp: udp.window.jitter_rfc3550_ms_mean),
    *RATES,
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A way of measuring, and its metrics in the order of metrics.json."""

    flow: type[MeasuredFlow]
    metrics: tuple[Metric, ...]
    on_time: bool = False  # its packets are written on time, whether they can leave or not
    many: bool = False  # on any number of connections


MEASURED = {
    "tcp": Measured(TcpFlow, TCP),
    "datagrams": Measured(DatagramFlow, DATAGRAMS, on_time=True),
    "opened": Measured(OpenedFlow, OPENED, many=True),
    "exchanges": Measured(ExchangedFlow, EXCHANGES, many=True),
}


def metrics_of(kind: Kind[Any]) -> tuple[Metric, ...]:
    """The metrics of a flow of the kind, other than those of movement and routes, in the order of metrics.json."""
    return (*(MEASURED[kind.measured].metrics if kind.measured else ()), *kind.own_metrics)


def metrics_of_captures() -> Iterable[Metric]:
    """Every metric that captures and the run's other files give."""
    return (metric for metrics in (*(way.metrics for way in MEASURED.values()), MOVEMENT, ROUTES) for metric in metrics)


def _layers_part(rows: pl.DataFrame, end_ns: int) -> checks.LayersPart:
    """Actions of the connection's layers recorded in tcp.csv; a stand-by that never ended lasts to `end_ns`."""
    quiet = [*tcp_samples.stand_bys(rows), *tcp_samples.fixed_rtos(rows)]
    spans = [(begin_ns, max(begin_ns, end_ns) if until_ns is None else until_ns) for begin_ns, until_ns in quiet]
    probes = len(rows.filter(rows["event"] == "probe"))
    return checks.LayersPart(probes, tuple((until_ns - begin_ns) / NS_PER_S for begin_ns, until_ns in spans))


def _tries_while_off(run: RunDirectory, flow: RunFlow, counted_ns: int) -> int:
    """Upper bound of the retransmissions that the kernel counted while the sender's radio was off, up to `counted_ns`, by the
    run's events: one for each minimum RTO, whatever the backoff."""
    off_ns, since_ns = 0, None
    for row in [row for row in run.events if row["event"] in ("power", "cut") and row["station"] == flow.source]:
        at_ns = run.epoch_ns + round(float(row["t_s"]) * NS_PER_S)
        if row["detail"].startswith("off"):
            since_ns = at_ns if since_ns is None else since_ns
        elif since_ns is not None:
            off_ns, since_ns = off_ns + at_ns - since_ns, None
    off_ns += max(0, counted_ns - since_ns) if since_ns is not None else 0
    if off_ns == 0:
        return 0
    return int(off_ns / NS_PER_S / min(TCP_RTO_MIN_S, run.scenario.rto_min or TCP_RTO_MIN_S)) + 1
