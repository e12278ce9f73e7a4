"""The folder of a run, as formats/results.md describes it. Each file is read on first use.

The packets that were captured and the log of the air are tables: analysis/captures.
"""

import csv
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from mobility.trace import Trace, TraceError
from record import records
from record.added_flows import added_flows
from record.errors import RunFileError
from record.events_file import read_events
from record.files import plain_text, read_json
from record.movement import read_trace, trace_path
from record.run_file import FORMAT
from record.scenario import RunFlow, RunScenario
from scenarios.wires import WireEnds
from topologies.addresses import (
    GATEWAY_END,
    HOST_END,
    HOST_INTERFACE,
    ip6_address,
    ip_address,
    link_local_address,
    mac_address,
    wire_ip,
    wire_ip6,
    wire_mac,
)
from traffic import kind_names

RADIO_CHANGES = "radios.csv"  # of a run whose stations changed power or antenna


class Captured(NamedTuple):
    """An interface with a capture."""

    node: str
    file: str  # captures/<file>.pcap
    mac: str
    radio: bool


def host_capture(host: str, interface: str) -> str:
    """The name of the capture at a host's end of a wire."""
    return host if interface == HOST_INTERFACE else f"{host}.{interface}"


class RunRecord:
    """Files are read once; a missing or malformed one raises a RecordError that names it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def run(self) -> dict[str, Any]:
        """The content of run.json (formats/results.md)."""
        return records.checked(self.path / records.RUN, self._json(records.RUN, FORMAT))

    @cached_property
    def epoch_ns(self) -> int:
        """CLOCK_REALTIME at model time 0; RunFileError if the medium never started."""
        epoch_ns = self.run.get("epoch_ns")
        if not isinstance(epoch_ns, int):
            raise RunFileError(f"{self.path / 'run.json'}: no epoch_ns; the medium never started, see log/ in the same folder")
        return epoch_ns

    @cached_property
    def events(self) -> list[dict[str, str]]:
        """The rows of events.csv: the scenario's events as they were executed, and the actions of a view."""
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
    def scenario_keys(self) -> dict[str, Any]:
        """The content of scenario.json (formats/scenario.md); its flows are followed by those that a view started."""
        content = self._json("scenario.json")
        return {**content, "flows": [*content.get("flows", []), *added_flows(self.path)]}

    @cached_property
    def scenario(self) -> RunScenario:
        """The scenario; its flows are followed by those that a view started."""
        try:
            return RunScenario.of(self.scenario_keys)
        except ValidationError as problem:
            first = problem.errors()[0]
            text = f'a flow: "{first["loc"][0]}": {first["msg"]}; was the file changed?'
            raise RunFileError(f"{self.path / 'scenario.json'}: {text}") from None

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

    @property
    def trace(self) -> Trace | None:
        """The positions of the stations until now; None without a file. Raises RunFileError, PlaceError."""
        path = trace_path(self.path)
        try:
            return read_trace(path) if path.exists() else None
        except TraceError as problem:
            raise RunFileError(str(problem)) from None

    @cached_property
    def flows(self) -> tuple[RunFlow, ...]:
        """The scenario's flows in their order; a RunFileError for an unknown traffic kind."""
        for flow in self.scenario.flows:
            if flow.traffic not in kind_names():
                text = f'{flow.name} is "{flow.traffic}", this version knows {", ".join(kind_names())}'
                raise RunFileError(f"{self.path / 'scenario.json'}: {text}")
        return self.scenario.flows

    def window_s(self, flow: RunFlow) -> tuple[float, float]:
        """Begin and end of a flow's measurement, in seconds from its first packet. A flow with `stop` may end earlier."""
        warmup_s = self.scenario.warmup_of(flow)
        return warmup_s, min(warmup_s + self.scenario.duration, self.scenario.seconds_of(flow))

    @cached_property
    def wires(self) -> list[WireEnds]:
        """The wires in the order of their numbers."""
        return self.scenario.wire_ends()

    @cached_property
    def captured(self) -> list[Captured]:
        """Every interface that was captured: radios, then the ends of wires."""
        radios = [Captured(name, name, mac_address(number), True) for name, number in self._radio_numbers.items()]
        wired = []
        for number, wire in enumerate(self.wires, start=1):
            wired.append(Captured(wire.station, f"{wire.station}.{wire.interface}", wire_mac(number, GATEWAY_END), False))
            capture = host_capture(wire.host, wire.host_interface)
            wired.append(Captured(wire.host, capture, wire_mac(number, HOST_END), False))
        return radios + wired

    @cached_property
    def _radio_numbers(self) -> dict[str, int]:
        return self.scenario.radio_numbers()

    def _number(self, node: str) -> tuple[int, bool]:
        """The number of a radio, or of a host's first wire, and whether it is a host's; a RunFileError for an unknown name."""
        wired = next((number for number, wire in enumerate(self.wires, start=1) if wire.host == node), None)
        number = wired or self._radio_numbers.get(node)
        if number is None:
            raise RunFileError(f'{self.path / "scenario.json"}: no station "{node}"')
        return number, wired is not None

    def mac(self, node: str) -> str:
        """The MAC address of a station's radio or of a host's first wire."""
        number, wired = self._number(node)
        return wire_mac(number, HOST_END) if wired else mac_address(number)

    def address(self, node: str, ip: int = 4) -> str:
        """The address of IP version 4 or 6 of a station's radio, or of a wired host (formats/scenario.md, at its end)."""
        number, wired = self._number(node)
        if wired:
            return wire_ip6(number, HOST_END) if ip == 6 else wire_ip(number, HOST_END)
        return ip6_address(number) if ip == 6 else ip_address(number)

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

    def last_stations(self, flow: RunFlow) -> list[str]:
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
