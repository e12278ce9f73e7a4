"""TCP with notices of broken routes (ELFN) against plain TCP, over mean speed, after Holland and Vaidya (1999), figures 12 to 14.

Above: percent of the expected throughput, as in the paper, per movement pattern (dots) and in the mean of the patterns that each
variant has. Below: each variant minus plain Reno in kbit/s on the same patterns (dots), and the mean difference with its interval
(analysis/decisions/rule.py).
"""

from pathlib import Path

from analysis.drawing import paired

AXES = ("speed",)  # of the experiment
PLAIN = "reno"  # the variant without notices


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs and kept rows of `out_dir` and its summary.csv; returns the files written."""
    return paired.draw(out_dir, "hv_elfn", PLAIN, "minus plain Reno (kbit/s)", paired.PERCENT)
