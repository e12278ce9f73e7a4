"""The figures of web sessions, counted from records with known numbers."""

import json
from pathlib import Path

import pytest

from traffic.shared.sessions import METRICS, OF_RUN, finished_requests, of_run, outcome, quantile, read_record


def request(cycle: int, issued_s: float, first_s: float | None, reply_bytes: int, **more: object) -> dict:
    event = {"event": "request", "id": f"{cycle}.1", "try": 1, "cycle": cycle, "issued_s": issued_s, "sent_s": issued_s + 0.5}
    return {**event, "first_s": first_s, "reply_bytes": reply_bytes, "error": None, **more}


# Two cycles of 4 and 6 s, 10 s of thought between them: 4 + 6 s of service. Responses after 1 and 3 s, 1000 + 250 + 4000 bytes.
FINISHED = [
    {"event": "begin", "t_s": 0.0, "began_unix_s": 1.7e9, "seconds": 200.0},
    {"event": "issue", "id": "1.1", "try": 1},
    request(1, 0.0, 1.0, 1000),
    request(1, 2.0, 3.5, 250, id="1.2"),
    {"event": "cycle", "t_s": 4.0, "cycle": 1, "began_s": 0.0},
    {"event": "think", "t_s": 14.0, "cycle": 1, "began_s": 4.0},
    {"event": "issue", "id": "2.1", "try": 1},
    request(2, 14.0, 17.0, 4000),
    {"event": "cycle", "t_s": 20.0, "cycle": 2, "began_s": 14.0},
    {"event": "end", "t_s": 20.0, "finished": True},
]


def test_a_finished_session_is_served_until_its_last_cycle_without_thinking() -> None:
    found = outcome(FINISHED, 2, 200.0)
    assert list(found) == [metric.name for metric in METRICS]
    assert (found["finished"], found["service_s"], found["session_bytes"]) == (True, 10.0, 5250)
    assert found["throughput_bps"] == 5250 * 8 / 10
    assert (found["cycles_finished"], found["cycles_planned"], found["cycles_answered"]) == (2, 2, 2)
    assert (found["requests_finished"], found["retries"]) == (3, 0)


def test_a_response_is_the_first_reply_of_a_cycle() -> None:
    """1 s and 3 s: mean 2, p95 1 + 0.95 * 2; from the request's transmission, 0.5 s later, 0.5 and 2.5 s."""
    found = outcome(FINISHED, 2, 200.0)
    assert (found["response_s_mean"], found["response_s_p50"], found["response_s_max"]) == (2.0, 2.0, 3.0)
    assert found["response_s_p95"] == pytest.approx(2.9)
    assert found["first_byte_s_mean"] == pytest.approx(1.5)


def test_an_unfinished_session_is_served_for_all_its_time_without_thinking() -> None:
    """The second cycle is in progress at 200 s: 200 - 10 s, and its 700 bytes count."""
    events = [*FINISHED[:7], request(2, 14.0, 17.0, 700, error="unfinished"), {"event": "end", "t_s": 200.0, "finished": False}]
    found = outcome(events, 2, 200.0)
    assert (found["finished"], found["service_s"], found["session_bytes"]) == (False, 190.0, 1950)
    assert (found["cycles_finished"], found["cycles_answered"], found["requests_finished"]) == (1, 2, 2)


def test_thinking_at_the_end_is_no_service() -> None:
    events = [*FINISHED[:5], {"event": "think", "t_s": 9.0, "cycle": 1, "began_s": 4.0}]
    assert outcome(events, 2, 9.0)["service_s"] == 4.0


def test_a_retry_s_response_counts_from_the_first_attempt() -> None:
    """Issued at 0 s, refused, answered at 5 s."""
    lost = request(1, 0.0, None, 0, error="refused")
    again = request(1, 0.0, 5.0, 1000, **{"try": 2})
    issues = [{"event": "issue", "id": "1.1", "try": number} for number in (1, 2)]
    found = outcome([FINISHED[0], issues[0], lost, issues[1], again], 1, 10.0)
    assert (found["response_s_mean"], found["retries"], found["requests_finished"]) == (5.0, 1, 1)


def test_a_session_without_an_answer_has_no_response_time() -> None:
    found = outcome(FINISHED[:2], 2, 200.0)
    assert (found["service_s"], found["throughput_bps"], found["response_s_mean"], found["response_s_p95"]) == (
        200,
        0,
        None,
        None,
    )


def test_over_the_sessions_throughput_is_of_sums_and_response_of_all_cycles() -> None:
    """Bytes 1000 + 3000 over 10 + 30 s; responses: 2 cycles of 1 s and 6 of 3 s, (2 + 18) / 8."""
    one = {"service_s": 10.0, "session_bytes": 1000, "finished": True, "cycles_answered": 2, "response_s_mean": 1.0}
    two = {"service_s": 30.0, "session_bytes": 3000, "finished": False, "cycles_answered": 6, "response_s_mean": 3.0}
    none = {"service_s": 20.0, "session_bytes": 0, "finished": False, "cycles_answered": 0, "response_s_mean": None}
    found = of_run([one, two])
    assert set(found) == {metric.name for metric in OF_RUN}
    assert (found["service_s"], found["throughput_bps"], found["response_s"]) == (20.0, 4000 * 8 / 40, 2.5)
    assert (found["finished_sessions"], found["sessions"]) == (1, 2)
    assert of_run([one, none])["throughput_bps"] == 1000 * 8 / 30 and of_run([none])["response_s"] is None


def test_a_session_without_a_record_leaves_no_figure() -> None:
    found = of_run([{"service_s": 10.0}, {"service_s": None}])
    assert found == {**{metric.name: None for metric in OF_RUN}, "sessions": 2}


def test_a_record_that_ends_in_mid_line_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in FINISHED[:4]) + '{"event": "cyc')
    assert read_record(path) == FINISHED[:4] and len(finished_requests(read_record(path))) == 2


def test_quantiles_are_interpolated() -> None:
    assert (quantile([], 0.5), quantile([3.0], 0.95), quantile([1.0, 2.0, 4.0], 0.75)) == (None, 3.0, 3.0)
