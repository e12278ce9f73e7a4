"""iperf3's own report of a flow (traffic/<flow>.json), as its documentation of `--json` shows it.

Read: the data connection's addresses and ports, bytes and seconds of both sides, the sender's retransmissions,
and the server's interval reports where the client asked for them (`--get-server-output`).
"""

import json
from dataclasses import dataclass
from pathlib import Path

from analysis.connections import Connection
from analysis.errors import RunFileError


@dataclass(frozen=True)
class Interval:
    """Bytes that the receiver read between two instants, seconds after its test started."""

    start_s: float
    end_s: float
    received_bytes: int


@dataclass(frozen=True)
class IperfReport:
    connection: Connection | None
    block_bytes: int
    start_s: float | None  # UNIX time at which the test was set up
    test_s: float
    sent_bytes: int
    received_bytes: int
    received_s: float
    retransmissions: int | None
    intervals: tuple[Interval, ...]
    error: str | None
    first_try_s: float | None = None  # UNIX time of the first attempt to connect
    connected: bool = True  # False: the ends never met, nothing was carried
    remark: str | None = None  # what kept iperf3's ends from exchanging results, after a complete test

    @property
    def received_bps(self) -> float | None:
        return self.received_bytes * 8 / self.received_s if self.received_s > 0 else None

    def received_between(self, begin_s: float, end_s: float) -> float | None:
        """Bytes read between two instants of the test, intervals cut in proportion; None if they do not reach."""
        if not self.intervals or self.intervals[-1].end_s < end_s - 1e-3 or self.intervals[0].start_s > begin_s:
            return None
        return sum(
            interval.received_bytes * _overlap(interval, begin_s, end_s) / (interval.end_s - interval.start_s)
            for interval in self.intervals
            if interval.end_s > interval.start_s
        )


def read_report(path: Path) -> IperfReport:
    """Parse a report; a test that failed has `error` and what it had measured until then."""
    try:
        report = json.loads(path.read_text())
    except FileNotFoundError:
        raise RunFileError(f"{path}: no iperf3 report; the flow did not end, see log/ of the run") from None
    except ValueError as problem:
        raise RunFileError(f"{path}: not an iperf3 report ({problem}); was iperf3 ended while it wrote?") from None
    start, end = report.get("start", {}), report.get("end", {})
    test = start.get("test_start", {})
    tried = report.get("manet", {})  # testbed/stages/bulk.py
    sent = end.get("sum_sent") or end.get("sum") or {}
    received = end.get("sum_received") or end.get("sum") or {}
    return IperfReport(
        connection=_connection(start, test.get("protocol", "TCP")),
        block_bytes=int(test.get("blksize", 0)),
        start_s=start.get("timestamp", {}).get("timesecs"),
        test_s=float(test.get("duration", 0)),
        sent_bytes=int(sent.get("bytes", 0)),
        received_bytes=int(received.get("bytes", 0)),
        received_s=float(received.get("seconds", 0)),
        retransmissions=sent.get("retransmits"),
        intervals=_server_intervals(report),
        error=report.get("error"),
        first_try_s=tried.get("first_try_s"),
        connected=tried.get("connected", True),
        remark=tried.get("remark"),
    )


def _connection(start: dict, protocol: str) -> Connection | None:
    for ends in start.get("connected", []):
        local, remote = ends["local_host"], ends["remote_host"]
        return Connection(protocol.lower(), local, ends["local_port"], remote, ends["remote_port"])
    return None


def _server_intervals(report: dict) -> tuple[Interval, ...]:
    server = report.get("server_output_json", {})
    return tuple(
        Interval(entry["sum"]["start"], entry["sum"]["end"], int(entry["sum"]["bytes"]))
        for entry in server.get("intervals", [])
        if entry.get("sum")
    )


def _overlap(interval: Interval, begin_s: float, end_s: float) -> float:
    return max(0.0, min(interval.end_s, end_s) - max(interval.start_s, begin_s))
