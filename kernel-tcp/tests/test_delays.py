"""The algorithms that use round trip times: the queue of Vegas at a fixed bottleneck, and the departures of TCP-AP.

The relay is a program and may carry a frame late on a loaded host. The probe of the host detects that.
"""

from __future__ import annotations

import itertools
import json
import socket
import statistics
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MSS, Packet, stations, wait_for

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def needs_struct_ops(features):
    if not features["struct_ops"]:
        pytest.skip("this kernel takes no congestion control from BPF; ./manet test --guests boots kernels that do")


@dataclass
class Acked:
    """A segment that was sent once, and its ACK."""

    sent: float
    acked: float
    outstanding: int  # bytes, right after the ACK

    @property
    def round_trip(self) -> float:
        return self.acked - self.sent


def acked_segments(packets: list[Packet]) -> list[Acked]:
    """As the sender's own capture shows them."""
    sent: dict[int, float] = {}
    found: list[Acked] = []
    highest = 0
    for packet in packets:
        if packet.payload:
            end = packet.seq + packet.payload
            sent[end] = 0.0 if end in sent else packet.time
            highest = max(highest, end)
        elif packet.source == "10.9.0.2" and sent.get(packet.ack):
            found.append(Acked(sent.pop(packet.ack), packet.time, highest - packet.ack))
    return found


# --- Vegas ------------------------------------------------------------------------------------------------------------

RATE, DELAY_MS = 1e6, 30.0
FRAME_S = (MSS + 54) * 8 / RATE


@pytest.mark.parametrize(("alpha", "beta"), [(1, 3), (2, 4), (6, 8)])
def test_vegas_keeps_alpha_to_beta_segments_queued(host, tmp_path, cgroup_root, alpha, beta):
    """The queue at the bottleneck is the outstanding data minus the capacity of the path: rate times the empty round trip."""
    settings = {"algorithm": "vegas", "parameters": {"alpha": alpha, "beta": beta}, "delayed_ack": False}

    def trial() -> str:
        relay = ["--rate-bps", str(RATE), "--delay-ms", str(DELAY_MS)]
        with (
            stations(tmp_path, cgroup_root, relay, quickack=True) as lab,
            lab.manet_tcp(both=settings),
            lab.capture(lab.a) as packets,
        ):
            lab.transfer(300 * MSS)
        segments = acked_segments(packets)
        steady = segments[len(segments) // 2 : -20]
        empty_s = min(segment.round_trip for segment in segments)
        queued = [segment.outstanding / MSS + 1 - empty_s / FRAME_S for segment in steady]
        low, middle, high = statistics.quantiles(queued, n=4)
        print(f"empty {empty_s * 1000:.1f} ms, queued {low:.2f} {middle:.2f} {high:.2f}")
        # half a segment: the resolution of this measurement
        return "" if alpha - 0.5 <= low and high <= beta + 0.5 else f"quartiles of the queue: {low:.2f} {middle:.2f} {high:.2f}"

    if wrong := trial():
        host.void(wrong)


def test_newreno_fills_the_queue_where_vegas_does_not(tmp_path, cgroup_root):
    """The measurement distinguishes them: with a window of 40 NewReno has some 30 segments queued."""
    relay = ["--rate-bps", str(RATE), "--delay-ms", str(DELAY_MS)]
    settings = {"algorithm": "newreno", "window_segments": 40, "delayed_ack": False}
    with (
        stations(tmp_path, cgroup_root, relay, quickack=True) as lab,
        lab.manet_tcp(both=settings),
        lab.capture(lab.a) as packets,
    ):
        lab.transfer(200 * MSS)
    assert max(segment.outstanding for segment in acked_segments(packets)) > 30 * MSS


# --- TCP-AP -----------------------------------------------------------------------------------------------------------

UNPACED = 10  # the kernel's first segments
HOPS = 4


def paced_intervals(packets: list[Packet], weight: float = 0.7, history: int = 50) -> list[tuple[float, float]]:
    """For each departure after the first ones: the interval since the previous one, and the interval by the formulas of
    algorithms/tcpap.bpf.c from the round trips in this capture until the previous one."""
    acks = iter(acked_segments(packets))
    next_ack = next(acks, None)
    delay_us, trips, rows, before, wanted_s = 0.0, [], [], None, 0.0
    for departure in (packet.time for packet in packets if packet.payload):
        if before is not None:
            rows.append((departure - before, wanted_s))
        before = departure
        while next_ack is not None and next_ack.acked <= departure:
            trips = [*trips, next_ack.round_trip * 1e6][-history:]
            new_us = four_hop_delay_us(trips[-1])
            delay_us = weight * delay_us + (1 - weight) * new_us if delay_us else new_us
            next_ack = next(acks, None)
        variation = statistics.stdev(trips) / statistics.mean(trips) if len(trips) > 1 else 0.0
        wanted_s = delay_us * (1 + 2 * variation) / 1e6
    return rows[UNPACED:]


def four_hop_delay_us(round_trip_us: float, rate_kbps: float = 2000.0) -> float:
    data, ack = (size * 8 * 1000 / rate_kbps for size in (MSS + 40, 40))
    return HOPS * (max(0.0, round_trip_us / HOPS - data - ack) / 2 + data)


def test_tcpap_departures_are_paced(host, tmp_path, cgroup_root):
    """Segments keep the distance of the pacing rate, except that after a late timer the kernel sends the next segment up
    to half an interval sooner (tcp_update_skb_after_send()). So ten segments take nine intervals, less the lateness of a
    timer or two. 3 %: the capture's times differ slightly from the kernel's, from which it computes the round trips."""
    parameters = {"hops": HOPS, "rate_kbps": 2000, "weight": 0.7, "history": 50}
    settings = {"algorithm": "tcpap", "parameters": parameters, "window_segments": 8, "delayed_ack": False}

    def trial() -> str:
        relay = ["--rate-bps", "2e6", "--delay-ms", "20"]
        with (
            stations(tmp_path, cgroup_root, relay, quickack=True) as lab,
            lab.manet_tcp(both=settings),
            lab.capture(lab.a) as packets,
        ):
            lab.transfer(100 * MSS)
        rows = paced_intervals(packets)
        ratios = [gap / wanted for gap, wanted in rows]
        tens = [sum(ratios[at : at + 9]) for at in range(len(ratios) - 8)]
        report = f"gap over formulas: minimum {min(ratios):.3f}, median {statistics.median(ratios):.3f}, nine {min(tens):.3f}"
        print(report, f"(interval {rows[0][1] * 1000:.1f} to {rows[-1][1] * 1000:.1f} ms)")
        paced = min(ratios) > 0.485 and min(tens) > 8.5 and 0.97 < statistics.median(ratios) < 1.15
        return "" if paced else report

    if wrong := trial():
        host.void(wrong)


def test_tcpap_does_not_pace_while_the_hops_are_not_known(slow_lab):
    """hops=0 without a daemon: eight segments leave as fast as their ACKs come, and manet-tcp prints a warning."""
    with slow_lab.manet_tcp(both={"algorithm": "tcpap", "window_segments": 8, "delayed_ack": False}) as process:
        with slow_lab.capture(slow_lab.a) as packets:
            slow_lab.transfer(60 * MSS)
        process.terminate()
        assert "tcpap: nothing is paced: no station has a routing daemon" in process.stderr.read()
    assert max(segment.outstanding for segment in acked_segments(packets)) >= 6 * MSS


class Daemon:
    """The status socket of a routing daemon: answers `status` with its routes, then sends notes."""

    def __init__(self, path: Path, hops: int, about: str = "10.9.0.2") -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.client: socket.socket | None = None
        self.hops, self.about = hops, about
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self.listener.accept()
        lines = client.makefile("r")
        assert json.loads(lines.readline()) == {"op": "status"}
        routes = [
            {"destination": "0.0.0.0", "prefix": 0, "hops": 1},
            {"destination": self.about, "prefix": 32, "via": "10.9.0.2", "hops": self.hops},
        ]
        client.sendall(json.dumps({"ok": True, "routes": routes}).encode() + b"\n")
        assert json.loads(lines.readline()) == {"op": "follow"}
        client.sendall(b'{"ok":true}\n')
        self.client = client

    def note(self, **note: object) -> None:
        assert self.client is not None
        self.client.sendall(json.dumps({"t_ns": 1, "about": self.about, "prefix": 32, **note}).encode() + b"\n")


@pytest.mark.parametrize(
    ("end", "about", "wires"), [("station", "10.9.0.2", 0), ("station-to-host", "10.9.0.77", 1), ("host", "10.9.0.2", 1)]
)
def test_tcpap_takes_the_hops_from_the_routing_daemon(tmp_path, cgroup_root, end, about, wires):
    """Four hops at first, one or two from the middle of the connection on: by the formulas the intervals are then far shorter.
    The wire behind a gateway, 10.9.0.77 or the host's own, is one of the hops."""
    settings = {"algorithm": "tcpap", "window_segments": 8, "delayed_ack": False}
    relay = ["--rate-bps", "2e6", "--delay-ms", "20"]
    with stations(tmp_path, cgroup_root, relay, quickack=True) as lab:
        sock = str(tmp_path / "daemon.sock")
        lab.status = None if end == "host" else sock
        lab.over_wires = {"station-to-host": {"gateways": {"10.9.0.2": [about]}}, "host": {"gateway_status": sock}}.get(end)
        daemon = Daemon(Path(sock), HOPS - wires, about)
        with lab.manet_tcp(both=settings), lab.capture(lab.a) as packets:
            wait_for(lambda: daemon.client, "the daemon to be asked")
            server = lab.serve()
            client = lab.send(60 * MSS, then="sys.stdin.readline(); c.sendall(bytes(60*1460)); c.close()", stdin=subprocess.PIPE)
            lab.ready_line(client, "connected")
            lab.ready_line(client, "sent")
            wait_for(lambda: lab.a.sockets() and "unacked" not in lab.a.sockets()[0], "the first half to be acknowledged")
            daemon.note(event="route", value=1, via="10.9.0.2")
            # long enough to update and read the map; nothing else shows that
            time.sleep(0.5)
            client.stdin.write("\n")
            client.stdin.flush()
            server.communicate(timeout=DEADLINE_S)
    times = [packet.time for packet in packets if packet.payload]
    first = statistics.median(later - earlier for earlier, later in itertools.pairwise(times[20:60]))
    second = statistics.median(later - earlier for earlier, later in itertools.pairwise(times[90:]))
    print(f"median interval {first * 1000:.1f} ms over {HOPS} hops, {second * 1000:.1f} ms over {1 + wires}")
    assert first > 0.030  # 35 ms on the empty path, less the lateness of the capture
    assert second < first * 0.75


def test_tcpap_takes_the_hops_of_routes_that_never_change_from_the_settings(slow_lab):
    """Without a daemon: by the formulas four hops of the empty path give 35 ms, and the ACKs come every 6 ms."""
    slow_lab.hops = {"10.9.0.2": HOPS}
    settings = {"algorithm": "tcpap", "window_segments": 8, "delayed_ack": False}
    with slow_lab.manet_tcp(both=settings) as process:
        with slow_lab.capture(slow_lab.a) as packets:
            slow_lab.transfer(60 * MSS)
        process.terminate()
        assert "nothing is paced" not in process.stderr.read()
    times = [packet.time for packet in packets if packet.payload]
    assert statistics.median(later - earlier for earlier, later in itertools.pairwise(times[20:])) > 0.030
