"""tcpbus: of a window that broke in two the source resends the segments that the node on the path lacks, once each."""

from __future__ import annotations

import subprocess
import time
from contextlib import contextmanager

import pytest
from forge import lists
from outage_run import layer, layered
from tcplab import MSS, stations, wait_for
from test_layers import forger, stands_by, trial, whole

pytestmark = pytest.mark.root

PORT = 5201
WINDOW = 8
WARM = 20  # segments before the break, all acknowledged: the congestion window is then as large as the offered one
LOST = (20, 21, 24)  # before the node's segments and between them; their first transmission only
BURST = "sys.stdin.readline(); c.sendall(bytes(8*1460)); sys.stdin.readline(); c.sendall(bytes(30*1460))"
QUOTED = b"\x45\0\x05\xdc".ljust(32, b"\0") + b"\x50".ljust(8, b"\0")  # a segment with only its sequence numbers


@contextmanager
def half_lost(folder, cgroup_root):
    """A connection whose window is cut; it stands by when the `with` begins. Timers wait 3 s, so none fires here."""
    losses = ",".join(f"{PORT}/{segment}:1" for segment in LOST)
    with stations(folder, cgroup_root, ["--rate-bps", "2e6", "--delay-ms", "20", "--lose", losses], quickack=True) as lab:
        lab.a.run("ip", "route", "change", "10.9.0.0/24", "dev", "eth0", "quickack", "1", "rto_min", "3s", in_cgroup=False)
        with trial(lab, layered(layer("tcpbus", factor=4), window_segments=WINDOW)) as one:
            server = lab.serve(PORT)
            client = lab.send(WARM * MSS, PORT, then=BURST, stdin=subprocess.PIPE)
            lab.ready_line(client, "connected")
            wait_for(lambda: acknowledged(lab) == WARM * MSS, "the first segments to be acknowledged")
            one.break_path(f"broken {PORT}")
            time.sleep(0.3)  # until the relay has read it
            yield one, client, server


def acknowledged(lab) -> int:
    rows = [row for row in lab.a.sockets() if row["peer"].endswith(f":{PORT}")]
    return int(rows[0].get("bytes_acked", 0)) - 1 if rows else 0  # the SYN counts


def burst(client) -> None:
    client.stdin.write("\n")
    client.stdin.flush()


def finish(one, client, server) -> None:
    burst(client)
    client.stdin.close()
    client.stdin = None
    whole(server, (WARM + WINDOW + 30) * MSS)


def once(folder, cgroup_root):
    """The trial, and the segments that left in the outage."""
    with half_lost(folder, cgroup_root) as (one, client, server):
        burst(client)
        wait_for(lambda: stands_by(one), "stand-by")
        one.repair_path()
        wait_for(lambda: acknowledged(one.lab) >= (WARM + WINDOW) * MSS, "the window to be acknowledged")
        finish(one, client, server)
    sent = [number for _, number in one.segments(0, one.repaired - one.broke)]
    return one, sent


def test_segments_neither_acknowledged_nor_held_are_resent_once(host, tmp_path, cgroup_root):
    one, sent = once(tmp_path, cgroup_root)
    if sent != list(range(WARM, WARM + WINDOW)):
        host.void(f"the first notice was quicker than the sender: of the window only {sent} left")
    after = [number for _, number in one.segments(one.repaired - one.broke)]
    assert tuple(number for number in after if number < WARM + WINDOW) == LOST
    assert len(set(after)) == len(after)
    assert len(one.events("retransmit")) == len(LOST)
    assert [row["detail"].split()[0::2] for row in one.events("notice")] == [["held"], ["restored", "ranges=2"]]
    assert one.events("timeout", "probe") == []
    # the held segments overtook the resent ones: the receiver's duplicate ACKs were ignored
    assert one.report["duplicate-acks-answered"] >= 3


def test_invalid_list_triggers_no_retransmission(tmp_path, cgroup_root):
    with half_lost(tmp_path, cgroup_root) as (one, client, server):
        forge = forger(one.lab, "lists", 0, PORT)
        burst(client)
        wait_for(lambda: stands_by(one), "stand-by")
        forge()
        assert stands_by(one)
        one.repair_path()
        finish(one, client, server)
    expected = {counter: len(packets) for counter, packets in lists(QUOTED).items()}
    assert {counter: one.report[counter] for counter in expected} == expected
    assert [row["detail"].split()[0] for row in one.events("notice")] == ["held", "restored"]
    began, ended = one.events("stand-by")[0]["time"], one.events("repair")[0]["time"]
    assert one.repaired - one.broke <= ended + 0.001
    assert one.events("probe") == [] and all(row["time"] > began for row in one.events("retransmit"))
