"""metrics.json of one run: the metrics of each flow and of the air, and the cross-checks between their sources.

formats/results.md defines them. A metric that cannot be measured is null, with a failed check that gives the reason. An analysis
never stops at the first bad file, so a campaign shows every run.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.captures.air import Matching, air_summary, match_deliveries
from analysis.captures.connections import Connection
from analysis.captures.iperf import IperfReport
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks, datagrams
from analysis.metrics.checks import Check
from analysis.metrics.fairness import fairness
from analysis.metrics.gateways import gateways_remark
from analysis.metrics.measures import MEASURES, MEASURES_OF_MANY, NS_PER_S
from analysis.metrics.movement import expectation, movement_metrics
from analysis.metrics.opened import opened_by
from analysis.metrics.route_history import route_metrics
from analysis.metrics.verdict_file import NAME as VERDICT
from analysis.metrics.verdict_file import enter_checks
from record import manifest
from record.errors import RecordError, RunFileError
from record.events_file import VIEW
from record.files import write_atomic
from record.scenario import Flow
from scenarios.traffic import kind_named

FORMAT = "manet-metrics/1"
LATE_S = 2.0
# events that stop a station, a wire or a daemon, and how a remark begins
FAULTS = {"power": "", "wire": "wire ", "cut": "cut: ", "daemon": "daemon of "}
NAMED_FAULTS = 6  # at most so many in the remark


def analyse_run(run_dir: Path) -> dict[str, Any]:
    """Measure a run, write its metrics.json, and enter failed cross-checks into its verdict.json; returns the metrics.
    RunFileError if its captures were dropped after an earlier measurement."""
    run = RunDirectory(Path(run_dir))
    if dropped := manifest.dropped_files(run.path):
        raise RunFileError(f"{run.path}: {next(iter(dropped))} was dropped after the measurement; run it again")
    found: list[Check] = []
    remarks: list[str] = []
    flows = {flow.name: _analyse_flow(run, flow, found, remarks) for flow in _flows(run, found)}
    metrics: dict[str, Any] = {"format": FORMAT, "flows": flows, "air": _air(run, flows, found)}
    if shares := fairness(flows):
        metrics["fairness"] = shares
    if of_kinds := _of_kinds(flows):
        metrics["kinds"] = of_kinds
    if happened := _happened(run):
        remarks.append(happened)
    remarks += _by_hand(run)
    remarks += _failed_commands(run)
    remarks += run.remarks_of_containers
    metrics["checks"] = [check.as_dict() for check in found]
    if remarks:
        metrics["remarks"] = remarks
    write_atomic(run.path / "metrics.json", json.dumps(metrics, indent=1) + "\n")
    records = sorted(str(path.relative_to(run.path)) for path in (run.path / datagrams.FOLDER).glob("*.csv"))
    judged = [VERDICT] if enter_checks(run.path, found) else []
    manifest.enter(run.path, "metrics.json", *judged, *records)
    return metrics


def _flows(run: RunDirectory, found: list[Check]) -> list[Flow]:
    """The scenario's flows; none for a run that ended before it wrote its scenario."""
    try:
        return run.flows
    except RecordError as problem:
        found.append(Check("scenario readable", False, str(problem)))
        return []


def _analyse_flow(run: RunDirectory, flow: Flow, found: list[Check], remarks: list[str]) -> dict[str, Any]:
    """The flow's entry of `flows`."""
    entry: dict[str, Any] = {"traffic": flow.traffic, "from": flow.source, "to": flow.target}
    entry |= dict.fromkeys(("source_port", "destination_port", "start_ns", "window_s", *flow.kind.metrics))
    try:
        found += [check for check in [expectation(run, flow)] if check]
        report = _report(run, flow, found)
        remark = flow.kind.remark(report.content) if report is not None else None
        if remark is not None:
            remarks.append(f"{flow.name} from {flow.source} to {flow.target} {remark}")
        if report is not None and not report.connected:
            remarks.append(_remark(flow, report))
            return entry | _nothing_carried(run, flow, report)
        if flow.kind.measured is None:
            return entry | _reported(run, flow, report)
        remarks += _gateways(run, flow, found)
        if flow.kind.measured in MEASURES_OF_MANY:
            return entry | _of_many(run, flow, report, found)
        connection = run.connection(flow)
        connected_ns = connection.start_ns(run.capture_of(flow, flow.source)) if connection else None
        if connected_ns is None and report is not None and _never_on_the_air(flow, report):
            remarks.append(_remark(flow, report))
            return entry | _nothing_carried(run, flow, report)
        start_ns = _start_ns(flow, report, connected_ns)
        if start_ns is None or connected_ns is None:
            raise RecordError(f"{run.path / 'captures' / flow.source}.pcap: no packet of {flow.name}; did it start?")
        window_s = run.window_s(flow)
        begin_ns, end_ns = (start_ns + round(limit_s * NS_PER_S) for limit_s in window_s)
        entry |= {"source_port": connection.source_port, "destination_port": connection.destination_port}
        entry |= {"start_ns": start_ns, "window_s": list(window_s)}
        measure = MEASURES[flow.kind.measured].of_flow
        entry |= measure(run, flow, connection, report, begin_ns, end_ns, found)
        if report is not None:
            found.append(checks.window_covered(flow.name, report, (end_ns - connected_ns) / 1e9))
            entry |= flow.kind.from_report(report.content)
        entry |= movement_metrics(run, flow, begin_ns, end_ns, entry.get("acked_bps"))
        entry |= route_metrics(run, flow, begin_ns, end_ns)
        entry["air_bps"] = _air_rate(run, flow, [connection], begin_ns, end_ns, found)
    except RecordError as problem:
        found.append(Check(f"{flow.name} readable", False, str(problem)))
    return entry


def _happened(run: RunDirectory) -> str | None:
    """The executed events that stopped stations or wires, or let them go on, as one line: they explain silences and losses that
    are no failure. None without any."""
    rows = [row for row in run.events if row["event"] in FAULTS]
    texts = [f"{FAULTS[row['event']]}{row['station']} {row['detail']} at {row['at_s']} s" for row in rows[:NAMED_FAULTS]]
    more = [f"and {len(rows) - NAMED_FAULTS} more in events.csv"] if len(rows) > NAMED_FAULTS else []
    return f"events: {'; '.join(texts + more)}" if rows else None


def _by_hand(run: RunDirectory) -> list[str]:
    """A line for a run that a view changed: it is no repetition of other runs of its scenario."""
    actions = sum(row["source"] == VIEW for row in run.events)
    return [f"by hand: {actions} action{'s' * (actions > 1)} of a view (events.csv)"] if actions else []


def _failed_commands(run: RunDirectory) -> list[str]:
    """A line for each command of an event that ended by itself with a status other than 0."""
    if not any(row["event"] == "command" for row in run.events):
        return []
    lines = []
    for command in run.run.get("commands", []):
        status = command["exit_status"]
        if status and command["ended_by"] == "itself":
            ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            lines.append(f"command {command['name']} of {command['station']} {ended} at {command['ended_s']:g} s")
    return lines


def _start_ns(flow: Flow, report: IperfReport | None, connected_ns: int | None) -> int | None:
    """Time of the flow's first packet. If the ends were apart at first (for more than LATE_S, longer than any handshake), time of
    its first try; always for packets that are written on time."""
    if connected_ns is None or report is None or report.first_try_s is None:
        return connected_ns
    first_ns = round(report.first_try_s * NS_PER_S)
    on_time = flow.kind.measured in MEASURES and MEASURES[flow.kind.measured].on_time
    return first_ns if on_time or connected_ns - first_ns > LATE_S * NS_PER_S else connected_ns


def _never_on_the_air(flow: Flow, report: IperfReport) -> bool:
    """For datagrams that no capture has: the kernel accepted them and could not resolve the next hop's address."""
    return flow.protocol == "udp" and report.first_try_s is not None and report.received_bytes == 0


def _remark(flow: Flow, report: IperfReport) -> str:
    """One line about a flow that carried nothing, which a verdict does not report (docs/verdict.md)."""
    happened = "sent no datagram over its radio" if flow.protocol == "udp" else "never connected"
    reason = f" ({report.remark})" if report.remark else ""
    return f"{flow.name} from {flow.source} to {flow.target} {happened}{reason}; its rates are 0"


def _gateways(run: RunDirectory, flow: Flow, found: list[Check]) -> list[str]:
    """The remark on the gateways of a flow that had a choice. Without a capture it fails alone: the rates need no wire."""
    try:
        remark = gateways_remark(run, flow)
    except RecordError as problem:
        found.append(Check(f"{flow.name} gateways", False, str(problem)))
        return []
    return [remark] if remark is not None else []


def _nothing_carried(run: RunDirectory, flow: Flow, report: IperfReport) -> dict[str, Any]:
    """Metrics of a flow without a path for its whole duration: no connection or datagram, hence zeros and no check."""
    window_s = run.window_s(flow)
    entry: dict[str, Any] = {"window_s": list(window_s)}
    entry["start_ns"] = start_ns = _first_try_ns(report)
    from_report = flow.kind.from_report(report.content)
    entry |= {name: from_report[name] for name in flow.kind.own_metrics}
    rates = {rate: 0.0 for rate in flow.kind.metrics if rate.endswith("_bps")}
    entry |= rates
    if flow.kind.measured in MEASURES:
        entry |= MEASURES[flow.kind.measured].of_nothing(run, flow, report)
    if start_ns is None:
        return entry
    begin_ns, end_ns = (start_ns + round(limit_s * NS_PER_S) for limit_s in window_s)
    return entry | movement_metrics(run, flow, begin_ns, end_ns, rates.get("acked_bps"))


def _reported(run: RunDirectory, flow: Flow, report: IperfReport | None) -> dict[str, Any]:
    """Metrics of a flow whose kind has no connection: those of its report."""
    if report is None:
        return {}
    entry = {"start_ns": _first_try_ns(report), "window_s": list(run.window_s(flow))}
    return entry | flow.kind.from_report(report.content)


def _of_many(run: RunDirectory, flow: Flow, report: IperfReport | None, found: list[Check]) -> dict[str, Any]:
    """Metrics of a flow with any number of connections, whose report has the time of its start."""
    entry = _reported(run, flow, report)
    if report is not None and flow.protocol is None and entry["start_ns"] is not None:
        return entry | _of_opened(run, flow, entry, found)
    if report is None or report.connection is None or entry["start_ns"] is None:
        return entry
    begin_s, end_s = entry["window_s"]
    entry["window_s"] = [begin_s, max(begin_s, min(end_s, report.test_s))]  # a run that failed ended earlier
    begin_ns, end_ns = (entry["start_ns"] + round(edge * NS_PER_S) for edge in entry["window_s"])
    if begin_ns == end_ns:
        return entry
    entry |= {"source_port": report.connection.source_port, "destination_port": report.connection.destination_port}
    return entry | MEASURES_OF_MANY[flow.kind.measured](run, flow, begin_ns, end_ns, found)


def _of_opened(run: RunDirectory, flow: Flow, entry: dict[str, Any], found: list[Check]) -> dict[str, Any]:
    """Metrics of all connections that the program of the flow opened, between its start and the end of its window."""
    begin_ns, end_ns = (entry["start_ns"] + round(edge_s * NS_PER_S) for edge_s in entry["window_s"])
    figures = MEASURES_OF_MANY[flow.kind.measured](run, flow, begin_ns, end_ns, found)
    figures |= movement_metrics(run, flow, begin_ns, end_ns, figures.get("acked_bps"))
    figures |= route_metrics(run, flow, begin_ns, end_ns)
    connections = dict.fromkeys(each.connection for each in opened_by(run, flow, []))  # ports may be used twice
    return figures | {"air_bps": _air_rate(run, flow, list(connections), begin_ns, end_ns, found)}


def _of_kinds(flows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The metrics over all flows of a kind, of the kinds that have them."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for entry in flows.values():
        by_kind.setdefault(entry["traffic"], []).append(entry)
    return {name: kind_named(name).of_run(entries) for name, entries in by_kind.items() if kind_named(name).run_metrics}


def _first_try_ns(report: IperfReport) -> int | None:
    return round(report.first_try_s * NS_PER_S) if report.first_try_s else None


def _report(run: RunDirectory, flow: Flow, found: list[Check]) -> IperfReport | None:
    """The flow's report. Without it the captures still give all metrics except its own figures."""
    name = f"{flow.name} {'iperf3-report' if 'iperf3_bps' in flow.kind.metrics else 'report'}"
    try:
        report = run.report(flow)
    except RecordError as problem:
        found.append(Check(name, False, str(problem)))
        return None
    found.append(checks.report_without_error(name, report))
    return report


def _air_rate(
    run: RunDirectory, flow: Flow, connections: Sequence[Connection], begin_ns: int, end_ns: int, found: list[Check]
) -> float | None:
    """Payload that the medium delivered to the flow's destination, or to the gateways before it.

    Null if the log does not match the capture, and for a flow between a gateway and its wired hosts.
    """
    stations = run.last_stations(flow)
    try:
        matchings = [_match(run, station, begin_ns, end_ns) for station in stations]
    except RecordError as problem:
        found.append(Check(f"{flow.name} air-capture", False, str(problem)))
        return None
    payload = 0
    for station, matching in zip(stations, matchings, strict=True):
        found.append(checks.air_capture(flow.name, station, matching))
        for connection in connections:
            rows = connection.forward(matching.matched)
            payload += (rows["air_bytes"] - (rows["ip_bytes"] - rows["payload_bytes"])).sum()
    return payload * 8 / ((end_ns - begin_ns) / 1e9) if stations else None


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
    except RecordError as problem:
        found.append(Check("air readable", False, str(problem)))
        return None
