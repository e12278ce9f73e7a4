"""Layers: refused settings, hostile notices, connections that end or begin in an outage, and cleanup."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest
from outage_run import PERIOD, data_segments, events, layer, layered, order
from tcplab import DEADLINE_S, HERE, IN_GUEST, MSS, end, wait_for
from test_life import alive, held, refused

pytestmark = pytest.mark.root

ELFN = layered(layer("elfn", probe_us=500000))
FLOOD = 2_000 if IN_GUEST else 100_000  # as many as an emulated machine forges in the same time


def change(lab, layers) -> str:
    return refused(lab.write_settings(a=PERIOD | {"layers": layers}))


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ({}, '"layers" must be a list'),
        ([{"name": "elfm"}], 'no layer "elfm"; kernel-tcp/names lists them'),
        ([layer("elfn"), layer("elfn")], 'layer "elfn" is there twice'),
        ([layer("elfn"), layer("tcpf")], '"tcpf" and another layer both answer route failures'),
        ([layer("elfn", probe_us=99999)], '"probe_us" must be a number from 100000 to 30000000'),
        ([layer("elfn", probe_us="2s")], '"probe_us" must be a number'),
        ([layer("elfn", repair="half")], '"repair" must be one of unchanged, window, initial'),
        ([layer("elfn", leave="ack")], '"leave" must be one of any-ack, probe-ack'),
        ([layer("elfn", restore="never")], '"restore" must be one of at-notice, before-timeout'),
        ([layer("elfn", notice="both")], '"notice" must be one of icmp, route-error'),
        ([layer("elfn", probe_rtts=1001)], '"probe_rtts" must be a number from 0 to 1000'),
        ([layer("atcp", probe_rtts=2)], 'no parameter "probe_rtts"'),
        ([layer("atcp", leave="any-ack")], 'no parameter "leave"; kernel-tcp/names/atcp.toml lists them'),
        ([layer("elfn", failure_us=1000000)], 'no parameter "failure_us"; kernel-tcp/names/elfn.toml lists them'),
        ([{"name": "elfn", "parameters": []}], '"parameters" must be an object'),
    ],
)
def test_layers_are_refused_with_the_reason(lab, layers, words):
    assert words in change(lab, layers)


def test_atcp_goes_around_newreno_only(lab):
    words = refused(lab.write_settings(a=layered(layer("atcp"), algorithm="cubic")))
    assert 'layer "atcp" goes around newreno, not "cubic"' in words


def test_without_a_layer_nothing_of_them_is_loaded(lab):
    process = lab.start_tcp(lab.write_settings("tcp.csv", a=PERIOD | {"layers": [layer("lcd")]}))
    assert len(held(process.pid)["prog"]) == 2


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_the_layers_stays(lab, how):
    process = lab.start_tcp(lab.write_settings("tcp.csv", a=ELFN))
    objects = held(process.pid)
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    name = f"hold.{process.pid & 0xFFFF:x}"
    assert len(objects["prog"]) >= 5
    assert name in available.read_text().split()
    process.send_signal(how)
    process.wait(DEADLINE_S)
    wait_for(lambda: not any(alive(objects).values()), "programs, links and maps to be gone")
    wait_for(lambda: name not in available.read_text().split(), f"{name} to be gone")


# ---- one connection, one outage ----


class Trial:
    """A run with a layer at `a`: its packets and events, after the `with` of `trial`."""

    def __init__(self, lab, process):
        self.lab, self.process = lab, process
        self.broke = self.repaired = 0.0
        self.packets: list = []
        self.report: dict = {}

    def break_path(self, command: str = "broken") -> None:
        self.broke = order(self.lab, command)

    def repair_path(self) -> None:
        self.repaired = order(self.lab, "light")

    def events(self, *names: str, port: int = 5201) -> list[dict]:
        rows = events(self.lab.folder / "tcp.csv", port, self.broke)
        return [row for row in rows if not names or row["event"] in names]

    def segments(self, since: float = 0.0, until: float = 1e9, port: int = 5201) -> list[tuple[float, int]]:
        return [(at, number) for at, number in data_segments(self.packets, port, self.broke) if since <= at < until]

    def sending(self) -> bool:
        return any("unacked" in row for row in self.lab.a.sockets())


@contextmanager
def trial(lab, settings: dict):
    with lab.manet_tcp("tcp.csv", a=settings, b=PERIOD) as process:
        one = Trial(lab, process)
        with lab.capture(lab.a) as packets:
            yield one
        one.packets = packets
        process.terminate()
        out, err = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, err
        one.report = json.loads(out)["layers"]


def stands_by(one: Trial, port: int = 5201) -> bool:
    recorded = [row["event"] for row in one.events("stand-by", "repair", port=port)]
    return bool(recorded) and recorded[-1] == "stand-by"


def whole(server, count: int) -> None:
    out, err = server.communicate(timeout=DEADLINE_S)
    assert out.split()[-1] == str(count), err


@pytest.mark.parametrize("algorithm", ["tahoe", "reno", "vegas", "cubic"])
def test_elfn_goes_around_any_algorithm(slow_lab, algorithm):
    with trial(slow_lab, ELFN | {"algorithm": algorithm}) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(300 * MSS), "connected")
        time.sleep(0.5)
        one.break_path()
        time.sleep(1.2)
        assert " hold." in slow_lab.a.sockets("state connected")[0]["words"]
        one.repair_path()
        whole(server, 300 * MSS)
    assert len(one.events("probe")) >= 2
    assert one.events("repair")[-1]["detail"] == "ack"
    assert one.report["switches-failed"] == 0
    assert [row["detail"] for row in one.events("algorithm")] == [f"elfn({algorithm})"]


def test_timestamps_of_probes_go_on(slow_lab):
    """With timestamps and SACK, the defaults of Linux: a probe's TSval (RFC 7323, 3.2) is from the time when it is sent."""
    lab = slow_lab
    for station in (lab.a, lab.b):
        station.sysctl(tcp_timestamps=1, tcp_sack=1)
    with trial(lab, ELFN) as one:
        server = lab.serve()
        lab.ready_line(lab.send(300 * MSS), "connected")
        time.sleep(0.8)
        one.break_path()
        time.sleep(2.2)
        one.repair_path()
        whole(server, 300 * MSS)
    data = [p for p in one.packets if p.source == "10.9.0.1" and p.payload]
    first = {p.seq: p for p in reversed(data)}
    again = [p for p in data if 0.4 < p.time - first[p.seq].time < 3]
    assert len(again) >= 4
    for p in again:
        ms = int.from_bytes(p.options[4:8]) - int.from_bytes(first[p.seq].options[4:8])
        assert ms / 1000 == pytest.approx(p.time - first[p.seq].time, abs=0.05)


def test_a_window_of_one_segment(slow_lab):
    with trial(slow_lab, ELFN | {"window_segments": 1, "initial_window_segments": 1}) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(50 * MSS), "connected")
        time.sleep(0.5)
        one.break_path()
        time.sleep(2.2)
        one.repair_path()
        whole(server, 50 * MSS)
    probes = [int(row["detail"].split("=")[1]) for row in one.events("probe")]
    assert len(probes) >= 3
    assert len(set(probes)) == 1


def test_plain_connections_record_their_timeouts(slow_lab):
    with slow_lab.manet_tcp("tcp.csv", both=PERIOD) as process:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(100 * MSS), "connected")
        time.sleep(0.4)
        broke = order(slow_lab, "broken -5201")
        time.sleep(1.5)
        order(slow_lab, "light")
        whole(server, 100 * MSS)
        end(process)
    recorded = [(row["event"], row["detail"]) for row in events(slow_lab.folder / "tcp.csv", 5201, broke)]
    assert recorded[:3] == [("algorithm", "newreno"), ("timeout", "1"), ("timeout", "2")]


def test_an_ipv6_socket_with_an_ipv4_connection(slow_lab):
    code = (
        "import socket\n"
        "c=socket.socket(socket.AF_INET6)\n"
        "c.connect(('::ffff:10.9.0.2',5201))\n"
        "print('connected')\n"
        "c.sendall(bytes(300*1460))\n"
    )
    with trial(slow_lab, ELFN) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.a.python(code), "connected")
        time.sleep(0.5)
        one.break_path()
        time.sleep(1.2)
        one.repair_path()
        whole(server, 300 * MSS)
    assert len(one.events("probe")) >= 2


def test_a_connection_that_is_aborted_in_stand_by_is_forgotten(slow_lab):
    linger = "import struct; c.setsockopt(1,13,struct.pack('ii',1,0)); sys.stdin.readline()"
    with trial(slow_lab, ELFN) as one:
        slow_lab.serve(read=False)
        client = slow_lab.send(7 * MSS, then=linger, stdin=subprocess.PIPE)
        slow_lab.ready_line(client, "connected")
        time.sleep(0.01)
        one.break_path()
        wait_for(lambda: stands_by(one), "stand-by")
        client.communicate("\n", timeout=DEADLINE_S)
        at = time.time() - one.broke
        time.sleep(1.2)
    assert one.segments(at + 0.1) == []


def test_connections_of_one_station_stand_by_alone(slow_lab):
    """The path breaks for one of two connections only."""
    lab = slow_lab
    with trial(lab, ELFN) as one:
        forge = forger(lab, "true", 5, 5201)
        servers = [lab.serve(port) for port in (5201, 5202)]
        for client in [lab.send(250 * MSS, port) for port in (5201, 5202)]:
            lab.ready_line(client, "connected")
        time.sleep(0.5)
        forge()
        for server in servers:
            whole(server, 250 * MSS)
    assert 1 <= len(one.events("stand-by", port=5201)) <= 5  # one that comes late finds its segment acknowledged
    assert one.events("stand-by", "probe", "repair", port=5202) == []


def test_a_notice_before_anything_is_lost_is_ended_by_the_next_acknowledgement(slow_lab):
    with trial(slow_lab, layered(layer("elfn", probe_us=10000000))) as one:
        noticed(one, 5)
    # one that comes late finds its segment acknowledged
    assert one.report["believed"] + one.report["wrong-sequence"] == 5
    recorded = [row["event"] for row in one.events("stand-by", "repair", "probe")]
    assert recorded
    assert recorded == ["stand-by", "repair"] * (len(recorded) // 2)


@pytest.mark.parametrize("kind", ["true", "route-error"])
@pytest.mark.parametrize(("follows", "answers"), [("icmp", "true"), ("route-error", "route-error")])
def test_elfn_answers_the_kind_of_notice_that_it_follows(slow_lab, follows, answers, kind):
    with trial(slow_lab, layered(layer("elfn", probe_us=10000000, notice=follows))) as one:
        noticed(one, 5, kind)
    name = "unreachable" if kind == "true" else kind
    assert {row["detail"].split()[0] for row in one.events("notice")} == {name}
    begun = {row["detail"] for row in one.events("stand-by")}
    assert begun == ({name} if kind == answers else set())


def test_atcp_does_not_answer_the_notice_of_a_route_error(slow_lab):
    with trial(slow_lab, layered(layer("atcp"))) as one:
        noticed(one, 5, "route-error")
    assert one.report["believed"] > 0 and one.events("stand-by") == []


@pytest.mark.parametrize(("rtts", "least"), [(30, None), (1, 0.1)])
def test_the_probe_interval_is_a_multiple_of_the_round_trip_time_before_the_break(slow_lab, rtts, least):
    """One round-trip time is less than the lower bound of `probe`, 100 ms."""
    with trial(slow_lab, layered(layer("elfn", probe_rtts=rtts))) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(250 * MSS), "connected")
        time.sleep(0.5)
        one.break_path()
        wait_for(lambda: len(one.events("probe")) >= 3, "three probes", seconds=60)
        one.repair_path()
        whole(server, 250 * MSS)
    with (slow_lab.folder / "tcp.csv").open() as file:
        samples = [row for row in csv.DictReader(file) if not row["event"] and row["dport"] == "5201"]
    # a row shows the state before its segment, as the program does that keeps the round-trip time
    before = [int(row["srtt_us"]) for row in samples if int(row["t_ns"]) / 1e9 <= one.broke + one.events("stand-by")[0]["time"]]
    expected = least or rtts * before[-1] / 1e6
    begin, first, second, third = [one.events("stand-by")[0]["time"], *(row["time"] for row in one.events("probe")[:3])]
    for interval in (first - begin, second - first, third - second):
        assert expected * 0.9 - 0.005 <= interval <= expected * 1.1 + 0.05, (expected, interval)


def test_initial_waits_for_the_initial_timeout_after_the_repair(slow_lab):
    """The segment after the probe is lost too: it is retransmitted after the initial RTO, not after the measured one."""
    settings = layered(layer("elfn", probe_us=500000, repair="initial"), rto_initial_ms=1000)
    with trial(slow_lab, settings) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(100 * MSS), "connected")
        time.sleep(0.5)
        one.break_path()
        wait_for(lambda: one.events("probe"), "a probe")
        again = order(slow_lab, "once") - one.broke
        wait_for(lambda: one.events("repair"), "the repair")
        time.sleep(2.5)
        one.repair_path()
        whole(server, 100 * MSS)
    probe, first, second = one.segments(again)[:3]
    assert probe[1] < first[1] == second[1]
    assert 1.0 <= second[0] - first[0] <= 1.0 + 0.5 + 0.2  # half a second: TCP_RESOURCE_PROBE_INTERVAL


def test_more_connections_than_there_is_room_for_go_without(lab):
    code = (
        "import socket,sys\n"
        "s=socket.create_server(('10.9.0.2',5201),backlog=512)\n"
        "print('listening')\n"
        "c=[s.accept()[0] for _ in range(300)]\n"
        "print(sum(len(one.recv(100)) for one in c))\n"
    )
    clients = (
        "import socket\n"
        "c=[socket.create_connection(('10.9.0.2',5201)) for _ in range(300)]\n"
        "for one in c: one.sendall(b'x')\n"
        "input()\n"
    )
    with trial(lab, ELFN) as one:
        server = lab.b.python(code)
        lab.ready_line(server, "listening")
        client = lab.a.python(clients, stdin=subprocess.PIPE)
        out, _ = server.communicate(timeout=DEADLINE_S)
        client.communicate("\n", timeout=DEADLINE_S)
        # a slot becomes free
        wait_for(lambda: not lab.a.sockets("state connected"), "all connections to be gone")
        lab.transfer(10 * MSS, port=5202)
    assert out.split()[-1] == "300"
    assert one.report["connections"] == 256 + 1
    assert one.report["connections-without-room"] == 44


# ---- hostile ----


def noticed(one: Trial, count: int, kind: str = "true") -> None:
    """A transfer over a path that never breaks, with true notices about it after 0.3 s."""
    forge = forger(one.lab, kind, count, 5201)
    server = one.lab.serve()
    one.lab.ready_line(one.lab.send(250 * MSS), "connected")
    time.sleep(0.3)
    one.broke = time.time()
    forge()
    whole(server, 250 * MSS)


def forger(lab, kind: str, count: int, port: int) -> Callable[[], None]:
    """Sends the notices, and returns when they are sent."""
    process = lab.a.start(
        sys.executable,
        str(HERE / "forge.py"),
        kind,
        str(count),
        str(port),
        in_cgroup=False,
        stdin=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HERE)},
    )
    lab.ready_line(process, "ready")

    def forge() -> None:
        process.stdin.write("\n")
        process.stdin.flush()
        lab.ready_line(process, "sent")

    return forge


COUNTERS = {
    "ports": {"no-such-connection"}, "listening": {"no-such-connection"}, "sequence": {"wrong-sequence"},
    "cut": {"malformed"}, "checksum": {"malformed"}, "noise": {"malformed"}, "type": set(),
    "all": {"no-such-connection", "wrong-sequence", "malformed"},
}  # fmt: skip


@pytest.mark.parametrize("kind", COUNTERS)
def test_forged_notices_change_nothing_but_counters(slow_lab, kind):
    lab = slow_lab
    with trial(lab, ELFN) as one:
        server = lab.serve()
        client = lab.send(
            50 * MSS, then="sys.stdin.readline(); c.sendall(bytes(1000*1460)); sys.stdin.readline()", stdin=subprocess.PIPE
        )
        lab.ready_line(client, "connected")
        forge = forger(lab, kind, FLOOD, 5201)
        rss = memory_kb(one.process.pid)
        client.stdin.write("\n")
        client.stdin.flush()
        forge()
        client.stdin.write("\n")  # only now may the connection end: the time for forging depends on the host
        client.stdin.flush()
        whole(server, 1050 * MSS)
        grown = memory_kb(one.process.pid) - rss
    counted = {
        key: one.report[key] for key in ("no-such-connection", "wrong-sequence", "malformed", "believed", "stand-bys", "probes")
    }
    assert {key for key, count in counted.items() if count} == COUNTERS[kind], counted
    if kind != "type" and not IN_GUEST:  # an emulated machine may not forge so many
        assert one.report["too-many"] > 0  # at most a thousand a second are read
    assert one.events("notice", "stand-by", "probe", "repair", "window") == []
    assert grown < 2048


def memory_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def test_parser_reads_no_byte_beyond_the_packet(tmp_path):
    """A million mutations of quotes, plain, tunnelled and of DSR, cut at every length, under the sanitizers."""
    binary = tmp_path / "notices"
    sources = [HERE / "notices_fuzz.c", HERE.parent / "layers" / "notices.c"]
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover", f"-I{HERE.parent}"]
    subprocess.run(["gcc", *flags, "-o", binary, *sources], check=True)
    done = subprocess.run([binary], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    assert "taken" in done.stdout


# ---- the station's own daemon ----


class Daemon:
    """The part of a routing daemon's status socket that the agent follows."""

    def __init__(self, path: Path):
        self.path = path
        path.unlink(missing_ok=True)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen()
        self.client: socket.socket | None = None
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()

    def accept(self) -> None:
        self.server.settimeout(DEADLINE_S)
        self.client, _ = self.server.accept()
        assert self.client.recv(100) == b'{"op":"follow"}\n'
        self.client.sendall(b'{"ok":true}\n')

    def note(self, event: str, about: str = "10.9.0.2", value: int = 0) -> None:
        self.thread.join()
        note = {"t_ns": 1, "event": event, "about": about, "value": value, "prefix": 32}
        self.client.sendall(json.dumps(note).encode() + b"\n")

    def close(self) -> None:
        self.thread.join()
        self.client.close()
        self.server.close()


@pytest.mark.parametrize("name", ["tcpf", "tcpbus"])
def test_notes_of_the_own_daemon_freeze_and_thaw(slow_lab, name):
    lab = slow_lab
    path = lab.folder / "daemon.sock"
    lab.status = str(path)
    with trial(lab, layered(layer(name))) as one:
        Daemon(path).close()  # a daemon that stops and starts again
        daemon = Daemon(path)
        server = lab.serve()
        lab.ready_line(lab.send(250 * MSS), "connected")
        time.sleep(0.3)
        one.break_path("broken -5201")
        daemon.note("lost", "10.9.0.3")
        daemon.note("lost")
        wait_for(lambda: stands_by(one), "stand-by")
        time.sleep(1.0)
        one.repair_path()
        daemon.note("route", value=3)
        whole(server, 250 * MSS)
        daemon.close()
    assert [row["detail"] for row in one.events("stand-by")] == ["lost-route"]
    assert one.events("repair")[0]["detail"] == "route"
    assert len(one.segments(0.2, one.repaired - one.broke)) <= 1  # the segment that makes the daemon search
    assert one.segments(one.repaired - one.broke)[0][0] - one.events("repair")[0]["time"] < 0.25


@pytest.mark.parametrize("name", ["elfn", "atcp"])
def test_a_route_lost_at_the_source_itself_begins_the_probes(slow_lab, name):
    lab = slow_lab
    path = lab.folder / "daemon.sock"
    lab.status = str(path)
    with trial(lab, layered(layer(name, probe_us=300000))) as one:
        daemon = Daemon(path)
        server = lab.serve()
        lab.ready_line(lab.send(250 * MSS), "connected")
        time.sleep(0.3)
        one.break_path("broken -5201")
        daemon.note("lost")
        wait_for(lambda: one.events("probe"), "a probe")
        daemon.note("route", value=3)  # proves nothing about the path beyond the first hop: a probe must be answered
        one.repair_path()
        whole(server, 250 * MSS)
        daemon.close()
    assert [row["detail"] for row in one.events("stand-by")] == ["lost-route"]
    assert one.events("repair")[0]["detail"] != "route"


def test_failure_timer_ends_the_freeze_of_tcpf(slow_lab):
    with trial(slow_lab, layered(layer("tcpf", failure_us=1000000))) as one:
        server = slow_lab.serve()
        slow_lab.ready_line(slow_lab.send(250 * MSS), "connected")
        time.sleep(0.3)
        one.break_path("broken 5201")
        wait_for(lambda: stands_by(one), "stand-by")
        wait_for(lambda: one.events("repair"), "the failure timer")
        time.sleep(0.2)
        one.repair_path()
        whole(server, 250 * MSS)
    began, ended = one.events("stand-by")[0], one.events("repair")[0]
    assert ended["detail"] == "timer"
    assert ended["time"] - began["time"] == pytest.approx(1.0, abs=0.2)
