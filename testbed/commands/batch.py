"""`manet batch`: one batch of a campaign, on this machine. `manet campaign` starts it on each worker."""

import argparse
import sys
from pathlib import Path

from testbed.commands.options import add_verb, new_file

EXAMPLES = """
  ./manet batch results/campaign-hv/batches/round-1/batch-1.json \\
          --out results/campaign-hv/batches/round-1/batch-1.done.json
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "batch", "carry out one batch of a campaign (`manet campaign` calls it)", EXAMPLES)
    parser.add_argument("batch", metavar="FILE", type=Path, help="a batch that `manet campaign` has written")
    parser.add_argument("--out", metavar="FILE", type=new_file, required=True, help="written when the batch has ended")
    parser.add_argument("--driver", metavar="DIR", type=Path, help="end when no campaign holds this folder any more")


def run(options: argparse.Namespace) -> int:
    """Carry out the batch; its outcomes are in the file, so that a failed run is no failure of the worker."""
    from testbed.campaigns.batch import Batch
    from testbed.runs.template import TEMPLATE

    TEMPLATE.fork_early()
    from testbed.workers.worker import work  # may start threads

    def say(text: str) -> None:
        print(f"manet batch: {text}", file=sys.stderr, flush=True)

    work(Batch.read(options.batch), options.batch, options.out, options.driver, say)
    return 0
