"""`manet rates`: the rates at which each station sent to each peer (analysis/metrics/rates.py, docs/medium.md)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet rates results/chain5/all/seed-1    frames of each station to each
                    peer by rate or MCS, and the state of the rate control
  ./manet rates results/chain5 sta2          of one sender
  ./manet rates results/chain5 --json
  ./manet rates /tmp/sim/air.csv             the air log of manet-medium sim,
                    with rates.json beside it

Frames are data frames to one station, of an A-MPDU each MPDU. `success` and
its Mbit/s are the rate control's estimates at the end (minstrel, minstrel-ht).
docs/medium.md explains the columns.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "rates", "show the rates of each station's frames, and its rate control's", EXAMPLES)
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a run: results/NAME/CELL/seed-N, or an air log")
    parser.add_argument("station", metavar="STATION", nargs="?", help="a sender (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object (docs/medium.md)")


def run(options: argparse.Namespace) -> int:
    """Print the tables."""
    import json

    from analysis.metrics import rates
    from record.doubt import doubt
    from record.found_runs import find_run
    from testbed.columns import folded
    from testbed.errors import UsageError, did_you_mean
    from testbed.runs.under_way import ended

    alone = options.run.is_file()
    directory = options.run.parent if alone else ended(find_run(options.run))
    found = rates.read_rates(directory, options.run.name if alone else "air.csv")
    senders = sorted({link.station for link in found.links})
    if options.station is not None and options.station not in senders:
        hint = did_you_mean(options.station, senders) or f"those that did: {', '.join(senders)}"
        raise UsageError(f'no station "{options.station}" sent data to a single one; {hint}')
    chosen = found.of(options.station)
    why = doubt(directory)
    if options.json:
        print(json.dumps({"run": str(options.run), **rates.as_json(chosen), "doubt": why}, indent=1))
        return 0
    if why:
        print(why)
    print("\n".join(folded(line) if not line.startswith("  ") else line for line in rates.lines(chosen)))
    return 0
