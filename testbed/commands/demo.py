"""`manet demo`: the main job at its quick size."""

import argparse
from pathlib import Path

from testbed.commands.options import add_campaign, add_verb, results_folder

EXAMPLES = """
  ./manet demo           a table and a figure, some minutes after set-up
  ./manet demo --json    the same as JSON
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "demo", "measure TCP over 1 to 8 hops: a table and a figure in minutes", EXAMPLES)
    add_campaign(parser)


def run(options: argparse.Namespace) -> int:
    """Run hv-fig1 at its quick size into a new folder."""
    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find
    from testbed.campaigns.request import Request
    from testbed.commands.run import carry_out
    from testbed.runs.template import TEMPLATE

    TEMPLATE.fork_early()
    options.resume = False
    return carry_out(load(find("hv-fig1"), Request(quick=True)), free_folder(results_folder()), options)


def free_folder(results: Path) -> Path:
    """results/demo, or the first of results/demo-2, -3, ... that does not exist: a demo can be repeated."""
    candidate, number = results / "demo", 1
    while candidate.exists():
        number += 1
        candidate = results / f"demo-{number}"
    return candidate
