"""TCP with notices of broken routes (ELFN) against plain TCP, over mean speed, after Holland and Vaidya (1999), figures 12 to 14.

Above: the mean over movement patterns with 95 % intervals; the patterns are the same for all variants and at all speeds. Below:
each variant minus plain Reno, per pattern (dots), and the mean difference with its interval (analysis/decisions/rule.py).
The paper's figures are in percent of the expected throughput; its movement patterns are unpublished, so this figure is in kbit/s.
"""

from pathlib import Path

from analysis.drawing import paired

AXES = ("speed",)  # of the experiment
PLAIN = "reno"  # the variant without notices


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv and the runs below it; returns the files written."""
    return paired.draw(Path(out_dir), "hv_elfn", PLAIN, "minus plain Reno (kbit/s)")
