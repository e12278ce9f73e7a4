"""`manet story`: what happened to each segment of a TCP flow (analysis/story/story.py, docs/story.md)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb, positive

EXAMPLES = """
  ./manet story results/chain5/all/seed-1
                    flow 1: one line a transmission, and the totals by fate
  ./manet story results/chain5/all/seed-1 --segment 12
                    queues, attempts, hops, drops and ACKs of one segment
  ./manet story results/chain5 --flow 2 --from 4 --to 4.5
                    everything sent in half a second
  ./manet story results/chain5/all/seed-1 --json

Times count from the start of the traffic, as in the scenario's events and in
`manet plot`. docs/story.md explains the output.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "story", "tell what happened to each segment of a TCP flow, and why", EXAMPLES)
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run: results/NAME/CELL/seed-N")
    parser.add_argument("--flow", metavar="N", type=positive, default=1, help="number of the flow (default: 1)")
    parser.add_argument("--segment", metavar="N", type=int, help="every step of this segment (0: the SYN)")
    parser.add_argument(
        "--from", metavar="SECONDS", type=float, dest="begin_s", help="every step of segments sent at or after this time"
    )
    parser.add_argument("--to", metavar="SECONDS", type=float, dest="end_s", help="and before this time, the end of the interval")
    parser.add_argument("--json", action="store_true", help="print one JSON object (docs/story.md)")


def run(options: argparse.Namespace) -> int:
    """Print the story of the segments that the options select."""
    import json

    from analysis.captures.rundir import RunDirectory
    from analysis.story import story_text
    from analysis.story.story import flow_named, of_segment, read_story, sent_between, window_of
    from record.doubt import doubt
    from record.found_runs import find_run
    from testbed.errors import UsageError
    from testbed.runs.under_way import ended

    windowed = options.begin_s is not None or options.end_s is not None
    if windowed and options.segment is not None:
        raise UsageError("--segment and --from/--to exclude each other; give one")
    run_dir = RunDirectory(ended(find_run(options.run)), keeps_captures=False)
    why = doubt(run_dir.path)
    if why and not options.json:
        print(why)  # first: the times of a late run may look impossible
    story = read_story(run_dir, flow_named(run_dir, options.flow))
    if options.segment is not None:
        chosen = of_segment(story, options.segment)
    else:
        if windowed:  # that there is such a time at all
            window_of(story, options.begin_s, options.end_s)
        chosen = sent_between(story, options.begin_s, options.end_s)
    if options.json:
        print(json.dumps(story_text.as_json(story, chosen) | {"doubt": why}, indent=1))
        return 0
    print(story_text.title(story))
    if options.segment is not None or windowed:
        print("\n".join(story_text.table_lines(story, chosen)))
    else:
        print("\n".join([*story_text.summary_lines(story, chosen), *story_text.total_lines(story)]))
    return 0
