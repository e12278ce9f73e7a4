"""The prompt's `iperf` and `iperfudp`: one iperf3 test between two hosts, and its result in one line.

Mininet's own verbs run iperf2 and wait for lines that Debian 12's does not print, for ever. Here both programs are
children of the run, held by handle, and every wait has a deadline.
"""

import json
import time
from pathlib import Path

from testbed.errors import RunError
from testbed.host.processes import Processes
from testbed.stages.station import NamespaceHost

SECONDS = 5
PORT = 5199  # beside those of the flows (5201 on), and of a server that the user started
LISTENS_WITHIN_S = 10.0
CONNECT_DEADLINE_S = 10  # three retransmissions of a SYN
END_GRACE_S = 15.0  # for the last segments and iperf3's exchange of results over a slow path
REMEDY = "`links` and `routes` show whether there is a path"


def measure(children: Processes, source: NamespaceHost, target: NamespaceHost, udp_rate: str | None = None) -> str:
    """One line with what arrived at `target`; RunError if nothing can, or not in time."""
    report = children.log_folder / "prompt-iperf.json"
    remedy = {"remedy": REMEDY, "may_end": True, "any_status": True}  # the client's report says what went wrong
    children.log_folder.joinpath("prompt-iperf-server.log").unlink(missing_ok=True)  # "listening" is to be this server's
    argv = ["iperf3", "--server", "--one-off", "--forceflush", "--bind", target.IP(), "--port", PORT]
    started = [children.start("prompt-iperf-server", argv, netns=target.netns, **remedy)]
    try:
        children.wait_for_text(started, "Server listening", within_s=LISTENS_WITHIN_S)
        argv = ["iperf3", "--client", target.IP(), "--bind", source.IP(), "--port", PORT, "--time", SECONDS, "--json"]
        argv += ["--connect-timeout", CONNECT_DEADLINE_S * 1000]
        argv += ["--udp", "--bitrate", udp_rate] if udp_rate else []
        with report.open("wb") as stdout:
            started.append(children.start("prompt-iperf", argv, netns=source.netns, stdout=stdout, **remedy))
        limit_s = CONNECT_DEADLINE_S + SECONDS + END_GRACE_S
        if not children.watch(until=time.monotonic() + limit_s, ended=started[1:]):
            raise RunError(f"iperf {source.name} {target.name}: not ended within {limit_s:g} s; {REMEDY}")
    finally:
        children.stop(reversed(started))
    return f"{source.name} -> {target.name}: {_result(report, udp_rate)}"


def _result(report: Path, udp_rate: str | None) -> str:
    try:
        said = json.loads(report.read_text())
    except ValueError:
        raise RunError(f"{report}: iperf3 wrote no report; {REMEDY}") from None
    if "error" in said:
        raise RunError(f'iperf3: "{said["error"]}"; {REMEDY}')
    if udp_rate is None:
        return f"{said['end']['sum_received']['bits_per_second'] / 1000:.0f} kbit/s (TCP, {SECONDS} s)"
    total = said["end"]["sum"]
    arrived = said["end"]["sum_received"]["bits_per_second"] / 1000
    return f"{arrived:.0f} kbit/s (UDP offered at {udp_rate}, {SECONDS} s, {total['lost_percent']:.1f} % lost)"
