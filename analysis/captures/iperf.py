"""iperf3's own report of a flow (traffic/<flow>.json), as its documentation of `--json` describes it.

Read are the data connection's addresses and ports, bytes and seconds of both ends, and the sender's retransmissions. Interval
reports are not read: from 3.16 on the receiver counts whole blocks of 131072 bytes, too coarse for the seconds of a slow flow.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.captures.connections import Connection
from record.errors import RunFileError
from record.files import read_text


@dataclass(frozen=True)
class IperfReport:
    """The figures of one report; `connection` is the data connection, None if the report names none."""

    connection: Connection | None
    block_bytes: int
    start_s: float | None  # UNIX time at which the test was set up
    test_s: float
    received_bytes: int
    received_s: float
    retransmissions: int | None
    error: str | None
    first_try_s: float | None = None  # UNIX time of the first attempt to connect
    connected: bool = True  # False: the ends never connected, and no data were carried
    remark: str | None = None  # the error that prevented the exchange of results after a complete test
    counted_s: float = 0.0  # when the sender's figures were read, from the begin: after test_s if the end was awaited in vain
    content: Mapping[str, Any] = field(default_factory=dict)  # the whole report, for metrics that a traffic kind reads itself

    @property
    def received_bps(self) -> float | None:
        """Bytes read by the receiver, over the seconds that it took; None if it took none."""
        return self.received_bytes * 8 / self.received_s if self.received_s > 0 else None


def read_report(path: Path) -> IperfReport:
    """Parse a report; a failed test has `error` and its figures up to the failure."""
    try:
        report = json.loads(read_text(path))
    except FileNotFoundError:
        raise RunFileError(f"{path}: no report; the flow did not end, see log/ of the run") from None
    except ValueError as problem:
        raise RunFileError(f"{path}: not an iperf3 report ({problem}); was iperf3 killed while it wrote?") from None
    start, end = report.get("start", {}), report.get("end", {})
    test = start.get("test_start", {})
    tried = report.get("manet", {})  # traffic/programs/iperf_client.py
    sent = end.get("sum_sent") or end.get("sum") or {}
    received = end.get("sum_received") or end.get("sum") or {}
    return IperfReport(
        connection=_connection(start, test.get("protocol", "TCP")),
        block_bytes=int(test.get("blksize", 0)),
        start_s=start.get("timestamp", {}).get("timesecs"),
        test_s=float(test.get("duration", 0)),
        received_bytes=int(received.get("bytes", 0)),
        received_s=float(received.get("seconds", 0)),
        retransmissions=sent.get("retransmits"),
        error=report.get("error"),
        first_try_s=tried.get("first_try_s"),
        connected=tried.get("connected", True),
        remark=tried.get("remark"),
        counted_s=max(float(test.get("duration", 0)), float(sent.get("seconds", 0))),
        content=report,
    )


def _connection(start: dict[str, Any], protocol: str) -> Connection | None:
    for ends in start.get("connected", []):
        local, remote = ends["local_host"], ends["remote_host"]
        return Connection(protocol.lower(), local, ends["local_port"], remote, ends["remote_port"])
    return None
