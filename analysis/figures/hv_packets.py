"""Every packet of a flow around its longest stall, after Holland and Vaidya (1999), figure 6.

Sent, retransmitted, received, acknowledged, dropped (with station and reason), from 1.5 s before the last ACK with a new
acknowledgement to half a second after the next one, or at most 5 s later. Of several runs the one with the longest stall.
"""

from pathlib import Path

from analysis.drawing import flow_plots
from analysis.story.stalls import Stall, longest_stall
from analysis.story.story import Story, read_story
from analysis.tables.results import counted_runs
from record.errors import RunFileError

RUN_FILES = True  # it draws from them
BEFORE_S, AFTER_S, MAX_SPAN_S = 1.5, 0.5, 5.0


def draw(out_dir: Path) -> list[Path]:
    """Draw from the runs below `out_dir`; returns the files written."""
    story, stall = most_stalled(out_dir)
    begin_s = max(0.0, stall.begin_s - BEFORE_S)
    end_s = min(stall.end_s + AFTER_S, stall.begin_s + MAX_SPAN_S)
    return flow_plots.draw(story, flow_plots.PACKETS, out_dir / "hv_packets.png", begin_s, end_s, lead="one run, ")


def most_stalled(out_dir: Path) -> tuple[Story, Stall]:
    """The run that counts whose first flow has the longest stall."""
    stories = [read_story(run, run.flows[0]) for run in counted_runs(out_dir)]
    if not stories:
        raise RunFileError(f"{out_dir}: no run that counts; run the experiment first (`manet run hv-fig6`)")
    return max(((story, longest_stall(story)) for story in stories), key=lambda pair: pair[1].lasts_s)
