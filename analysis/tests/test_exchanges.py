"""The cross-checks of web sessions: each disagreement between record, server's log and captures is named."""

from types import SimpleNamespace

import polars as pl
import pytest

from analysis.captures.connections import Connection
from analysis.captures.pcap import SCHEMA
from analysis.captures.plain_frames import ACK, SYN
from analysis.metrics.exchanges import Carried, _carried, captures_agree, log_agrees

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
FINISHED = {
    "event": "request", "id": "1.1", "try": 1, "cycle": 1, "connection": 40000, "status": 200, "request_bytes": 200,
    "body_bytes": 1000, "reply_bytes": 1198, "error": None, "sent_unix_s": 100.0105, "last_unix_s": 100.0601,
}  # fmt: skip
ISSUE = {"event": "issue", "id": "1.1", "try": 1}
LOGGED = {
    "id": "1.1", "try": "1", "client_port": 40000, "request_bytes": 200, "status": 200, "body_bytes": 1000,
    "sent_bytes": 1198, "complete": "OK", "ended_unix_s": 100.030,
}  # fmt: skip


def logged(event: dict | None = None, *entries: dict) -> tuple[bool, str]:
    check = log_agrees("flow1", [ISSUE, {**FINISHED, **(event or {})}], entries)
    assert check.name == "flow1 requests-logged"
    return check.ok, check.detail


def test_a_request_that_both_have_agrees() -> None:
    assert logged(None, LOGGED) == (True, "1 finished requests agree")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"body_bytes": 999}, "request 1.1: body_bytes 1000 at the client, 999 at the server"),
        ({"request_bytes": 201}, "request 1.1: request_bytes 200 at the client, 201 at the server"),
        ({"status": 206}, "request 1.1: status 200 at the client, 206 at the server"),
        ({"sent_bytes": 1197}, "request 1.1: reply_bytes 1198 at the client, 1197 at the server"),
        ({"client_port": 40001}, "request 1.1: connection 40000 at the client, 40001 at the server"),
        ({"complete": ""}, "request 1.1: not complete at the server"),
        ({"ended_unix_s": 100.009}, "request 1.1: out of order: sent at 100.010500, ended at 100.009"),
        ({"ended_unix_s": 100.061}, "request 1.1: out of order"),
    ],
)
def test_a_difference_names_the_request(changed: dict, words: str) -> None:
    ok, detail = logged(None, {**LOGGED, **changed})
    assert not ok and words in detail


def test_the_server_s_clock_is_rounded_down_to_its_ms() -> None:
    """Sent at 100.0105 s, ended 0.1 ms later: the log has 100.010."""
    assert logged(None, {**LOGGED, "ended_unix_s": 100.010})[0]


def test_a_request_is_once_in_the_log() -> None:
    assert logged() == (False, "request 1.1: 0 times in the server's log")
    assert logged(None, LOGGED, LOGGED) == (False, "request 1.1: 2 times in the server's log")


def test_a_request_of_nobody_is_named_with_its_try() -> None:
    assert logged(None, LOGGED, {**LOGGED, "id": "7.2", "try": "3"}) == (False, "request 7.2 (try 3): in the server's log only")


def test_an_unfinished_request_may_be_in_the_log_or_not() -> None:
    unfinished = {"error": "unfinished", "body_bytes": 10}
    assert logged(unfinished)[0] and logged(unfinished, {**LOGGED, "complete": ""})[0]


def test_many_disagreements_are_counted() -> None:
    others = [{**LOGGED, "id": f"9.{number}"} for number in range(1, 6)]
    ok, detail = logged(None, LOGGED, *others)
    assert not ok and detail.endswith("; and 2 more")


def total(number: int) -> SimpleNamespace:
    return SimpleNamespace(delivered=SimpleNamespace(total=number))


def captured(replies: int, requests: int, *events: dict, port: int = 40000, begin_s: float = 100.0) -> tuple[bool, str]:
    carried = Carried(port, round(begin_s * 1e9), None, total(replies), total(requests))
    check = captures_agree("flow1", events or [FINISHED], [carried])
    assert check.name == "flow1 requests-captured"
    return check.ok, check.detail


def test_captured_bytes_are_those_of_the_record() -> None:
    assert captured(1198, 200) == (True, "1 connections agree, 1198 bytes captured")
    for replies in (1197, 1199):
        words = f"connection 40000 of request 1.1: 1198 bytes read by the client, {replies} captured there"
        assert captured(replies, 200) == (False, words)
    words = "connection 40000 of request 1.1: 200 bytes of requests sent, 199 captured at the server"
    assert captured(1198, 199) == (False, words)


def test_an_unfinished_connection_may_have_more_in_the_capture_but_not_less() -> None:
    unfinished = {**FINISHED, "error": "unfinished", "reply_bytes": 500}
    assert captured(700, 200, unfinished)[0] and captured(500, 0, unfinished)[0]
    assert not captured(499, 200, unfinished)[0]


def test_requests_on_one_connection_are_added() -> None:
    again = {**FINISHED, "id": "1.2", "sent_unix_s": 101.0, "reply_bytes": 300, "request_bytes": 50}
    assert captured(1498, 250, FINISHED, again)[0]


def test_a_connection_without_packets_is_named() -> None:
    assert captured(1198, 200, port=40001) == (False, "connection 40000 of request 1.1: not captured")
    assert not captured(1198, 200, begin_s=101.0)[0]  # a later use of the port


def test_a_request_that_was_never_sent_needs_no_packets() -> None:
    assert captured(0, 0, {**FINISHED, "sent_unix_s": None, "error": "unfinished"}) == (
        True,
        "0 connections agree, 0 bytes captured",
    )


def packet(t_ns: int, forward: bool, sequence: int, payload: int = 0, flags: int = ACK, ack: int | None = None) -> dict:
    ends = (CLIENT, 40000, SERVER, 5201) if forward else (SERVER, 5201, CLIENT, 40000)
    row = dict.fromkeys(SCHEMA) | dict(zip(("source", "source_port", "destination", "destination_port"), ends, strict=True))
    return row | {
        "t_ns": t_ns, "protocol": "tcp", "sequence": sequence, "payload_bytes": payload, "flags": flags, "acknowledgement": ack,
        "ip_bytes": 40 + payload,
    }  # fmt: skip


def use_of_ports(begin_ns: int, sequence: int, isn: int, reply_bytes: int) -> list[dict]:
    """A connection with a request of 100 bytes."""
    return [
        packet(begin_ns, True, sequence, flags=SYN),
        packet(begin_ns + 1, False, isn, flags=SYN | ACK, ack=sequence + 1),
        packet(begin_ns + 2, True, sequence + 1, 100, ack=isn + 1),
        packet(begin_ns + 3, False, isn + 1, reply_bytes, ack=sequence + 101),
        packet(begin_ns + 4, True, sequence + 101, ack=isn + 1 + reply_bytes),
    ]


def test_the_uses_of_a_port_are_connections_of_their_own() -> None:
    """The kernel takes the same port again: two SYNs with other numbers, one of them sent twice."""
    rows = use_of_ports(1000, 5000, 70_000, 300) + use_of_ports(9000, 900_000, 4_000_000, 40)
    rows.insert(1, packet(1001, True, 5000, flags=SYN))
    packets = pl.DataFrame(rows, schema=SCHEMA).sort("t_ns", maintain_order=True)
    found = _carried(Connection("tcp", CLIENT, 40000, SERVER, 5201), packets, packets)
    assert [(each.begin_ns, each.reply_bytes, each.request_bytes) for each in found] == [(1000, 300, 100), (9000, 40, 100)]


def test_a_syn_without_an_answer_is_no_connection() -> None:
    to_server = Connection("tcp", CLIENT, 40000, SERVER, 5201)
    alone = pl.DataFrame([packet(1000, True, 5000, flags=SYN)], schema=SCHEMA)
    assert _carried(to_server, alone, alone) == _carried(to_server, alone, alone.clear()) == []
