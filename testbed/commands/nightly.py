"""`manet nightly`: what a night's automation measures, compared with earlier nights (docs/ci.md)."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from testbed.commands.options import add_verb, folder, new_file, positive, results_folder
from testbed.nightly.figure import PARTS, Part

EXAMPLES = """
  ./manet nightly                     all parts; history in results/nightly
  ./manet nightly --parts validation,speed --page
                                      minutes, and the page of trends
  ./manet nightly --campaign tcp-chain --campaign routing-chain --seeds 2 \\
                  --junit /tmp/night.xml
  ./manet nightly --accept speed/circle30/cpu-ratio
                                      this change was meant: begin anew here
  ./manet sql "select night, metric, median(value) from nights
               group by all order by all" results/nightly

Exit status: 0 no change, 1 a change beyond noise or a failed part, 2 usage.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "nightly", "measure a night's figures and compare them with earlier nights", EXAMPLES)
    parser.add_argument("--history", metavar="DIR", type=folder, help="folder of the history (default: results/nightly)")
    parser.add_argument(
        "--parts", metavar="NAME,...", type=_parts, default=PARTS, help=f"parts to run, of {', '.join(PARTS)} (default: all)"
    )
    parser.add_argument("--campaign", metavar="NAME", action="append", help="an experiment of the campaign; may be repeated "
                        "(default: tcp-chain)")  # fmt: skip
    parser.add_argument("--seeds", metavar="N", type=positive, help="seeds of the campaign's first round")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], dest="overrides",
                        help="replace a key of the campaign's scenarios; may be repeated")  # fmt: skip
    parser.add_argument("--only", metavar="PATTERN", help="checks of the part validation, as of `manet validate --only`")
    parser.add_argument("--repetitions", metavar="N", type=positive, default=15, help="of the part speed (default: 15)")
    parser.add_argument(
        "--accept", metavar="METRIC", action="append", help="run nothing: the newest night begins this series anew"
    )
    parser.add_argument("--junit", metavar="FILE", type=new_file, help="write JUnit XML")
    parser.add_argument("--page", action="store_true", help="write the trends as DIR/index.html")
    parser.add_argument("--json", action="store_true", help="print the night as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Run the parts, judge and print. The exit status: 1 for a change or a failure."""
    import json

    from testbed.errors import UsageError
    from testbed.nightly import junit, words
    from testbed.nightly.night import run as run_night

    history = (options.history or results_folder() / "nightly").absolute()
    if options.accept:
        return _accept(history, options.accept)
    history.mkdir(parents=True, exist_ok=True)
    if options.junit and (options.junit.is_dir() or not options.junit.resolve().parent.is_dir()):
        raise UsageError(f"{options.junit}: give a file in an existing folder with --junit")
    every = _jobs(options, history)
    night = run_night(history, {name: every[name] for name in options.parts})
    if options.junit:
        junit.write(night, options.junit)
    if options.page:
        _write_page(history)
    print(json.dumps(words.as_json(night), indent=1) if options.json else "\n".join(words.lines(night)))
    return 1 if night.alarms or night.failures else 0


def _jobs(options: argparse.Namespace, history: Path) -> dict[str, Callable[[str], Part]]:
    """Each part as a function of the night's name."""
    from testbed.nightly import campaign, kernels, speed, validation

    more = [word for setting in options.overrides for word in ("--set", setting)]
    more += ["--seeds", str(options.seeds)] if options.seeds else []
    return {
        "validation": lambda _: validation.figures(options.only),
        "campaign": lambda night: campaign.figures(history, night, options.campaign or campaign.DEFAULT, more),
        "kernels": lambda night: kernels.figures(history, night),
        "speed": lambda _: speed.figures(history, options.repetitions),
    }


def _accept(history: Path, metrics: list[str]) -> int:
    from analysis.nights import table
    from testbed.errors import UsageError

    recorded = set(table.read(history)["metric"].to_pylist())
    for metric in metrics:
        if metric not in recorded:
            raise UsageError(f"--accept {metric}: no such metric in {history / table.NAME}; an alarm's line begins with its name")
    changed = table.accept(history, metrics)
    print(f"accepted  {', '.join(metrics)}: {changed} rows are a new baseline")
    return 0


def _write_page(history: Path) -> None:
    from analysis.nights import page, table
    from record.files import write_atomic

    path = history / "index.html"
    write_atomic(path, page.rendered(table.read(history).to_pylist()))
    print(f"manet nightly: wrote {path}", file=sys.stderr)


def _parts(text: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(text.split(",")))
    for name in chosen:
        if name not in PARTS:
            raise argparse.ArgumentTypeError(f'"{name}" is no part; use {", ".join(PARTS)}')
    return tuple(name for name in PARTS if name in chosen)
