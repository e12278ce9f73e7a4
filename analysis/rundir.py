"""A run directory as formats/results.md describes it. Each file is read on first use."""

import csv
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from analysis.air import read_air
from analysis.captures import STAMP_BYTES, read_capture
from analysis.connections import Connection, find_connections
from analysis.iperf import IperfReport, read_report
from record import manifest, records
from record.added_flows import added_flows
from record.errors import RecordError, RunFileError
from record.events_file import SCENARIO, read_events
from record.files import plain_text, read_json
from record.found_runs import folders_of_runs
from scenarios.traffic import DEFAULT_KIND, kind_named, kind_names
from scenarios.traffic.shared.kind import Kind
from topologies.addresses import (
    GATEWAY_END,
    HOST_END,
    HOST_INTERFACE,
    ip6_address,
    ip_address,
    link_local_address,
    wire_interfaces,
    wire_ip,
    wire_ip6,
)


@dataclass(frozen=True)
class Flow:
    """A flow of the scenario."""

    name: str
    source: str
    target: str
    traffic: str  # its kind (scenarios/traffic)
    start_s: float = 0.0  # after the start of the traffic
    ip: int = 4  # version of IP, 4 or 6

    @property
    def kind(self) -> Kind[Any]:
        """The traffic kind that `traffic` names."""
        return kind_named(self.traffic)

    @property
    def protocol(self) -> str | None:
        """tcp or udp; None if its kind has no connection."""
        return self.kind.transport


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


class Captured(NamedTuple):
    """An interface with a capture."""

    node: str
    file: str  # captures/<file>.pcap
    mac: str
    radio: bool


def find_run(path: Path) -> Path:
    """The run directory `path`, or the only one below it; a RunFileError that lists the candidates."""
    if (path / "run.json").exists():
        return path
    if not path.is_dir():
        raise RunFileError(f"{path}: no such folder; name the directory of a run, results/NAME/CELL/seed-N")
    found = sorted(folders_of_runs(path))
    if not found:
        raise RunFileError(f"{path}: no run in it (no run.json); name the directory of a run, results/NAME/CELL/seed-N")
    if len(found) > 1:
        raise RunFileError(f"{path}: {len(found)} runs are in it; name one of them, such as {found[0]}")
    return found[0]


class RunDirectory:
    """Files are read once; a missing or malformed one raises an RecordError that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._captures: dict[tuple[str, int], pl.DataFrame] = {}

    @cached_property
    def run(self) -> dict[str, Any]:
        """The content of run.json (formats/results.md)."""
        return records.checked(self.path / records.RUN, self._json(records.RUN, "manet-run/1"))

    @cached_property
    def epoch_ns(self) -> int:
        """CLOCK_REALTIME at model time 0; None if the medium never started."""
        epoch_ns = self.run.get("epoch_ns")
        if not isinstance(epoch_ns, int):
            raise RunFileError(f"{self.path / 'run.json'}: no epoch_ns; the medium never started, see log/ in the same folder")
        return epoch_ns

    @cached_property
    def traffic_ns(self) -> int:
        """CLOCK_REALTIME at the start of the traffic, from which the scenario's events count; a RunFileError without traffic."""
        if self.begun_ns is None and not self.flows:
            raise RunFileError(f"{self.path / 'scenario.json'}: the run has no flows, hence no traffic of its own")
        if self.begun_ns is None:
            flow = self.flows[0]
            raise RunFileError(f"{self.path / 'captures' / flow.source}.pcap: no packet of {flow.name}; did it start?")
        return self.begun_ns

    @cached_property
    def begun_ns(self) -> int | None:
        """Start of the traffic (ns); None if no flow sent anything.

        From run.json. Older runs have no entry there: then from events.csv (late by the duration of an event, ms), or from the
        first packet of the first flow (late by the setup of iperf3, a round trip and more).
        """
        traffic_ns = self.run.get("traffic_ns")
        if isinstance(traffic_ns, int):
            return self.epoch_ns + traffic_ns
        starts_s = [float(row["t_s"]) - float(row["at_s"]) for row in self.events if row["source"] == SCENARIO]
        if starts_s:
            return self.epoch_ns + round(min(starts_s) * 1e9)
        firsts_ns = [(self._first_packet_ns(flow), round(flow.start_s * 1e9)) for flow in self.flows]
        return min((first_ns - start_ns for first_ns, start_ns in firsts_ns if first_ns is not None), default=None)

    def _first_packet_ns(self, flow: "Flow") -> int | None:
        connection = self.connection(flow)
        return connection.start_ns(self.capture_of(flow, flow.source)) if connection else None

    @cached_property
    def events(self) -> list[dict[str, str]]:
        """The rows of events.csv: the scenario's events as they were executed, and the actions of a view; none without the file.
        (Older files have no column `source`.)"""
        return read_events(self.path)

    @property
    def lateness(self) -> list[dict[str, str]]:
        """The rows of lateness.csv (formats/air.md), one for each second of the run; none without the file."""
        path = self.path / "lateness.csv"
        if not path.exists():
            return []
        with plain_text(path) as file:
            return list(csv.DictReader(file))

    @property
    def remarks_of_containers(self) -> list[str]:
        """The limits that programs of containers hit, by containers.json (formats/results.md); none without the file."""
        if not (self.path / "containers.json").exists():
            return []
        stations = self._json("containers.json").get("stations", {})
        return [f"{name}: {remark}" for name, entry in stations.items() for remark in entry.get("remarks", [])]

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The content of scenario.json (formats/scenario.md); its flows are followed by those that a view started."""
        scenario = self._json("scenario.json")
        return {**scenario, "flows": [*scenario.get("flows", []), *added_flows(self.path)]}

    @cached_property
    def medium(self) -> dict[str, Any]:
        """The content of medium.json (formats/medium.md)."""
        return self._json("medium.json", "manet-medium/1")

    @cached_property
    def counters(self) -> dict[str, dict[str, int]]:
        """The counters of each station, by station and counter (counters.json, formats/results.md)."""
        return self._json("counters.json", "manet-counters/1")["stations"]

    @cached_property
    def verdict(self) -> dict[str, Any]:
        """The content of verdict.json (formats/results.md)."""
        return self._json("verdict.json", "manet-verdict/1")

    @cached_property
    def max_lateness_ns(self) -> int:
        """Maximum lateness of the medium's deliveries to a host; 0 for a run that was interrupted before this was written."""
        try:
            return round(self.verdict.get("lateness", {}).get("max_us", 0) * 1000)
        except RunFileError:
            return 0

    @cached_property
    def air(self) -> pl.DataFrame:
        """The air log, as analysis.air.read_air gives it (formats/air.md)."""
        return read_air(self.path / "air.csv")

    @cached_property
    def flows(self) -> list[Flow]:
        """The scenario's flows in their order; a RunFileError for an unknown traffic kind."""
        flows = [
            Flow(
                f"flow{number}",
                flow["from"],
                flow["to"],
                flow.get("traffic", DEFAULT_KIND),
                float(flow.get("start") or 0),
                flow.get("ip") or 4,
            )
            for number, flow in enumerate(self.scenario["flows"], start=1)
        ]
        for flow in flows:
            if flow.traffic not in kind_names():
                text = f'{flow.name} is "{flow.traffic}", this version knows {", ".join(kind_names())}'
                raise RunFileError(f"{self.path / 'scenario.json'}: {text}")
        return flows

    def flow_keys(self, flow: Flow) -> dict[str, Any]:
        """The keys of a flow of the scenario, as scenario.json has them."""
        keys: dict[str, Any] = self.scenario["flows"][int(flow.name.removeprefix("flow")) - 1]
        return keys

    def window_s(self, flow: "Flow") -> tuple[float, float]:
        """Begin and end of a flow's measurement, in seconds from its first packet. A flow with `stop` may end earlier."""
        keys = self.flow_keys(flow)
        warmup_s, end_s = keys.get("warmup"), self.scenario["duration"]
        warmup_s = self.scenario["warmup"] if warmup_s is None else warmup_s
        sent_s = keys["stop"] - keys["start"] if keys.get("stop") is not None else warmup_s + end_s
        return warmup_s, min(warmup_s + end_s, sent_s)

    @property
    def traffic_s(self) -> float:
        """Length of the traffic as planned: to the end of the last measurement."""
        ends = (flow.start_s + self.window_s(flow)[1] for flow in self.flows)
        return max(ends, default=self.scenario.get("warmup", 0.0) + self.scenario.get("duration", 0.0))

    @cached_property
    def wires(self) -> list[Wire]:
        """The wires in the order of their numbers."""
        wires = self.scenario.get("wires", [])
        ends = (wire_interfaces([wire[end] for wire in wires]) for end in ("station", "host"))
        return [Wire(wire["station"], here, wire["host"], there) for wire, here, there in zip(wires, *ends, strict=True)]

    def capture(self, station: str, stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
        """The packets of captures/<station>.pcap, as analysis.captures.read_capture gives them."""
        if (station, stamp_bytes) not in self._captures:
            name = f"captures/{station}.pcap"
            if not (self.path / name).exists() and manifest.lists(self.path, name):
                again = f"manet run {self.run.get('experiment') or 'NAME'} --resume"
                raise RunFileError(f"{self.path / name}: was deleted after the run; put it back, or run it again: {again}")
            self._captures[station, stamp_bytes] = read_capture(self.path / name, stamp_bytes)
        return self._captures[station, stamp_bytes]

    def capture_of(self, flow: Flow, node: str, stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
        """The capture at `node`, an end of the flow: of its radio, or of the wire to the host at the other end. A host has the
        captures of all its wires, because the flow may use any of them."""
        other = flow.target if node == flow.source else flow.source
        for wire in self.wires:
            if (wire.station, wire.host) == (node, other):
                return self.capture(f"{node}.{wire.interface}", stamp_bytes)
        names = [wire.host_capture for wire in self.wires if wire.host == node] or [node]
        if len(names) == 1:
            return self.capture(names[0], stamp_bytes)
        return pl.concat([self.capture(name, stamp_bytes) for name in names]).sort("t_ns", maintain_order=True)

    def connection(self, flow: Flow) -> Connection | None:
        """The flow's four-tuple: from iperf3's report, otherwise the largest connection between its ends; None without packets,
        and for a kind without connections."""
        if flow.protocol is None:
            return None
        try:
            connection = self.report(flow).connection
        except RecordError:
            connection = None
        if connection is not None:
            return connection
        packets = self.capture_of(flow, flow.source)
        source, target = (self.address(node, flow.ip) for node in (flow.source, flow.target))
        found = find_connections(packets, flow.protocol, source, target)
        return found[0] if found else None

    def report(self, flow: Flow) -> IperfReport:
        """iperf3's report of the flow, traffic/<flow>.json."""
        return read_report(self.path / "traffic" / f"{flow.name}.json")

    @cached_property
    def captured(self) -> list[Captured]:
        """Every interface that was captured: radios, then the ends of wires."""
        radios = [Captured(entry["name"], entry["name"], entry["mac"].lower(), True) for entry in self.medium["stations"]]
        wired = []
        for wire, ends in zip(self.wires, self.medium.get("wires", []), strict=False):
            wired.append(Captured(wire.station, f"{wire.station}.{wire.interface}", ends["a"]["mac"].lower(), False))
            wired.append(Captured(wire.host, wire.host_capture, ends["b"]["mac"].lower(), False))
        return radios + wired

    def mac(self, station: str) -> str:
        """The MAC address of a station's radio or of a host's wire, in lower case; a RunFileError for an unknown name."""
        for entry in self.medium["stations"]:
            if entry["name"] == station:
                return entry["mac"].lower()
        for wire in self.medium.get("wires", []):
            for end in (wire["a"], wire["b"]):
                if end["name"] == station:
                    return end["mac"].lower()
        raise RunFileError(f'{self.path / "medium.json"}: no station "{station}", which scenario.json names')

    def address(self, node: str, ip: int = 4) -> str:
        """The address of IP version 4 or 6 of a station's radio, or of a wired host (formats/scenario.md, at its end)."""
        for number, wire in enumerate(self.wires, start=1):
            if wire.host == node:
                return wire_ip6(number, HOST_END) if ip == 6 else wire_ip(number, HOST_END)
        high, low = (int(byte, 16) for byte in self.mac(node).split(":")[4:])
        return ip6_address(high * 256 + low) if ip == 6 else ip_address(high * 256 + low)

    def addresses(self, node: str) -> set[str]:
        """Every address by which a node may send: of both versions, the link-local one, and those of its ends of wires."""
        wired = {
            address(number, end)
            for number, wire in enumerate(self.wires, start=1)
            for name, end in ((wire.station, GATEWAY_END), (wire.host, HOST_END))
            if name == node
            for address in (wire_ip, wire_ip6)
        }
        return {self.address(node), self.address(node, 6), link_local_address(self.mac(node)), *wired}

    def held_at_end(self, station: str) -> bool:
        """Whether the station's routing daemon held packets at the end of the traffic; False for third-party daemons and none."""
        path = self.path / "routing" / f"{station}.status.json"
        return path.exists() and read_json(path).get("end", {}).get("held", 0) > 0

    def gateways_of(self, node: str) -> list[str]:
        """The stations at the other ends of a wired host's wires; the node itself if it is a station."""
        return [wire.station for wire in self.wires if wire.host == node] or [node]

    def last_stations(self, flow: Flow) -> list[str]:
        """The stations at which the flow's packets may leave the air: its target, or the gateways of a wired one. Empty if the
        flow is never on the air."""
        first, last = self.gateways_of(flow.source), self.gateways_of(flow.target)
        return [] if set(first) & set(last) else last

    def _json(self, name: str, expected_format: str | None = None) -> dict[str, Any]:
        path = self.path / name
        try:
            content: dict[str, Any] = read_json(path)
        except FileNotFoundError:
            raise RunFileError(f"{path}: missing; the run did not get that far, see log/ in the same folder") from None
        if expected_format and content.get("format") != expected_format:
            raise RunFileError(f'{path}: format "{content.get("format")}", this version reads "{expected_format}"')
        return content
