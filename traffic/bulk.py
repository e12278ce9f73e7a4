"""A TCP connection that sends as much as possible during its time: iperf3, with a separate server for each flow.

Packets are full (MTU 1500, so 1460 bytes of payload without TCP options, where the scenario says neither `mtu` nor `mss`).
iperf3's control connection shares the path, but is silent between the test's start and end; the flow neither fails nor ends
with it (programs/iperf_client.py, programs/iperf_server.py). The server's own report is not sent over it (iperf3's
--get-server-output): with some 600 bytes for each second it takes seconds of the radio's time.
"""

import json
from pathlib import Path
from typing import Any

from keys.models import Strict
from traffic.shared.kind import FlowPlan, Kind, Listening, Program, Shown, python_program

PROGRAMS = Path(__file__).with_name("programs")
CLIENT = PROGRAMS / "iperf_client.py"
SERVER = PROGRAMS / "iperf_server.py"


class BulkKeys(Strict):
    """A bulk flow has no keys of its own."""


class Bulk(Kind[BulkKeys]):
    """See the head of this file."""

    keys = BulkKeys
    transport = "tcp"
    measured = "tcp"
    sets_dscp = True  # iperf3 tells its server, which marks the ACKs
    preamble_bytes = 37  # iperf3's cookie
    readiness = Listening("tcp")  # iperf3 prints nothing when it reports in JSON
    shown = (
        Shown("acked_kbps", "acknowledged throughput", "kbit/s"),
        Shown("total_acked_kbps", "sum of the flows, each over its own time", "kbit/s"),
    )

    def receiver(self, plan: FlowPlan[BulkKeys]) -> Program:
        """iperf3's server, restarted for each test."""
        iperf3 = ["iperf3", "--bind", plan.target, "--port", plan.port]
        return Program(python_program(SERVER, "--report", plan.noted("received"), "--", *iperf3))

    def sender(self, plan: FlowPlan[BulkKeys], receiver_pid: int) -> Program:
        """iperf3's client, restarted until it has sent."""
        iperf3 = ["iperf3", "--client", plan.target, "--bind", plan.source, "--port", plan.port, "--json"]
        if plan.dscp is not None:
            iperf3 += ["--dscp", str(plan.dscp)]
        keeper = ["--seconds", plan.seconds, "--report", plan.report, "--receiver", receiver_pid]
        return Program(python_program(CLIENT, *keeper, "--", *iperf3), explain=lambda: iperf_error(plan.report))

    def error(self, plan: FlowPlan[BulkKeys]) -> str | None:
        """The error in iperf3's report: iperf3 ends with status 0 in any case."""
        error = iperf_error(plan.report)
        return None if error is None else f'iperf3: "{error}"'

    def report(self, plan: FlowPlan[BulkKeys]) -> str | None:
        """The client's report, with the server's part if the client has none."""
        served = plan.noted("received")
        return with_servers_part(json.loads(plan.report.read_text()), json.loads(served.read_text()) if served.exists() else [])


KIND = Bulk()


def iperf_error(report: Path) -> str | None:
    """The error in iperf3's report; None without one, or without a report."""
    try:
        error: str | None = json.loads(report.read_text()).get("error")
    except (OSError, ValueError):
        return None
    return error


def with_servers_part(report: dict[str, Any], servers: list[dict[str, Any]]) -> str | None:
    """The client's report joined with the server's of the same test; None if there is nothing to join. If the ends did not
    exchange their results, what the server read is its own count, of whole seconds."""
    if "server_output_json" in report or not report["manet"]["connected"] or not servers:
        return None
    if "start" not in report:  # a client that had to be ended by force
        report |= {"start": _seen_from_the_client(servers[-1]["start"]), "end": {}}
    seconds = report["start"]["test_start"]["duration"]
    for server in servers:
        if server["start"]["cookie"] == report["start"]["cookie"]:
            report["server_output_json"] = server
            if report["manet"]["remark"] is not None:
                # a server that is told of the client's end lists its last interval twice
                sums = {interval["sum"]["start"]: interval["sum"] for interval in server["intervals"]}
                counted = [each for start, each in sums.items() if start < seconds]
                read = sum(each["bytes"] for each in counted)
                until_s = max((each["end"] for each in counted), default=seconds)
                report["end"]["sum_received"] = {"bytes": read, "seconds": until_s}
    return json.dumps(report) if "server_output_json" in report else None


def _seen_from_the_client(start: dict[str, Any]) -> dict[str, Any]:
    """The head of a server's report from the client's side: local and remote are exchanged."""
    swapped = {"local_host": "remote_host", "local_port": "remote_port", "remote_host": "local_host", "remote_port": "local_port"}
    connected = [{swapped.get(key, key): value for key, value in ends.items()} for ends in start["connected"]]
    return {**start, "connected": connected}
