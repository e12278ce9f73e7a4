"""metrics.json of one run: the metrics of each flow and of the air, and the cross-checks between their sources.

formats/results.md defines them. A metric that cannot be measured is null, with a failed check that gives the reason. An analysis
never stops at the first bad file, so a campaign shows every run.
"""

import json
from pathlib import Path
from typing import Any

from analysis.captures.air import air_summary
from analysis.captures.iperf import IperfReport
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks, datagrams
from analysis.metrics.checks import Check
from analysis.metrics.energy import energy_of
from analysis.metrics.fairness import fairness
from analysis.metrics.gateways import gateways_remark
from analysis.metrics.measured_flow import NS_PER_S, MeasuredFlow
from analysis.metrics.measures import IPERF3, MEASURED, Measured, metrics_of
from analysis.metrics.movement import expectation, movement_metrics
from analysis.metrics.route_history import route_metrics
from analysis.metrics.verdict_file import NAME as VERDICT
from analysis.metrics.verdict_file import enter_checks
from record import manifest
from record.errors import RecordError, RunFileError
from record.events_file import VIEW
from record.files import write_atomic
from record.scenario import RunFlow
from traffic import kind_named

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
    if energy := _energy(run, flows, found):
        metrics["energy"] = energy
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


def _flows(run: RunDirectory, found: list[Check]) -> tuple[RunFlow, ...]:
    """The scenario's flows; none for a run that ended before it wrote its scenario."""
    try:
        return run.flows
    except RecordError as problem:
        found.append(Check("scenario readable", False, str(problem)))
        return ()


def _analyse_flow(run: RunDirectory, flow: RunFlow, found: list[Check], remarks: list[str]) -> dict[str, Any]:
    """The flow's entry of `flows`."""
    entry: dict[str, Any] = {"traffic": flow.traffic, "from": flow.source, "to": flow.target}
    own = [metric.name for metric in metrics_of(flow.kind) if metric.always]
    entry |= dict.fromkeys(("source_port", "destination_port", "start_ns", "window_s", *own))
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
        way = MEASURED[flow.kind.measured]
        if way.many:
            return entry | _of_many(run, flow, way, report, found)
        connection = run.connection(flow)
        connected_ns = connection.start_ns(run.capture_of(flow, flow.source)) if connection else None
        if connected_ns is None and report is not None and _never_on_the_air(flow, report):
            remarks.append(_remark(flow, report))
            return entry | _nothing_carried(run, flow, report)
        start_ns = _start_ns(way, report, connected_ns)
        if connection is None or start_ns is None or connected_ns is None:
            raise RecordError(f"{run.path / 'captures' / flow.source}.pcap: no packet of {flow.name}; did it start?")
        window_s = run.window_s(flow)
        begin_ns, end_ns = (start_ns + round(limit_s * NS_PER_S) for limit_s in window_s)
        entry |= {"source_port": connection.source_port, "destination_port": connection.destination_port}
        entry |= {"start_ns": start_ns, "window_s": list(window_s)}
        measured = way.flow(run, flow, report, [connection], begin_ns, end_ns, found)
        if report is not None:
            found.append(checks.window_covered(flow.name, report, (end_ns - connected_ns) / 1e9))
            entry |= flow.kind.from_report(report.content)
        entry |= measured.values(way.metrics)
        entry |= _of_path(measured, entry.get("acked_bps"))
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


def _start_ns(way: Measured, report: IperfReport | None, connected_ns: int | None) -> int | None:
    """Time of the flow's first packet. If the ends were apart at first (for more than LATE_S, longer than any handshake), time of
    its first try; always for packets that are written on time."""
    if connected_ns is None or report is None or report.first_try_s is None:
        return connected_ns
    first_ns = round(report.first_try_s * NS_PER_S)
    return first_ns if way.on_time or connected_ns - first_ns > LATE_S * NS_PER_S else connected_ns


def _never_on_the_air(flow: RunFlow, report: IperfReport) -> bool:
    """For datagrams that no capture has: the kernel accepted them and could not resolve the next hop's address."""
    return flow.protocol == "udp" and report.first_try_s is not None and report.received_bytes == 0


def _remark(flow: RunFlow, report: IperfReport) -> str:
    """One line about a flow that carried nothing, which a verdict does not report (docs/verdict.md)."""
    happened = "sent no datagram over its radio" if flow.protocol == "udp" else "never connected"
    reason = f" ({report.remark})" if report.remark else ""
    return f"{flow.name} from {flow.source} to {flow.target} {happened}{reason}; its rates are 0"


def _gateways(run: RunDirectory, flow: RunFlow, found: list[Check]) -> list[str]:
    """The remark on the gateways of a flow that had a choice. Without a capture it fails alone: the rates need no wire."""
    try:
        remark = gateways_remark(run, flow)
    except RecordError as problem:
        found.append(Check(f"{flow.name} gateways", False, str(problem)))
        return []
    return [remark] if remark is not None else []


def _nothing_carried(run: RunDirectory, flow: RunFlow, report: IperfReport) -> dict[str, Any]:
    """Metrics of a flow without a path for its whole duration: no connection or datagram, hence zeros and no check."""
    window_s = run.window_s(flow)
    entry: dict[str, Any] = {"window_s": list(window_s)}
    entry["start_ns"] = start_ns = _first_try_ns(report)
    entry |= flow.kind.from_report(report.content)
    for metric in metrics_of(flow.kind):
        empty = metric.empty(run, flow, report) if callable(metric.empty) else metric.empty
        if empty is not None:
            entry[metric.name] = empty
    if start_ns is None:
        return entry
    begin_ns, end_ns = (start_ns + round(limit_s * NS_PER_S) for limit_s in window_s)
    return entry | movement_metrics(run, flow, begin_ns, end_ns, entry.get("acked_bps"))


def _reported(run: RunDirectory, flow: RunFlow, report: IperfReport | None) -> dict[str, Any]:
    """Metrics of a flow whose kind has no connection: those of its report."""
    if report is None:
        return {}
    entry = {"start_ns": _first_try_ns(report), "window_s": list(run.window_s(flow))}
    return entry | flow.kind.from_report(report.content)


def _of_many(run: RunDirectory, flow: RunFlow, way: Measured, report: IperfReport | None, found: list[Check]) -> dict[str, Any]:
    """Metrics of a flow with any number of connections, whose report has the time of its start."""
    entry = _reported(run, flow, report)
    if report is not None and flow.protocol is None and entry["start_ns"] is not None:
        begin_ns, end_ns = (entry["start_ns"] + round(edge_s * NS_PER_S) for edge_s in entry["window_s"])
        measured = way.flow(run, flow, report, [], begin_ns, end_ns, found)
        values = measured.values(way.metrics)
        return entry | values | _of_path(measured, values.get("acked_bps"))
    if report is None or report.connection is None or entry["start_ns"] is None:
        return entry
    begin_s, end_s = entry["window_s"]
    entry["window_s"] = [begin_s, max(begin_s, min(end_s, report.test_s))]  # a run that failed ended earlier
    begin_ns, end_ns = (entry["start_ns"] + round(edge * NS_PER_S) for edge in entry["window_s"])
    if begin_ns == end_ns:
        return entry
    entry |= {"source_port": report.connection.source_port, "destination_port": report.connection.destination_port}
    return entry | way.flow(run, flow, report, [], begin_ns, end_ns, found).values(way.metrics)


def _of_path(measured: MeasuredFlow, acked_bps: float | None) -> dict[str, Any]:
    """Metrics of the flow's path: by the movement, and by the routing daemons."""
    window = (measured.run, measured.flow, measured.begin_ns, measured.end_ns)
    return movement_metrics(*window, acked_bps) | route_metrics(*window)


def _of_kinds(flows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The metrics over all flows of a kind, of the kinds that have them."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for entry in flows.values():
        by_kind.setdefault(entry["traffic"], []).append(entry)
    return {name: kind_named(name).of_run(entries) for name, entries in by_kind.items() if kind_named(name).run_metrics}


def _first_try_ns(report: IperfReport) -> int | None:
    return round(report.first_try_s * NS_PER_S) if report.first_try_s else None


def _report(run: RunDirectory, flow: RunFlow, found: list[Check]) -> IperfReport | None:
    """The flow's report. Without it the captures still give all metrics except its own figures."""
    name = f"{flow.name} {'iperf3-report' if IPERF3 in metrics_of(flow.kind) else 'report'}"
    try:
        report = run.report(flow)
    except RecordError as problem:
        found.append(Check(name, False, str(problem)))
        return None
    found.append(checks.report_without_error(name, report))
    return report


def _air(run: RunDirectory, flows: dict[str, dict[str, Any]], found: list[Check]) -> dict[str, Any] | None:
    """The air over the span of all flows' windows."""
    try:
        found.extend(checks.air_counters(run.air, run.counters))
        span = _span(run, flows)
        return air_summary(run.air, *span) if span else None
    except RecordError as problem:
        found.append(Check("air readable", False, str(problem)))
        return None


def _energy(run: RunDirectory, flows: dict[str, dict[str, Any]], found: list[Check]) -> dict[str, Any] | None:
    """The energy of the radios over the span of all flows' windows."""
    try:
        span = _span(run, flows)
        return energy_of(run, flows, *span) if span else None
    except RecordError as problem:
        found.append(Check("energy readable", False, str(problem)))
        return None


def _span(run: RunDirectory, flows: dict[str, dict[str, Any]]) -> tuple[int, int] | None:
    """From the first begin to the last end of the flows' windows, ns of model time; None without any."""
    windows = [
        (entry["start_ns"] + entry["window_s"][0] * 1e9, entry["start_ns"] + entry["window_s"][1] * 1e9)
        for entry in flows.values()
        if entry["start_ns"] is not None
    ]
    if not windows:
        return None
    return round(min(w[0] for w in windows)) - run.epoch_ns, round(max(w[1] for w in windows)) - run.epoch_ns
