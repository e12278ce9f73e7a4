"""A story (analysis/story/story.py) as lines for the terminal and as one JSON object (`manet story`).

The table of one segment, or of a stretch of time, has the columns of Holland and Vaidya (1999), table 1: event, time, node,
packet, and details; their events are s (here `sent`), r (`received`) and D (`dropped`).
"""

from collections import Counter
from typing import Any, NamedTuple

from analysis.captures.routing_notes import RESOLVING
from analysis.story.journeys import (
    DROPPED,
    FORWARDED,
    GAVE_UP,
    HELD,
    ICMP_RECEIVED,
    ICMP_SENT,
    NO_RECORD,
    RESENT,
    SENT,
    Journey,
    Step,
)
from analysis.story.story import Story, TcpEvent, Transmission, acknowledging, totals

FORMAT = "manet-story/1"
HEADER = f"{'event':<10} {'time s':>11}  {'node':<8} {'packet':<11} details"
SUMMARY_HEADER = f"{'time s':>11}  {'packet':<11} {'sent':<6} outcome"


def title(story: Story) -> str:
    """One line: the flow, its ends with addresses and ports, its TCP, and the unit of the times."""
    ends = story.connection
    return (
        f"{story.flow.name}, {story.flow.source} to {story.flow.target} ({_end(ends.source, ends.source_port)} > "
        f"{_end(ends.destination, ends.destination_port)}), {story.tcp}; seconds from the start of the traffic"
    )


def _end(address: str, port: int) -> str:
    """Address and port as text (RFC 5952, 6)."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def summary_lines(story: Story, chosen: list[Transmission]) -> list[str]:
    """A line for each transmission, with the events between them."""
    lines = []
    for sent in chosen:
        t_ns = sent.journey.sent_ns
        lines.append((t_ns, f"{story.seconds(t_ns):11.6f}  {sent.name:<11} {sent.kind:<6} {outcome(story, sent)}"))
    begin_ns, end_ns = _span(chosen) if chosen else (0, 0)
    whole = len(chosen) == len(story.transmissions)
    for event in story.tcp_events + story.scenario_events:
        if whole or begin_ns <= event.t_ns <= end_ns:
            text = f"{story.seconds(event.t_ns):11.6f}  * {event.event} {event.node} {event.detail}"
            lines.append((event.t_ns, text.rstrip()))
    return [SUMMARY_HEADER, *(line for _, line in sorted(lines, key=lambda line: line[0]))]


def outcome(story: Story, sent: Transmission) -> str:
    """The fate of a transmission as text: received or dropped, by which station, when; its hops, ACK and lost frames."""
    journey = sent.journey
    hops = sum(step.kind in (SENT, FORWARDED) for step in journey.steps if step.air or journey.received)
    fates = Counter(fate or "unfinished" for fate in journey.fates_of_attempts)
    lost = ", ".join(f"{count} {fate}" for fate, count in fates.most_common() if fate != "delivered")
    at_s = f"{story.seconds(journey.at_ns):.6f}"
    if journey.received:
        never = "in flight when the run ended" if sent.outstanding else "never acked"
        acked = f"; acked {story.seconds(sent.acked_ns):.6f}" if sent.acked_ns else f"; {never}"
        text = f"received by {journey.node} {at_s}, {hops} hop{'' if hops == 1 else 's'}{acked}"
    elif journey.fate == NO_RECORD:
        text = f"no record after {journey.node} {at_s}"
    else:
        text = f"dropped by {journey.node} {at_s}: {journey.fate}"
    if not journey.captured:
        text += "; never on the radio" if journey.time_known else "; never on the radio, start unknown"
    for step in journey.steps:
        text += f"; {_held_words(story, step, _left(journey, step))}" if step.kind == HELD else ""
    return text + (f"; {sum(fates.values())} frames for it: {lost}" if lost else "")


def total_lines(story: Story) -> list[str]:
    """The fates of all data segments and of all ACKs of the flow, counted."""
    return [
        *_totals_of("data segments", totals([sent.journey for sent in story.data])),
        *_totals_of("ACKs", totals([ack.journey for ack in story.acknowledgements])),
    ]


def _totals_of(name: str, counts: dict[str, Any]) -> list[str]:
    lost = sum(sum(nodes.values()) for nodes in counts["dropped"].values())
    lines = [
        f"{name}: {counts['sent']} sent = {counts['received']} received + {lost} dropped + {counts['no_record']} without a record"
    ]
    for reason, nodes in counts["dropped"].items():
        by_node = ", ".join(f"{node} {count}" for node, count in nodes.items())
        lines.append(f"  {reason}: {sum(nodes.values())} ({by_node})")
    return lines


def table_lines(story: Story, chosen: list[Transmission]) -> list[str]:
    """Every step of these transmissions and of their ACKs, and the events in between, in the order of time."""
    lines = [
        f"{row.event:<10} {story.seconds(row.t_ns):11.6f}  {row.node:<8} {row.packet:<11} {row.details}".rstrip()
        for row in table_rows(story, chosen)
    ]
    return [HEADER, *(lines or ["nothing was sent then"])]


class StoryRow(NamedTuple):
    """A row of the table; `t_ns` is ns since the Unix epoch."""

    t_ns: int
    event: str
    node: str
    packet: str
    details: str


def table_rows(story: Story, chosen: list[Transmission]) -> list[StoryRow]:
    """The rows of `table_lines`; none if nothing was chosen."""
    rows = []
    for sent in chosen:
        about = f"{sent.kind}, bytes {sent.start} to {sent.end - 1}" if not sent.label else sent.kind
        rows += _journey_rows(story, sent.journey, sent.name, about)
    for ack in acknowledging(story, chosen):
        rows += _journey_rows(story, ack.journey, f"ack {ack.segment}", f"asks for byte {ack.next_byte}")
    if not rows:
        return []
    begin_ns, end_ns = min(row.t_ns for row in rows), max(row.t_ns for row in rows)
    for event in story.tcp_events + story.scenario_events:
        if begin_ns <= event.t_ns <= end_ns:
            rows.append(StoryRow(event.t_ns, event.event, event.node, "-", event.detail))
    return sorted(rows, key=lambda row: row.t_ns)


def _journey_rows(story: Story, journey: Journey, name: str, about_first: str) -> list[StoryRow]:
    rows = []
    for step in journey.steps:
        about = about_first if step is journey.steps[0] else ""
        details = _held_words(story, step, _left(journey, step)) if step.kind == HELD else _step_words(step)
        kind = DROPPED if step.kind == GAVE_UP else "icmp" if step.kind in (ICMP_SENT, ICMP_RECEIVED) else step.kind
        rows.append(StoryRow(step.t_ns, kind, step.node, name, "; ".join(filter(None, (about, details)))))
        if step.air is None:
            continue
        for attempt in step.air.attempts:
            details = f"{attempt.frame} {attempt.number} to {step.air.peer}"
            if attempt.frame == "data" and step.air.has_own_rate and attempt.rate:
                details += f", {attempt.rate}"
            if attempt.aggregate:
                details += f", {attempt.aggregate} of an A-MPDU"
            details += f": {attempt.fate or 'unfinished'}"
            if (attempt.frame, attempt.fate) == ("data", "delivered") and step.air.power_dbm is not None:
                details += f" at {step.air.power_dbm:.1f} dBm"
            if attempt.sinr_db is not None:
                details += f", SINR {attempt.sinr_db:.1f} dB"
            rows.append(StoryRow(max(step.t_ns, attempt.t_ns), "attempt", step.node, name, details))
    if journey.fate == NO_RECORD:
        rows.append(StoryRow(journey.at_ns, "?", journey.node, name, NO_RECORD))
    return rows


def _step_words(step: Step) -> str:
    if step.kind in (SENT, FORWARDED, RESENT):
        return f"queued for {step.air.peer}" if step.air else "" if step.kind == SENT else "over the wire"
    if step.kind == ICMP_SENT:
        return f"sends: {step.reason}"
    if step.kind == RESOLVING:
        return f"asks for {step.reason} by ARP"
    return f"receives: {step.reason}" if step.kind == ICMP_RECEIVED else step.reason


def _left(journey: Journey, held: Step) -> Step | None:
    """The packet's first step at that node after it was held there, without ICMP messages."""
    ends = (SENT, FORWARDED, RESENT, GAVE_UP)
    return next((one for one in journey.steps if one.node == held.node and one.kind in ends and one.t_ns >= held.t_ns), None)


def _held_words(story: Story, held: Step, left: Step | None) -> str:
    held_by = f"held by {held.node}'s {story.routing.upper()}"
    return f"{held_by} for {(left.t_ns - held.t_ns) / 1e9:.2f} s" if left else f"{held_by} to the end"


def _span(chosen: list[Transmission]) -> tuple[int, int]:
    """Times (ns) of the first transmission and of the last step or ACK."""
    begins = [sent.journey.sent_ns for sent in chosen]
    ends = [max(sent.journey.steps[-1].t_ns, sent.acked_ns or 0) for sent in chosen]
    return min(begins), max(ends)


def as_json(story: Story, chosen: list[Transmission]) -> dict[str, Any]:
    """The object that `manet story --json` prints: `totals` are of the whole flow, `transmissions` the chosen ones."""
    ends = story.connection
    return {
        "format": FORMAT,
        "run": str(story.run.path),
        "flow": story.flow.name,
        "from": story.flow.source,
        "to": story.flow.target,
        "ports": [ends.source_port, ends.destination_port],
        "traffic_ns": story.run.traffic_ns,
        "totals": {
            "data": totals([sent.journey for sent in story.data]),
            "acks": totals([ack.journey for ack in story.acknowledgements]),
        },
        "transmissions": [
            {"segment": sent.segment, "label": sent.label, "kind": sent.kind, "bytes": [sent.start, sent.end],
             "acked_s": story.seconds(sent.acked_ns) if sent.acked_ns else None, **_journey_json(story, sent.journey)}
            for sent in chosen
        ],
        "acks": [
            {"segment": ack.segment, "upto": ack.next_byte, **_journey_json(story, ack.journey)}
            for ack in acknowledging(story, chosen)
        ],
        "tcp_events": [_event_json(story, event) for event in story.tcp_events],
        "events": [_event_json(story, event) for event in story.scenario_events],
    }  # fmt: skip


def _event_json(story: Story, event: TcpEvent) -> dict[str, Any]:
    return {"at_s": story.seconds(event.t_ns), "node": event.node, "event": event.event, "detail": event.detail}


def _journey_json(story: Story, journey: Journey) -> dict[str, Any]:
    return {
        "sequence": journey.sequence,
        "sent_s": story.seconds(journey.sent_ns),
        "fate": journey.fate,
        "node": journey.node,
        "at_s": story.seconds(journey.at_ns),
        "captured": journey.captured,
        "steps": [_step_json(story, step) for step in journey.steps],
    }


def _step_json(story: Story, step: Step) -> dict[str, Any]:
    entry: dict[str, Any] = {"at_s": story.seconds(step.t_ns), "step": step.kind, "node": step.node}
    if step.reason:
        entry["reason"] = step.reason
    if step.air:
        attempts = [
            {
                "at_s": story.seconds(one.t_ns),
                "frame": one.frame,
                "attempt": one.number,
                "fate": one.fate,
                "rate_bps": one.rate_bps,
            }
            | {name: value for name in ("mode", "aggregate", "sinr_db") if (value := getattr(one, name)) is not None}
            for one in step.air.attempts
        ]
        entry |= {"peer": step.air.peer, "air_packet": step.air.number, "queued_s": story.seconds(step.air.queued_ns)}
        entry["attempts"] = attempts
    return entry
