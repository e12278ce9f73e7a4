"""Fixtures: stations in separate network namespaces, joined by the medium, each with a routing daemon.

The daemons are those of target/release, or of the folder in MANET_DAEMONS. All processes are ended by their handles.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MEDIUM = ROOT / "target" / "release" / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"
DAEMONS = Path(os.environ.get("MANET_DAEMONS", ROOT / "target" / "release"))
DEADLINE_S = 60.0
# a discovery without reply ends after 2 * 0.04 s * (1 + 2) and one retry (RFC 3561, 6.4)
QUICK = {"expanding_ring": False, "net_diameter": 3, "rreq_retries": 0, "reboot_wait": False}

needs_daemons = [
    pytest.mark.root,
    pytest.mark.skipif(not MEDIUM.exists(), reason="the medium is not built (./setup.sh)"),
    pytest.mark.skipif(not (DAEMONS / "manet-aodv").exists(), reason="the routing daemons are not built (./setup.sh)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TUN"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN"),
]


def wait_for(what: str, condition: Callable[[], object], within_s: float = DEADLINE_S):
    """Polls `condition` until it is true and returns its value. `what` names it in the failure."""
    end = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, f"{what}: not within {within_s} s"
        time.sleep(0.02)


class Daemon:
    """A running routing daemon. `ready`: whether it printed that; else it has ended with an error."""

    def __init__(self, station: "Station", protocol: str, config: Path, status: Path) -> None:
        self.program, self.status_socket = DAEMONS / f"manet-{protocol}", status
        command = ["nsenter", f"--net={station.netns}", str(self.program), "run", str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline() == "ready\n"

    def ask(self, op: str = "status") -> dict:
        """The answer of the status socket to a request (formats/routing.md)."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(str(self.status_socket))
            s.sendall(json.dumps({"op": op}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    def stop(self, how: int = signal.SIGTERM) -> tuple[int, str]:
        """Sends the signal and waits. Returns exit status and stderr."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _out, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, errors


class Station:
    """A network namespace, kept alive by a sleeping process in it, with the station's daemons and files."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder, self.daemons = number, folder, []
        self.address, self.mac = f"10.0.0.{number}", f"02:00:00:00:00:{number:02x}"
        self.process = subprocess.Popen(
            ["unshare", "--net", "sleep", "infinity"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        ours = Path("/proc/self/ns/net").readlink()
        comm = Path(f"/proc/{self.process.pid}/comm")
        wait_for("namespace", lambda: self.netns.readlink() != ours and comm.read_text() == "sleep\n")
        self.sh("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        self.sh("ip", "link", "set", "lo", "up")

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.process.pid}/ns/net")

    def sh(self, *command: str, check: bool = True) -> str:
        inside = ["nsenter", f"--net={self.netns}", *command]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def popen(self, *command: str) -> subprocess.Popen:
        inside = ["nsenter", f"--net={self.netns}", *command]
        return subprocess.Popen(inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kernel_state(self) -> str:
        """The kernel state that a daemon changes, as text."""
        keys = ("rp_filter", "forwarding", "send_redirects", "accept_redirects")
        settings = [f"net.ipv4.conf.{device}.{key}" for device in ("all", "wlan0") for key in keys]
        return "\n".join(
            [
                self.sh("ip", "route", "show", "table", "all"),
                self.sh("ip", "-o", "address").replace(" \\ ", " "),
                self.sh("ip", "-br", "link"),
                self.sh("sysctl", *settings),
            ]
        )

    def path(self, name: str) -> Path:
        return self.folder / f"sta{self.number}.{name}"

    def write_config(self, options: dict, **more) -> Path:
        """Writes CONFIG with these options; `more` replaces keys, those of `node` one by one."""
        config = {
            "format": "manet-routing/1",
            "node": {
                "number": self.number,
                "address": self.address,
                "network": ["10.0.0.0", 8],
                "mac": self.mac,
                "seed": 1,
                "feedback": True,
            },
            "interface": "wlan0",
            "feedback": {"medium": str(self.folder / "feedback" / f"sta{self.number}.sock")},
            "status": str(self.path("sock")),
            "notes": str(self.path("notes.jsonl")),
            "events": str(self.path("events.jsonl")),
            "quickack": True,
            "options": options,
        }
        node = more.pop("node", {})
        config |= more
        config["node"] |= node
        self.path("json").write_text(json.dumps(config))
        return self.path("json")

    def start(self, protocol: str, options: dict | None = None, *, ready: bool = True, **more) -> Daemon:
        """Starts a daemon with CONFIG of `write_config` and asserts that it becomes ready, or does not."""
        daemon = Daemon(self, protocol, self.write_config(options or {}, **more), self.path("sock"))
        self.daemons.append(daemon)
        assert daemon.ready == ready, daemon.stop()
        return daemon

    def notes(self, event: str | None = None) -> list[dict]:
        """The notes so far, all or those of one event."""
        notes = [json.loads(line) for line in self.path("notes.jsonl").read_text().splitlines()]
        return [note for note in notes if event in (None, note["event"])]

    def pings_answered(self, to: str, count: int = 5, *options: str) -> int:
        """Sends `count` pings, 0.2 s apart, and returns the number of answers."""
        out = self.sh("ping", "-n", "-c", str(count), "-i", "0.2", "-W", "5", *options, to, check=False)
        return int(out.split(" received")[0].split()[-1])

    def stop(self) -> None:
        for daemon in self.daemons:
            with suppress(ProcessLookupError):
                daemon.process.kill()
            daemon.process.communicate()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def chain(tmp_path) -> Iterator[Callable[..., list[Station]]]:
    """`chain(3)`: stations in a row, each in range of the next only (200 m; the radio reaches 250 m)."""
    stations: list[Station] = []
    media: list[subprocess.Popen] = []

    def make(count: int, spacing_m: float = 200.0, protocol: str | None = None, options: dict | None = None) -> list[Station]:
        stations.extend(Station(i, tmp_path) for i in range(1, count + 1))
        config = {
            "format": "manet-medium/1",
            "radio": str(RADIO),
            "stations": [
                {"name": f"sta{s.number}", "mac": s.mac, "position": [spacing_m * s.number, 0.0, 0.0], "netns": str(s.netns)}
                for s in stations
            ],
            "outputs": {"air_pcapng": "air.pcapng"},
            "control_socket": "medium.sock",
            "feedback_dir": "feedback",
        }
        (tmp_path / "medium.json").write_text(json.dumps(config))
        media.append(subprocess.Popen([str(MEDIUM), "run", str(tmp_path / "medium.json")], stdout=subprocess.PIPE, text=True))
        assert media[0].stdout.readline() == "ready\n"
        for station in stations:
            station.sh("ip", "address", "add", f"{station.address}/8", "dev", "wlan0", "noprefixroute")
        if protocol:
            for station in stations:
                station.start(protocol, options)
        return stations

    yield make
    for station in stations:
        station.stop()
    for medium in media:
        medium.terminate()
        medium.communicate()


@pytest.fixture
def ask_medium(tmp_path) -> Callable[..., dict]:
    def ask(op: str, **arguments) -> dict:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(str(tmp_path / "medium.sock"))
            s.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            return json.loads(s.makefile().readline())

    return ask
