"""TCP over DSR with and without replies from route caches, against mean speed, after Holland and Vaidya (1999), figure 7.

Above: each movement pattern (dots) and the mean; the patterns are the same for both variants and at all speeds. Below: without
minus with cache replies, per pattern (dots), and the mean difference with its interval (analysis/decisions/rule.py).
"""

from pathlib import Path

from analysis.drawing import paired

AXES = ("speed",)  # of the experiment
WITH = "cache-replies"


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs and kept rows of `out_dir` and its summary.csv; returns the files written."""
    return paired.draw(out_dir, "hv_fig7", WITH, "without minus with (kbit/s)", paired.RATE)
