"""Stations for the tests of kernel-tcp: network namespaces, links, captures, and `manet-tcp` itself.

Two stations, `a` (10.9.0.1) and `b` (10.9.0.2), each a network namespace held open by a process. They are
joined by a veth pair, or through a relay (relay.py) that adds rate, delay and loss, since some kernels have no
netem. Everything is held by handle and ends with the `with`.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
MANET_TCP = HERE.parents[1] / ".build" / "kernel-tcp" / "manet-tcp"
DEADLINE_S = 60.0  # for steps that take a moment on an idle host; no test measures the host's speed
IN_GUEST = "MANET_GUEST" in os.environ  # set by `manet vm`: an emulated machine, 10 to 20 times slower
MSS = 1460  # of an MTU of 1500 without timestamps

# Ethernet to an unused address, IPv4 from and to a documentation address (RFC 5737), an empty TCP header: no stack takes it.
LAST_FRAME = bytes.fromhex(
    "0200000000fe0200000000fd0800450000280000000040060000cb007101cb0071010000000000000000000000005000000000000000"
)
SEND_LAST_FRAME = (
    "import socket,sys\n"
    "s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\n"
    "s.bind(('eth0',0))\n"
    "s.send(bytes.fromhex(sys.argv[1]))\n"
)

_numbers = itertools.count(1)


def wait_for(condition, what: str, seconds: float = DEADLINE_S):
    """The first true value of `condition()`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def read_line(pipe, seconds: float = DEADLINE_S) -> str:
    """One line, or the part of it that came in time. It bypasses Python's buffers, which select() does not see."""
    deadline = time.monotonic() + seconds
    line = b""
    while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
        byte = os.read(pipe.fileno(), 1)
        if byte in (b"\n", b""):
            break
        line += byte
    return line.decode()


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass
class Station:
    name: str
    address: str
    holder: subprocess.Popen
    cgroup: Path
    lab: Lab

    @property
    def netns(self) -> str:
        return f"/proc/{self.holder.pid}/ns/net"

    def start(self, *argv: str, in_cgroup: bool = True, **options) -> subprocess.Popen:
        """Starts a program in this station; it ends with the lab at the latest."""
        procs = str(self.cgroup / "cgroup.procs")

        def join_cgroup():
            # In the child, before exec: all its later sockets belong to the cgroup.
            fd = os.open(procs, os.O_WRONLY)
            os.write(fd, b"0")
            os.close(fd)

        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            ["nsenter", f"--net={self.netns}", *argv],
            text=True,
            preexec_fn=join_cgroup if in_cgroup else None,
            **options,
        )
        self.lab.processes.append(process)
        return process

    def run(self, *argv: str, timeout: float = DEADLINE_S, **options) -> str:
        process = self.start(*argv, **options)
        out, err = process.communicate(timeout=timeout)
        assert process.returncode == 0, f"{argv}: {err or out}"
        return out

    def python(self, code: str, *argv: str, **options) -> subprocess.Popen:
        return self.start(sys.executable, "-u", "-c", code, *argv, **options)

    def sysctl(self, **values) -> None:
        self.run("sysctl", "-qw", *(f"net.ipv4.{key}={value}" for key, value in values.items()), in_cgroup=False)

    def sockets(self, what: str = "state established") -> list[dict[str, str]]:
        """`ss -tinoe` as one dictionary per socket: its key:value words, and `local`, `peer`."""
        text = self.run("ss", "-tinoHOe", *what.split(), in_cgroup=False)
        rows = []
        for line in text.splitlines():
            words = line.split()
            row = dict(word.split(":", 1) for word in words if re.fullmatch(r"[a-z_]+:\S+", word))
            row["words"] = " ".join(words)
            row["local"], row["peer"] = words[2], words[3]
            rows.append(row)
        return rows

    def sent_again(self, what: str) -> int:
        """Number of retransmissions of the current timer of the only socket of this kind: the third word of
        `timer:(on,1.2sec,3)`."""
        timers = [row["timer"].strip("()").split(",") for row in self.sockets(what) if "timer" in row]
        return int(timers[0][2]) if timers else 0


@dataclass
class Lab:
    folder: Path
    cgroup: Path
    a: Station = field(init=False)
    b: Station = field(init=False)
    ports: dict | None = None  # of station `a`: settings by port
    status: str | None = None  # the socket of its routing daemon
    hops: dict[str, int] | None = None  # by destination, for static routes
    over_wires: dict | None = None  # `gateways` or `gateway_status`
    relay: subprocess.Popen | None = None
    processes: list[subprocess.Popen] = field(default_factory=list)

    def ready_line(self, process: subprocess.Popen, line: str, seconds: float = DEADLINE_S) -> None:
        """Waits until `process` prints `line` on its standard output."""
        got = read_line(process.stdout, seconds)
        if got != line:
            process.kill()
            raise AssertionError(f"expected {line!r}, got {got!r}; {process.stderr.read()}")

    def write_settings(
        self, samples: str | None = None, a: dict | None = None, b: dict | None = None, stations: str = "ab"
    ) -> Path:
        """Writes the settings of `stations`, those of the two that manet-tcp is to register."""
        document = {
            "format": "manet-tcp-settings/1",
            "cgroup": str(self.cgroup),
            "samples": samples,
            "stations": [
                {"name": "a", "netns": self.a.netns, "settings": a or {}},
                {"name": "b", "netns": self.b.netns, "settings": b or {}},
            ],
        }
        if self.ports:
            document["stations"][0]["ports"] = self.ports
        if self.status:
            document["stations"][0]["status"] = self.status
        if self.hops:
            document["stations"][0]["hops"] = self.hops
        document["stations"][0] |= self.over_wires or {}
        document["stations"] = [station for station in document["stations"] if station["name"] in stations]
        path = self.folder / "tcp-settings.json"
        path.write_text(json.dumps(document))
        return path

    def start_tcp(self, path: Path, **environment: str) -> subprocess.Popen:
        """`manet-tcp run`, ready; it ends with the lab at the latest."""
        process = subprocess.Popen(
            [MANET_TCP, "run", path],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
        )
        self.processes.append(process)
        self.ready_line(process, "ready")
        return process

    @contextmanager
    def manet_tcp(self, samples: str | None = None, both: dict | None = None, **per_station) -> Iterator[subprocess.Popen]:
        path = self.write_settings(samples, per_station.get("a", both), per_station.get("b", both))
        process = self.start_tcp(path)
        try:
            yield process
        finally:
            end(process)

    def serve(self, port: int = 5201, read: bool = True) -> subprocess.Popen:
        """A program on `b` that accepts one connection and reads it to its end (or never reads)."""
        code = (
            "import socket,sys,time\n"
            "s=socket.create_server(('10.9.0.2',int(sys.argv[1])))\n"
            "print('listening')\n"
            "c,_=s.accept()\n"
            "print('accepted')\n"
            "if sys.argv[2]=='0': time.sleep(600)\n"
            "n=0\n"
            "while d:=c.recv(65536): n+=len(d)\n"
            "print(n)\n"
        )
        process = self.b.python(code, str(port), str(int(read)))
        self.ready_line(process, "listening")
        return process

    def send(self, count: int, port: int = 5201, then: str = "", **options) -> subprocess.Popen:
        """A program on `a` that sends `count` bytes, then runs `then` before it closes."""
        code = (
            "import socket,sys,time\n"
            "c=socket.create_connection(('10.9.0.2',int(sys.argv[1])))\n"
            "print('connected')\n"
            "c.sendall(bytes(int(sys.argv[2])))\n"
            "print('sent')\n"
            f"{then}\n"
        )
        return self.a.python(code, str(port), str(count), **options)

    def transfer(self, count: int, port: int = 5201, seconds: float = DEADLINE_S) -> None:
        """Transfers `count` bytes from `a` to `b` completely."""
        server = self.serve(port)
        client = self.send(count, port)
        out, err = server.communicate(timeout=seconds)
        client.wait(seconds)
        assert out.split()[-1] == str(count), err

    @contextmanager
    def paused_transfer(self) -> Iterator[None]:
        """A transfer that sends 1000 bytes, pauses during the `with`, and then sends the other 99000."""
        server = self.serve()
        client = self.send(1000, then="sys.stdin.readline(); c.sendall(bytes(99000)); c.close()", stdin=subprocess.PIPE)
        self.ready_line(client, "connected")
        self.ready_line(client, "sent")
        yield
        client.stdin.write("\n")
        client.stdin.flush()
        out, _ = server.communicate(timeout=DEADLINE_S)
        assert out.split()[-1] == "100000"

    @contextmanager
    def capture(self, station: Station) -> Iterator[list[Packet]]:
        """A list that has the TCP packets of the station's interface after the `with`."""
        path = self.folder / f"{station.name}-{next(_numbers)}.pcap"
        process = station.start(
            "tcpdump", "-i", "eth0", "-U", "-s", "128", "--immediate-mode", "-w", str(path), "tcp",
            in_cgroup=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        assert "listening on" in read_line(process.stderr), "tcpdump does not listen"
        packets: list[Packet] = []
        yield packets
        # tcpdump drops its queue when it is stopped; a frame sent now shows when it has read everything before
        station.run(sys.executable, "-c", SEND_LAST_FRAME, LAST_FRAME.hex(), in_cgroup=False)
        wait_for(lambda: LAST_FRAME in path.read_bytes(), "tcpdump to have written everything")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
        packets.extend(packet for packet in read_pcap(path) if packet.source != "203.0.113.1")


@dataclass(frozen=True)
class Packet:
    time: float
    source: str
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes
    payload: int

    SYN, ACK = 2, 16

    @property
    def is_syn(self) -> bool:
        return bool(self.flags & self.SYN)


def read_pcap(path: Path) -> list[Packet]:
    """TCP over IPv4 over Ethernet, classic pcap as tcpdump writes it."""
    raw = path.read_bytes()
    assert struct.unpack("<I", raw[:4])[0] == 0xA1B2C3D4
    packets, at = [], 24
    while at + 16 <= len(raw):
        seconds, micros, kept, _ = struct.unpack("<IIII", raw[at : at + 16])
        frame = raw[at + 16 : at + 16 + kept]
        at += 16 + kept
        ip = frame[14:]
        if frame[12:14] != b"\x08\x00" or ip[9] != 6:
            continue
        header, total = (ip[0] & 15) * 4, struct.unpack(">H", ip[2:4])[0]
        tcp = ip[header:]
        sport, dport, seq, ack, offset, flags, window = struct.unpack(">HHIIBBH", tcp[:16])
        offset = (offset >> 4) * 4
        source = ".".join(str(byte) for byte in ip[12:16])
        packets.append(
            Packet(seconds + micros / 1e6, source, sport, dport, seq, ack, flags, window, tcp[20:offset], total - header - offset)
        )
    return packets


def highest_outstanding(packets: list[Packet], source: str = "10.9.0.1") -> int:
    """The maximum of bytes sent and not yet acknowledged, as seen where `source` is attached."""
    base = next(p.seq for p in packets if p.is_syn and p.source == source)
    acked = sent = 1
    highest = 0
    for p in packets:
        if p.source == source:
            sent = max(sent, ((p.seq - base) & 0xFFFFFFFF) + p.payload)
            highest = max(highest, sent - acked)
        elif p.flags & Packet.ACK:
            acked = max(acked, (p.ack - base) & 0xFFFFFFFF)
    return highest


def _command(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


def _holder() -> subprocess.Popen:
    own = Path("/proc/self/ns/net").readlink()
    process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    wait_for(lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != own, "a network namespace")
    return process


def _configure(station: Station, quickack: bool) -> None:
    """In one shell: in an emulated guest the start of a program takes a tenth of a second."""
    # tx: checksums in software, or the relay would carry frames without one.
    script = f"""
        ip link set lo up
        ethtool -K eth0 tx off tso off gso off gro off
        ip link set eth0 gso_max_segs 1
        ip address add {station.address}/32 dev eth0
        ip link set eth0 up
        ip route add 10.9.0.0/24 dev eth0 {"quickack 1" if quickack else ""}
        sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_timestamps=0 net.ipv4.tcp_no_metrics_save=1
    """
    station.run("sh", "-ec", script, in_cgroup=False)


def _join(lab: Lab, holders: list[subprocess.Popen], relay: list[str] | None) -> None:
    """Makes the stations' eth0: one veth pair, or a pair each into the relay's network namespace."""
    number = f"{os.getpid() % 10000}x{next(_numbers)}"
    a, b = (str(holder.pid) for holder in holders[:2])
    if relay is None:
        _command("ip", "link", "add", f"ka{number}", "netns", a, "type", "veth", "peer", "name", f"kb{number}", "netns", b)
    else:
        holders.append(_holder())
        middle = str(holders[2].pid)
        _command("ip", "link", "add", f"ka{number}", "netns", a, "type", "veth", "peer", "name", "left", "netns", middle)
        _command("ip", "link", "add", f"kb{number}", "netns", b, "type", "veth", "peer", "name", "right", "netns", middle)
    for station, name in ((lab.a, f"ka{number}"), (lab.b, f"kb{number}")):
        station.run("ip", "link", "set", name, "name", "eth0", in_cgroup=False)
    if relay is not None:
        enter = ["nsenter", f"--net=/proc/{holders[2].pid}/ns/net"]
        for side in ("left", "right"):
            _command(*enter, "ip", "link", "set", side, "up", "promisc", "on")
        lab.relay = subprocess.Popen(
            [*enter, sys.executable, "-u", str(HERE / "relay.py"), *relay],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        lab.processes.append(lab.relay)
        lab.ready_line(lab.relay, "ready")


@contextmanager
def stations(folder: Path, cgroup_root: Path, relay: list[str] | None = None, quickack: bool = False) -> Iterator[Lab]:
    cgroup = cgroup_root / f"ktcp-test-{os.getpid()}-{next(_numbers)}"
    cgroup.mkdir()
    lab = Lab(folder, cgroup)
    holders: list[subprocess.Popen] = []
    try:
        holders += [_holder(), _holder()]
        lab.a = Station("a", "10.9.0.1", holders[0], cgroup, lab)
        lab.b = Station("b", "10.9.0.2", holders[1], cgroup, lab)
        _join(lab, holders, relay)
        for station in (lab.a, lab.b):
            _configure(station, quickack)
        yield lab
    finally:
        for process in (*lab.processes, *holders):
            end(process)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    with suppress(OSError):
                        stream.close()

        def removed() -> bool:
            with suppress(OSError):
                cgroup.rmdir()
            return not cgroup.exists()

        wait_for(removed, f"{cgroup} empty and removed")
