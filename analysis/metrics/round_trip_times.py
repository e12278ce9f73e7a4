"""Round-trip times of a TCP flow, from the capture of its sender.

From sending to the first ACK that covers the segment, without samples from an ACK that covers a retransmitted segment: when a
hole is filled, the ACK is late for reasons other than the path (Karn's rule, RFC 6298 section 3, in the form that Linux uses
without timestamps: one retransmitted segment makes the whole ACK unusable).
"""

import numpy as np

from analysis.metrics.throughput import SenderView, in_time_order


def round_trip_times_ns(view: SenderView, begin_ns: int, end_ns: int) -> np.ndarray:
    """Samples of the ACKs that arrived in the window, one for each segment that an ACK newly covers."""
    samples: list[int] = []
    waiting: dict[int, int] = {}  # end of a segment not yet acknowledged -> time of its first transmission
    spoiled: set[int] = set()  # segments of which a part was retransmitted
    for t_ns, start, end in in_time_order(view.segments, view.acked):
        if start is not None:
            spoiled.update(edge for edge in waiting if start < edge <= end)
            waiting.setdefault(end, t_ns)
            continue
        covered = [edge for edge in waiting if edge <= end]
        if begin_ns <= t_ns < end_ns and spoiled.isdisjoint(covered):
            samples.extend(t_ns - waiting[edge] for edge in covered)
        for edge in covered:
            del waiting[edge]
            spoiled.discard(edge)
    return np.array(samples, dtype=np.int64)
