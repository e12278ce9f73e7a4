"""Fixtures: stations in separate network namespaces, joined by the medium, each with a routing daemon.

The daemons are those of target/release, or of the folder in MANET_DAEMONS. All processes are ended by their handles.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from routing.host.tests.harness import Daemon, Namespace, request

ROOT = Path(__file__).resolve().parents[3]
MEDIUM = ROOT / "target" / "release" / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"
DAEMONS = Path(os.environ.get("MANET_DAEMONS", ROOT / "target" / "release"))
# a discovery without reply ends after 2 * 0.04 s * (1 + 2) and one retry (RFC 3561, 6.4)
QUICK = {"expanding_ring": False, "net_diameter": 3, "rreq_retries": 0, "reboot_wait": False}

needs_daemons = [
    pytest.mark.root,
    pytest.mark.skipif(not MEDIUM.exists(), reason="the medium is not built (./setup.sh)"),
    pytest.mark.skipif(not (DAEMONS / "manet-aodv").exists(), reason="the routing daemons are not built (./setup.sh)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TUN; sudo ./manet test"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN; modprobe tun"),
]


class RoutingDaemon(Daemon):
    """A running routing daemon."""

    def __init__(self, station: "Station", protocol: str, config: Path, status: Path) -> None:
        self.program, self.status_socket = DAEMONS / f"manet-{protocol}", status
        super().__init__(station.inside(self.program, "run", config))

    def ask(self, op: str = "status") -> dict:
        """The answer of the status socket to a request (formats/routing.md)."""
        return request(self.status_socket, op)


class Station(Namespace):
    """The namespace of a station, with its daemons and files."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder, self.daemons = number, folder, []
        self.address, self.mac = f"10.0.0.{number}", f"02:00:00:00:00:{number:02x}"
        super().__init__()
        self.sh("ip", "link", "set", "lo", "up")

    def popen(self, *command: str) -> subprocess.Popen:
        return subprocess.Popen(self.inside(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

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

    def start(self, protocol: str, options: dict | None = None, *, ready: bool = True, **more) -> RoutingDaemon:
        """Starts a daemon with CONFIG of `write_config` and asserts that it becomes ready, or does not."""
        daemon = RoutingDaemon(self, protocol, self.write_config(options or {}, **more), self.path("sock"))
        self.daemons.append(daemon)
        assert daemon.ready == ready, daemon.stop()
        return daemon

    def notes(self, event: str | None = None) -> list[dict]:
        """The notes so far, all or those of one event."""
        notes = [json.loads(line) for line in self.path("notes.jsonl").read_text().splitlines()]
        return [note for note in notes if event in (None, note["event"])]

    def pings_answered(self, to: str, count: int = 5, *options: str) -> int:
        """Sends `count` pings, 0.2 s apart, and returns the number of answers."""
        return super().pings_answered(to, count, "-i", "0.2", "-W", "5", *options)

    def stop(self) -> None:
        for daemon in self.daemons:
            with suppress(ProcessLookupError):
                daemon.process.kill()
            daemon.process.communicate()
        super().stop()


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
    return partial(request, tmp_path / "medium.sock")
