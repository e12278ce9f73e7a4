"""`manet report`: regenerate tables and figure of existing results."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet report results/hv-fig1
  ./manet report results/hv-fig1 --again --json
"""


def add(verbs: argparse._SubParsersAction) -> None:
    """Declare the verb and its options."""
    parser = add_verb(verbs, "report", "regenerate tables and figure of a folder of results", EXAMPLES)
    parser.add_argument("directory", metavar="DIR", type=Path, help="a folder that `manet run` has made")
    parser.add_argument("--again", action="store_true", help="also measure the captures again")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Regenerate tables and figure. The exit status: 1 if the figure could not be drawn, or results are incomplete."""
    import json
    import shlex

    from analysis.errors import DiskFullError
    from testbed.campaigns.report import Report

    report = Report(options.directory)
    try:
        report.make(analyse_again=options.again)
    except DiskFullError as problem:
        raise DiskFullError(problem.path, shlex.join(["./manet", "report", str(options.directory)])) from None
    if options.json:
        print(json.dumps(report.as_json([]), indent=1))
    else:
        report.print()
    return 0 if report.is_complete else 1
