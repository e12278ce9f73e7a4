"""A timeline: the actions of a TCP sender on each event, in segment numbers, as a table that can be read and compared.

    dup 13              29              17/32   2nd duplicate: limited transmit
    dup 13              14!             7/7     3rd: fast retransmit
    dup 13 x12          -               7/7
    ack 28              29 30           7/7
    rto                 29!             1/3

A row is an event, the segments sent in answer to it (`!`: sent before) and the windows after it (cwnd/ssthresh, in
segments). `ack N`: everything to N is acknowledged; `dup N`: the same ACK again; `rto`: sent without an ACK, not before
0.9 RTO; `start`: sent by the program, nothing was outstanding. `xN`: N such events, one after the other. Segments are of 1460
bytes, numbered from 0 at the SYN as in Fall & Floyd 1996. Times are left out: an ACK-clocked sender's order does not
depend on the host's speed.
Windows are those of tcp.csv at the next ACK. They are `-` after the last ACK, and if a timer fired in between, since a
row shows the state before its ACK. Text behind the windows is a remark.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tcplab import MSS, Packet

# Segments clocked by an ACK leave in the same interrupt; a timer fires far later, after 200 ms or more.
CLOCKED_S = 0.05
RTO_SHARE = 0.9
ROW = re.compile(
    r"(?P<event>start|rto|(?:ack|dup) -?\d+)(?: x(?P<times>\d+))?"
    r"\s\s+(?P<sends>-|\d+!?(?: \d+!?)*)\s\s+(?P<windows>\d+/\d+|-)"
)


class Disturbed(Exception):
    """The host disturbed the trial: the capture shows no behaviour of TCP."""


@dataclass(frozen=True)
class Row:
    event: str
    sends: tuple[str, ...] = ()
    cwnd: int | None = None
    ssthresh: int | None = None

    def __str__(self) -> str:
        windows = "-" if self.cwnd is None else f"{self.cwnd}/{self.ssthresh}"
        return f"{self.event:<16}    {' '.join(self.sends) or '-':<20}    {windows}"


def parse(text: str) -> list[Row]:
    rows = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = ROW.match(line)
        assert match, f"not a row of a timeline: {line!r}"
        sends = () if match["sends"] == "-" else tuple(match["sends"].split())
        cwnd, ssthresh = (None, None) if match["windows"] == "-" else map(int, match["windows"].split("/"))
        rows += [Row(match["event"], sends, cwnd, ssthresh)] * int(match["times"] or 1)
    return rows


def render(rows: Iterable[Row]) -> str:
    """The rows as a table without remarks; equal consecutive rows become one."""
    runs: list[tuple[Row, int]] = []
    for row in rows:
        if runs and runs[-1][0] == row and row.event != "rto":
            runs[-1] = (row, runs[-1][1] + 1)
        else:
            runs.append((row, 1))
    return "\n".join(str(replace(row, event=row.event + (f" x{times}" if times > 1 else ""))) for row, times in runs)


def retransmissions(rows: Iterable[Row]) -> list[str]:
    """The retransmitted segments in order; those sent by a timer begin with `rto `."""
    return [("rto " if row.event == "rto" else "") + send for row in rows for send in row.sends if send.endswith("!")]


@dataclass
class _Building:
    rows: list[Row] = field(default_factory=list)
    sent: set[int] = field(default_factory=set)

    def event(self, name: str) -> None:
        self.rows.append(Row(name))

    def send(self, segment: int) -> None:
        text = f"{segment}!" if segment in self.sent else str(segment)
        self.sent.add(segment)
        self.rows[-1] = replace(self.rows[-1], sends=(*self.rows[-1].sends, text))


def read_samples(path: Path, port: int, station: str = "a") -> list[dict[str, str]]:
    """The rows of tcp.csv that are samples (not events) of the connections of `station` to `port`."""
    with path.open() as file:
        found = [row for row in csv.DictReader(file) if row["station"] == station and row["dport"] == str(port)]
    return [row for row in found if not row.get("event")]


def of_capture(packets: list[Packet], samples: list[dict[str, str]], port: int, segments: int) -> list[Row]:
    """The timeline of the connection to `port`, captured at its sender, until `segments` are acknowledged.

    `samples` are its rows of tcp.csv, one per ACK after the handshake. Raises Disturbed if they are not, or if
    something was sent that neither an ACK nor a timer explains.
    """
    own = [p for p in packets if port in (p.sport, p.dport)]
    first = next(p.seq for p in own if p.is_syn and p.dport == port) + 1
    building = _Building([Row("start")])
    acked, timer_from = -1, 0.0
    last = next(p.time for p in own if p.is_syn and p.sport == port)
    row_of: list[int] = []  # which row each sample is about: the index of its ACK
    for p in own:
        if p.is_syn:
            continue
        if p.sport == port:
            through = ((p.ack - first) & 0xFFFFFFFF) // MSS - 1
            row_of.append(len(building.rows))
            building.event(f"{'ack' if through > acked else 'dup'} {through}")
            timer_from = p.time if through > acked else timer_from
            acked, last = max(acked, through), p.time
            if acked == segments - 1:
                break
        elif p.payload:
            segment = ((p.seq - first) & 0xFFFFFFFF) // MSS
            if row_of and p.time - last > CLOCKED_S:
                building.event("start" if acked == max(building.sent) else "rto")
                rto_s = int(samples[min(len(row_of), len(samples)) - 1]["rto_us"]) / 1e6
                if building.rows[-1].event == "rto" and p.time - timer_from < RTO_SHARE * rto_s:
                    raise Disturbed(f"sent {p.time - last:.3f} s after the last ACK, RTO {rto_s} s")
            if building.rows[-1].event == "rto":
                timer_from = p.time
            building.send(segment)
            last = p.time
    if len(row_of) > len(samples):
        raise Disturbed(f"{len(row_of)} ACKs, {len(samples)} samples")
    return _with_windows(building.rows, row_of, samples)


def _with_windows(rows: list[Row], row_of: list[int], samples: list[dict[str, str]]) -> list[Row]:
    """A sample shows the state before its ACK, so the state after the row before it."""
    rows = list(rows)
    for at, sample in zip(row_of, samples, strict=False):
        rows[at - 1] = replace(rows[at - 1], cwnd=int(sample["snd_cwnd"]), ssthresh=int(sample["ssthresh"]))
    return rows
