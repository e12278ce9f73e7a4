"""A chain of stations on the medium, each with our own or a third-party daemon.

A station is a process in a network namespace of its own; all are ended by their pids. Neighbours are 200 m apart, so
that with the radio's 250 m each hears only the next.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from routing.host.tests.harness import Namespace, request, wait_for

ROOT = Path(__file__).resolve().parents[2]
# setup.sh builds the programs there; another folder for those who build elsewhere
PROGRAMS = Path(os.environ.get("MANET_PROGRAMS", ROOT / "target" / "release"))
MEDIUM = PROGRAMS / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"
INTERFACE = "wlan0"
SPACING_M = 200.0
FAR_M = 5000.0
# what tshark finds wrong with a frame
ERRORS = "_ws.malformed || _ws.expert.severity == error || udp.checksum.status == bad"
READY_S = 30.0
NETWORK_BITS = 8


def ip(number: int) -> str:
    return f"10.0.0.{number}"


def mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"


def seconds_until(what: str, condition: Callable[[], object], within_s: float) -> float:
    """Polls `condition` until it is true and returns the time that took. `what` names it in the failure."""
    start = time.monotonic()
    wait_for(what, condition, within_s, every_s=0.1)
    return time.monotonic() - start


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


class Station(Namespace):
    """Station `number` of the medium, from 1."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.name, self.folder = number, f"sta{number}", folder
        super().__init__()
        # the station's own stack receives ICMP unreachables over it
        self.sh("ip", "link", "set", "lo", "up")

    def start(self, *command: object, name: str) -> Program:
        return Program(self.inside(*command), self.folder / f"{name}-{self.name}.log")

    def ping(self, to: str, count: int = 20, interval_s: float = 0.25) -> "Pings":
        """`count` echo requests of 56 bytes; the first may wait for ARP or a route."""
        return Pings.read(self.sh("ping", "-n", "-c", count, "-i", interval_s, "-W", 2, to, check=False))


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


def assert_answered(pings: Pings, ttl: int) -> None:
    # a broadcast's collision may cost one
    assert pings.answered >= pings.sent - 1 and pings.ttl == ttl, str(pings)


class OwnDaemon:
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
        return request(self.status_path, "status")

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

    def __init__(self, folder: Path, kinds: Iterable[Callable[[Station], OwnDaemon | Ns3]]) -> None:
        self.folder = folder
        self.ends = ExitStack()
        self.peers: list[OwnDaemon | Ns3] = []
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
        """The answer of the medium's control socket, which accepts the request (formats/sockets.md)."""
        answer = request(self.folder / "medium.sock", op, **arguments)
        assert answer["ok"], answer
        return answer

    def move(self, number: int, away: bool) -> None:
        """Moves the station out of range of all others, or back to its place."""
        self.ask("move", station=f"sta{number}", position=[SPACING_M * (number - 1), FAR_M * number if away else 0.0, 0.0])

    def captured(self, show: str, *options: str) -> int:
        """The number of frames in the capture that tshark shows with this filter."""
        command = ["tshark", "-r", str(self.folder / "air.pcapng"), "-Y", show, "-T", "fields", "-e", "frame.number"]
        command += [*options, "-o", "udp.check_checksum:TRUE"]
        return len(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines())

    def peer(self, number: int) -> OwnDaemon | Ns3:
        return self.peers[number - 1]

    def knows(self, number: int) -> bool:
        """Whether this station has a route to every other one."""
        others = {ip(n) for n in range(1, len(self.peers) + 1) if n != number}
        return others <= self.peer(number).routes().keys()

    def all_know(self) -> bool:
        return all(self.knows(number) for number in range(1, len(self.peers) + 1))


@contextmanager
def chains(folder: Path, kinds: dict[str, Callable[[Station], OwnDaemon | Ns3]]) -> Iterator[Callable[..., Chain]]:
    """Yields a function that starts a chain. Its arguments name `kinds`, or further functions given by keyword."""
    with ExitStack() as ends:
        yield lambda *names, **more: ends.enter_context(Chain(folder, [(kinds | more)[name] for name in names]))
