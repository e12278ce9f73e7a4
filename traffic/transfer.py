"""A TCP transfer of `size` bytes: its completion time, and whether it finished within the flow's time.

The programs are our own (programs/transfer.py), not iperf3 with `--bytes`: iperf3 opens a control connection over the same path
first, so its test starts later than the flow; its client measures until it has handed over the last byte, not until the receiver
has read it; and a test that it cannot finish has no exact count of received bytes. Here the flow is one connection and nothing
else. Both ends take times from CLOCK_MONOTONIC, which all stations share.
"""

import json
from pathlib import Path

from pydantic import Field

from keys.models import Strict
from keys.quantities import Bytes
from traffic.shared.kind import FlowPlan, Kind, Listening, Metric, Program, Report, Shown, python_program, unfinished

PROGRAM = Path(__file__).with_name("programs") / "transfer.py"
NS_PER_S = 1_000_000_000


class TransferKeys(Strict):
    """`size` bytes of payload."""

    size: Bytes = Field(ge=1, le=10_000_000_000, examples=[1_000_000])


class Transfer(Kind[TransferKeys]):
    """See the head of this file."""

    keys = TransferKeys
    transport = "tcp"
    measured = "tcp"
    readiness = Listening("tcp")
    drain_s = 2.0  # an unfinished transfer ends with packets on their way, which the receiver counts
    outcome = "outcome"
    own_metrics = (
        Metric("completion_s", "s", "time from the sender's first try to connect until the receiver has read the last byte; "
               "`null` if unfinished"),
        Metric("finished", "1", "whether that was within the flow's time, from its start to the end of the traffic"),
        Metric("transferred_bytes", "bytes", "bytes that the receiver had read by then"),
    )  # fmt: skip
    shown = (Shown("completion_s", "completion time", "s"), Shown("finished", "finished", "% of runs", 100.0))

    def receiver(self, plan: FlowPlan[TransferKeys]) -> Program:
        """`transfer.py receive` on the flow's port."""
        own = ["--source", plan.target, "--port", plan.port, "--size", plan.keys.size, "--out", plan.noted("received")]
        return Program(python_program(PROGRAM, "receive", *own))

    def sender(self, plan: FlowPlan[TransferKeys], receiver_pid: int) -> Program:
        """`transfer.py send`, which lasts for the flow's time even if the transfer finishes earlier."""
        ends = ["--source", plan.source, "--to", plan.target, "--port", plan.port, "--receiver", receiver_pid]
        own = ["--size", plan.keys.size, "--seconds", plan.seconds, "--out", plan.noted("sent")]
        return Program(python_program(PROGRAM, "send", *ends, *own))

    def report(self, plan: FlowPlan[TransferKeys]) -> str:
        """A report in iperf3's format, from the counts of both programs, with `outcome`."""
        sent = json.loads(plan.noted("sent").read_text())
        received = json.loads(plan.noted("received").read_text()).get(str(sent["port"]), {})
        last_ns, in_time = received.get("last_ns"), received.get("bytes_in_time", 0)
        passed_s = (last_ns - sent["began_ns"]) / NS_PER_S if last_ns is not None else 0.0
        finished = in_time == plan.keys.size
        tried = {key: sent[key] for key in ("tries", "first_try_s", "connected", "remark")}
        content = {
            "format": "manet-transfer/1",
            "manet": tried,
            "start": plan.start_entry(sent["port"] if sent["connected"] else None),
            "end": {
                "sum_sent": {"bytes": sent["bytes"], "retransmits": sent["retransmissions"]},
                "sum_received": {"bytes": received.get("bytes", 0), "seconds": passed_s},
            },
            "outcome": {
                "size": plan.keys.size,
                "seconds": plan.seconds,
                "completion_s": passed_s if finished else None,
                "finished": finished,
                "transferred_bytes": in_time,
            },
        }
        return json.dumps(content, indent=1) + "\n"

    def remark(self, report: Report) -> str | None:
        """A remark about an unfinished transfer that had begun."""
        outcome = report.get("outcome", {})
        if not report.get("manet", {}).get("connected") or outcome.get("finished") is not False:
            return None
        return unfinished(report, f"{outcome['transferred_bytes']} of {outcome['size']} bytes", outcome["seconds"])


KIND = Transfer()
