"""`python -m tests.bench [QUESTION...] [--json]`: all questions, or those named."""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table as Drawn

from testbed.errors import ManetError
from tests.bench import (
    Table,
    beside_ns2,
    captures,
    capturing,
    cpu_share,
    decisions,
    entering,
    hosts,
    lateness,
    launcher,
    medium_speed,
    oracle,
    pace,
    radios,
    results,
    routing,
    scale,
    slurm,
    stations,
    syscalls,
    tcp_cost,
    view,
)

QUESTIONS = {
    "medium": medium_speed.measure,
    "ns2": beside_ns2.measure,
    "cpu": cpu_share.measure,
    "pace": pace.measure,
    "lateness": lateness.measure,
    "stations": stations.measure,
    "radios": radios.measure,
    "results": results.measure,
    "launcher": launcher.measure,
    "routing": routing.measure,
    "tcp": tcp_cost.measure,
    "oracle": oracle.measure,
    "decisions": decisions.measure,
    "captures": captures.measure,
    "capturing": capturing.measure,
    "slurm": slurm.measure,
    "scale": scale.measure,
    "hosts": hosts.measure,
    "view": view.measure,
    "entering": entering.measure,
    "syscalls": syscalls.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=f"one of {', '.join(QUESTIONS)}; default: all")
    parser.add_argument("--json", action="store_true", help="for programs: a list of tables")
    options = parser.parse_args()
    for name in options.questions:
        if name not in QUESTIONS:
            parser.error(f'"{name}" is no question; use {", ".join(QUESTIONS)}')
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else 120)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}, Linux {platform.release()}")
    tables = []
    try:
        for name in options.questions or QUESTIONS:
            tables.append(QUESTIONS[name]())
            draw(console, tables[-1])
    except ManetError as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return problem.exit_status
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps([asdict(table) for table in tables], indent=1))
    return 0


def draw(console: Console, table: Table) -> None:
    drawn = Drawn(title=table.title, caption=f"aim: {table.aim}", title_justify="left", caption_justify="left")
    for column in table.columns:
        drawn.add_column(column, justify="right")
    for row in table.rows:
        drawn.add_row(*(_shown(cell) for cell in row))
    console.print(drawn)


def _shown(cell: str | float) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return str(cell)


if __name__ == "__main__":
    sys.exit(main())
