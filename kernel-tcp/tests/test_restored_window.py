"""elfn(restore=...): the window "before the failure" if the notice comes after timeouts.

A node that repairs the route itself sends no notice until it gives up (AODV, RFC 3561, 6.12). This may take longer than the
RTO: the kernel's window is then one segment.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from outage_run import layer, layered
from tcplab import MSS, wait_for
from test_layers import Daemon, Trial, stands_by, trial, whole

pytestmark = pytest.mark.root

WINDOW = 8


def late_notice(lab, one: Trial, standing_s: float) -> None:
    """A transfer whose path breaks without ICMP; after the second timeout the own daemon sends a note."""
    daemon = Daemon(Path(lab.status))
    server = lab.serve()
    lab.ready_line(lab.send(250 * MSS), "connected")
    time.sleep(0.8)
    one.break_path("broken -5201")
    wait_for(lambda: len(one.events("timeout")) >= 2, "two timeouts")
    daemon.note("lost")
    wait_for(lambda: stands_by(one), "stand-by")
    time.sleep(standing_s)
    one.repair_path()
    whole(server, 250 * MSS)
    daemon.close()


def windows(row: dict) -> tuple[int, int]:
    return int(row["snd_cwnd"]), int(row["ssthresh"])


@pytest.mark.parametrize("standing_s", [0.0, 2.0], ids=["before the timer", "after the timer"])
def test_before_timeout_gives_back_the_window_of_before(slow_lab, standing_s):
    """With and without an expiry of the kernel's timer in stand-by."""
    slow_lab.status = str(slow_lab.folder / "daemon.sock")
    with trial(slow_lab, layered(layer("elfn", probe_us=200000, restore="before-timeout"))) as one:
        late_notice(slow_lab, one, standing_s)
    repair = one.events("repair")[0]["time"]
    assert windows(one.events("timeout")[0])[0] == WINDOW
    assert windows(one.events("timeout")[1])[0] == 1
    assert windows(one.events("window")[0]) == windows(one.events("timeout")[0])
    assert len(one.segments(repair, repair + 0.025)) > 4  # together: the round trip is over 40 ms


def test_at_notice_restores_the_state_that_the_timeouts_left(slow_lab):
    """Holland and Vaidya, 6: as it was "when the ELFN was first received"."""
    slow_lab.status = str(slow_lab.folder / "daemon.sock")
    with trial(slow_lab, layered(layer("elfn", probe_us=200000))) as one:
        late_notice(slow_lab, one, 2.0)
    repair = one.events("repair")[0]["time"]
    assert windows(one.events("window")[0])[0] == 1
    assert len(one.segments(repair, repair + 0.025)) <= 2


def test_acknowledgement_before_the_notice_restarts_the_count_of_timeouts(slow_lab):
    """The window before earlier, finished timeouts is not the window before this failure."""
    lab = slow_lab
    lab.status = str(lab.folder / "daemon.sock")
    with trial(lab, layered(layer("elfn", probe_us=200000, restore="before-timeout"))) as one:
        daemon = Daemon(Path(lab.status))
        server = lab.serve()
        lab.ready_line(lab.send(400 * MSS), "connected")
        time.sleep(0.8)
        one.break_path("broken -5201")
        wait_for(lambda: one.events("timeout"), "a timeout")
        one.repair_path()
        time.sleep(1.2)
        noticed = time.time() - one.broke
        daemon.note("lost")
        whole(server, 400 * MSS)
        daemon.close()
    assert len(one.events("stand-by")) == 1
    assert [row for row in one.events("window") if row["time"] > noticed] == []
