"""The acknowledgement that ends a stand-by: those of segments that got through before the break prove nothing about the route."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from outage_run import layer, layered
from tcplab import MSS
from test_layers import Daemon, Trial, noticed, trial, whole

pytestmark = pytest.mark.root


def interrupted(lab, one: Trial, command: str, ends: Callable[[], None] = lambda: None) -> None:
    """A transfer whose path breaks for a second: data past the break arrives and is acknowledged."""
    server = lab.serve()
    lab.ready_line(lab.send(250 * MSS), "connected")
    time.sleep(0.5)
    one.break_path(command)
    time.sleep(1.0)
    one.repair_path()
    ends()
    whole(server, 250 * MSS)


def acknowledged(one: Trial) -> bool:
    """Whether new data was acknowledged in stand-by."""
    began, ended = one.events("stand-by")[0]["time"], one.events("repair")[0]["time"]
    rows = list(csv.DictReader((one.lab.folder / "tcp.csv").open()))
    times = [(int(row["t_ns"]) / 1e9 - one.broke, row["snd_una"]) for row in rows if row["dport"] == "5201" and not row["event"]]
    return len({una for at, una in times if began <= at < ended}) > 1


@pytest.mark.parametrize("name", ["tcpf", "tcpbus"])
def test_data_delivered_before_the_break_ends_no_freeze(slow_lab, name):
    """Chandran et al.: the sender is in the snooze state until the re-establishment notice."""
    with trial(slow_lab, layered(layer(name))) as one:
        interrupted(slow_lab, one, "behind 5201")
    assert acknowledged(one)
    assert [row["detail"] for row in one.events("stand-by")] == ["held"]
    assert [row["detail"] for row in one.events("repair")] == ["restored"]
    assert one.events("repair")[0]["time"] >= one.repaired - one.broke
    assert len(one.segments(one.events("stand-by")[0]["time"] + 0.01, one.repaired - one.broke)) <= 1  # tcpbus: its timer


@pytest.mark.parametrize("tcp", [layer("atcp", probe_us=400000), layer("elfn", probe_us=400000, leave="probe-ack")], ids=str)
def test_data_delivered_before_the_break_is_no_answer_to_a_probe(slow_lab, tcp):
    """Liu and Singh: the receiver's answer to a probe ends the persist mode."""
    with trial(slow_lab, layered(tcp)) as one:
        interrupted(slow_lab, one, "behind")
    assert acknowledged(one)
    recorded = [row["event"] for row in one.events("stand-by", "probe", "repair")]
    assert recorded == ["stand-by", *["probe"] * (len(recorded) - 2), "repair"]
    assert one.events("repair")[0]["time"] >= one.repaired - one.broke
    sent = [at for at, _ in one.segments(one.events("stand-by")[0]["time"] + 0.01, one.repaired - one.broke)]
    assert len(sent) == len([row for row in one.events("probe") if row["time"] < one.repaired - one.broke]) == 2


def test_any_acknowledgement_ends_elfn_as_it_is_written(slow_lab):
    """Holland and Vaidya, 6: "if an acknowledgment is received, then it leaves standby mode"."""
    with trial(slow_lab, layered(layer("elfn", probe_us=400000))) as one:
        interrupted(slow_lab, one, "behind")
    assert one.events("repair")[0]["time"] < 0.2


@pytest.mark.parametrize("name", ["tcpf", "tcpbus"])
def test_nothing_is_outstanding_and_the_route_comes_back(slow_lab, name):
    """The source has lost its route, but all its data arrives. Only the daemon's note ends the freeze."""
    lab = slow_lab
    lab.status = str(lab.folder / "daemon.sock")
    with trial(lab, layered(layer(name, **({} if name == "tcpf" else {"factor": 16})))) as one:
        daemon = Daemon(Path(lab.status))
        server = lab.serve()
        lab.ready_line(lab.send(250 * MSS), "connected")
        time.sleep(0.5)
        one.broke = time.time()
        daemon.note("lost")
        time.sleep(0.8)
        one.repaired = time.time()
        daemon.note("route", value=3)
        whole(server, 250 * MSS)
        daemon.close()
    assert acknowledged(one)
    assert [row["detail"] for row in one.events("repair")] == ["route"]
    assert len(one.segments(one.events("stand-by")[0]["time"] + 0.05, one.repaired - one.broke)) == 0
    assert one.segments(one.repaired - one.broke)[0][0] - one.events("repair")[0]["time"] < 0.1


@pytest.mark.parametrize("tcp", [layer("atcp", probe_us=300000), layer("elfn", probe_us=300000, leave="probe-ack")], ids=str)
def test_a_probe_without_outstanding_data_is_the_last_segment(slow_lab, tcp):
    """It is old, so that the receiver acknowledges it at once (RFC 9293, 3.10.7.4)."""
    with trial(slow_lab, layered(tcp)) as one:
        noticed(one, 1)
    began, probe, repair = one.events("stand-by", "probe", "repair")
    assert [row["event"] for row in (began, probe, repair)] == ["stand-by", "probe", "repair"]
    assert probe["snd_una"] == probe["snd_nxt"]
    assert probe["time"] - began["time"] == pytest.approx(0.3, abs=0.1)
    assert repair["time"] - probe["time"] < 0.2


def test_a_late_notice_about_delivered_data_ends_with_its_acknowledgement(slow_lab):
    """There is a route, so no notice of a new one follows: otherwise only the failure timer would end the freeze."""
    with trial(slow_lab, layered(layer("tcpf"))) as one:
        noticed(one, 1)
    assert [row["detail"] for row in one.events("stand-by")] == ["unreachable"]
    assert [row["detail"] for row in one.events("repair")] == ["ack"]
    assert one.events("repair")[0]["time"] - one.events("stand-by")[0]["time"] < 1.0
