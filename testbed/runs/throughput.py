"""`iperf` and `iperfudp` of the prompt and of scripts: one iperf3 test between two hosts, and its result.

Mininet's own verbs run iperf2 and wait for lines that Debian 12's does not print, for ever. Here both programs are
children of the run, held by handle, and every wait has a deadline. As Mininet's, a measurement waits for the route: right after
its start a routing daemon has none.
"""

import json
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mininet.log import output

from testbed.errors import RunError, UsageError
from testbed.host.processes import SLOWER, Processes
from testbed.stages.routing import Network
from testbed.stages.routing.shared.settle import settle_s
from testbed.stages.station import NamespaceHost

SECONDS = 5
MAX_SECONDS = 3600
PORT = 5199  # not a port of the flows (5201 on), or of a server that the user started
LISTENS_WITHIN_S = 10.0
CONNECT_DEADLINE_S = 10  # three retransmissions of a SYN
PATIENCE_S = 60.0 * SLOWER  # for a route; a protocol that needs longer (`settle`) gets that
TRY_EVERY_S = 0.3
END_GRACE_S = 15.0  # for the last segments and iperf3's exchange of results over a slow path
REMEDY = "`links` and `routes` show whether there is a path"


class NotReached(RunError):
    """The client found no server."""


@dataclass(frozen=True)
class Throughput:
    """Received and sent rate, bit/s; for UDP also the offered rate and the lost share."""

    server_bps: float
    client_bps: float
    udp_rate: str | None = None
    lost_percent: float = 0.0
    seconds: int = SECONDS
    ip: int = 4

    def text(self) -> str:
        """The throughput as the prompt prints it."""
        arrived = f"{self.server_bps / 1000:.0f} kbit/s"
        over = " over IPv6" if self.ip == 6 else ""
        if self.udp_rate is None:
            return f"{arrived} (TCP{over}, {self.seconds} s)"
        return f"{arrived} (UDP{over} offered at {self.udp_rate}, {self.seconds} s, {self.lost_percent:.1f} % lost)"

    def as_iperf(self, fmt: str | None = None) -> list[str]:
        """[server, client], for UDP [offered, server, client], as Mininet's iperf() returns them."""
        rates = [iperf_text(self.server_bps, fmt), iperf_text(self.client_bps, fmt)]
        return rates if self.udp_rate is None else [self.udp_rate, *rates]


# the letters of iperf 2's -f: bit/s of one unit, and its name
FORMATS = {
    "k": (1e3, "Kbits"), "m": (1e6, "Mbits"), "g": (1e9, "Gbits"),
    "K": (8 * 2**10, "KBytes"), "M": (8 * 2**20, "MBytes"), "G": (8 * 2**30, "GBytes"),
}  # fmt: skip


def iperf_text(bps: float, fmt: str | None = None) -> str:
    """A rate as iperf 2 prints it: `941 Kbits/sec`, `9.41 Mbits/sec` (units of 1000); `fmt`: a unit of FORMATS, in place of the
    one that fits."""
    if fmt in FORMATS:
        per_unit, name = FORMATS[fmt]
        digits = 2 if bps / per_unit < 9.995 else 1 if bps / per_unit < 99.95 else 0
        return f"{bps / per_unit:.{digits}f} {name}/sec"
    value, unit = bps, ""
    for larger in ("K", "M", "G"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}bits/sec"


def measure_with_route(
    network: Network, source: NamespaceHost, target: NamespaceHost, udp_rate: str | None = None, *, patience_s: float, **more: int
) -> Throughput:
    """Like `measure`, but retries for `patience_s` until the server is reached."""
    deadline, announced = time.monotonic() + patience_s, False
    while True:
        try:
            return measure(network.children, source, target, udp_rate, **more)
        except NotReached:
            if time.monotonic() > deadline:
                raise
        if not announced:
            output(f"*** waiting for a route from {source.name} to {target.name}, at most {patience_s:g} s\n")
            announced = True
        network.children.watch(until=time.monotonic() + TRY_EVERY_S)


def patience_s(network: Network) -> float:
    """How long a measurement waits for a route."""
    return max(PATIENCE_S, settle_s(network))


def measure(
    children: Processes, source: NamespaceHost, target: NamespaceHost, udp_rate: str | None = None, seconds: int = SECONDS,
    ip: int = 4,
) -> Throughput:  # fmt: skip
    """The throughput from `source`, the client, to `target` over `seconds`, by IPv4 or IPv6. Raises NotReached if no connection
    succeeds in time, RunError for all else."""
    if source.name == target.name:
        raise UsageError(f"iperf {source.name} {target.name}: a station would measure itself; name two")
    report = children.log_folder / "prompt-iperf.json"
    start = partial(children.start, remedy=REMEDY, may_end=True, any_status=True)  # the client's report says what went wrong
    children.log_folder.joinpath("prompt-iperf-server.log").unlink(missing_ok=True)  # "listening" is to be this server's
    here, there = source.address(ip), target.address(ip)
    argv: list[str | int] = ["iperf3", "--server", "--one-off", "--forceflush", "--bind", there, "--port", PORT]
    started = [start("prompt-iperf-server", argv, netns=target.netns)]
    try:
        children.wait_for_text(started, "Server listening", within_s=LISTENS_WITHIN_S)
        argv = ["iperf3", "--client", there, "--bind", here, "--port", PORT, "--time", seconds, "--json"]
        argv += ["--connect-timeout", CONNECT_DEADLINE_S * 1000]
        argv += ["--udp", "--bitrate", udp_rate] if udp_rate else []
        with report.open("wb") as stdout:
            started.append(start("prompt-iperf", argv, netns=source.netns, stdout=stdout))
        limit_s = CONNECT_DEADLINE_S + seconds + END_GRACE_S
        if not children.watch(until=time.monotonic() + limit_s, ended=started[1:]):
            raise RunError(f"iperf {source.name} {target.name}: not ended within {limit_s:g} s; {REMEDY}")
    finally:
        children.stop(reversed(started))
    return replace(_result(report, udp_rate, seconds), ip=ip)


def _result(report: Path, udp_rate: str | None, seconds: int) -> Throughput:
    try:
        answer = json.loads(report.read_text())
    except ValueError:
        raise RunError(f"{report}: iperf3 wrote no report; {REMEDY}") from None
    if "error" in answer:
        kind = NotReached if "unable to connect" in answer["error"] else RunError
        raise kind(f'iperf3: "{answer["error"]}"; {REMEDY}')
    end = answer["end"]
    rates = (end["sum_received"]["bits_per_second"], end["sum_sent"]["bits_per_second"])
    lost = 0.0 if udp_rate is None else end["sum"]["lost_percent"]
    return Throughput(*rates, udp_rate, lost, seconds)
