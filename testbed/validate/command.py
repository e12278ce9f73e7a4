"""`manet validate`: the medium against the closed form, Bianchi's model, ns-2.35 and ns-3.44; status 1 if any check fails."""

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

from testbed.columns import hanging, terminal_width
from testbed.errors import UsageError
from testbed.output import console, exact
from testbed.validate import checks, ns2, ns3, ns3_rerun

PROGRESS_LINES = 20  # where standard error is no terminal
TABLE_COLUMNS = 160  # the width that the table needs; a narrower terminal gets two lines for each check


def run(arguments: argparse.Namespace) -> int:
    """Run the checks that `--only` chooses and print them, or rerun ns-2 or ns-3. The exit status: 1 if a check fails."""
    if arguments.rerun_ns2:
        return _rerun()
    if arguments.rerun_ns3:
        return _rerun_ns3(arguments)
    chosen = checks.cases(arguments.only)
    if not chosen:
        raise UsageError(f"--only {arguments.only}: no check has such a name; manet validate lists them all")
    started = time.monotonic()
    with _progress("simulating") as progress:
        done = checks.evaluate(chosen, progress)
    return _report(done, arguments, started)


def _report(done: list[checks.Check], arguments: argparse.Namespace, started: float) -> int:
    failed = [check for check in done if not check.ok]
    if arguments.json:
        print(json.dumps([asdict(check) for check in done], indent=1))
    else:
        print_checks(done)
        print(f"{len(done) - len(failed)} of {len(done)} checks ok, {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


def _rerun() -> int:
    with _progress("ns-2") as progress:
        paths = ns2.rerun(progress)
    for path in paths:
        print(path)
    return 0


def _rerun_ns3(arguments: argparse.Namespace) -> int:
    """ns-3 again, beside its stored results, and the medium beside the new ones."""
    chosen = [each for each in ns3.references() if checks.is_chosen(f"ns3/{each.name}", arguments.only)]
    if not chosen:
        raise UsageError(f"--only {arguments.only}: no case of ns-3 has such a name; manet validate --only 'ns3/*' lists them")
    started = time.monotonic()
    with _progress("ns-3") as progress:
        results = ns3_rerun.rerun(chosen, progress)
    names = {f"ns3/{each.name}" for each in chosen}
    with _progress("simulating") as progress:
        ours = checks.evaluate([case for case in checks.ns3_cases(results) if case.name in names], progress)
    return _report([*ns3_rerun.repeated(chosen, results), *ours], arguments, started)


def print_checks(done: list[checks.Check]) -> None:
    """A row for each check; on a narrow terminal its name, and the figures in the lines below."""
    if terminal_width() >= TABLE_COLUMNS:
        _print_table(done)
        return
    for check in done:
        measured, reference = _figures(check)
        text = (
            f"{measured}, reference {reference} {check.unit}: {check.error:+.1%}, allowed {check.tolerance:.1%}; {check.source}"
        )
        print(f"{check.name}\n{hanging(f'  {_outcome(check):6}  ', text)}")


def _figures(check: checks.Check) -> tuple[str, str]:
    digits = 1 if check.unit == "kbit/s" else 4
    return f"{check.ours:.{digits}f}", f"{check.reference:.{digits}f}"


def _outcome(check: checks.Check) -> str:
    return "ok" if check.ok else "FAILED"


def _print_table(done: list[checks.Check]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("check", "measured", "reference", "unit", "error", "allowed", "", "source"):
        table.add_column(heading, justify="right" if heading in {"measured", "reference", "error", "allowed"} else "left")
    for check in done:
        table.add_row(
            check.name,
            *_figures(check),
            check.unit,
            f"{check.error:+.1%}",
            f"{check.tolerance:.1%}",
            _outcome(check),
            check.source,
        )
    console(None if sys.stdout.isatty() else 200).print(table)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left on a terminal, elsewhere lines; on standard error. Gives progress(done, total)."""
    screen = Console(file=exact(sys.stderr))
    if not screen.is_terminal:
        yield lambda done, total: _print_progress(what, done, total)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_progress(what: str, done: int, total: int) -> None:
    """The first of the runs, and each of PROGRESS_LINES equal parts of them."""
    if done == 1 or done * PROGRESS_LINES // total > (done - 1) * PROGRESS_LINES // total:
        print(f"manet validate: {what}: {done} of {total}", file=sys.stderr, flush=True)
