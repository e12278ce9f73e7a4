"""`manet plot`: a TCP flow over time, from its story (analysis/drawing/flow_plots.py, docs/story.md)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb, picture, positive, written

EXAMPLES = """
  ./manet plot results/chain5/all/seed-1
                    window and packets of flow 1, into the run's folder
  ./manet plot results/chain5 --what window --flow 2
                    cwnd and ssthresh alone; a folder with one run is enough
  ./manet plot results/chain5 --what packets --from 4 --to 6 --out /tmp/loss.png

Times count from the start of the traffic, as in `manet story`.
The marks are explained in docs/story.md.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "plot", "when the question is one TCP flow: window, packets, drops over time", EXAMPLES)
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run: results/NAME/CELL/seed-N")
    parser.add_argument("--flow", metavar="N", type=positive, default=1, help="number of the flow (default: 1)")
    parser.add_argument("--what", choices=("story", "window", "packets"), default="story",
                        help="story: the window above, the packets below (default)")  # fmt: skip
    parser.add_argument("--from", metavar="SECONDS", type=float, dest="begin_s", help="begin at this time")
    parser.add_argument("--to", metavar="SECONDS", type=float, dest="end_s", help="end at this time")
    parser.add_argument(
        "--out", metavar="FILE.png", type=picture,
        help="the picture; a PDF goes into the same folder (default: plot-flowN-WHAT.png in the run's folder)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Draw the flow and print the names of the files."""
    from analysis.captures.rundir import RunDirectory
    from analysis.drawing.flow_plots import draw
    from analysis.story.story import flow_named, read_story
    from record.doubt import doubt
    from record.found_runs import find_run
    from testbed.runs.under_way import ended

    run_dir = RunDirectory(ended(find_run(options.run)), keeps_captures=False)
    if why := doubt(run_dir.path):
        print(why)
    flow = flow_named(run_dir, options.flow)
    file = options.out or run_dir.path / f"plot-{flow.name}-{options.what}.png"
    print(written(draw(read_story(run_dir, flow), options.what, file, options.begin_s, options.end_s)))
    return 0
