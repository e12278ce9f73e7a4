"""metrics.json of one run: what each flow achieved, what the air says, and whether the witnesses agree.

The definitions are those of formats/results.md. What cannot be measured is null, with a failed check that says
why; an analysis never stops at the first bad file, so that a campaign shows every run.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from analysis import checks, manifest, tcp_samples
from analysis.air import Matching, air_summary, match_deliveries
from analysis.checks import Check
from analysis.connections import Connection
from analysis.datagrams import datagram_metrics
from analysis.errors import AnalysisError
from analysis.files import write_whole
from analysis.iperf import IperfReport
from analysis.movement import expectation, movement_metrics
from analysis.reaction import reaction_s
from analysis.routing_notes import segments_given_up
from analysis.rundir import Flow, RunDirectory
from analysis.throughput import Staircase, initial_sequence, receiver_view, round_trip_times_ns, sender_view

FORMAT = "manet-metrics/1"
NS_PER_S = 1_000_000_000
LATE_S = 2.0
TCP_METRICS = (
    "acked_bps", "delivered_bps", "goodput_bps", "iperf3_bps", "air_bps", "segments", "retransmissions",
    "rtt_ms_mean", "rtt_ms_p95", "acked_bps_by_second",
)  # fmt: skip
UDP_METRICS = (
    "delivered_bps", "goodput_bps", "iperf3_bps", "air_bps", "sent", "loss", "latency_ms_mean", "latency_ms_p95",
    "jitter_ms", "reaction_s", "silence_s",
)  # fmt: skip


def analyse_run(run_dir: Path) -> dict[str, Any]:
    """Measure a run and write its metrics.json; returns what it wrote."""
    run = RunDirectory(Path(run_dir))
    found: list[Check] = []
    flows = {flow.name: _analyse_flow(run, flow, found) for flow in _flows(run, found)}
    metrics: dict[str, Any] = {"format": FORMAT, "flows": flows, "air": _air(run, flows, found)}
    metrics["checks"] = [check.as_dict() for check in found]
    write_whole(run.path / "metrics.json", json.dumps(metrics, indent=1) + "\n")
    manifest.enter(run.path, "metrics.json")
    return metrics


def _flows(run: RunDirectory, found: list[Check]) -> list[Flow]:
    """The scenario's flows; none for a run that ended before it wrote its scenario."""
    try:
        return run.flows
    except AnalysisError as problem:
        found.append(Check("scenario readable", False, str(problem)))
        return []


def _analyse_flow(run: RunDirectory, flow: Flow, found: list[Check]) -> dict[str, Any]:
    """The flow's entry of `flows`."""
    names = UDP_METRICS if flow.traffic == "cbr" else TCP_METRICS
    entry: dict[str, Any] = {"traffic": flow.traffic, "from": flow.source, "to": flow.target}
    entry |= dict.fromkeys(("source_port", "destination_port", "start_ns", "window_s", *names))
    try:
        found += [check for check in [expectation(run, flow)] if check]
        report = _report(run, flow, found)
        if report is not None and not report.connected:
            return entry | _nothing_carried(run, flow, report)
        connection = run.connection(flow)
        connected_ns = connection.start_ns(run.capture_of(flow, flow.source)) if connection else None
        if connected_ns is None and report is not None and _never_on_the_air(flow, report):
            return entry | _nothing_carried(run, flow, report)
        start_ns = _start_ns(report, connected_ns)
        if start_ns is None or connected_ns is None:
            raise AnalysisError(f"{run.path / 'captures' / flow.source}.pcap: no packet of {flow.name}; did it start?")
        warmup_s, duration_s = run.scenario["warmup"], run.scenario["duration"]
        begin_ns = start_ns + round(warmup_s * 1e9)
        end_ns = begin_ns + round(duration_s * 1e9)
        entry |= {"source_port": connection.source_port, "destination_port": connection.destination_port}
        entry |= {"start_ns": start_ns, "window_s": [warmup_s, warmup_s + duration_s]}
        measure = _measure_datagrams if flow.traffic == "cbr" else _measure_tcp
        entry |= measure(run, flow, connection, report, begin_ns, end_ns, found)
        if report is not None:
            found.append(checks.window_covered(flow.name, report, (end_ns - connected_ns) / 1e9))
            entry["iperf3_bps"] = report.received_bps
        entry |= movement_metrics(run, flow, begin_ns, end_ns, entry.get("acked_bps"))
        entry["air_bps"] = _air_rate(run, flow, connection, begin_ns, end_ns, found)
    except AnalysisError as problem:
        found.append(Check(f"{flow.name} readable", False, str(problem)))
    return entry


def _start_ns(report: IperfReport | None, connected_ns: int | None) -> int | None:
    """The flow's first packet; of one whose ends were apart at first (LATE_S: no handshake takes so long) its first try."""
    if connected_ns is None or report is None or report.first_try_s is None:
        return connected_ns
    first_ns = round(report.first_try_s * NS_PER_S)
    return first_ns if connected_ns - first_ns > LATE_S * NS_PER_S else connected_ns


def _never_on_the_air(flow: Flow, report: IperfReport) -> bool:
    """Of datagrams, of which no capture has one: the kernel took them, and looked in vain for the next hop's address."""
    return flow.traffic == "cbr" and report.first_try_s is not None and report.received_bytes == 0


def _nothing_carried(run: RunDirectory, flow: Flow, report: IperfReport) -> dict[str, Any]:
    """Of a flow whose ends were apart all its time: no connection or datagram, hence zeros, and nothing to check."""
    warmup_s, duration_s = run.scenario["warmup"], run.scenario["duration"]
    entry: dict[str, Any] = {"window_s": [warmup_s, warmup_s + duration_s]}
    entry["start_ns"] = start_ns = round(report.first_try_s * NS_PER_S) if report.first_try_s else None
    rates = {rate: 0.0 for rate in (UDP_METRICS if flow.traffic == "cbr" else TCP_METRICS) if rate.endswith("_bps")}
    if flow.traffic == "cbr":
        entry |= rates | {"sent": 0, "silence_s": duration_s}
    else:
        entry |= rates | {"acked_bps_by_second": [0] * int(warmup_s + duration_s), "segments": 0, "retransmissions": 0}
    if start_ns is None:
        return entry
    begin_ns = start_ns + round(warmup_s * NS_PER_S)
    return entry | movement_metrics(run, flow, begin_ns, begin_ns + round(duration_s * NS_PER_S), rates.get("acked_bps"))


def _measure_tcp(
    run: RunDirectory, flow: Flow, connection: Connection, report: IperfReport | None,
    begin_ns: int, end_ns: int, found: list[Check],
) -> dict[str, Any]:  # fmt: skip
    at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
    isn = initial_sequence(connection, at_sender, at_receiver)
    sender, receiver = sender_view(at_sender, connection, isn), receiver_view(at_receiver, connection, isn)
    found.append(checks.capture_complete(flow.name, sender, receiver))
    found.append(checks.acked_delivered(flow.name, sender, receiver, begin_ns, end_ns))
    if report:
        found.append(checks.iperf_delivered(flow.name, report, sender, receiver))
        unsent = segments_given_up(run.path, flow.source, connection)
        found.append(checks.iperf_retransmissions(flow.name, report, sender, unsent, _layers_part(run, flow, connection, end_ns)))
    window_s = (end_ns - begin_ns) / 1e9
    inside = sender.segments.within(begin_ns, end_ns)
    rtt_ms = round_trip_times_ns(sender, begin_ns, end_ns) / 1e6
    return {
        "acked_bps": sender.acked.rise(begin_ns, end_ns) * 8 / window_s,
        "delivered_bps": receiver.delivered.rise(begin_ns, end_ns) * 8 / window_s,
        "goodput_bps": checks.application_bytes(receiver, begin_ns, end_ns) * 8 / window_s,
        "segments": int(inside.sum()),
        "retransmissions": int((inside & sender.segments.repeated).sum()),
        "routing_resends": sender.routing_resends,
        "rtt_ms_mean": float(rtt_ms.mean()) if rtt_ms.size else None,
        "rtt_ms_p95": float(np.quantile(rtt_ms, 0.95)) if rtt_ms.size else None,
        "acked_bps_by_second": _by_second(sender.acked, begin_ns - round(run.scenario["warmup"] * NS_PER_S), end_ns),
    }


def _layers_part(run: RunDirectory, flow: Flow, connection: Connection, end_ns: int) -> checks.LayersPart:
    """What the connection's layers did, as far as tcp.csv tells; a stand-by that never ended lasts to the window's end."""
    if not (run.path / "tcp.csv").exists():
        return checks.LayersPart()
    rows = tcp_samples.of_connection(tcp_samples.read_samples(run.path / "tcp.csv"), flow.source, connection)
    quiet = [*tcp_samples.stand_bys(rows), *tcp_samples.fixed_rtos(rows)]
    spans = [(begin_ns, max(begin_ns, end_ns) if until_ns is None else until_ns) for begin_ns, until_ns in quiet]
    probes = len(rows.filter(rows["event"] == "probe"))
    return checks.LayersPart(probes, tuple((until_ns - begin_ns) / NS_PER_S for begin_ns, until_ns in spans))


def _by_second(acked: Staircase, start_ns: int, end_ns: int) -> list[int]:
    """Payload bits acknowledged in each whole second from the flow's first packet to the window's end."""
    begins = range(start_ns, end_ns - NS_PER_S + 1, NS_PER_S)
    return [acked.rise(begin, begin + NS_PER_S) * 8 for begin in begins]


def _measure_datagrams(
    run: RunDirectory, flow: Flow, connection: Connection, report: IperfReport | None,
    begin_ns: int, end_ns: int, found: list[Check],
) -> dict[str, Any]:  # fmt: skip
    at_sender, at_receiver = run.capture_of(flow, flow.source), run.capture_of(flow, flow.target)
    measured = datagram_metrics(at_sender, at_receiver, connection, begin_ns, end_ns)
    if report:
        found.append(checks.iperf_datagrams(flow.name, report, at_receiver, connection))
    cut = reaction_s(run, flow)
    if cut is not None:
        found.append(cut.check)
    delivered_bps = measured.delivered_bytes * 8 / ((end_ns - begin_ns) / 1e9)
    return {
        "reaction_s": cut.seconds if cut else None,
        "delivered_bps": delivered_bps,
        "goodput_bps": delivered_bps,  # the receiver reads each datagram as it comes
        "sent": measured.sent,
        "loss": measured.loss,
        "latency_ms_mean": measured.latency_ms_mean,
        "latency_ms_p95": measured.latency_ms_p95,
        "jitter_ms": measured.jitter_ms,
        "silence_s": measured.silence_s,
    }


def _report(run: RunDirectory, flow: Flow, found: list[Check]) -> IperfReport | None:
    """iperf3's report; without it the captures still give everything but iperf3's own figures."""
    try:
        report = run.report(flow)
    except AnalysisError as problem:
        found.append(Check(f"{flow.name} iperf3-report", False, str(problem)))
        return None
    found.append(checks.report_without_error(flow.name, report))
    return report


def _air_rate(
    run: RunDirectory, flow: Flow, connection: Connection, begin_ns: int, end_ns: int, found: list[Check]
) -> float | None:
    """Payload that the medium handed to the flow's destination, or to the gateway on its way there.

    Null where the log does not fit the capture, and for a flow between a gateway and its wired hosts.
    """
    try:
        station = run.last_station(flow)
        if station is None:
            return None
        matching = _match(run, station, begin_ns, end_ns)
    except AnalysisError as problem:
        found.append(Check(f"{flow.name} air-capture", False, str(problem)))
        return None
    found.append(checks.air_capture(flow.name, station, matching))
    rows = connection.forward(matching.matched)
    payload = (rows["air_bytes"] - (rows["ip_bytes"] - rows["payload_bytes"])).sum()
    return payload * 8 / ((end_ns - begin_ns) / 1e9)


def _match(run: RunDirectory, station: str, begin_ns: int, end_ns: int) -> Matching:
    """Deliveries and arrivals of the window. The air log is cut by model time, the capture by its own clock."""
    epoch_ns, mac = run.epoch_ns, run.mac(station)
    air = run.air.filter(run.air["t_ns"].is_between(begin_ns - epoch_ns, end_ns - epoch_ns, closed="left"))
    packets = run.capture(station)
    arrivals = packets.filter((packets["eth_dst"] == mac) & packets["t_ns"].is_between(begin_ns, end_ns, closed="left"))
    return match_deliveries(air, arrivals, station, epoch_ns)


def _air(run: RunDirectory, flows: dict[str, dict], found: list[Check]) -> dict | None:
    """The air over the span of all flows' windows."""
    try:
        windows = [
            (entry["start_ns"] + entry["window_s"][0] * 1e9, entry["start_ns"] + entry["window_s"][1] * 1e9)
            for entry in flows.values()
            if entry["start_ns"] is not None
        ]
        found.extend(checks.air_counters(run.air, run.counters))
        if not windows:
            return None
        epoch_ns = run.epoch_ns
        begin_ns, end_ns = round(min(w[0] for w in windows)), round(max(w[1] for w in windows))
        return air_summary(run.air, begin_ns - epoch_ns, end_ns - epoch_ns)
    except AnalysisError as problem:
        found.append(Check("air readable", False, str(problem)))
        return None
