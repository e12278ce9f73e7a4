"""The program that starts iperf3 again until its ends meet, with a stand-in for iperf3."""

import json
import subprocess
import sys

import pytest

from testbed.stages.traffic import BULK

UNREACHED = {"error": "unable to connect to server - server may have stopped running or use a different port: No route to host"}
STAND_IN = """
import json, sys
from pathlib import Path
answers, calls = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
with calls.open("a") as file: file.write(sys.argv[-1] + "\\n")
answer = answers[min(len(calls.read_text().split()), len(answers)) - 1]
print(json.dumps(answer)); sys.exit(1 if "error" in answer else 0)
"""


@pytest.fixture
def bulk(tmp_path):
    def run(answers: list[dict], seconds: float) -> tuple[int, dict, list[int]]:
        (tmp_path / "answers.json").write_text(json.dumps(answers))
        (tmp_path / "iperf.py").write_text(STAND_IN)
        command = [sys.executable, tmp_path / "iperf.py", tmp_path / "answers.json", tmp_path / "calls"]
        argv = [sys.executable, BULK, "--seconds", seconds, "--report", tmp_path / "report.json", "--", *command]
        status = subprocess.run([str(word) for word in argv], timeout=60).returncode
        lengths = [int(word) for word in (tmp_path / "calls").read_text().split()]
        return status, json.loads((tmp_path / "report.json").read_text()), lengths

    return run


def test_a_flow_whose_ends_meet_late_sends_for_the_time_that_is_left(bulk):
    status, report, lengths = bulk([UNREACHED, UNREACHED, UNREACHED, {"end": {}}], 30)
    assert (status, report["manet"]["tries"], report["manet"]["connected"]) == (0, 4, True)
    assert lengths[0] == 30 and lengths[-1] < 30
    assert "error" not in report


def test_ends_that_never_meet_carry_nothing_and_fail_nothing(bulk):
    status, report, lengths = bulk([UNREACHED], 2)
    assert (status, report["manet"]["connected"]) == (0, False)
    assert report["manet"]["tries"] == len(lengths) >= 1
    assert "error" not in report


def test_any_other_error_is_iperf3s_own_and_not_tried_again(bulk):
    status, report, lengths = bulk([{"error": "control socket has closed unexpectedly"}, {"end": {}}], 10)
    assert (status, report["error"], len(lengths)) == (1, "control socket has closed unexpectedly", 1)
