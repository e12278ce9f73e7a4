"""`manet validate`: the medium against the closed form, Bianchi's model and ns-2.35; status 1 if any check fails."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from testbed.errors import UsageError
from testbed.validate import checks, ns2


def run(arguments: argparse.Namespace) -> int:
    if arguments.rerun_ns2:
        return _rerun()
    chosen = checks.cases(arguments.only)
    if not chosen:
        raise UsageError(f"--only {arguments.only}: no check has such a name; manet validate lists them all")
    started = time.monotonic()
    with _progress("simulating") as progress:
        done = checks.evaluate(chosen, progress)
    failed = [check for check in done if not check.ok]
    if arguments.json:
        print(json.dumps([asdict(check) for check in done], indent=1))
    else:
        _print_table(done)
        print(f"{len(done) - len(failed)} of {len(done)} checks ok, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def _rerun() -> int:
    with _progress("ns-2") as progress:
        paths = ns2.rerun(progress)
    for path in paths:
        print(path)
    return 0


def _print_table(done: list[checks.Check]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("check", "ours", "reference", "unit", "error", "allowed", "", "source"):
        table.add_column(heading, justify="right" if heading in {"ours", "reference", "error", "allowed"} else "left")
    for check in done:
        digits = 1 if check.unit == "kbit/s" else 4
        table.add_row(
            check.name,
            f"{check.ours:.{digits}f}",
            f"{check.reference:.{digits}f}",
            check.unit,
            f"{check.error:+.1%}",
            f"{check.tolerance:.1%}",
            "ok" if check.ok else "FAILED",
            check.source,
            style=None if check.ok else "bold red",
        )
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, nothing elsewhere; gives progress(done, total)."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
