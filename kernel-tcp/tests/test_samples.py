"""tcp.csv: a row per segment received by a station's socket, in agreement with other outputs of the kernel."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
import zlib

import pytest
from tcplab import DEADLINE_S, MSS, end, wait_for

pytestmark = pytest.mark.root

COLUMNS = [
    *("t_ns", "station", "cookie", "saddr", "sport", "daddr", "dport", "data_len", "snd_nxt", "snd_una"),
    *("snd_cwnd", "ssthresh", "snd_wnd", "srtt_us", "rto_us", "rcv_wnd", "ca_state", "event", "detail"),
]
RENO = {"algorithm": "newreno", "window_segments": 8, "initial_window_segments": 2, "delayed_ack": False}
OPEN, RECOVERY, LOSS = 0, 3, 4  # enum tcp_ca_state, include/net/tcp.h


def rows(lab, station: str) -> list[dict]:
    with (lab.folder / "tcp.csv").open() as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == COLUMNS
        found = [row for row in reader if row["station"] == station and not row["event"]]
    text = {"station", "saddr", "daddr", "event", "detail"}
    return [{key: value if key in text else int(value) for key, value in row.items()} for row in found]


def sampled_transfer(lab, segments: int):
    """Transfers and stops manet-tcp; returns its report and the capture at `a`."""
    with lab.manet_tcp("tcp.csv", both=RENO) as process:
        with lab.capture(lab.a) as packets:
            lab.transfer(segments * MSS)
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert err == ""
    return json.loads(out), packets


def test_a_row_for_every_segment_received(slow_lab):
    before = time.time_ns()
    report, packets = sampled_transfer(slow_lab, 100)
    sender, receiver = rows(slow_lab, "a"), rows(slow_lab, "b")
    assert report["lost_samples"] == report["unwritten_samples"] == 0
    content = (slow_lab.folder / "tcp.csv").read_bytes()
    assert report["wrote"] == {"tcp.csv": {"bytes": len(content), "crc32": f"{zlib.crc32(content):08x}"}}
    assert report["samples"] == len(sender) + len(receiver)
    assert report["connections"] == 2
    assert sum(row["data_len"] for row in receiver) == 100 * MSS
    assert all(row["data_len"] == 0 for row in sender)
    first = sender[0]
    assert (first["saddr"], first["daddr"], first["dport"]) == ("10.9.0.1", "10.9.0.2", 5201)
    assert (receiver[0]["saddr"], receiver[0]["sport"]) == ("10.9.0.2", 5201)
    assert before < first["t_ns"] < time.time_ns()
    times = [row["t_ns"] for row in sender]
    assert times == sorted(times)
    # Each row's time is that of an ACK in the capture of the same station.
    acks = [p.time for p in packets if p.source == "10.9.0.2" and not p.is_syn]
    late = [min(abs(row["t_ns"] / 1e9 - t) for t in acks) for row in sender]
    assert sorted(late)[len(late) // 2] < 0.001
    assert max(late) < 0.05


def test_cwnd_starts_at_the_initial_window_and_ends_at_the_clamp(slow_lab):
    sampled_transfer(slow_lab, 100)
    sender = rows(slow_lab, "a")
    # A row shows the state before its segment is processed: the first ACK finds the initial window.
    assert sender[0]["snd_cwnd"] == 2
    assert max(row["snd_cwnd"] for row in sender) == 8
    assert {row["ssthresh"] for row in sender} == {8}
    outstanding = [(row["snd_nxt"] - row["snd_una"]) % 2**32 for row in sender]
    assert max(outstanding) <= 8 * MSS + 1  # FIN


@pytest.mark.parametrize("slow_lab", ["60"], indirect=True)
def test_a_loss_shows_as_recovery_and_halves_the_window(slow_lab):
    sampled_transfer(slow_lab, 120)
    sender = rows(slow_lab, "a")
    states = {row["ca_state"] for row in sender}
    assert RECOVERY in states
    assert LOSS not in states
    after = next(row for row in sender if row["ca_state"] == RECOVERY)
    assert after["ssthresh"] == 4  # RFC 5681 (4): half of the eight outstanding
    last = [row["snd_cwnd"] for row in sender if row["ca_state"] == OPEN and row["ssthresh"] == 4]
    assert min(last) >= 4


def test_samples_agree_with_ss(slow_lab):
    lab = slow_lab
    with lab.manet_tcp("tcp.csv", both=RENO) as process:
        lab.serve()
        client = lab.send(50 * MSS, then="sys.stdin.readline(); c.sendall(b'x'); time.sleep(600)", stdin=subprocess.PIPE)
        lab.ready_line(client, "connected")
        lab.ready_line(client, "sent")
        wait_for(lambda: "unacked" not in lab.a.sockets()[0], "the first segments to be acknowledged")
        (socket,) = lab.a.sockets()
        # One more segment: its ACK finds the state ss has just shown.
        client.stdin.write("\n")
        client.stdin.flush()
        acknowledged = int(socket["bytes_acked"]) + 1
        wait_for(lambda: int(lab.a.sockets()[0]["bytes_acked"]) == acknowledged, "the ACK of one more byte")
        end(process)
    last = rows(lab, "a")[-1]
    assert last["cookie"] == int(socket["sk"], 16)
    assert last["snd_cwnd"] == int(socket["cwnd"])
    assert last["ssthresh"] == int(socket["ssthresh"])
    assert last["srtt_us"] / 1000 == pytest.approx(float(socket["rtt"].split("/")[0]), abs=0.01)
    assert last["rto_us"] / 1000 == pytest.approx(float(socket["rto"]), abs=1)
    assert last["sport"] == int(socket["local"].rsplit(":", 1)[1])


def test_only_registered_stations_are_sampled(slow_lab):
    lab = slow_lab
    process = lab.start_tcp(lab.write_settings("tcp.csv", a=RENO, stations="a"))
    lab.transfer(100 * MSS)
    end(process)
    assert len(rows(lab, "a")) > 50
    assert rows(lab, "b") == []


def test_listener_on_ipv6_is_sampled_with_ipv4_addresses(lab):
    """iperf3 listens on [::], so its accepted sockets are IPv6 sockets with mapped addresses."""
    code = (
        "import socket\n"
        "s=socket.create_server(('::',5201),family=socket.AF_INET6,dualstack_ipv6=True)\n"
        "print('listening')\n"
        "c,_=s.accept()\n"
        "while c.recv(65536): pass\n"
    )
    with lab.manet_tcp("tcp.csv", both={}) as process:
        server = lab.b.python(code)
        lab.ready_line(server, "listening")
        lab.send(5000).wait(DEADLINE_S)
        server.wait(DEADLINE_S)
        end(process)
    assert {(row["saddr"], row["daddr"]) for row in rows(lab, "b")} == {("10.9.0.2", "10.9.0.1")}


def test_disk_full_is_one_line_and_the_run_continues(lab, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:
        with lab.manet_tcp(str(small / "tcp.csv"), both=RENO) as process:
            lab.transfer(2000 * MSS)
            assert process.poll() is None
            lab.serve(port=5202, read=False)
            client = lab.send(1000, port=5202, then="time.sleep(600)")
            lab.ready_line(client, "connected")
            assert " reno " in lab.a.sockets()[0]["words"]  # settings are still applied
            process.terminate()
            out, err = process.communicate(timeout=DEADLINE_S)
        lines = (small / "tcp.csv").read_text()
    finally:
        subprocess.run(["umount", small], check=True)
    assert err.count("\n") == 1
    assert "No space left on device" in err
    assert "the run continues" in err
    report = json.loads(out)
    assert report["unwritten_samples"] > 0 and "wrote" not in report
    assert lines.endswith("\n")
    assert report["samples"] == lines.count(",,\n")


def test_lost_samples_are_counted_and_reported(lab):
    """The ring holds 40 000 samples; it overflows while the reader is stopped."""
    with lab.manet_tcp("tcp.csv", both={"algorithm": "newreno"}) as process:
        process.send_signal(signal.SIGSTOP)
        lab.transfer(90_000_000)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE_S)
    report = json.loads(out)
    assert report["lost_samples"] > 0
    assert report["samples"] == len(rows(lab, "a")) + len(rows(lab, "b"))
    assert f"{report['lost_samples']} of" in err
    assert "samples lost" in err
