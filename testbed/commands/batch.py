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
    parser.add_argument(
        "batch", metavar="FILE", type=Path, nargs="?",
        help="a batch that `manet campaign` has written (default: batches by standard input, [FILE, OUT] in JSON a line)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="FILE", type=new_file, help="written when the batch has ended")
    parser.add_argument("--driver", metavar="DIR", type=Path, help="end when no campaign holds this folder any more")


def run(options: argparse.Namespace) -> int:
    """Carry out the batch, or each that standard input names, and answer with a line when it has ended. Its outcomes are in the
    file, so that a failed run is no failure of the worker."""
    import json

    from testbed.errors import UsageError

    if (options.batch is None) != (options.out is None):
        raise UsageError("a batch needs FILE and --out; without both they come by standard input")
    from testbed.runs.template import TEMPLATE

    TEMPLATE.fork_early()
    from testbed.workers.worker import worker  # may start threads

    def say(text: str) -> None:
        print(f"manet batch: {text}", file=sys.stderr, flush=True)

    with worker(options.driver, say) as carry_out:
        if options.batch is not None:
            carry_out(options.batch, options.out)
            return 0
        for line in sys.stdin:
            carry_out(*map(Path, json.loads(line)))
            print("ended", flush=True)
    return 0
