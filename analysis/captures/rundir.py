"""A run whose packets are read: its record (record/run.py) with the captures and the log of the air as tables."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import polars as pl

from analysis.captures.air import read_air, read_packet_rows
from analysis.captures.air_packets import PairedCaptures
from analysis.captures.connections import Connection, find_connections
from analysis.captures.iperf import IperfReport, read_report
from analysis.captures.pcap import STAMP_BYTES, read_capture
from analysis.captures.tcp_samples import SCHEMA, read_samples
from record import manifest
from record.errors import RecordError, RunFileError
from record.events_file import SCENARIO
from record.run import Captured, RunRecord, host_capture
from record.scenario import RunFlow


class RunDirectory(RunRecord):
    """Files are read once; a missing or malformed one raises a RecordError that names it.

    `keeps_captures`: else the captures that a story has read are forgotten, which is enough for one story.
    """

    def __init__(self, path: Path, *, keeps_captures: bool = True) -> None:
        super().__init__(path)
        self.keeps_captures = keeps_captures
        self._captures: dict[tuple[str, int], pl.DataFrame] = {}

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
        firsts_ns = [(self._first_packet_ns(flow), round(flow.start * 1e9)) for flow in self.flows]
        return min((first_ns - start_ns for first_ns, start_ns in firsts_ns if first_ns is not None), default=None)

    def _first_packet_ns(self, flow: RunFlow) -> int | None:
        connection = self.connection(flow)
        return connection.start_ns(self.capture_of(flow, flow.source)) if connection else None

    @cached_property
    def air(self) -> pl.DataFrame:
        """The air log, as analysis.captures.air.read_air gives it (formats/air.md)."""
        return read_air(self.path / "air.csv")

    @cached_property
    def packet_rows(self) -> pl.DataFrame:
        """The air log's rows of numbered packets, as analysis.captures.air.read_packet_rows gives them."""
        return read_packet_rows(self.path / "air.csv")

    @cached_property
    def _tcp_rows(self) -> pl.DataFrame:
        """All rows of tcp.csv (formats/tcp.md); none if the run took no samples."""
        path = self.path / "tcp.csv"
        return read_samples(path) if path.exists() else pl.DataFrame(schema=SCHEMA)

    def tcp_rows(self, flow: RunFlow, connection: Connection) -> pl.DataFrame:
        """The rows of the socket that sends the connection's data, in order of time."""
        ports = (pl.col("sport") == connection.source_port) & (pl.col("dport") == connection.destination_port)
        return self._tcp_rows.filter((pl.col("station") == flow.source) & ports).sort("t_ns", maintain_order=True)

    def capture(self, station: str, stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
        """The packets of captures/<station>.pcap, as analysis.captures.pcap.read_capture gives them."""
        if (station, stamp_bytes) not in self._captures:
            name = f"captures/{station}.pcap"
            if not (self.path / name).exists() and manifest.lists(self.path, name):
                again = f"manet run {self.run.get('experiment') or 'NAME'} --resume"
                raise RunFileError(f"{self.path / name}: was deleted after the run; put it back, or run it again: {again}")
            self._captures[station, stamp_bytes] = read_capture(self.path / name, stamp_bytes)
        return self._captures[station, stamp_bytes]

    def capture_of(self, flow: RunFlow, node: str, stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
        """The capture at `node`, an end of the flow."""
        names = self.captures_of(flow, node)
        if len(names) == 1:
            return self.capture(names[0], stamp_bytes)
        return pl.concat([self.capture(name, stamp_bytes) for name in names]).sort("t_ns", maintain_order=True)

    def captures_of(self, flow: RunFlow, node: str) -> list[str]:
        """The names of the captures at `node`, an end of the flow: of its radio, or of the wire to the host at the other end. A
        host has those of all its wires, because the flow may use any of them."""
        other = flow.target if node == flow.source else flow.source
        for wire in self.wires:
            if (wire.station, wire.host) == (node, other):
                return [f"{node}.{wire.interface}"]
        return [host_capture(node, wire.host_interface) for wire in self.wires if wire.host == node] or [node]

    def connection(self, flow: RunFlow) -> Connection | None:
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
        source, target = (self.address(node, self.scenario.ip_of(flow)) for node in (flow.source, flow.target))
        found = find_connections(packets, flow.protocol, source, target)
        return found[0] if found else None

    def tcp(self, flow: RunFlow) -> tuple[Connection, int, pl.DataFrame] | None:
        """Of a TCP flow its connection, the sequence number of its SYN, and its `tcp_rows`; None without packets."""
        connection = self.connection(flow)
        at_source, at_target = (self.capture_of(flow, node) for node in (flow.source, flow.target))
        isn = connection.initial_sequence(at_source, at_target) if connection else None
        return None if connection is None or isn is None else (connection, isn, self.tcp_rows(flow, connection))

    def paired(self, chosen: pl.Expr) -> Iterator[tuple[Captured, pl.DataFrame]]:
        """The captures of all interfaces one by one, with the frames `chosen` paired with the air log as
        analysis.captures.air_packets.PairedCaptures.frames says."""
        pairing = PairedCaptures(self.captured, self.packet_rows, self.epoch_ns, self.max_lateness_ns)
        for captured in self.captured:
            yield captured, pairing.frames(captured, self.capture(captured.file), chosen)
            if not self.keeps_captures:
                self._captures.pop((captured.file, STAMP_BYTES), None)

    def report(self, flow: RunFlow) -> IperfReport:
        """iperf3's report of the flow, traffic/<flow>.json."""
        return read_report(self.path / "traffic" / f"{flow.name}.json")
