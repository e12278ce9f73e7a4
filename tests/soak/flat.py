"""Growth of the sampled measures: a least-squares line through each class's readings after the warm-up.

Why a line, and why these bounds. A leak grows with time, so it is the slope that tells it from a heap that has found its size. Of
thirty daemons each grows by some forty KiB until it has seen its fullest queue and longest tables, which takes twenty minutes at
10 m/s: the first third of the run is warm-up, 20 min of an hour. From there on an hour's rise of the line is compared with
  memory   the larger of 1 % of the class's resident size and 100 KiB: an allocator takes memory by pages and by 132 KiB (glibc's
           M_TOP_PAD), and what is touched of a late extension tilts a line of 40 min by up to 2.25 times as much an hour; a leak
           of 100 bytes a packet would make 15 MB
  others   (descriptors, threads, processes, entries of maps, sockets) half of one: a count that ends an hour higher than it began
           has grown. Counts that come and go (a connection's TIME_WAIT, an entry that lives for a notice) have no trend.
With less than half an hour to judge it is the rise itself, not what an hour of that would be: noise divided by two minutes says
nothing. iperf3 keeps a report of each second in memory until its end (`--json`), as it does for any user: its memory is shown and
not judged, and so is the disk, which grows by what is captured.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy

HOUR_S, MIN_SPAN_S = 3600.0, 1800.0  # from this span on the rise is an hour's
WARM_UP = 1 / 3  # of the run
MIN_KIB = 100.0
SHARE = 0.01
MIN_COUNT = 0.5
MEMORY = {"rss_kib": 1.0, "anon_kib": 1.0, "bpf_bytes": 1024.0}  # measure: its units in a KiB
# what is shown only, and why
SHOWN = {
    ("iperf3", "rss_kib"): "its report",
    ("iperf3", "anon_kib"): "its report",
    ("disk", "disk_bytes"): "captures and logs",
}
MIN_SAMPLES = 5


@dataclass(frozen=True)
class Trend:
    """One measure of one class, in its unit: `rise` is what the line rose by, `bound` the most that it may (None: not judged)."""

    of: str
    measure: str
    mean: float
    lowest: float
    highest: float
    rise: float
    bound: float | None

    @property
    def flat(self) -> bool:
        return self.bound is None or self.rise <= self.bound

    def line(self) -> str:
        bound = f"bound {self.bound:g}" if self.bound is not None else f"not judged: {SHOWN[self.of, self.measure]}"
        return (
            f"{self.of:14} {self.measure:12} mean {self.mean:.1f}, {self.lowest:g} to {self.highest:g}, "
            f"rise {self.rise:+.1f}, {bound}: {'flat' if self.flat else 'GROWS'}"
        )


def min_duration_s(every_s: float, warm_up_s: float | None) -> float:
    """The shortest traffic that can be judged: enough samples after the warm-up (None: its share of the run), and room for
    one more, since a sample may fall on either edge."""
    judged_s = (MIN_SAMPLES + 1) * every_s
    return round(judged_s / (1 - WARM_UP), 3) if warm_up_s is None else warm_up_s + judged_s


def trends(samples: Path, begin_s: float, end_s: float) -> list[Trend]:
    """Of the samples between two instants (their `t_s`); ValueError with too few of them."""
    series: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with samples.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if begin_s <= float(row["t_s"]) <= end_s:
                series[row["of"], row["measure"]].append((float(row["t_s"]), float(row["value"])))
    if not series or max(map(len, series.values())) < MIN_SAMPLES:
        raise ValueError(f"{samples}: fewer than {MIN_SAMPLES} samples from {begin_s:g} to {end_s:g} s; let it run longer")
    sizes = {of: fmean(value for _, value in points) for (of, measure), points in series.items() if measure == "rss_kib"}
    return [trend(*key, points, sizes.get(key[0])) for key, points in series.items()]


def trend(of: str, measure: str, points: list[tuple[float, float]], rss_kib: float | None) -> Trend:
    """`rss_kib` is the class's resident size, of which its memory may rise by a share."""
    times, values = numpy.array(points).T
    slope = numpy.polyfit(times, values, 1)[0] if len(points) > 1 else 0.0
    mean = float(values.mean())
    bound = None if (of, measure) in SHOWN else bound_of(measure, rss_kib or mean)
    span_s = times[-1] - times[0]
    rise = float(slope * (HOUR_S if span_s >= MIN_SPAN_S else span_s))
    return Trend(of, measure, mean, float(values.min()), float(values.max()), rise, bound)


def bound_of(measure: str, size: float) -> float:
    """The most that a line may rise by in an hour or less, in the measure's unit, which is the size's too."""
    if measure in MEMORY:
        return max(SHARE * size, MIN_KIB * MEMORY[measure])
    return MIN_COUNT
