"""`manet report`: regenerate tables and figure of existing results, or the page of a campaign."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.commands.options import add_verb, results_folder
from testbed.programs import INSTALLATION

if TYPE_CHECKING:
    from testbed.campaigns.report import Report

EXAMPLES = """
  ./manet report results/hv-fig1
  ./manet report results/hv-fig1 --again --json
  ./manet report results/own --figure ./my-figure.py
                                    with a figure of your own
  ./manet report --html results     a page of every experiment in the folder
  ./manet report docs/results/hv-fig3
                                    table, figure and answers of kept rows
                                    alone, in results/hv-fig3-rows
  ./manet report --claims           docs/claims.md, its numbers computed from
                                    docs/results/NAME/runs.csv, the tables of
                                    docs/eras.md and the answers on the pages
                                    docs/results/NAME/README.md
  ./manet report --html --rows results/campaign-hv-quick
                                    keep the runs of a campaign as rows, which
                                    other campaigns count as done
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "report", "regenerate tables and figure of a folder of results", EXAMPLES)
    parser.add_argument(
        "directory",
        metavar="DIR",
        type=Path,
        nargs="?",
        help="a folder that `manet run` has made, or docs/results/NAME: its kept rows",
    )
    parser.add_argument("--again", action="store_true", help="also measure the captures again")
    parser.add_argument("--html", action="store_true", help="write the page report.html; DIR may also be a campaign's folder")
    parser.add_argument("--rows", action="store_true", help="also keep the runs as rows, in docs/results/NAME/runs.csv")
    parser.add_argument(
        "--claims",
        action="store_true",
        help="write docs/claims.md from docs/claims.toml and the kept rows, the tables of docs/eras.md, and the answers on the "
        "pages of results; without DIR",
    )
    parser.add_argument(
        "--figure", metavar="NAME|FILE", help="a figure of analysis/figures, or a Python file, instead of the experiment's own"
    )
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Regenerate tables and figure. The exit status: 1 if the figure could not be drawn, or results are incomplete."""
    import shlex

    from record.errors import DiskFullError
    from testbed.errors import UsageError

    if (options.claims or options.rows) and INSTALLATION.package is not None:
        raise UsageError("--rows, --claims: are kept in docs/ of a checkout, and this is a package; leave them out")
    if options.claims:
        return _claims(options)
    if options.directory is None:
        raise UsageError("DIR is missing; give a folder that `manet run` has made")
    try:
        return _report(options)
    except DiskFullError as problem:
        command = ["./manet", "report", *(["--html"] if options.html else []), str(options.directory)]
        raise DiskFullError(problem.path, shlex.join(command)) from None


def _claims(options: argparse.Namespace) -> int:
    """Write the page of the papers' claims, the tables of the way from 1999 to today, and the answers on the pages of results."""
    from testbed.campaigns import kept
    from testbed.claims import eras, page, results
    from testbed.errors import UsageError

    if options.directory is not None or options.html or options.rows or options.again or options.json:
        raise UsageError("--claims: takes the rows of docs/results; give it alone")
    print(f"{page.PAGE}: {page.write().line()}")
    print(f"{eras.PAGE}: {eras.write()}")
    print(f"{kept.FOLDER}: {results.write()}")
    return 0


def _report(options: argparse.Namespace) -> int:
    """The page of a folder with --html, otherwise the report of one experiment."""
    import json

    from testbed.campaigns import kept
    from testbed.campaigns.html_report import HtmlReport
    from testbed.campaigns.report import Report

    figure = options.figure and _figure(options.figure)
    directory = options.directory
    if kept.is_folder_of_rows(directory):
        directory = kept.without_runs(directory.resolve(), results_folder())
    if options.html:
        made: HtmlReport | Report = HtmlReport(directory, {directory.resolve().name: figure} if figure else {})
    else:
        made = Report(directory, figure)
    made.make(analyse_again=options.again)
    if options.json:
        print(json.dumps(made.as_json(), indent=1))
    else:
        made.print()
    if options.rows:
        _keep(made.reports if isinstance(made, HtmlReport) else [made])
    return 0 if made.is_complete else 1


def _figure(written: str) -> str:
    """A figure's name, or the full path of its file."""
    from testbed.campaigns.figures import is_own

    return str(Path(written).resolve()) if is_own(written) else written


def _keep(reports: "list[Report]") -> None:
    """Keep the runs of each experiment as rows; a line for each on standard error, since `--json` has standard output."""
    import sys

    from testbed.campaigns import kept
    from testbed.campaigns.library import names
    from testbed.errors import UsageError

    unknown = next((report for report in reports if report.description["name"] not in names()), None)
    if unknown is not None:
        text = "is no experiment of this checkout; rows are kept of those in experiments/ only"
        raise UsageError(f"{unknown.directory}: {unknown.description['name']} {text}")
    for report in reports:
        assert report.results is not None, "make() comes first"
        path, rows, new = kept.keep(report.directory, report.description, report.results.rows)
        print(f"manet report: {path}: {rows} {'row' if rows == 1 else 'rows'}, {new} of them new", file=sys.stderr)
