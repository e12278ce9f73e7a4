"""Requests and replies of a flow on any number of connections: its rates from captures, and two cross-checks.

The client's record (programs/web_client.py), the server's access log and the captures at both ends are independent of each other.
Each request that the client calls finished must be in all three, with the same bytes. A disagreement is a failed check that names
the request or the connection.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.captures.connections import Connection, find_connections, uses_of
from analysis.captures.rundir import RunDirectory
from analysis.metrics.checks import Check, named
from analysis.metrics.measured_flow import NS_PER_S, MeasuredFlow
from analysis.metrics.throughput import ReceiverView, SenderView, receiver_view, sender_view
from record.errors import RunFileError
from record.files import read_text
from record.scenario import RunFlow
from traffic.shared import sessions
from traffic.shared.kind import Metric

LOG_TICK_S = 0.001  # nginx writes its clock in ms, rounded down

Event = Mapping[str, Any]


@dataclass(frozen=True)
class Carried:
    """One connection: from the server to the client, as both ends' captures have it, and the requests at the server."""

    port: int  # the client's
    begin_ns: int  # of its SYN at the client
    sent: SenderView
    received: ReceiverView
    requests: ReceiverView

    @property
    def reply_bytes(self) -> int:
        """Delivered to the client."""
        return self.received.delivered.total

    @property
    def request_bytes(self) -> int:
        """Delivered to the server."""
        return self.requests.delivered.total


class ExchangedFlow(MeasuredFlow):
    """By all connections on the flow's port, and by the records of both ends."""

    def __post_init__(self) -> None:
        events = record_of(self.run, self.flow)
        self.found.append(log_agrees(self.flow.name, events, server_log(self.run, self.flow)))
        self.carried = connections_of(self.run, self.flow)
        self.found.append(captures_agree(self.flow.name, events, self.carried))

    def delivered_bps(self) -> float:
        """Over all connections."""
        return sum(each.received.delivered.rise(self.begin_ns, self.end_ns) for each in self.carried) * 8 / self.window_s

    def segments(self, *, repeated: bool = False) -> int:
        """Segments sent, or only the retransmissions."""
        inside = ((each.sent.segments, each.sent.segments.within(self.begin_ns, self.end_ns)) for each in self.carried)
        return sum(int((mask & segments.repeated if repeated else mask).sum()) for segments, mask in inside)


EXCHANGES = (
    Metric("delivered_bps", "bit/s", "in-order bytes from the server to the client, over all connections on the flow's port",
           lambda flow: flow.delivered_bps(), 0.0),
    Metric("goodput_bps", "bit/s", "as `delivered_bps`", lambda flow: flow.delivered_bps(), 0.0),
    Metric("segments", "segments", "data segments that the server sent", lambda flow: flow.segments()),
    Metric("retransmissions", "segments", "those of them that repeat bytes sent before",
           lambda flow: flow.segments(repeated=True)),
)  # fmt: skip


def record_of(run: RunDirectory, flow: RunFlow) -> list[dict[str, Any]]:
    """The events of the client's record; a RunFileError without it."""
    path = run.path / "traffic" / f"{flow.name}-requests.jsonl"
    try:
        return sessions.read_record(path)
    except FileNotFoundError:
        raise RunFileError(f"{path}: no record of requests; the flow did not start, see log/ of the run") from None


def server_log(run: RunDirectory, flow: RunFlow) -> list[dict[str, Any]]:
    """The requests in the server's access log, in the order of their ends; a RunFileError without it."""
    path = run.path / "log" / f"{flow.name}-nginx" / "access.log"
    try:
        return [json.loads(line) for line in read_text(path).splitlines()]
    except FileNotFoundError:
        raise RunFileError(f"{path}: no access log; the server did not start, see log/ of the run") from None
    except ValueError as problem:
        raise RunFileError(f"{path}: not the log of this server ({problem}); was it killed while it wrote?") from None


def connections_of(run: RunDirectory, flow: RunFlow) -> list[Carried]:
    """The flow's connections in the captures, by the client's port and their beginning."""
    known = run.report(flow).connection
    if known is None:
        return []
    port = known.destination_port
    of_port = (pl.col("protocol") == "tcp") & ((pl.col("source_port") == port) | (pl.col("destination_port") == port))
    at_client, at_server = (run.capture_of(flow, end).filter(of_port) for end in (flow.source, flow.target))
    client, server = (run.address(node, run.scenario.ip_of(flow)) for node in (flow.source, flow.target))
    to_servers = [each for each in find_connections(at_client, "tcp", client, server) if each.destination_port == port]
    to_servers.sort(key=lambda each: each.source_port)
    return [carried for to_server in to_servers for carried in _carried(to_server, at_client, at_server)]


def _carried(to_server: Connection, at_client: pl.DataFrame, at_server: pl.DataFrame) -> list[Carried]:
    """The connections with these ports, in their order: the client's kernel may use a port again."""
    to_client, views = to_server.reversed(), []
    at_its_server = dict(uses_of(at_server, to_server))
    for sequence, (begin_ns, packets) in uses_of(at_client, to_server):
        if sequence not in at_its_server:  # the SYN never arrived
            continue
        others = at_its_server[sequence][1]
        isn = to_client.initial_sequence(others, packets)
        if isn is None:  # the SYN was never answered
            continue
        sent, received = sender_view(others, to_client, isn), receiver_view(packets, to_client, isn)
        views.append(Carried(to_server.source_port, begin_ns, sent, received, receiver_view(others, to_server, sequence)))
    return views


def log_agrees(flow: str, events: Sequence[Event], log: Sequence[Event]) -> Check:
    """No tolerance in counts and bytes. The server ends a request when the kernel has its last byte: after the client has sent
    the request (by its clock of whole ms), and before the client has the last byte."""
    attempts = {_key(event): event for event in sessions.of(events, "issue")}
    served: dict[tuple[str, int], list[Event]] = {}
    for entry in log:
        served.setdefault(_key(entry), []).append(entry)
    wrong = [f"request {_name(key)}: in the server's log only" for key in served if key not in attempts]
    finished = sessions.finished_requests(events)
    for event in finished:
        entries = served.get(_key(event), [])
        difference = _difference(event, entries[0]) if len(entries) == 1 else f"{len(entries)} times in the server's log"
        if difference:
            wrong.append(f"request {_name(_key(event))}: {difference}")
    return Check(f"{flow} requests-logged", not wrong, named(wrong, f"{len(finished)} finished requests agree"))


def _difference(event: Event, entry: Event) -> str | None:
    for key in ("body_bytes", "status", "request_bytes"):
        if event[key] != entry[key]:
            return f"{key} {event[key]} at the client, {entry[key]} at the server"
    if event["reply_bytes"] != entry["sent_bytes"]:
        return f"reply_bytes {event['reply_bytes']} at the client, {entry['sent_bytes']} at the server"
    if event["connection"] != int(entry["client_port"]):
        return f"connection {event['connection']} at the client, {entry['client_port']} at the server"
    if entry["complete"] != "OK":
        return "not complete at the server"
    if not event["sent_unix_s"] - LOG_TICK_S <= entry["ended_unix_s"] <= event["last_unix_s"]:
        times = f"sent at {event['sent_unix_s']:.6f}, ended at {entry['ended_unix_s']:.3f}"
        return f"out of order: {times}, received at {event['last_unix_s']:.6f}"
    return None


def captures_agree(flow: str, events: Sequence[Event], carried: Sequence[Carried]) -> Check:
    """On each connection the client has read no byte that its capture lacks. Where all its requests finished, captures and record
    have the same bytes: of the replies at the client, of the requests at the server."""
    attempts: dict[tuple[int, int], list[Event]] = {}
    for event in sessions.of(events, "request"):
        if event["sent_unix_s"] is not None:  # otherwise the time was up before it was sent
            attempts.setdefault((event["connection"], _begin_ns(event, carried)), []).append(event)
    by_begin = {(each.port, each.begin_ns): each for each in carried}
    wrong = []
    for (port, begin_ns), requests in attempts.items():
        read, sent = sum(event["reply_bytes"] for event in requests), sum(event["request_bytes"] for event in requests)
        whole = all(event["error"] is None for event in requests)
        captured = by_begin.get((port, begin_ns))
        name = f"connection {port} of request {requests[0]['id']}"
        if captured is None:
            wrong.append(f"{name}: not captured")
        elif read > captured.reply_bytes or (whole and read != captured.reply_bytes):
            wrong.append(f"{name}: {read} bytes read by the client, {captured.reply_bytes} captured there")
        elif whole and sent != captured.request_bytes:
            wrong.append(f"{name}: {sent} bytes of requests sent, {captured.request_bytes} captured at the server")
    total = sum(each.reply_bytes for each in carried)
    agreement = f"{len(attempts)} connections agree, {total} bytes captured"
    return Check(f"{flow} requests-captured", not wrong, named(wrong, agreement))


def _begin_ns(event: Event, carried: Sequence[Carried]) -> int:
    """The beginning of the connection that an attempt used: the last one on its port before it sent; 0 without one."""
    sent_ns = event["sent_unix_s"] * NS_PER_S
    return max((each.begin_ns for each in carried if each.port == event["connection"] and each.begin_ns <= sent_ns), default=0)


def _key(event: Event) -> tuple[str, int]:
    return str(event["id"]), int(event["try"])


def _name(key: tuple[str, int]) -> str:
    return key[0] if key[1] == 1 else f"{key[0]} (try {key[1]})"
