"""The medium daemon on this kernel: real namespaces, TAPs and sockets; every way it can be ended or misused.

Each station is a process in a network namespace of its own (unshare(1)), ended by its pid.
"""

import csv
import importlib.util
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MEDIUM = ROOT / "target" / "release" / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"
DEADLINE_S = 60.0

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not MEDIUM.exists(), reason="the medium is not built (./setup.sh)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TAPs"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN"),
]


def load_client():
    path = ROOT / "medium" / "examples" / "link_feedback_client.py"
    spec = importlib.util.spec_from_file_location("link_feedback_client", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


client = load_client()


def wait_for(what: str, condition, within_s: float = DEADLINE_S):
    end = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"{what}: not within {within_s} s"
        time.sleep(0.02)


class Host:
    """A process in a network namespace of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        ours = Path("/proc/self/ns/net").readlink()
        wait_for("namespace", lambda: self.netns.readlink() != ours and self.comm() == "sleep")
        self.sh("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.process.pid}/ns/net")

    def comm(self) -> str:
        return Path(f"/proc/{self.process.pid}/comm").read_text().strip()

    def sh(self, *command: str, check: bool = True) -> str:
        inside = ["nsenter", f"--net={self.netns}", *command]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def interfaces(self) -> list[str]:
        return [link["ifname"] for link in json.loads(self.sh("ip", "-j", "link"))]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Daemon:
    def __init__(self, folder: Path, config: dict, *options: str) -> None:
        self.folder = folder
        (folder / "medium.json").write_text(json.dumps(config))
        command = [str(MEDIUM), "run", *options, str(folder / "medium.json")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline() == "ready\n"

    def ask(self, op: str, **arguments) -> dict:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(str(self.folder / "medium.sock"))
            s.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        if self.process.poll() is None:
            self.process.send_signal(how)
        _out, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors

    def read(self, name: str) -> dict:
        return json.loads((self.folder / name).read_text())


@pytest.fixture
def hosts():
    made: list[Host] = []

    def make(count: int) -> list[Host]:
        made.extend(Host() for _ in range(count))
        return made[-count:]

    yield make
    for host in made:
        host.stop()


@pytest.fixture
def start(tmp_path):
    daemons: list[Daemon] = []

    def start(config: dict, *options: str, ready: bool = True) -> Daemon:
        daemon = Daemon(tmp_path, config, *options)
        daemons.append(daemon)
        assert daemon.ready == ready, daemon.stop()
        return daemon

    yield start
    for daemon in daemons:
        if daemon.process.poll() is None:
            daemon.process.kill()
        daemon.process.communicate()


def configuration(stations: list[Host], spacing_m: float = 200.0, **more) -> dict:
    return {
        "format": "manet-medium/1",
        "radio": str(RADIO),
        "stations": [
            {
                "name": f"sta{i}",
                "mac": f"02:00:00:00:00:{i:02x}",
                "position": [spacing_m * (i - 1), 0.0, 0.0],
                "netns": str(host.netns),
            }
            for i, host in enumerate(stations, start=1)
        ],
        "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng", "counters": "counters.json", "verdict": "verdict.json"},
        "control_socket": "medium.sock",
        "feedback_dir": "feedback",
        **more,
    }


def address(stations: list[Host], ifname: str = "wlan0", network: str = "10.0.0") -> None:
    for i, host in enumerate(stations, start=1):
        host.sh("ip", "address", "add", f"{network}.{i}/24", "dev", ifname)


def pings_answered(host: Host, to: str, count: int = 5, *options: str) -> int:
    out = host.sh("ping", "-n", "-c", str(count), "-i", "0.05", "-W", "2", *options, to, check=False)
    return int(out.split(" received")[0].split()[-1])


def air_rows(folder: Path) -> list[dict]:
    with (folder / "air.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_ping_crosses_the_air_and_every_output_tells_of_it(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    link = json.loads(stations[0].sh("ip", "-j", "link", "show", "wlan0"))[0]
    assert (link["mtu"], link["address"], "UP" in link["flags"]) == (1500, "02:00:00:00:00:01", True)
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    status = daemon.ask("status")
    assert status["ok"] and status["stations"] == 2 and status["lateness"]["count"] >= 10
    assert daemon.stop() == (0, "")

    counters = daemon.read("counters.json")["stations"]
    assert counters["sta1"]["tx_data"] >= 5 and counters["sta1"]["delivered_up"] >= 5
    rows = air_rows(tmp_path)
    ended = [r for r in rows if r["event"] == "tx" and r["frame"] == "data" and r["fate"] == "delivered"]
    assert len(ended) >= 10
    verdict = daemon.read("verdict.json")
    assert verdict["tap_read_drops"] == verdict["tap_write_drops"] == verdict["log_drops"] == 0
    assert verdict["lateness"]["count"] == sum(n for _, n in verdict["lateness"]["histogram_us"])
    assert stations[0].interfaces() == ["lo"]
    assert not (tmp_path / "medium.sock").exists() and not list((tmp_path / "feedback").iterdir())


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_the_capture_without_complaint(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2", 3, "-s", "1000") == 3
    daemon.stop()

    def fields(show: str, *names: str) -> list[str]:
        command = ["tshark", "-r", str(tmp_path / "air.pcapng"), "-Y", show, "-T", "fields"]
        command += [part for name in names for part in ("-e", name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.splitlines()

    assert fields("_ws.malformed", "frame.number") == []
    tx = [r for r in air_rows(tmp_path) if r["event"] == "tx"]
    assert len(fields("wlan", "frame.number")) == len(tx)
    # control frames 802.11 table 9-1: RTS 0x1b, CTS 0x1c, ACK 0x1d
    for kind, subtype in [("rts", 0x1B), ("cts", 0x1C), ("ack", 0x1D)]:
        seen = fields(f"wlan.fc.type_subtype == {subtype}", "wlan.duration")
        assert len(seen) == sum(r["frame"] == kind for r in tx), kind
    pings = fields("icmp.type == 8", "wlan.ta", "ip.dst", "ip.len", "radiotap.datarate", "frame.time_epoch")
    assert len(pings) >= 3
    transmitter, destination, length, rate, epoch = pings[0].split("\t")
    assert (transmitter, destination, length, float(rate)) == ("02:00:00:00:00:01", "10.0.0.2", "1028", 2.0)
    assert abs(float(epoch) - time.time()) < 60


def test_out_of_range_the_frame_comes_back_as_link_feedback(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations, spacing_m=1000.0))
    address(stations)
    stations[0].sh("ip", "neighbour", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "wlan0")
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_FAILURES)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(stations[0], "10.0.0.2", 1) == 0
    failed = next(client.receive(connection))
    assert failed["type"] == "failed" and failed["neighbour"] == "02:00:00:00:00:02"
    assert failed["reason"] == "short retry limit"
    assert failed["frame"][:14].hex() == "020000000002" + "020000000001" + "0800"
    assert daemon.ask("drops")["drops"]["sta1"] == {"retry-short": 1}
    daemon.stop()
    assert {r["fate"] for r in air_rows(tmp_path) if r["event"] == "tx"} == {"weak"}


def test_queued_frames_for_a_neighbour_are_purged_and_returned(hosts, start, tmp_path):
    stations = hosts(2)
    start(configuration(stations, spacing_m=1000.0))
    address(stations)
    stations[0].sh("ip", "neighbour", "add", "10.0.0.2", "lladdr", "02:00:00:00:00:02", "dev", "wlan0")
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), 0)
    connection.settimeout(DEADLINE_S)
    # each frame is tried 7 times for some 20 ms in all: of 40 at once most still wait
    stations[0].sh("ping", "-n", "-c", "40", "-l", "40", "-W", "0.001", "10.0.0.2", check=False)
    client.purge(connection, "02:00:00:00:00:02", token=99)
    received = []
    for message in client.receive(connection):
        received.append(message)
        if message["type"] == "purge_done":
            break
    assert received[-1] == {"type": "purge_done", "token": 99, "count": len(received) - 1}
    assert len(received) > 2
    assert all(m["type"] == "purged" and m["token"] == 99 and m["frame"][12:14] == b"\x08\x00" for m in received[:-1])


def test_frames_for_others_are_overheard_on_request(hosts, start, tmp_path):
    stations, log = hosts(3), tmp_path / "inputs.jsonl"
    daemon = start(configuration(stations, spacing_m=100.0), "--input-log", str(log))
    address(stations)
    connection = client.connect(str(tmp_path / "feedback" / "sta3.sock"), client.WANT_OVERHEARD)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    heard = next(m for m in client.receive(connection) if m["frame"][12:14] == b"\x08\x00")
    assert {heard["transmitter"], heard["receiver"]} == {"02:00:00:00:00:01", "02:00:00:00:00:02"}
    connection.close()
    assert pings_answered(stations[0], "10.0.0.2", 1) == 1
    assert daemon.stop() == (0, "")
    inputs = [json.loads(line)["input"]["Air"] for line in log.read_text().splitlines()]
    asked = [air["Overhear"] for air in inputs if "Overhear" in air]
    assert asked == [{"station": 2, "on": True}, {"station": 2, "on": False}]


def test_a_client_that_never_reads_stalls_nobody(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations, 10.0, radio=str(RADIO.with_name("dot11g-54m.toml"))))
    address(stations)
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_DELIVERED)
    connection.settimeout(DEADLINE_S)
    # more messages than the backlog (1024) and a socket (some 280) hold; -f: each as soon as the one before is answered
    stations[0].sh("ping", "-n", "-q", "-f", "-c", "2000", "-W", "2", "10.0.0.2")
    afterwards = daemon.ask("status")["model_ns"]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    # the newest are kept: whoever reads at last comes to them, and not by way of all that was before
    received = 0
    while client.decode(connection.recv(client.MAX_LEN))["model_ns"] <= afterwards:
        received += 1
    assert 1024 - 5 <= received < 1900


def test_malformed_feedback_messages_are_answered_and_ignored(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    bad = [
        b"x",
        b"\x00" * 8,
        bytes([1, 1, 0, 0]) + struct.pack("<I", 4_000_000_000),
        client.message(client.SUBSCRIBE, b"\xff" * 4),
        client.message(client.PURGE, b"short"),
        client.message(client.FAILED, b"\x00" * 20),
        client.message(200, b""),
        b"\xff" * 60_000,
    ]
    with client.connect(str(tmp_path / "feedback" / "sta1.sock"), 0) as connection:
        connection.settimeout(DEADLINE_S)
        for packet in bad:
            connection.send(packet)
            answer = client.decode(connection.recv(client.MAX_LEN))
            assert answer["type"] == "error" and answer["text"], packet[:20]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.stop()[0] == 0


def test_malformed_control_lines_are_answered_and_a_huge_one_closes_the_connection(hosts, start, tmp_path):
    daemon = start(configuration(hosts(1)))
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE_S)
        s.connect(str(tmp_path / "medium.sock"))
        stream = s.makefile("rb")
        for line in [b"", b"{", b"\xff\xfe", b"[]", b'{"op":"nonsense"}', b'{"op":"move","station":"sta9","position":[0,0,0]}']:
            s.sendall(line + b"\n")
            answer = json.loads(stream.readline())
            assert answer["ok"] is False and "\n" not in answer["error"], line
        # two requests in one packet, and one in two
        s.sendall(b'{"op":"positions"}\n{"op":"sta')
        assert json.loads(stream.readline())["positions"] == {"sta1": [0.0, 0.0, 0.0]}
        s.sendall(b'tus"}\n')
        assert json.loads(stream.readline())["ok"]
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(DEADLINE_S)
        s.connect(str(tmp_path / "medium.sock"))
        closed = False
        try:
            s.sendall(b"x" * 200_000)
            closed = s.recv(1) == b""
        except (BrokenPipeError, ConnectionResetError):
            closed = True
        assert closed
    assert daemon.ask("status")["ok"]


def test_a_live_move_breaks_the_link_and_a_link_error_rate_too(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.ask("move", station="sta2", position=[900, 0, 0])["ok"]
    assert daemon.ask("positions")["positions"]["sta2"] == [900.0, 0.0, 0.0]
    assert not any(link["range"] for link in daemon.ask("links")["links"])
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    assert daemon.ask("move", station="sta2", position=[100, 0, 0], speed_mps=100_000)["ok"]
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.ask("link", **{"from": "sta1", "to": "sta2"}, error_rate=1.0)["ok"]
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    assert len(daemon.ask("air", last=7)["rows"]) == 7


def carrier(host: Host, ifname: str) -> bool:
    return "LOWER_UP" in json.loads(host.sh("ip", "-j", "link", "show", ifname))[0]["flags"]


def test_a_station_without_power_is_silent_and_its_host_sees_no_carrier(hosts, start, tmp_path):
    radio, gateway, inet = hosts(3)
    wire = {
        "a": {"name": "sta2", "netns": str(gateway.netns), "ifname": "eth0", "mac": "02:00:00:00:01:01"},
        "b": {"name": "inet1", "netns": str(inet.netns), "ifname": "eth0", "mac": "02:00:00:00:01:02"},
        "rate_bps": 1_000_000,
        "delay_us": 1_000,
    }
    daemon = start(configuration([radio, gateway], wires=[wire]))
    address([radio, gateway])
    address([gateway, inet], "eth0", "10.9.0")
    places = [(radio, "wlan0"), (gateway, "wlan0"), (gateway, "eth0"), (inet, "eth0")]
    assert [carrier(*place) for place in places] == [True] * 4
    assert pings_answered(radio, "10.0.0.2") == pings_answered(inet, "10.9.0.1") == 5

    assert daemon.ask("power", station="sta2", on=False) == {"ok": True}
    assert [carrier(*place) for place in places] == [True, False, False, False]
    assert not any(link["range"] or link["sensed"] for link in daemon.ask("links")["links"])
    sent_before = daemon.ask("counters")["stations"]["sta2"]["tx_ack"]
    connection = client.connect(str(tmp_path / "feedback" / "sta1.sock"), client.WANT_FAILURES)
    connection.settimeout(DEADLINE_S)
    assert pings_answered(radio, "10.0.0.2", 1, "-W", "1") == 0
    assert next(client.receive(connection))["type"] == "failed"
    assert pings_answered(inet, "10.9.0.1", 1, "-W", "0.3") == 0
    time.sleep(1.5)  # the kernel looks at carriers once a second
    assert pings_answered(gateway, "10.0.0.1", 3, "-W", "0.3") == 0
    assert daemon.ask("counters")["stations"]["sta2"]["tx_ack"] == sent_before

    assert daemon.ask("power", station="sta2", on=True) == {"ok": True}
    assert [carrier(*place) for place in places] == [True] * 4
    time.sleep(1.5)  # once more
    assert pings_answered(radio, "10.0.0.2") == pings_answered(inet, "10.9.0.1") == 5
    assert daemon.ask("power", station="sta9", on=True) == {"ok": False, "error": "there is no station `sta9`"}
    # what the kernel threw away for want of a carrier is no fault of ours
    assert not any("from-host" in drops for drops in daemon.ask("drops")["hosts"].values())
    assert daemon.stop() == (0, "")
    assert not any("lost at the TAPs" in reason for reason in daemon.read("verdict.json")["reasons"])


def test_a_replay_in_virtual_time_is_the_run_byte_for_byte(hosts, start, tmp_path):
    stations = hosts(3)
    log, again = tmp_path / "inputs.jsonl", tmp_path / "again.csv"
    daemon = start(configuration(stations, spacing_m=150.0), "--input-log", str(log), "--inject-lateness", "3000")
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2", 20, "-s", "1400") == 20
    daemon.ask("move", station="sta3", position=[320, 0, 0])
    pings_answered(stations[0], "10.0.0.3", 2, "-W", "0.3")
    daemon.ask("power", station="sta2", on=False)
    pings_answered(stations[0], "10.0.0.2", 1, "-W", "0.3")
    daemon.ask("power", station="sta2", on=True)
    assert pings_answered(stations[0], "10.0.0.2", 3) == 3
    assert daemon.stop() == (0, "")
    subprocess.run([str(MEDIUM), "replay", str(tmp_path / "medium.json"), str(log), str(again)], check=True, timeout=60)
    assert again.read_bytes() == (tmp_path / "air.csv").read_bytes()
    assert len(air_rows(tmp_path)) > 200


def test_a_deleted_interface_is_told_of_and_costs_no_processor(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    stations[1].sh("ip", "link", "delete", "wlan0")
    assert pings_answered(stations[0], "10.0.0.2", 1, "-W", "1") == 0
    code, errors = daemon.stop()
    assert code == 1 and errors.count("\n") == 1 and "the interface of sta2 was deleted" in errors
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["cpu_s"] < 0.5


def test_wired_links_have_their_delay_and_rate(hosts, start):
    radio, left, right = hosts(3)
    wire = {
        "a": {"name": "gw1", "netns": str(left.netns), "ifname": "eth0", "mac": "02:00:00:00:01:01"},
        "b": {"name": "inet1", "netns": str(right.netns), "ifname": "eth0", "mac": "02:00:00:00:01:02"},
        "rate_bps": 1_000_000,
        "delay_us": 20_000,
    }
    daemon = start(configuration([radio], wires=[wire]))
    address([left, right], "eth0", "10.9.0")
    pings_answered(left, "10.9.0.2", 1)  # ARP
    out = left.sh("ping", "-n", "-c", "5", "-i", "0.1", "-s", "1172", "10.9.0.2")
    shortest_ms = float(out.rsplit("= ", 1)[1].split("/")[0])
    # 1172 + 8 ICMP + 20 IP + 14 Ethernet = 1214 bytes = 9.712 ms at 1 Mbit/s, and 20 ms, both ways
    assert 59.4 <= shortest_ms < 75
    wires = daemon.ask("counters")["wires"]
    assert [(w["from"], w["to"]) for w in wires] == [("gw1", "inet1"), ("inet1", "gw1")]
    assert all(w["delivered"] >= 6 and w["queue_full"] == 0 for w in wires)


def test_killed_it_leaves_nothing_but_its_data_and_starts_again(hosts, start, tmp_path):
    stations = hosts(2)
    daemon = start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    wait_for("rows on disk", lambda: "deliver" in (tmp_path / "air.csv").read_text())
    daemon.stop(signal.SIGKILL)
    wait_for("the TAPs to vanish", lambda: stations[0].interfaces() == stations[1].interfaces() == ["lo"])
    start(configuration(stations))
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5


def test_a_second_medium_on_the_same_sockets_is_refused(hosts, start, tmp_path):
    first, second = hosts(1), hosts(1)
    daemon = start(configuration(first))
    other = start(configuration(second), ready=False)
    code, errors = other.stop()
    assert code == 1
    assert errors.count("\n") == 1 and "another medium listens on" in errors
    assert daemon.ask("status")["ok"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_complete_the_outputs(hosts, start, how):
    daemon = start(configuration(hosts(1)))
    assert daemon.stop(how) == (0, "")
    assert daemon.read("verdict.json")["format"] == "manet-verdict/1"


def test_the_stop_command_does_the_same(hosts, start):
    daemon = start(configuration(hosts(1)))
    assert daemon.ask("stop") == {"ok": True}
    assert daemon.process.wait(timeout=DEADLINE_S) == 0
    assert daemon.read("counters.json")["format"] == "manet-counters/1"


def test_it_ends_with_its_parent_if_told_to(hosts, tmp_path):
    (tmp_path / "medium.json").write_text(json.dumps(configuration(hosts(1))))
    script = f'"{MEDIUM}" run --die-with-parent "{tmp_path}/medium.json" & echo $!; read line'
    parent = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.communicate()
    wait_for("the daemon's end", lambda: (tmp_path / "verdict.json").exists())
    wait_for("its process's end", lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text())


def test_a_station_whose_process_dies_does_not_end_the_run(hosts, start):
    stations = hosts(3)
    daemon = start(configuration(stations, spacing_m=100.0))
    address(stations)
    stations[2].stop()
    assert pings_answered(stations[0], "10.0.0.2") == 5
    assert daemon.stop()[0] == 0


def test_stalls_are_seen_and_judged(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations), "--inject-stall", "120:400")
    address(stations)
    stations[0].sh("ping", "-n", "-q", "-c", "60", "-i", "0.05", "-W", "2", "10.0.0.2")
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["stalls"] >= 5
    assert any("stood still" in reason for reason in verdict["reasons"])


def test_a_stopped_process_is_a_stall_even_when_the_air_is_quiet(hosts, start):
    daemon = start(configuration(hosts(1)))
    daemon.process.send_signal(signal.SIGSTOP)
    wait_for("the stop", lambda: Path(f"/proc/{daemon.process.pid}/stat").read_text().split()[2] == "T")
    time.sleep(0.7)  # the length of the stall is what is tested
    daemon.process.send_signal(signal.SIGCONT)
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["stalls"] >= 1
    assert verdict["longest_stall_ms"] >= 600


@pytest.mark.alone("twelve busy loops on one processor")
def test_starved_of_processor_time_the_run_is_not_valid(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations), "--ordinary-priority")
    address(stations)
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(daemon.process.pid, {cpu})
    # a class that gets only what others leave, on a processor where others leave nothing
    os.sched_setscheduler(daemon.process.pid, os.SCHED_IDLE, os.sched_param(0))
    hogs = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for _ in range(12)]
    try:
        pings_answered(stations[0], "10.0.0.2", 40, "-W", "1")
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert daemon.stop()[0] == 0
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] in ("suspect", "void"), verdict
    assert verdict["reasons"]


def test_lateness_is_seen_and_judged(hosts, start):
    stations = hosts(2)
    daemon = start(configuration(stations, verdict={"late_us": 5000}), "--inject-lateness", "20000")
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    daemon.stop()
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and verdict["late_share"] > 0.5
    # what is due while the daemon oversleeps is released when it wakes: up to 20 ms late, mostly more than half of it
    assert verdict["lateness"]["p50_us"] >= 10_000
    assert verdict["lateness"]["max_us"] >= 15_000
    assert verdict["thresholds"]["late_us"] == 5000


def test_a_full_disk_is_one_line_and_a_reason_of_the_verdict(hosts, start):
    stations = hosts(2)
    config = configuration(stations)
    config["outputs"]["air_log"] = "/dev/full"
    daemon = start(config)
    address(stations)
    assert pings_answered(stations[0], "10.0.0.2") == 5
    code, errors = daemon.stop()
    assert code == 1 and errors.count("\n") == 1
    assert errors.startswith("manet-medium: /dev/full: No space left on device")
    verdict = daemon.read("verdict.json")
    assert verdict["verdict"] == "void" and any("/dev/full" in reason for reason in verdict["reasons"])


def cpu_s(pid: int) -> float:
    """Processor time of a process (proc_pid_stat(5): fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("way", ["control", "feedback"])
def test_without_a_free_descriptor_clients_wait_and_the_daemon_sleeps(hosts, start, tmp_path, way):
    """accept(2) fails with EMFILE and leaves the client in the backlog: poll would report the listener again at once."""
    daemon = start(configuration(hosts(1)))
    assert daemon.ask("status")["accepts_failed"] == 0
    kind = socket.SOCK_STREAM if way == "control" else socket.SOCK_SEQPACKET
    path = tmp_path / ("medium.sock" if way == "control" else "feedback/sta1.sock")
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX, kind) as waiting:
        first.connect(str(tmp_path / "medium.sock"))
        first.sendall(b'{"op":"status"}\n')
        answers = first.makefile()
        assert json.loads(answers.readline())["ok"]
        used = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
        _soft, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used, hard))
        waiting.connect(str(path))
        before_s = cpu_s(daemon.process.pid)
        time.sleep(2)
        assert cpu_s(daemon.process.pid) - before_s < 0.5
        first.sendall(b'{"op":"status"}\n')
        assert 1 <= json.loads(answers.readline())["accepts_failed"] < 100
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used + 1, hard))
        if way == "control":
            waiting.settimeout(DEADLINE_S)
            waiting.sendall(b'{"op":"status"}\n')
            assert json.loads(waiting.makefile().readline())["ok"]
        else:
            wait_for("a client", lambda: len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir())) == used + 1)
    code, errors = daemon.stop()
    assert code == 0 and errors.count("\n") == 1 and "open files" in errors


def broken(change) -> dict:
    config = configuration([])
    config["stations"] = [{"name": "sta1", "mac": "02:00:00:00:00:01", "position": [0, 0, 0], "netns": "/proc/self/ns/net"}]
    change(config)
    return config


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (lambda c: c["stations"][0].update(netns="/proc/999999999/ns/net"), "is the station's process running?", 1),
        (lambda c: c["stations"][0].pop("netns"), 'key "stations[0].netns" is missing', 1),
        (lambda c: c["stations"][0].update(ifname="a-far-too-long-name"), "is no interface name", 1),
        (lambda c: c.update(trace="nowhere.csv"), "nowhere.csv: cannot be read", 2),
        (lambda c: c.update(verdict={"late_ms": 1}), 'key "verdict": unknown field', 2),
        (lambda c: c.update(surprise=1), "unknown field `surprise`", 2),
        (lambda c: c["outputs"].update(air_log="no/such/folder/air.csv"), "does the folder exist", 1),
        (lambda c: c.update(control_socket="x" * 120), 'key "control_socket"', 1),
    ],
)
def test_mistakes_are_one_line_with_the_remedy_and_leave_nothing(start, change, says, code, tmp_path):
    before = Path("/proc/net/dev").read_text().count("\n")
    daemon = start(broken(change), ready=False)
    status, errors = daemon.stop()
    assert status == code
    assert errors.count("\n") == 1 and says in errors and str(tmp_path) in errors, errors
    assert Path("/proc/net/dev").read_text().count("\n") == before


def test_check_says_nothing_of_a_good_file(tmp_path):
    (tmp_path / "medium.json").write_text(json.dumps(broken(lambda c: None)))
    done = subprocess.run([str(MEDIUM), "check", str(tmp_path / "medium.json")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
