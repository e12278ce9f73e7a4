"""The values that a mesh returns: a ping, a measured transfer, a route, a verdict."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Self

from manet_testbed.errors import MeshError, quoted

_COUNTS = re.compile(r"(\d+) packets transmitted, (\d+) received")
_RTT = re.compile(r"^rtt \S+ = ([\d.]+)/([\d.]+)/([\d.]+)/", re.MULTILINE)
_UNREACHABLE = re.compile(r"unreachable|No route to host", re.IGNORECASE)


@dataclass(frozen=True)
class Ping:
    """The result of ping(8). The round trip times are in milliseconds, None if nothing came back."""

    sent: int
    received: int
    min_ms: float | None = None
    rtt_ms: float | None = None  # the mean
    max_ms: float | None = None

    @property
    def loss(self) -> float:
        """The lost share, 0 to 1."""
        return 1 - self.received / self.sent

    @classmethod
    def parse(cls, count: int, stdout: str, stderr: str, command: str) -> Self:
        """Parse the output of `ping -c <count>`. Without a route all are lost; any other failure raises MeshError."""
        counts = _COUNTS.search(stdout)
        if counts is None or int(counts[1]) == 0:
            if _UNREACHABLE.search(stdout + stderr):
                return cls(count, 0)
            raise MeshError(f"{command}: ping sent nothing{quoted(stderr or stdout)}")
        times = _RTT.search(stdout)
        return cls(int(counts[1]), int(counts[2]), *(map(float, times.groups()) if times else ()))


@dataclass(frozen=True)
class Throughput:
    """The result of one iperf3 test over TCP; `report` is all that iperf3 wrote."""

    seconds: float
    received_bytes: int
    received_bps: float
    sent_bps: float
    retransmits: int
    report: dict[str, Any] = field(repr=False)

    @property
    def kbps(self) -> float:
        """Rate that arrived at the receiver, kbit/s."""
        return self.received_bps / 1000

    @classmethod
    def parse(cls, text: str, command: str) -> Self:
        """Parse the report of `iperf3 --json`. Raises MeshError if the test failed."""
        try:
            report = json.loads(text)
        except ValueError:
            raise MeshError(f"{command}: iperf3 wrote no report") from None
        if "error" in report:
            raise MeshError(f'{command}: iperf3: "{report["error"]}"')
        sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
        return cls(
            received["seconds"], received["bytes"], received["bits_per_second"], sent["bits_per_second"],
            sent.get("retransmits", 0), report,
        )  # fmt: skip


@dataclass(frozen=True)
class Route:
    """A row of the kernel's main table. `via` is None if the destination is on the link."""

    destination: str
    via: str | None
    device: str | None
    metric: int
    protocol: str
    kind: str  # `unicast`, or of a route that refuses packets `unreachable`, `blackhole`, `prohibit`
    raw: dict[str, Any] = field(repr=False, compare=False, hash=False)

    def __str__(self) -> str:
        kind = "" if self.kind == "unicast" else f"{self.kind} "
        return f"{kind}{self.destination}{f' via {self.via}' if self.via else ''}"

    @classmethod
    def parse(cls, row: dict[str, Any]) -> Self:
        """Parse a row of `ip -json route show`. The paths of a multipath route are in `raw` only."""
        protocol, kind = str(row.get("protocol", "boot")), row.get("type", "unicast")
        return cls(row["dst"], row.get("gateway"), row.get("dev"), row.get("metric", 0), protocol, kind, row)


@dataclass(frozen=True)
class Verdict:
    """Whether the machine was fast enough (docs/verdict.md): `word` is `valid`, `suspect`, `void`, or `none` if the medium wrote
    none."""

    word: str
    reasons: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the results count without reservation."""
        return self.word == "valid"

    def __str__(self) -> str:
        return self.word + (f" ({'; '.join(self.reasons)})" if self.reasons else "")
