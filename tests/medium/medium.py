"""The medium daemon on this kernel, with stations that are namespaces: for all tests of this folder."""

import csv
import json
import os
from pathlib import Path

import pytest

from routing.host.tests.harness import Daemon, Namespace, request

ROOT = Path(__file__).resolve().parents[2]
MEDIUM = ROOT / "target" / "release" / "manet-medium"
RADIO = ROOT / "medium" / "radios" / "ns2-dsss-2m.toml"

needs_medium = [
    pytest.mark.root,
    pytest.mark.skipif(not MEDIUM.exists(), reason="the medium is not built (./setup.sh)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TAPs; sudo ./manet test"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN; modprobe tun"),
]


class Medium(Daemon):
    """A medium that runs in `folder`, which also has its outputs and sockets."""

    def __init__(self, folder: Path, config: dict, *options: str) -> None:
        self.folder = folder
        (folder / "medium.json").write_text(json.dumps(config))
        super().__init__([str(MEDIUM), "run", *options, str(folder / "medium.json")])

    def ask(self, op: str, **arguments: object) -> dict:
        """The answer of the control socket to a request (formats/sockets.md)."""
        return request(self.folder / "medium.sock", op, **arguments)

    def read(self, name: str) -> dict:
        """An output in JSON."""
        return json.loads((self.folder / name).read_text())


def configuration(stations: list[Namespace], spacing_m: float = 200.0, **more) -> dict:
    """CONFIG of stations in a row; `more` replaces keys."""
    return {
        "format": "manet-medium/1",
        "radio": str(RADIO),
        "stations": [
            {
                "name": f"sta{i}",
                "mac": f"02:00:00:00:00:{i:02x}",
                "position": [spacing_m * (i - 1), 0.0, 0.0],
                "netns": str(station.netns),
            }
            for i, station in enumerate(stations, start=1)
        ],
        "outputs": {"air_log": "air.csv", "air_pcapng": "air.pcapng", "counters": "counters.json", "verdict": "verdict.json"},
        "control_socket": "medium.sock",
        "feedback_dir": "feedback",
        **more,
    }


def wire(a: str, a_station: Namespace, b: str, b_station: Namespace, delay_us: int) -> dict:
    """A wired link of 1 Mbit/s between the interfaces eth0 of the stations named `a` and `b`."""
    return {
        "a": {"name": a, "netns": str(a_station.netns), "ifname": "eth0", "mac": "02:00:00:00:01:01"},
        "b": {"name": b, "netns": str(b_station.netns), "ifname": "eth0", "mac": "02:00:00:00:01:02"},
        "rate_bps": 1_000_000,
        "delay_us": delay_us,
    }


def address(stations: list[Namespace], ifname: str = "wlan0", network: str = "10.0.0") -> None:
    """Gives station i the address `network`.i."""
    for i, station in enumerate(stations, start=1):
        station.sh("ip", "address", "add", f"{network}.{i}/24", "dev", ifname)


def pings_answered(station: Namespace, to: str, count: int = 5, *options: str) -> int:
    """Sends `count` pings, 0.05 s apart, and returns the number of answers."""
    return station.pings_answered(to, count, "-i", "0.05", "-W", "2", *options)


def air_rows(folder: Path) -> list[dict]:
    with (folder / "air.csv").open() as file:
        return list(csv.DictReader(file))
