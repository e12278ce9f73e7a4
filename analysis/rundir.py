"""A run directory as formats/results.md describes it, read file by file when asked."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from analysis.air import read_air
from analysis.captures import read_capture
from analysis.errors import RunFileError
from analysis.iperf import IperfReport, read_report
from topologies.addresses import HOST_END, HOST_INTERFACE, ip_address, wire_interfaces, wire_ip


@dataclass(frozen=True)
class Flow:
    """A flow as the scenario asked for it."""

    name: str
    source: str
    target: str
    traffic: str  # bulk | cbr

    @property
    def protocol(self) -> str:
        return "udp" if self.traffic == "cbr" else "tcp"


@dataclass(frozen=True)
class Wire:
    """A wired link of the scenario, with the interfaces at its ends."""

    station: str
    interface: str
    host: str
    host_interface: str

    @property
    def host_capture(self) -> str:
        """The name of the capture at the host (formats/results.md)."""
        return self.host if self.host_interface == HOST_INTERFACE else f"{self.host}.{self.host_interface}"


class RunDirectory:
    """Files are read once; a missing or malformed one raises an AnalysisError that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._captures: dict[str, pl.DataFrame] = {}

    @cached_property
    def run(self) -> dict:
        return self._json("run.json", "manet-run/1")

    @cached_property
    def epoch_ns(self) -> int:
        """CLOCK_REALTIME at model time 0; a run whose medium never started has none."""
        epoch_ns = self.run.get("epoch_ns")
        if not isinstance(epoch_ns, int):
            raise RunFileError(f"{self.path / 'run.json'}: no epoch_ns; the medium never started, see log/ beside it")
        return epoch_ns

    @cached_property
    def scenario(self) -> dict:
        return self._json("scenario.json")

    @cached_property
    def medium(self) -> dict:
        return self._json("medium.json", "manet-medium/1")

    @cached_property
    def counters(self) -> dict[str, dict[str, int]]:
        return self._json("counters.json", "manet-counters/1")["stations"]

    @cached_property
    def verdict(self) -> dict:
        return self._json("verdict.json", "manet-verdict/1")

    @cached_property
    def air(self) -> pl.DataFrame:
        return read_air(self.path / "air.csv")

    @cached_property
    def flows(self) -> list[Flow]:
        return [
            Flow(f"flow{number}", flow["from"], flow["to"], flow.get("traffic", "bulk"))
            for number, flow in enumerate(self.scenario["flows"], start=1)
        ]

    @cached_property
    def wires(self) -> list[Wire]:
        """In the order of their numbers."""
        wires = self.scenario.get("wires", [])
        ends = (wire_interfaces([wire[end] for wire in wires]) for end in ("station", "host"))
        return [Wire(wire["station"], here, wire["host"], there) for wire, here, there in zip(wires, *ends, strict=True)]

    def capture(self, station: str) -> pl.DataFrame:
        if station not in self._captures:
            self._captures[station] = read_capture(self.path / "captures" / f"{station}.pcap")
        return self._captures[station]

    def capture_of(self, flow: Flow, node: str) -> pl.DataFrame:
        """The capture at `node`, an end of the flow: of its radio, or of the wire to the host at the other end; of a host
        all its wires, for any of them may be the way."""
        other = flow.target if node == flow.source else flow.source
        for wire in self.wires:
            if (wire.station, wire.host) == (node, other):
                return self.capture(f"{node}.{wire.interface}")
        names = [wire.host_capture for wire in self.wires if wire.host == node] or [node]
        if len(names) == 1:
            return self.capture(names[0])
        return pl.concat([self.capture(name) for name in names]).sort("t_ns", maintain_order=True)

    def report(self, flow: Flow) -> IperfReport:
        return read_report(self.path / "traffic" / f"{flow.name}.json")

    def mac(self, station: str) -> str:
        for entry in self.medium["stations"]:
            if entry["name"] == station:
                return entry["mac"].lower()
        for wire in self.medium.get("wires", []):
            for end in (wire["a"], wire["b"]):
                if end["name"] == station:
                    return end["mac"].lower()
        raise RunFileError(f'{self.path / "medium.json"}: no station "{station}", which scenario.json names')

    def address(self, node: str) -> str:
        """The IP address of a station's radio, or of a wired host (formats/scenario.md, at its end)."""
        for number, wire in enumerate(self.wires, start=1):
            if wire.host == node:
                return wire_ip(number, HOST_END)
        high, low = (int(byte, 16) for byte in self.mac(node).split(":")[4:])
        return ip_address(high * 256 + low)

    def last_station(self, flow: Flow) -> str | None:
        """Where the flow's packets leave the air: its target, or the gateway of a wired one. None if it never is on the air,
        or if it may leave it at several gateways."""
        gateways = {wire.host: wire.station for wire in self.wires}
        if sum(wire.host == flow.target for wire in self.wires) > 1:
            return None
        first, last = (gateways.get(node, node) for node in (flow.source, flow.target))
        return None if first == last else last

    def _json(self, name: str, expected_format: str | None = None) -> dict:
        path = self.path / name
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            raise RunFileError(f"{path}: missing; the run did not get that far, see log/ beside it") from None
        except ValueError as problem:
            raise RunFileError(f"{path}: not JSON ({problem}); was its writer ended?") from None
        if expected_format and content.get("format") != expected_format:
            raise RunFileError(f'{path}: format "{content.get("format")}", this version reads "{expected_format}"')
        return content
