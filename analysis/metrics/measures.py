"""Metrics of a flow from captures, in the measured window: for TCP connections and for datagrams.

A traffic kind selects one of the two (`measured`, scenarios/traffic/shared/kind.py, which also has the names and units of the
metrics); formats/results.md defines them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analysis.captures import tcp_samples
from analysis.captures.connections import Connection
from analysis.captures.iperf import IperfReport
from analysis.captures.routing_notes import segments_given_up, too_big
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks
from analysis.metrics.checks import Check
from analysis.metrics.datagrams import (
    FOLDER,
    Schedule,
    datagram_metrics,
    datagrams_of,
    longest_silence_s,
    silence_s,
    write_records,
)
from analysis.metrics.exchanges import measure_exchanges
from analysis.metrics.opened import measure_opened
from analysis.metrics.reaction import reaction_s
from analysis.metrics.round_trip_times import round_trip_times_ns
from analysis.metrics.throughput import Staircase, initial_sequence, receiver_view, sender_view
from analysis.metrics.timeouts import timeouts_of
from record.scenario import Flow

NS_PER_S = 1_000_000_000
TCP_RTO_MIN_S = 0.2  # TCP_RTO_MIN of net/tcp.h


@dataclass(frozen=True)
class Measure:
    """`of_flow`: the metrics of a flow with packets. `of_nothing`: those other than rates that are known without packets."""

    of_flow: Callable[..., dict[str, Any]]
    of_nothing: Callable[[RunDirectory, Flow, IperfReport], dict[str, Any]]
    on_time: bool = False  # its packets are written on time, whether they can leave or not


def measure_tcp(
    run: RunDirectory, flow: Flow, connection: Connection, report: IperfReport | None,
    begin_ns: int, end_ns: int, found: list[Check],
) -> dict[str, Any]:  # fmt: skip
    """Rates, segments, retransmissions and round trips between two instants (CLOCK_REALTIME, ns); adds to the checks `found`."""
    at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
    isn = initial_sequence(connection, at_sender, at_receiver)
    sender, receiver = sender_view(at_sender, connection, isn), receiver_view(at_receiver, connection, isn)
    found.append(checks.capture_complete(flow.name, sender, receiver))
    found.append(checks.acked_delivered(flow.name, sender, receiver, begin_ns, end_ns))
    samples = _samples(run, flow, connection)
    if report:
        found.append(checks.iperf_delivered(flow.name, report, sender, receiver, flow.kind.preamble_bytes))
        unsent = segments_given_up(run.path, flow.source, connection) + too_big(run.path, flow.source)
        reported_ns = max([end_ns, *at_sender["t_ns"].tail(1)])  # iperf3 reports after the window, at most when the capture ends
        layers, off = _layers_part(samples, reported_ns), _tries_while_off(run, flow, report, begin_ns)
        found.append(checks.iperf_retransmissions(flow.name, report, sender, unsent, layers, off))
    window_s = (end_ns - begin_ns) / 1e9
    inside = sender.segments.within(begin_ns, end_ns)
    rtt_ms = round_trip_times_ns(sender, begin_ns, end_ns) / 1e6
    open_until_ns = min(end_ns, receiver.closed_ns or end_ns)  # what has been sent whole is not silent
    marks_ns = [begin_ns, *receiver.delivered.rises_ns(begin_ns, open_until_ns), max(begin_ns, open_until_ns)]
    return {
        "acked_bps": sender.acked.rise(begin_ns, end_ns) * 8 / window_s,
        "delivered_bps": receiver.delivered.rise(begin_ns, end_ns) * 8 / window_s,
        "goodput_bps": checks.application_bytes(receiver, begin_ns, end_ns, flow.kind.preamble_bytes) * 8 / window_s,
        "segments": int(inside.sum()),
        "retransmissions": int((inside & sender.segments.repeated).sum()),
        "routing_resends": sender.routing_resends,
        "rtt_ms_mean": float(rtt_ms.mean()) if rtt_ms.size else None,
        "rtt_ms_p95": float(np.quantile(rtt_ms, 0.95)) if rtt_ms.size else None,
        "cwnd_mean": tcp_samples.mean_held(tcp_samples.held_from(samples, "snd_cwnd"), begin_ns, end_ns),
        **timeouts_of(samples, at_sender, at_receiver, connection, begin_ns, end_ns),
        "silence_s": silence_s(marks_ns),
        "longest_silence_s": longest_silence_s(marks_ns),
        "acked_bps_by_second": _by_second(sender.acked, begin_ns - round(run.window_s(flow)[0] * NS_PER_S), end_ns),
    }


def measure_datagrams(
    run: RunDirectory, flow: Flow, connection: Connection, report: IperfReport | None,
    begin_ns: int, end_ns: int, found: list[Check],
) -> dict[str, Any]:  # fmt: skip
    """Rate, loss, delays and silences between two instants (CLOCK_REALTIME, ns); adds to the checks `found`, and writes the
    record of each datagram."""
    at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
    datagrams = datagrams_of(at_sender, at_receiver, connection, schedule_of(run, flow, report))
    measured = datagram_metrics(datagrams, at_receiver, connection, begin_ns, end_ns)
    write_records(run.path / FOLDER / f"{flow.name}.csv", datagrams, begin_ns, end_ns)
    if report:
        found.append(checks.iperf_datagrams(flow.name, report, at_receiver, connection))
    cut = reaction_s(run, flow)
    if cut is not None:
        found.append(cut.check)
    delivered_bps = measured.delivered_bytes * 8 / ((end_ns - begin_ns) / 1e9)
    return {
        "reaction_s": cut.seconds if cut else None,
        "delivered_bps": delivered_bps,
        "goodput_bps": delivered_bps,  # the receiver reads each datagram when it arrives
        "sent": measured.sent,
        "loss": measured.loss,
        "delivery": measured.delivery,
        **{f"latency_ms_{name}": value for name, value in measured.latency_ms.items()},
        "jitter_ms": measured.jitter_ms,
        "jitter_rfc3550_ms": measured.jitter_rfc3550_ms,
        "jitter_rfc3550_ms_mean": measured.jitter_rfc3550_ms_mean,
        "silence_s": measured.silence_s,
        "longest_silence_s": measured.longest_silence_s,
    }


def schedule_of(run: RunDirectory, flow: Flow, report: IperfReport | None) -> Schedule | None:
    """The schedule of the flow's datagrams; None if its generator has not reported."""
    counts = report.content.get("end", {}).get("sum_sent", {}) if report else {}
    if report is None or report.first_try_s is None or "refused" not in counts:
        return None
    interval_s = flow.kind.interval_s(dict(flow))
    return Schedule(round(report.first_try_s * NS_PER_S), interval_s, counts["packets"] + counts["refused"])


def datagrams_of_nothing(run: RunDirectory, flow: Flow, report: IperfReport) -> dict[str, Any]:
    """Metrics of a flow of which no datagram left its station: those written in the window are lost."""
    begin_s, end_s = run.window_s(flow)
    schedule = schedule_of(run, flow, report)
    sent = 0
    if schedule is not None:
        begin_ns, end_ns = (schedule.first_ns + round(edge_s * NS_PER_S) for edge_s in (begin_s, end_s))
        sent = sum(begin_ns <= schedule.written_ns(number) < end_ns for number in range(schedule.count))
    shares = {"delivery": 0.0, "loss": 1.0} if sent else {}
    return {"sent": sent, "silence_s": end_s - begin_s, "longest_silence_s": end_s - begin_s, **shares}


def _samples(run: RunDirectory, flow: Flow, connection: Connection) -> pl.DataFrame:
    """The connection's rows of tcp.csv; none without the file."""
    if not (run.path / "tcp.csv").exists():
        return pl.DataFrame(schema=tcp_samples.SCHEMA)
    return tcp_samples.of_connection(tcp_samples.read_samples(run.path / "tcp.csv"), flow.source, connection)


def _layers_part(rows: pl.DataFrame, end_ns: int) -> checks.LayersPart:
    """Actions of the connection's layers recorded in tcp.csv; a stand-by that never ended lasts to `end_ns`."""
    quiet = [*tcp_samples.stand_bys(rows), *tcp_samples.fixed_rtos(rows)]
    spans = [(begin_ns, max(begin_ns, end_ns) if until_ns is None else until_ns) for begin_ns, until_ns in quiet]
    probes = len(rows.filter(rows["event"] == "probe"))
    return checks.LayersPart(probes, tuple((until_ns - begin_ns) / NS_PER_S for begin_ns, until_ns in spans))


def _tries_while_off(run: RunDirectory, flow: Flow, report: IperfReport, begin_ns: int) -> int:
    """Upper bound of the retransmissions that the kernel counted while the sender's radio was off, by the run's events: one for
    each minimum RTO, whatever the backoff."""
    off_ns, since_ns = 0, None
    test_end_ns = begin_ns + round((report.test_s - run.window_s(flow)[0]) * NS_PER_S)
    for row in [row for row in run.events if row["event"] in ("power", "cut") and row["station"] == flow.source]:
        at_ns = run.epoch_ns + round(float(row["t_s"]) * NS_PER_S)
        if row["detail"].startswith("off"):
            since_ns = at_ns if since_ns is None else since_ns
        elif since_ns is not None:
            off_ns, since_ns = off_ns + at_ns - since_ns, None
    off_ns += max(0, test_end_ns - since_ns) if since_ns is not None else 0
    if off_ns == 0:
        return 0
    return int(off_ns / NS_PER_S / min(TCP_RTO_MIN_S, run.scenario.rto_min or TCP_RTO_MIN_S)) + 1


def _by_second(acked: Staircase, start_ns: int, end_ns: int) -> list[int]:
    """Payload bits acknowledged in each whole second from the flow's first packet to the window's end."""
    begins = range(start_ns, end_ns - NS_PER_S + 1, NS_PER_S)
    return [acked.rise(begin, begin + NS_PER_S) * 8 for begin in begins]


MEASURES = {
    "tcp": Measure(
        measure_tcp,
        lambda run, flow, _report: {
            "acked_bps_by_second": [0] * int(run.window_s(flow)[1]), "segments": 0, "retransmissions": 0,
            **dict.fromkeys(("silence_s", "longest_silence_s"), run.window_s(flow)[1] - run.window_s(flow)[0]),
        },
    ),
    "datagrams": Measure(measure_datagrams, datagrams_of_nothing, on_time=True),
}  # fmt: skip
# of flows with any number of connections: by run, flow and window
MEASURES_OF_MANY = {"exchanges": measure_exchanges, "opened": measure_opened}
