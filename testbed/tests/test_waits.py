"""Do the stations' programs get a processor when they want one?"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from testbed.errors import HostLateError, RunError
from testbed.host import run_queue
from testbed.host.run_queue import RunQueue, WaitTime
from testbed.runs import verdict, waits
from testbed.runs.live_network import LiveNetwork
from testbed.runs.verdict import TrafficStart
from testbed.runs.waits import Waits, WaitSummary


def seen(*windows: tuple[float, int], seconds: float = 1.0) -> WaitSummary:
    """From windows of (milliseconds waited in all, turns)."""
    found = WaitSummary()
    for ms, turns in windows:
        found.add(WaitTime(round(ms * 1e6), turns), seconds)
    return found


def test_thirty_daemons_that_wait_half_a_millisecond_a_turn_are_no_starvation() -> None:
    """Twenty such runs side by side, measured."""
    assert seen(*[(350, 700)] * 20).judgement() == ("valid", [])


@pytest.mark.parametrize(("starved", "judged"), [(0, "valid"), (4, "valid"), (5, "suspect"), (19, "suspect"), (20, "void")])
def test_the_share_of_starved_seconds_decides(starved: int, judged: str) -> None:
    found = seen(*[(10 * 100, 100)] * starved, *[(0.3 * 700, 700)] * (100 - starved))
    assert found.judgement()[0] == judged
    assert found.starved_share == pytest.approx(starved / 100)


def test_few_turns_of_long_waits_weigh_as_much_time_as_many_of_short_ones() -> None:
    """A mean over all turns would not see it: those who starve take few turns."""
    found = seen(*[(1000, 10)] * 10, *[(200, 1000)] * 90)
    assert found.report()["mean_wait_ms"] < 1
    assert found.judgement()[0] == "suspect"


def test_a_single_delay_of_idle_programs_is_not_starvation() -> None:
    assert seen(*[(30, 1)] * 10).judgement()[0] == "valid"
    assert seen(*[(200, 1)] * 10).judgement()[0] == "void"


def test_a_kernel_that_does_not_tell_is_not_judged() -> None:
    assert seen((0, 0)).report() is None
    assert WaitSummary().judgement() == ("valid", [])


def test_starvation_is_reported_during_the_run() -> None:
    waits = Waits(Path("/"), queue=FakeQueue())
    assert waits.starved() is None
    waits.summary = seen(*[(0.3 * 700, 700)] * 90, (1000, 20))
    assert waits.starved() == "programs of the stations waited 50 ms for a processor in the last second"
    waits.summary = seen((1000, 20), (0.3 * 700, 700))  # half of the time: void
    assert (waits.starved() or "").startswith("programs of the stations waited 10 ms or longer for a processor in 50 %")
    waits.summary = seen((1000, 20), *[(0.3 * 700, 700)] * 9)
    assert waits.starved() is None


class FakeQueue:
    def __init__(self, *looks: dict[int, WaitTime]) -> None:
        self.looks = list(looks)

    def read(self) -> dict[int, WaitTime]:
        return self.looks.pop(0)

    def close(self) -> None:
        pass


def test_windows_count_from_the_traffic_on_and_later_programs_count_in_full() -> None:
    queue = FakeQueue(
        {1: WaitTime(900, 9)},  # before the traffic
        {1: WaitTime(1000, 10), 2: WaitTime(50, 5)},
        {2: WaitTime(60, 6)},  # 1 has ended
    )
    now_s = [0.0]
    waits = Waits(Path("/"), queue=queue, clock=lambda: now_s[0])
    waits.tick()  # not begun: nothing
    waits.begin()
    for now_s[0] in (0.5, 1.0, 1.7):
        waits.tick()
    found = waits.end()
    assert (found.total, found.seconds) == (WaitTime(100 + 50 + 10, 1 + 5 + 1), 1.7)
    waits.tick()  # over
    assert queue.looks == []


def test_a_thread_with_the_number_of_one_that_has_ended_counts_from_its_own_start() -> None:
    queue = FakeQueue({1: WaitTime(900, 9)}, {1: WaitTime(40, 4)})
    now_s = [0.0]
    waits = Waits(Path("/"), queue=queue, clock=lambda: now_s[0])
    waits.begin()
    now_s[0] = 1.0
    assert waits.end().total == WaitTime(40, 4)


@pytest.mark.parametrize("kept", [run_queue.MAX_KEPT, 1, 0])
def test_the_kernel_tells_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """Two that want the same processor wait for each other; what is set aside, and who has gone, is not looked at."""
    monkeypatch.setattr(run_queue, "MAX_KEPT", kept)
    processor = str(min(os.sched_getaffinity(0)))
    spin = ["taskset", "-c", processor, sys.executable, "-I", "-S", "-c", "while True: pass"]
    gone = subprocess.Popen(["true"])
    gone.wait()
    two = [subprocess.Popen(spin) for _ in range(2)]
    shell = subprocess.Popen(["bash", "-c", "echo; read"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert shell.stdout is not None
    try:
        shell.stdout.readline()  # execve(2) ends before the kernel has renamed the process
        (tmp_path / "cgroup.threads").write_text("\n".join(str(p.pid) for p in [*two, shell, gone]))
        queue = RunQueue(tmp_path)
        opened = len(list(Path("/proc/self/fd").iterdir()))
        before = queue.read()
        assert len(list(Path("/proc/self/fd").iterdir())) == opened + 2 * min(kept, 2)
        with pytest.raises(subprocess.TimeoutExpired):
            two[0].wait(0.5)
        after = queue.read()
    finally:
        for process in [*two, shell]:
            process.kill()
            process.wait()
    assert set(after) == {process.pid for process in two}
    if not any(waited.turns for waited in after.values()):
        pytest.skip("this kernel keeps no /proc/PID/schedstat (CONFIG_SCHED_INFO)")
    assert sum((after[task] - before[task]).ns for task in after) > 0.1e9


def test_the_verdict_is_the_worse_of_the_mediums_and_the_programs(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"

    def judged(medium: str, *windows: tuple[float, int]) -> dict:
        path.write_text(json.dumps({"verdict": medium, "reasons": ["late"] if medium != "valid" else []}))
        verdict.add_judgements(tmp_path, programs=seen(*windows))
        return json.loads(path.read_text())

    assert judged("valid", (1, 10))["verdict"] == "valid"
    starved = judged("valid", (1000, 10))
    assert (starved["verdict"], len(starved["reasons"])) == ("void", 1)
    assert "waited 10 ms or longer for a processor in 100 % of the traffic's time" in starved["reasons"][0]
    both = judged("void", (1000, 10), *[(1, 10)] * 9)
    assert (both["verdict"], both["reasons"][0], both["programs"]["starved_share"]) == ("void", "late", 0.1)
    assert judged("suspect", (1, 10))["verdict"] == "suspect"
    assert [entry.name for entry in tmp_path.iterdir()] == ["verdict.json"]


@pytest.mark.parametrize(
    ("late_s", "judged"), [(0.0, "valid"), (0.5, "valid"), (0.51, "suspect"), (2.5, "suspect"), (2.6, "void")]
)
def test_traffic_that_begins_late_against_the_movement_is_judged(late_s: float, judged: str) -> None:
    assert TrafficStart(late_s).judgement()[0] == judged


def test_a_late_start_of_the_traffic_is_in_the_verdict_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps({"verdict": "valid", "reasons": []}))
    verdict.add_judgements(tmp_path, programs=seen((1, 10)), traffic_start=TrafficStart(1.012))
    judged = json.loads(path.read_text())
    assert judged["verdict"] == "suspect"
    assert judged["reasons"][0].startswith("the traffic began 1.01 s after traffic_at (allowed 0.5 s)")
    assert judged["traffic_start"] == {"late_s": 1.012, "thresholds": {"suspect_s": 0.5, "void_s": 2.5}}


def test_the_thresholds_are_in_order() -> None:
    assert 0 < waits.SUSPECT_SHARE < waits.VOID_SHARE <= 1
    assert 0 < verdict.SUSPECT_LATE_S < verdict.VOID_LATE_S


STARVED = [(10 * 100, 100)] * 10
WELL = [(0.3 * 700, 700)] * 10
LATE = {"verdict": "void", "lateness": {"max_us": 812_000.0}}


def failing(summary: WaitSummary, status: dict[str, object] | None) -> None:
    """A run whose flow does not end, of which the medium says `status`; None: it has died."""

    def ask(_verb: str) -> dict[str, object]:
        if status is None:
            raise RunError("medium: no answer")
        return status

    live = SimpleNamespace(_waits=SimpleNamespace(summary=summary), network=SimpleNamespace(medium=SimpleNamespace(ask=ask)))
    with LiveNetwork.host_blamed(cast(Any, live)):
        raise RunError("flow1: not ended 60 s after its time")


@pytest.mark.parametrize(
    ("windows", "status", "reason"),
    [
        (STARVED, {"verdict": "suspect"}, "programs of the stations waited 10 ms or longer"),
        (STARVED, None, "programs of the stations waited 10 ms or longer"),
        (WELL, LATE, "the medium was up to 812 ms late"),
    ],
)
def test_a_failure_on_a_host_that_made_the_run_void_is_the_host_s(
    windows: list[tuple[float, int]], status: dict[str, object] | None, reason: str
) -> None:
    with pytest.raises(HostLateError, match=rf"flow1: not ended .*; the host was too busy \({reason}"):
        failing(seen(*windows), status)


@pytest.mark.parametrize("status", [{"verdict": "valid"}, {"verdict": "suspect"}, None])
def test_a_failure_on_a_host_that_kept_up_is_the_run_s(status: dict[str, object] | None) -> None:
    with pytest.raises(RunError, match=r"60 s after its time$") as caught:
        failing(seen(*WELL), status)
    assert not isinstance(caught.value, HostLateError)
