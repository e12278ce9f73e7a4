"""Children of a run: the error for one that ended too early."""

import os
import select

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
