"""The probe that tells a void run on a loaded host from one on an idle host."""

import os
import signal
import time

import pytest

from tests.probe import BUSY_SHARE, SECOND_TRY, Idleness, Probe

BUSY, IDLE = Idleness(BUSY_SHARE * 10, 10), Idleness(0.0, 10)


def that_saw(idleness: Idleness) -> Probe:
    probe = Probe()
    probe._idleness = idleness
    return probe


@pytest.mark.parametrize(("idleness", "second_try"), [(IDLE, False), (IDLE, True), (BUSY, False)])
def test_a_void_run_fails_unless_the_host_was_busy_at_the_second_try(
    monkeypatch: pytest.MonkeyPatch, idleness: Idleness, second_try: bool
) -> None:
    monkeypatch.delenv(SECOND_TRY, raising=False)
    if second_try:
        monkeypatch.setenv(SECOND_TRY, "1")
    with pytest.raises(pytest.fail.Exception, match=r"void: 3 stalls; the host was (idle enough|too busy)"):
        that_saw(idleness).void("3 stalls")


def test_a_void_second_try_on_a_busy_host_is_skipped_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECOND_TRY, "1")
    with pytest.raises(pytest.skip.Exception, match=r"void twice: 3 stalls; the host was too busy .* lost 1\.0 % of 10\.0 s"):
        that_saw(BUSY).void("3 stalls")


def test_a_probe_that_is_stopped_reports_the_time_it_lost() -> None:
    with Probe() as probe:
        time.sleep(0.5)
        os.kill(probe._sleeper.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(probe._sleeper.pid, signal.SIGCONT)
        idleness = probe.idleness()
    assert idleness.busy and 0.4 < idleness.lost_s <= idleness.watched_s
