"""A flow between two instants: the basis of each way of measuring (analysis/metrics/measures.py), and the metrics that several
have."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from analysis.captures.air import Matching, begins_ppdu, match_deliveries
from analysis.captures.connections import Connection
from analysis.captures.iperf import IperfReport
from analysis.captures.rundir import RunDirectory
from analysis.metrics import checks
from analysis.metrics.checks import Check
from analysis.metrics.datagrams import longest_silence_s, silence_s
from record.errors import RecordError
from record.scenario import RunFlow
from traffic.shared.kind import Metric

NS_PER_S = 1_000_000_000


@dataclass
class MeasuredFlow:
    """Between `begin_ns` and `end_ns` (CLOCK_REALTIME, ns)."""

    run: RunDirectory
    flow: RunFlow
    report: IperfReport | None
    connections: Sequence[Connection]
    begin_ns: int
    end_ns: int
    found: list[Check]

    def __post_init__(self) -> None:
        """Read what the metrics are computed from, and add the checks to `found`."""

    @property
    def window_s(self) -> float:
        """Its length."""
        return (self.end_ns - self.begin_ns) / 1e9

    def values(self, metrics: Sequence[Metric]) -> dict[str, Any]:
        """The metrics, by name."""
        return {metric.name: metric.of(self) for metric in metrics if metric.of is not None}

    def air_bps(self) -> float | None:
        """None if the log of the air does not match the capture, and for a flow between a gateway and its wired hosts."""
        stations = self.run.last_stations(self.flow)
        try:
            matchings = [self._match(station) for station in stations]
        except RecordError as problem:
            self.found.append(Check(f"{self.flow.name} air-capture", False, str(problem)))
            return None
        payload = 0
        for station, matching in zip(stations, matchings, strict=True):
            self.found.append(checks.air_capture(self.flow.name, station, matching))
            for connection in self.connections:
                rows = connection.forward(matching.matched)
                payload += int((rows["air_bytes"] - (rows["ip_bytes"] - rows["payload_bytes"])).sum())
        return payload * 8 / self.window_s if stations else None

    @cached_property
    def data_frames(self) -> pl.DataFrame:
        """The data frames to one station that the source sent in the window, of an A-MPDU each MPDU; none if the source is no
        station, or without a readable log of the air, which `air_bps` reports."""
        try:
            air, epoch_ns = self.run.air, self.run.epoch_ns
        except RecordError:
            return pl.DataFrame(schema={"rate_bps": pl.Int64})
        inside = pl.col("t_ns").is_between(self.begin_ns - epoch_ns, self.end_ns - epoch_ns, closed="left")
        own = pl.col("station") == self.flow.source
        return air.filter((pl.col("event") == "tx") & (pl.col("frame") == "data") & own & inside)

    def data_rate_bps(self) -> float | None:
        """Mean of `data_frames`; None without any."""
        rates = self.data_frames["rate_bps"]
        return int(rates.sum()) / len(rates) if len(rates) else None

    def mpdus_per_ppdu(self) -> float | None:
        """Mean of `data_frames`; None without any."""
        frames = self.data_frames
        ppdus = frames.filter(begins_ppdu(frames)).height
        return len(frames) / ppdus if ppdus else None

    def _match(self, station: str) -> Matching:
        """Deliveries and arrivals in the window."""
        run, mac = self.run, self.run.mac(station)
        packets = run.capture(station)
        arrivals = packets.filter(packets["eth_dst"] == mac)
        return match_deliveries(run.air, arrivals, station, run.epoch_ns, (self.begin_ns, self.end_ns))


def length_s(run: RunDirectory, flow: RunFlow, _report: IperfReport) -> float:
    """The length of the window of a flow that carried nothing."""
    begin_s, end_s = run.window_s(flow)
    return end_s - begin_s


AIR = Metric(
    "air_bps", "bit/s", "payload that the medium handed to the destination, of a wired host to its gateways, by the air log, "
    "with duplicates; `null` if the flow never uses the air", lambda flow: flow.air_bps(), 0.0,
)  # fmt: skip
RATES = (
    Metric("data_rate_bps", "bit/s", "mean data rate of the data frames to one station that the flow's source sent in its "
           "window, by the air log: of an A-MPDU each MPDU, of all its flows, retransmissions included",
           lambda flow: flow.data_rate_bps()),
    Metric("mpdus_per_ppdu", "MPDUs", "mean number of MPDUs in these frames on the air: 1 without aggregation",
           lambda flow: flow.mpdus_per_ppdu()),
)  # fmt: skip
SILENCES = (
    Metric("silence_s", "s", "sum of the gaps longer than 0.5 s in which nothing of the flow arrived: no datagram, no further "
           "in-order byte of TCP; of a flow that never connected the window", lambda flow: silence_s(flow.marks_ns), length_s),
    Metric("longest_silence_s", "s", "the longest such gap, also below 0.5 s: the length of an outage",
           lambda flow: longest_silence_s(flow.marks_ns), length_s),
)  # fmt: skip
