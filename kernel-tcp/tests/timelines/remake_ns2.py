"""Regenerates ns2.csv: the behaviour of ns-2.35 (Debian: ns2) on the scripts of test_timelines.py, as timelines.

    .venv/bin/python kernel-tcp/tests/timelines/remake_ns2.py

One row per event at the sender: `algorithm,script,event,sends,cwnd,ssthresh`, the last three after the event; a
segment sent before carries `!`. cwnd is ns-2's cwnd_, which in recovery leaves out what Reno's and NewReno's
inflation adds (dupwnd_).

Reno runs with bugFix_ false: RFC 2581 has a fast retransmit at any third duplicate. With bugFix_ true, ns-2's default
(RFC 2582 5, "avoiding multiple fast retransmits"), Reno waits for the timeout instead of the second one; those rows
are kept as `reno-bugfix`.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from test_timelines import SCRIPTS, SEGMENTS  # noqa: E402

# The agent's class and bugFix_.
AGENTS = {
    "tahoe": ("TCP", True),
    "reno": ("TCP/Reno", False),
    "reno-bugfix": ("TCP/Reno", True),
    "newreno": ("TCP/Newreno", True),
    "sack": ("TCP/Sack1", True),
}
SAME_EVENT_S = 0.001  # an ACK clocks what it clocks at once; everything else is a timer


def trace(agent: tuple[str, bool], lost: list[int]) -> list[str]:
    name, bugfix = agent
    argv = ["ns", str(HERE / "ns2.tcl"), name, ",".join(map(str, lost)), str(SEGMENTS), str(bugfix).lower()]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()


@dataclass
class Timeline:
    """Filled line by line of ns-2's trace."""

    rows: list[dict] = field(default_factory=lambda: [{"event": "start", "sends": []}])
    state: dict[str, str] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    acked: int = -1
    at: float = 1.0

    def event(self, time: float, name: str) -> None:
        self.rows.append({"event": name, "sends": [], **self.state})
        self.at = time

    def take(self, line: str) -> None:
        words = line.split()
        if words[0] in ("+", "d") and words[4] == "tcp":
            self._timer(float(words[1]))
            segment = int(words[10])
            self.rows[-1]["sends"].append(f"{segment}!" if segment in self.sent else str(segment))
            self.sent.append(segment)
        elif words[0] == "r" and words[4] == "ack":
            through = int(words[10])
            self.event(float(words[1]), f"{'ack' if through > self.acked else 'dup'} {through}")
            self.acked = max(self.acked, through)
        elif words[-2] in ("cwnd_", "ssthresh_"):
            self._timer(float(words[0]))
            self.state[words[-2].rstrip("_")] = f"{float(words[-1]):g}"
            self.rows[-1] |= self.state

    def _timer(self, time: float) -> None:
        if time > self.at + SAME_EVENT_S:
            self.event(time, "rto")


def timeline(agent: tuple[str, bool], losses: tuple[str, ...]) -> Timeline:
    """With the losses one by one: which packet of the link a retransmission is, only the run before tells."""
    lost: list[int] = []
    while True:
        done = Timeline()
        for line in trace(agent, lost):
            done.take(line)
        if len(lost) == len(losses):
            break
        segment, transmission = map(int, losses[len(lost)].split(":"))
        lost.append([index for index, sent in enumerate(done.sent) if sent == segment][transmission - 1])
    # The timer that fires when all is done, and ACKs of what was sent twice.
    end = next(number for number, row in enumerate(done.rows) if row["event"] == f"ack {SEGMENTS - 1}")
    del done.rows[end + 1 :]
    return done


def main() -> None:
    with (HERE / "ns2.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["algorithm", "script", "event", "sends", "cwnd", "ssthresh"])
        for algorithm, agent in AGENTS.items():
            for name, script in SCRIPTS.items():
                for row in timeline(agent, script.losses).rows:
                    writer.writerow([algorithm, name, row["event"], " ".join(row["sends"]), row["cwnd"], row["ssthresh"]])


if __name__ == "__main__":
    main()
