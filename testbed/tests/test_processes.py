"""Children of a run: the error for one that ended too early."""

import os
import select
import signal

import pytest

from testbed.errors import RunError
from testbed.host.processes import Processes


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("echo no device; exit 3", 'medium: sh ended with status 3: "no device"; run it again'),
        ("echo ready; kill -KILL $$", "medium: sh was killed by SIGKILL; run it again"),
    ],
    ids=["status", "signal"],
)
def test_the_last_line_of_the_log_is_the_reason_of_a_child_that_ended_itself(tmp_path, script, wanted):
    with Processes(tmp_path) as processes:
        processes.start("medium", ["sh", "-c", script], remedy="run it again")
        with pytest.raises(RunError) as problem:
            processes.watch()
    assert str(problem.value) == wanted


def test_an_awaited_child_that_is_killed_while_others_are_looked_at_is_a_failure(tmp_path):
    def kill() -> None:
        child.popen.kill()
        child.popen.wait()

    with Processes(tmp_path) as processes:
        child = processes.start("flow1-sender", ["sleep", "60"], remedy="run it again", may_end=True)
        with pytest.raises(RunError, match="flow1-sender: sleep was killed by SIGKILL"):
            processes.watch(ended=[child], on_tick=kill)


@pytest.mark.parametrize(("stations", "status"), [(0, -signal.SIGKILL), (1000, 0)])
def test_a_child_that_serves_many_stations_has_longer_to_end(tmp_path, monkeypatch, stations, status):
    """Without stations the limit is over at once here; with 1000 it is 90 s, and the child takes a moment."""
    monkeypatch.setattr("testbed.host.processes.STOP_DEADLINE_S", 0.0)
    monkeypatch.setattr("testbed.host.processes.EACH_S", 0.1 if stations else 0.0)
    at_the_signal = "sleep 0.1; exit 0" if stations else "sleep infinity"
    with Processes(tmp_path) as processes:
        script = f"trap '{at_the_signal}' TERM; sleep infinity & echo ready; wait"
        medium = processes.start("medium", ["sh", "-c", script], remedy="-", with_children=True)
        processes.wait_for_text([medium], "ready\n", within_s=60)
        processes.stop([medium], stations=stations)
        assert medium.popen.returncode == status


def test_a_failed_child_that_another_thread_takes_back_fails_nothing(tmp_path, monkeypatch):
    with Processes(tmp_path) as processes:
        child = processes.start("flow2-receiver", ["false"], remedy="-")
        child.popen.wait()
        monkeypatch.setattr("testbed.host.processes.time.sleep", lambda _s: processes.stop([child]))
        processes.check()


def test_a_process_has_printed_what_its_predecessor_of_the_same_name_has_not(tmp_path):
    with Processes(tmp_path) as processes:
        for word in ("first", "second"):
            child = processes.start("daemon", ["sh", "-c", f"echo {word}; sleep 60"], remedy="-")
            processes.wait_for_text([child], f"{word}\n", within_s=20)
            assert child.printed() == f"{word}\n"
            processes.stop([child])
    assert (tmp_path / "daemon.log").read_text() == "first\nsecond\n"


def test_a_command_is_ended_with_the_processes_that_it_has_started(tmp_path):
    with Processes(tmp_path) as processes:
        script = "sleep 600 & echo $!; wait"
        child = processes.start("command", ["sh", "-c", script], remedy="-", with_children=True)
        processes.wait_for_text([child], "\n", within_s=20)
        other = os.pidfd_open(int(child.printed()))
        processes.stop([child])
    poller = select.poll()
    poller.register(other, select.POLLIN)
    assert poller.poll(20_000)  # it has ended
    os.close(other)
