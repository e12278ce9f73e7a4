"""Parts of all UDP kinds: the program that sends and receives trains of datagrams, and the report made of its counts."""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from traffic.shared.kind import FlowPlan, Kind, Listening, Metric, Program, Shown, python_program

DATAGRAMS = Path(__file__).parents[1] / "programs" / "datagrams.py"
Keys = TypeVar("Keys", bound=BaseModel)
OF_RUN = (
    Metric("delivery", "1", "share of all written datagrams that arrived"),
    Metric("delivered_bps", "bit/s", "sum of `delivered_bps`"),
    Metric("latency_ms", "ms", "mean latency of all datagrams that arrived"),
    Metric("jitter_ms", "ms", "mean of the flows' `jitter_ms`, weighted by the datagrams that arrived"),
)


@dataclass(frozen=True)
class Train:
    """`packets` datagrams back to back, each `every_s` seconds."""

    every_s: float
    packets: int
    packet_bytes: int  # of the IP packet; of the largest if a kind has `sizes`

    def datagrams_in(self, seconds: float) -> int:
        """The number of datagrams of a flow that sends for so long."""
        return max(1, int(seconds / self.every_s)) * self.packets


class DatagramKind(Kind[Keys]):
    """A kind whose flows are trains of datagrams; its module says which."""

    transport = "udp"
    measured = "datagrams"
    readiness = Listening("udp")
    sets_dscp = True
    drain_s = 2.0
    run_metrics = OF_RUN
    shown = (
        Shown("reaction_s", "time without deliveries", "s"),
        Shown("delivery", "delivered", "%", 100.0),
        Shown("delivered_bps", "delivered", "kbit/s", 1e-3),
        Shown("latency_ms", "latency", "ms"),
        Shown("jitter_ms", "jitter", "ms"),
    )

    @abstractmethod
    def train(self, keys: Keys) -> Train:
        """The stream that a flow with these keys sends."""

    @abstractmethod
    def interval_s(self, keys: Mapping[str, Any]) -> float:
        """Seconds from one burst of datagrams to the next, by a flow's keys in scenario.json."""

    def at_once(self, keys: Mapping[str, Any]) -> int:
        """Datagrams of a burst, which leave back to back, by the same keys."""
        return 1

    def sizes(self, plan: FlowPlan[Keys]) -> Iterator[int] | None:
        """The sizes of a flow's IP packets in their order, without end; None if all have the size of `train`."""
        return None

    def receiver(self, plan: FlowPlan[Keys]) -> Program:
        """`datagrams.py receive` on the flow's port."""
        own = ["--source", plan.target, "--port", plan.port, "--out", plan.noted("received")]
        return Program(python_program(DATAGRAMS, "receive", *own))

    def sender(self, plan: FlowPlan[Keys], receiver_pid: int) -> Program:
        """`datagrams.py send` with the stream of `train`."""
        train = self.train(plan.keys)
        ends = ["--source", plan.source, "--to", plan.target, "--port", plan.port]
        stream = ["--every", train.every_s, "--packets", train.packets, "--bytes", train.packet_bytes]
        sizes = self.sizes(plan)
        if sizes is not None:
            series = plan.log / f"{plan.name}-sizes.txt"
            series.write_text("".join(f"{size}\n" for size in islice(sizes, train.datagrams_in(plan.seconds))))
            stream += ["--sizes", series]
        if plan.dscp is not None:
            stream += ["--dscp", plan.dscp]
        own = ["--seconds", plan.seconds, "--out", plan.noted("sent")]
        return Program(python_program(DATAGRAMS, "send", *ends, *stream, *own))

    def report(self, plan: FlowPlan[Keys]) -> str:
        """A report in iperf3's format, from the counts of both programs."""
        sent = json.loads(plan.noted("sent").read_text())
        received = json.loads(plan.noted("received").read_text())
        content = {
            "format": "manet-cbr/1",
            "manet": {"first_try_s": sent["first_try_s"], "connected": sent["sent"] > 0},
            "start": plan.start_entry(sent["port"], "UDP", sent["payload_bytes"]),
            "end": {
                "sum_sent": {"packets": sent["sent"], "bytes": sent["sent_bytes"], "refused": sent["refused"]},
                "sum_received": {
                    "packets": received["received"],
                    "bytes": received["received_bytes"],
                    "seconds": received["seconds"],
                    "duplicates": received["duplicates"],
                    "until_s": received["until_s"],
                },
            },
        }
        return json.dumps(content, indent=1) + "\n"

    def of_run(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The metrics of OF_RUN; None for those that one flow's missing metrics prevent."""
        if any(entry.get("sent") is None or entry.get("delivered_bps") is None for entry in entries):
            return {metric.name: None for metric in OF_RUN}
        sent = sum(entry["sent"] for entry in entries)
        arrived = [(entry, entry["sent"] * entry["delivery"]) for entry in entries if entry.get("delivery")]
        total = sum(count for _, count in arrived)
        return {
            "delivery": total / sent if sent else None,
            "delivered_bps": sum(entry["delivered_bps"] for entry in entries),
            "latency_ms": sum(entry["latency_ms_mean"] * count for entry, count in arrived) / total if total else None,
            "jitter_ms": sum((entry["jitter_ms"] or 0.0) * count for entry, count in arrived) / total if total else None,
        }
