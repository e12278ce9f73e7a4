"""Settings reach the sockets of unmodified programs, on both sides, and no other sockets."""

from __future__ import annotations

import itertools
import json
import subprocess

import pytest
from tcplab import DEADLINE_S, MSS, Packet, highest_outstanding, stations, wait_for

pytestmark = pytest.mark.root

PAPER = {
    "algorithm": "newreno",
    "window_segments": 8,
    "initial_window_segments": 2,
    "rto_min_us": 100000,
    "rto_initial_ms": 3000,
    "delayed_ack": False,
}


def hold_connection(lab, port=5201, **options):
    """An idle connection from `a` to `b` that stays open; returns when both ends are established."""
    server = lab.serve(port, read=False)
    client = lab.send(1000, port, then="time.sleep(600)", **options)
    lab.ready_line(client, "connected")
    lab.ready_line(client, "sent")
    lab.ready_line(server, "accepted")  # `a` has been connected since the SYN-ACK, `b` only is now
    return client


def test_both_ends_get_algorithm_and_window(lab):
    other = "cubic" if "cubic" in available(lab) else "bbr"
    with lab.manet_tcp(both=PAPER | {"algorithm": "newreno"}, b={"algorithm": other, "window_segments": 5}, a=PAPER):
        hold_connection(lab)
        (active,), (passive,) = lab.a.sockets(), lab.b.sockets()
    assert " reno " in active["words"]
    assert f" {other} " in passive["words"]
    assert active["ssthresh"] == "8"
    assert passive["ssthresh"] == "5"


def available(lab) -> list[str]:
    return lab.a.run("sysctl", "-n", "net.ipv4.tcp_available_congestion_control").split()


def test_newreno_is_the_kernels_reno(lab):
    with lab.manet_tcp(both={"algorithm": "newreno"}):
        hold_connection(lab)
        assert " reno " in lab.a.sockets()[0]["words"]


def test_absent_settings_leave_the_kernels_own(lab):
    def facts():
        row = lab.a.sockets()[0]
        return row["cwnd"], row.get("ssthresh"), row["rto"].split(".")[0], set(row["words"].split()) & set(available(lab))

    client = hold_connection(lab)
    without = facts()
    client.kill()
    wait_for(lambda: not lab.a.sockets(), "the first connection to end")
    with lab.manet_tcp(both={}):
        hold_connection(lab, port=5202)
        assert facts() == without


def test_iperf3_unmodified_keeps_the_window(slow_lab):
    lab = slow_lab
    with lab.manet_tcp(both=PAPER):
        server = lab.b.start("iperf3", "-s", "-1", "-J")
        wait_for(lambda: ":5201" in lab.b.run("ss", "-tlnH"), "iperf3 to listen")
        with lab.capture(lab.a) as packets:
            result = json.loads(lab.a.run("iperf3", "-c", "10.9.0.2", "-t", "2", "-J"))
        server.communicate(timeout=DEADLINE_S)
    ports = {stream["local_port"] for stream in result["start"]["connected"]}
    data = [p for p in packets if p.sport in ports or p.dport in ports]
    # 2 Mbit/s and 40 ms hold only 7 segments: without the setting the relay's queue would hold tens.
    assert highest_outstanding(data) == 8 * MSS
    assert max(stream["sender"]["max_snd_cwnd"] for stream in result["end"]["streams"]) == 8 * MSS


@pytest.mark.parametrize("slow_lab", ["", "60", "60,61", "40,60,80"], indirect=True, ids=["no-loss", "one", "two", "three"])
def test_never_more_than_the_window_is_outstanding(slow_lab):
    """In fast recovery the cwnd clamp alone lets 13 or 14 of 8 out (measured): the receiver's window must hold too."""
    with slow_lab.manet_tcp(both=PAPER), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(150 * MSS)
    assert highest_outstanding(packets) == 8 * MSS


def test_window_of_one_sends_whole_segments(slow_lab):
    with slow_lab.manet_tcp(both=PAPER | {"window_segments": 1}), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(10 * MSS)
    sizes = [p.payload for p in packets if p.payload]
    assert sizes == [MSS] * 10
    assert highest_outstanding(packets) == MSS


def test_segments_have_the_mss_and_the_window_counts_them(slow_lab):
    """mss: either end announces it (RFC 9293, 3.7.1), so that segments in both directions are no larger."""
    with slow_lab.manet_tcp(both=PAPER | {"mss": 1000}), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(100 * 1000)
    assert {p.payload for p in packets if p.payload} == {1000}
    assert highest_outstanding(packets) == 8 * 1000


@pytest.mark.parametrize("initial", [1, 2, 4])
def test_initial_window(slow_lab, initial):
    with slow_lab.manet_tcp(both=PAPER | {"initial_window_segments": initial}), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(20 * MSS)
    first_burst = 0
    for p in packets:
        if p.source == "10.9.0.1":
            first_burst += bool(p.payload)
        elif first_burst:  # the first ACK of data
            break
    assert first_burst == initial


def test_window_below_the_kernels_initial_window_holds_from_the_start(slow_lab):
    with slow_lab.manet_tcp(both={"window_segments": 4}), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(20 * MSS)
    assert highest_outstanding(packets) == 4 * MSS


def acks_per_segment(packets: list[Packet]) -> tuple[int, int]:
    data = sum(1 for p in packets if p.source == "10.9.0.1" and p.payload)
    acks = sum(1 for p in packets if p.source == "10.9.0.2" and p.flags == Packet.ACK and not p.payload)
    return data, acks


def test_quickack_route_gives_one_ack_per_segment(slow_lab):
    with slow_lab.manet_tcp(both=PAPER), slow_lab.capture(slow_lab.a) as packets:
        slow_lab.transfer(200 * MSS)
    data, acks = acks_per_segment(packets)
    assert data == 200
    assert 200 <= acks <= 201  # one more for the FIN if it comes alone


def test_route_without_quickack_delays_acks(tmp_path, cgroup_root):
    """The reason for the route metric: TCP_BPF_DELACK_MAX, the only control that BPF has, is at least two ticks."""
    with (
        stations(tmp_path, cgroup_root, ["--rate-bps", "2e6", "--delay-ms", "20"]) as lab,
        lab.manet_tcp(both=PAPER),
        lab.capture(lab.a) as packets,
    ):
        lab.transfer(200 * MSS)
    data, acks = acks_per_segment(packets)
    assert data == 200
    assert acks < 160


def test_quickack_follows_a_route_that_changes_under_the_connection(tmp_path, cgroup_root):
    """A routing daemon may rely on this: the connection takes the metric of the route that replaces its own."""
    with (
        stations(tmp_path, cgroup_root, ["--rate-bps", "2e6", "--delay-ms", "20"]) as lab,
        lab.manet_tcp(both=PAPER),
        lab.capture(lab.a) as packets,
    ):
        server = lab.serve()
        client = lab.send(100 * MSS, then="sys.stdin.readline(); c.sendall(bytes(200*1460))", stdin=subprocess.PIPE)
        lab.ready_line(client, "connected")
        lab.ready_line(client, "sent")
        wait_for(lambda: "unacked" not in lab.a.sockets()[0], "the first part to be acknowledged")
        lab.b.run("ip", "route", "replace", "10.9.0.0/24", "dev", "eth0", "quickack", "1", in_cgroup=False)
        client.stdin.write("\n")
        client.stdin.flush()
        server.wait(DEADLINE_S)
    hundredth = [p for p in packets if p.payload][100].time
    data, acks = acks_per_segment([p for p in packets if p.time < hundredth])
    assert data == 100
    assert acks < 90
    data, acks = acks_per_segment([p for p in packets if p.time >= hundredth])
    assert data == 200
    # The first ACK may still be delayed: the route is looked up at the next transmission.
    assert 198 <= acks <= 202


def test_initial_rto_is_the_spacing_of_syns(lab):
    lab.a.sysctl(tcp_syn_linear_timeouts=0)
    # an address that never answers
    lab.a.run("ip", "neigh", "add", "10.9.0.77", "lladdr", "02:00:00:00:00:77", "dev", "eth0", "nud", "permanent")
    with lab.manet_tcp(both=PAPER | {"rto_initial_ms": 600}), lab.capture(lab.a) as packets:
        client = lab.a.python("import socket; socket.create_connection(('10.9.0.77', 9))")
        wait_for(lambda: lab.a.sent_again("state syn-sent") >= 2, "two retransmissions of the SYN", 60)
        client.kill()
    times = [p.time for p in packets if p.is_syn]
    # Doubled each time: 0.6 s, then 1.2 s later; the kernel's own would be 1 s and 2 s.
    assert 0.58 < times[1] - times[0] < 0.95
    assert 1.18 < times[2] - times[1] < 1.9


def test_initial_rto_holds_for_the_listening_side(lab):
    """SYN-ACKs are sent by a request socket, which has no callbacks of its own but the listener's cgroup."""
    lab.serve()
    lab.b.run("ip", "neigh", "replace", "10.9.0.1", "lladdr", "02:00:00:00:00:77", "dev", "eth0", "nud", "permanent")
    with lab.manet_tcp(a={"rto_initial_ms": 5000}, b={"rto_initial_ms": 700}), lab.capture(lab.b) as packets:
        client = lab.send(1)
        wait_for(lambda: lab.b.sent_again("state syn-recv") >= 1, "a retransmission of the SYN-ACK", 60)
        client.kill()
    times = [p.time for p in packets if p.is_syn and p.source == "10.9.0.2"]
    assert 0.68 < times[1] - times[0] < 0.98  # the kernel's own would be 1 s


class Trickle:
    """A connection from `a` on which the test has one segment sent at a time."""

    def __init__(self, lab) -> None:
        self.lab = lab
        server = lab.serve()
        code = "for _ in sys.stdin: c.sendall(bytes(1000))"
        self.client = lab.send(20 * MSS, then=code, stdin=subprocess.PIPE)
        lab.ready_line(self.client, "connected")
        lab.ready_line(self.client, "sent")
        lab.ready_line(server, "accepted")
        self.facts()

    def send(self) -> None:
        self.client.stdin.write("\n")
        self.client.stdin.flush()

    def facts(self) -> dict[str, float]:
        """Round trip and RTO in seconds, once all is acknowledged."""
        wait_for(lambda: "unacked" not in self.lab.a.sockets()[0], "everything to be acknowledged")
        row = self.lab.a.sockets()[0]
        return {"rtt": float(row["rtt"].split("/")[0]) / 1000, "rto": float(row["rto"]) / 1000}

    def settled(self, rto_below_rtt_plus_s: float) -> dict[str, float]:
        """The facts once the variation of the round trip, which a loaded host makes large, no longer shows in the RTO."""

        def calm() -> dict[str, float] | None:
            self.send()
            facts = self.facts()
            return facts if facts["rto"] < facts["rtt"] + rto_below_rtt_plus_s else None

        return wait_for(calm, f"an RTO less than {rto_below_rtt_plus_s} s above the round trip", 60)

    def gaps_in_outage(self, count: int) -> list[float]:
        """The first intervals between transmissions of one segment that is never answered: `count`, and those of the further
        transmission that shows that the capture has them."""
        with self.lab.capture(self.lab.a) as packets:
            self.lab.relay.stdin.write("dark\n")
            self.lab.relay.stdin.flush()
            self.send()
            wait_for(lambda: self.lab.a.sent_again("state established") > count, f"{count + 1} retransmissions", 60)
        times = [p.time for p in packets if p.payload == 1000]
        return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize(("rto_min_us", "min_s", "max_s"), [(20000, 0.015, 0.15), (200000, 0.195, 0.3)])
def test_rto_min_is_the_minimum_timeout(slow_lab, rto_min_us, min_s, max_s):
    """Linux: RTO = srtt + max(rto_min, 4 rttvar). The kernel's own rto_min of 200 ms would never come below the first bound."""
    with slow_lab.manet_tcp(both=PAPER | {"window_segments": 1, "rto_min_us": rto_min_us}):
        connection = Trickle(slow_lab)
        facts = connection.settled(max_s)
        assert facts["rto"] > facts["rtt"] + min_s
        gap = connection.gaps_in_outage(1)[0]
    # The timer is early by at most one tick of 10 ms; its lateness depends on the host.
    assert gap > facts["rto"] - 0.015


def test_rto_max_bounds_the_backoff(slow_lab, features):
    if not features["rto_max"]:
        pytest.skip("this kernel has no TCP_RTO_MAX_MS, which needs Linux 6.15")
    with slow_lab.manet_tcp(both=PAPER | {"rto_max_ms": 1000}):
        connection = Trickle(slow_lab)
        connection.settled(0.35)
        gaps = connection.gaps_in_outage(5)
    for gap in gaps[3:5]:  # 0.3, 0.6, then 1 s; doubling would give 2.4 and 4.8
        assert 0.98 < gap < 2


def test_two_runs_side_by_side(tmp_path, cgroup_root):
    """Each has its cgroup and stations; neither sees the other."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with (
        stations(tmp_path / "one", cgroup_root) as one,
        stations(tmp_path / "two", cgroup_root) as two,
        one.manet_tcp("tcp.csv", both={"algorithm": "newreno", "window_segments": 3}),
        two.manet_tcp("tcp.csv", both={"algorithm": "newreno", "window_segments": 7}) as second,
    ):
        hold_connection(one)
        hold_connection(two)
        assert one.a.sockets()[0]["ssthresh"] == "3"
        assert two.a.sockets()[0]["ssthresh"] == "7"
        second.terminate()
        out, _ = second.communicate(timeout=DEADLINE_S)
        assert json.loads(out)["connections"] == 2


def test_programs_outside_the_cgroup_are_untouched(lab):
    with lab.manet_tcp(both={"window_segments": 3, "algorithm": "newreno"}):
        hold_connection(lab, in_cgroup=False)
        (outside,), (inside,) = lab.a.sockets(), lab.b.sockets()
    assert "ssthresh" not in outside
    assert inside["ssthresh"] == "3"


def test_name_spaces_that_are_no_station_are_untouched(lab):
    lab.start_tcp(lab.write_settings(a={"algorithm": "newreno", "window_segments": 3}, stations="a"))
    hold_connection(lab)
    assert lab.a.sockets()[0]["ssthresh"] == "3"
    assert "ssthresh" not in lab.b.sockets()[0]
