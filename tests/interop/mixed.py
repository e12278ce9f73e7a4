"""A chain of stations on the medium, each with our own or a third-party daemon.

A station is a process in a network namespace of its own; all are ended by their pids. Neighbours are 200 m apart, so
that with the radio's 250 m each hears only the next.
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# setup.sh builds the programs there; another folder for those who build elsewhere
PROGRAMS = Path(os.environ.get("MANET_PROGRAMS", ROOT / "target" / "release"))
MEDIUM = PROGRAMS / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"
INTERFACE = "wlan0"
SPACING_M = 200.0
READY_S = 30.0
NETWORK_BITS = 8


def ip(number: int) -> str:
    return f"10.0.0.{number}"


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def wait_for(what: str, condition: Callable[[], object], within_s: float) -> float:
    """How long it took until `condition` held, in seconds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < within_s, f"{what}: not within {within_s} s"
        time.sleep(0.1)
    return time.monotonic() - start


def converse(path: Path, request: dict) -> dict:
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(READY_S)
        s.connect(str(path))
        s.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(s.makefile().readline())


@dataclass
class Program:
    """A child, its output in a file that can be read while it runs."""

    command: list[str]
    log: Path
    process: subprocess.Popen = field(init=False)

    def __post_init__(self) -> None:
        with self.log.open("w") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def text(self) -> str:
        return self.log.read_text()

    def wait_ready(self) -> "Program":
        def ready() -> bool:
            assert self.process.poll() is None, f"{self.command}: {self.text()}"
            return "ready\n" in self.text()

        wait_for(f"{self.command[0]}: ready", ready, READY_S)
        return self

    def stop(self, how: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(READY_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Station:
    """A namespace; station `number` of the medium, from 1."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.name, self.folder = number, f"sta{number}", folder
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        ours = Path("/proc/self/ns/net").readlink()
        wait_for("a namespace", lambda: self.netns.readlink() != ours and self._comm() == "sleep", READY_S)
        # by which a station's own stack hears of what is unreachable
        self.sh("ip", "link", "set", "lo", "up")
        self.sh("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")

    def _comm(self) -> str:
        return Path(f"/proc/{self.holder.pid}/comm").read_text().strip()

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.holder.pid}/ns/net")

    def inside(self, *command: object) -> list[str]:
        return ["nsenter", f"--net={self.netns}", *map(str, command)]

    def sh(self, *command: object, check: bool = True) -> str:
        done = subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=120, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *command: object, name: str) -> Program:
        return Program(self.inside(*command), self.folder / f"{name}-{self.name}.log")

    def ping(self, to: str, count: int = 20, interval_s: float = 0.25) -> "Pings":
        """`count` echo requests of 56 bytes; the first may wait for ARP or a route."""
        return Pings.read(self.sh("ping", "-n", "-c", count, "-i", interval_s, "-W", 2, to, check=False))

    def stop(self) -> None:
        self.holder.kill()
        self.holder.wait()


@dataclass
class Pings:
    sent: int
    answered: int
    ttl: int | None
    average_ms: float | None

    @classmethod
    def read(cls, out: str) -> "Pings":
        sent, answered = map(int, re.search(r"(\d+) packets transmitted, (\d+) received", out).groups())
        ttl = re.search(r" ttl=(\d+) ", out)
        average = re.search(r"= [\d.]+/([\d.]+)/", out)
        return cls(sent, answered, int(ttl[1]) if ttl else None, float(average[1]) if average else None)

    def __str__(self) -> str:
        return f"{self.answered} of {self.sent} answered, average {self.average_ms} ms, TTL {self.ttl}"


class Ours:
    """One of our daemons on a station (formats/routing.md)."""

    def __init__(self, station: Station, protocol: str, options: dict, **node: object) -> None:
        self.station, self.protocol = station, protocol
        station.sh("ip", "address", "add", f"{ip(station.number)}/{NETWORK_BITS}", "dev", INTERFACE, "noprefixroute")
        self.status_path = station.folder / f"{station.name}.status"
        config = {
            "format": "manet-routing/1",
            "node": {
                "number": station.number,
                "address": ip(station.number),
                "network": ["10.0.0.0", NETWORK_BITS],
                "mac": mac(station.number),
                "seed": 1,
                "feedback": True,
                **node,
            },
            "interface": INTERFACE,
            "tun": "manet0",
            "feedback": {"medium": str(station.folder / "feedback" / f"{station.name}.sock")},
            "status": str(self.status_path),
            "epoch_ns": time.time_ns(),
            "notes": None,
            "events": str(station.folder / f"{station.name}.events.jsonl"),
            "quickack": False,
            "options": options,
        }
        self.config = station.folder / f"{station.name}.config.json"
        self.config.write_text(json.dumps(config))
        self.program = self.run()

    def run(self) -> Program:
        name = f"manet-{self.protocol}"
        self.program = self.station.start(PROGRAMS / name, "run", self.config, name=name).wait_ready()
        return self.program

    def status(self) -> dict:
        return converse(self.status_path, {"op": "status"})

    def routes(self) -> dict[str, str]:
        """Next hops as the kernel has them."""
        lines = json.loads(self.station.sh("ip", "-j", "route", "show", "proto", 98))
        return {line["dst"]: line.get("gateway", line["dst"]) for line in lines if line.get("dev") == INTERFACE}


class Ns3:
    """An ns-3 node on a station: ns3_station.cc. The kernel there has no address."""

    def __init__(self, station: Station, protocol: str, program: Path, *more: str) -> None:
        self.station = station
        own = [f"--protocol={protocol}", f"--interface={INTERFACE}", f"--address={ip(station.number)}", "--mask=255.0.0.0"]
        self.program = station.start(program, *own, "--print=1s", *more, name="ns3").wait_ready()

    def routes(self) -> dict[str, str]:
        """Next hops of the table printed last (destination and gateway are its first columns)."""
        tables = self.program.text().split("Node: ")[1:]
        # the newest may be incomplete
        rows = re.findall(r"^(10\.0\.0\.\d+)\s+(10\.0\.0\.\d+)\s", tables[-2], re.M) if len(tables) > 1 else []
        return {destination: via for destination, via in rows if destination != ip(self.station.number)}


class Chain:
    """Stations 1 to n in a row. `kinds` starts each one's daemon: (station) -> object with `routes` and `program`."""

    def __init__(self, folder: Path, kinds: Iterable[Callable[[Station], Ours | Ns3]]) -> None:
        self.folder = folder
        self.ends = ExitStack()
        self.peers: list[Ours | Ns3] = []
        try:
            kinds = list(kinds)
            self.stations = [self._station(number) for number in range(1, len(kinds) + 1)]
            self._start_medium()
            for kind, station in zip(kinds, self.stations, strict=True):
                peer = kind(station)
                self.peers.append(peer)
                self.ends.callback(lambda peer=peer: peer.program.stop())
        except BaseException:
            self.ends.close()
            raise

    def __enter__(self) -> "Chain":
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.close()

    def _station(self, number: int) -> Station:
        station = Station(number, self.folder)
        self.ends.callback(station.stop)
        return station

    def _start_medium(self) -> None:
        config = {
            "format": "manet-medium/1",
            "radio": str(RADIO),
            "stations": [
                {
                    "name": station.name,
                    "mac": mac(station.number),
                    "position": [SPACING_M * (station.number - 1), 0.0, 0.0],
                    "netns": str(station.netns),
                }
                for station in self.stations
            ],
            "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng", "counters": "counters.json", "verdict": "verdict.json"},
            "control_socket": "medium.sock",
            "feedback_dir": "feedback",
        }
        (self.folder / "medium.json").write_text(json.dumps(config))
        self.medium = Program([str(MEDIUM), "run", str(self.folder / "medium.json")], self.folder / "medium.log")
        self.ends.callback(self.medium.stop)
        self.medium.wait_ready()

    def ask(self, op: str, **arguments: object) -> dict:
        """A word on the medium's control socket (formats/sockets.md)."""
        answer = converse(self.folder / "medium.sock", {"op": op, **arguments})
        assert answer["ok"], answer
        return answer

    def peer(self, number: int) -> Ours | Ns3:
        return self.peers[number - 1]

    def knows(self, number: int) -> bool:
        """Whether this station has a route to every other one."""
        others = {ip(n) for n in range(1, len(self.peers) + 1) if n != number}
        return others <= self.peer(number).routes().keys()

    def all_know(self) -> bool:
        return all(self.knows(number) for number in range(1, len(self.peers) + 1))
