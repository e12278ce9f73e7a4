"""The outcome of a web session, from the client's record (programs/web_client.py), counted as by T. D. Dyer and R. V. Boppana
("On routing web and multimedia traffic in mobile ad hoc networks", Performance metrics).

Service time: time in request-reply cycles. A finished session: from its start to the last byte of its last cycle, without think
times; any other: the time of the traffic without think times. Response time of a cycle: from issuing its request to the first
byte of its reply. It includes opening the connection and any retry: in the paper's simulator the request is the first packet, and
waits for a route where here the SYN does. Throughput: bytes delivered to the client, of unfinished cycles too, over the service
time.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from traffic.shared.kind import Metric

RESPONSE = "time from issuing a cycle's first request to the first byte of its reply, over the cycles with a reply: "
METRICS = (
    Metric("finished", "1", "whether the last cycle ended before the end of the traffic"),
    Metric("service_s", "s", "time in request-reply cycles, without the time spent thinking: of a finished session from its "
           "start to the end of its last cycle, of any other all its time"),
    Metric("response_s_mean", "s", RESPONSE + "mean; with opening the connection, the search for a route, and retries"),
    Metric("response_s_p50", "s", RESPONSE + "median"),
    Metric("response_s_p95", "s", RESPONSE + "95th percentile"),
    Metric("response_s_max", "s", RESPONSE + "maximum"),
    Metric("first_byte_s_mean", "s", "as `response_s_mean`, from the request's transmission on an open connection"),
    Metric("throughput_bps", "bit/s", "8 `session_bytes` / `service_s`", empty=0.0),
    Metric("session_bytes", "bytes", "bytes that the client read: headers and bodies, also of unfinished requests and cycles"),
    Metric("cycles_finished", "cycles", "cycles of which every object arrived"),
    Metric("cycles_planned", "cycles", "cycles of the session"),
    Metric("cycles_answered", "cycles", "cycles with a first byte of a reply"),
    Metric("requests_finished", "requests", "requests of which every byte arrived"),
    Metric("retries", "requests", "requests issued again"),
)  # fmt: skip
OF_RUN = (
    Metric("service_s", "s", "mean of `service_s` over the sessions"),
    Metric("throughput_bps", "bit/s", "8 times the sum of `session_bytes`, over the sum of `service_s`"),
    Metric("response_s", "s", "mean response time over all answered cycles of all sessions"),
    Metric("finished_sessions", "sessions", "sessions that finished"),
    Metric("sessions", "sessions", "sessions of the run"),
)


def read_record(path: Path) -> list[dict[str, Any]]:
    """The events of a record; an incomplete last line, of a client that was killed while it wrote, is left out."""
    events = []
    for line in path.read_text().splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events


def of(events: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The events of one name."""
    return [event for event in events if event["event"] == name]


def finished_requests(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The attempts of which the client has every byte."""
    return [event for event in of(events, "request") if event["error"] is None]


def outcome(events: Sequence[Mapping[str, Any]], planned: int, seconds: float) -> dict[str, Any]:
    """The metrics of METRICS, in their order. `planned`: cycles of the session; `seconds`: time of the traffic."""
    end = next(iter(of(events, "end")), None)
    finished = end is not None and bool(end["finished"])
    last_s = float(end["t_s"]) if end is not None and finished else seconds
    thought_s = sum(event["t_s"] - event["began_s"] for event in of(events, "think"))
    cycles = of(events, "cycle")
    if end is None and len(of(events, "think")) < len(cycles) < planned:  # ended from outside while it thought
        thought_s += max(0.0, last_s - cycles[-1]["t_s"])
    service_s = max(0.0, last_s - thought_s)
    requests = of(events, "request")
    total = sum(event["reply_bytes"] for event in requests)
    answered = _first_replies(requests)
    responses = [event["first_s"] - event["issued_s"] for event in answered]
    return {
        "finished": finished,
        "service_s": service_s,
        "response_s_mean": fmean(responses) if responses else None,
        "response_s_p50": quantile(responses, 0.5),
        "response_s_p95": quantile(responses, 0.95),
        "response_s_max": max(responses, default=None),
        "first_byte_s_mean": fmean(event["first_s"] - event["sent_s"] for event in answered) if answered else None,
        "throughput_bps": total * 8 / service_s if service_s > 0 else None,
        "session_bytes": total,
        "cycles_finished": len(cycles),
        "cycles_planned": planned,
        "cycles_answered": len(answered),
        "requests_finished": len(finished_requests(events)),
        "retries": sum(event["try"] > 1 for event in of(events, "issue")),
    }


def _first_replies(requests: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each cycle the attempt with the first byte of its reply, if it has one."""
    first: dict[int, Mapping[str, Any]] = {}
    for event in requests:
        if event["first_s"] is not None and event["first_s"] < first.get(event["cycle"], {"first_s": float("inf")})["first_s"]:
            first[event["cycle"]] = event
    return [first[cycle] for cycle in sorted(first)]


def of_run(sessions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics of OF_RUN over the sessions of a run; None for those that one session's missing record prevents."""
    result: dict[str, Any] = {metric.name: None for metric in OF_RUN} | {"sessions": len(sessions)}
    if any(session.get("service_s") is None for session in sessions):
        return result
    service_s = sum(session["service_s"] for session in sessions)
    answered = [session for session in sessions if session["cycles_answered"]]
    cycles = sum(session["cycles_answered"] for session in answered)
    responses_s = sum(session["response_s_mean"] * session["cycles_answered"] for session in answered)
    return result | {
        "service_s": service_s / len(sessions),
        "throughput_bps": sum(session["session_bytes"] for session in sessions) * 8 / service_s if service_s > 0 else None,
        "response_s": responses_s / cycles if cycles else None,
        "finished_sessions": sum(bool(session["finished"]) for session in sessions),
    }


def quantile(values: Sequence[float], share: float) -> float | None:
    """Linear interpolation between the closest ranks, as numpy's default; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
