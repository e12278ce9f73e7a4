"""Progress as JSON lines (testbed/campaigns/progress_json.py)."""

import io
import json

from testbed.campaigns.progress_json import EVERY_S, JsonProgress
from testbed.campaigns.remaining import Work

WORKS = [Work("a", 0.0, 10.0), Work("b", 0.0, 10.0)]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def sent(stream: io.StringIO) -> list[dict]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_each_stage_is_sent_and_fractions_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = JsonProgress(stream, clock)
    progress.expect(WORKS, jobs=1, starts=1)
    progress.stage("a", "starts")
    for step in range(100):  # 10 s, ten steps a second
        clock.now_s = 1 + step / 10
        progress.stage("a", "traffic", step / 100)
    progress.finished("a", "valid")
    first, *stages, last = sent(stream)
    assert first == {"event": "expect", "runs": 2, "jobs": 1}
    assert [message["stage"] for message in stages[:2]] == ["starts", "traffic"]
    assert len(stages) == 1 + 10 / EVERY_S
    assert stages[0]["fraction"] is None and stages[-1]["fraction"] > stages[1]["fraction"]
    assert (last["event"], last["run"], last["outcome"], last["done"], last["total"]) == ("run", "a", "valid", 1, 2)
    assert last["left_s"] > 0


def test_a_note_is_one_object() -> None:
    stream = io.StringIO()
    JsonProgress(stream).note("measuring the captures")
    assert sent(stream) == [{"event": "note", "text": "measuring the captures"}]
