"""`manet shell`: a shell at a station of a run under way (testbed/runs/entering.py)."""

import argparse

from testbed.commands.options import add_verb, run_and_station

EXAMPLES = """
  ./manet shell sta1                           the run under way
  ./manet shell results/chain5/all/seed-1 sta1
  echo 'ip route' | ./manet shell sta1         without a terminal

The shell is bash, in a station with a root file system of its own its sh.
It ends with the traffic of the run, which records it as an event.
"""
USAGE = 'give one station, as in "manet shell sta1"; `manet exec` starts a command'
SHELL = 'command -v bash >/dev/null && exec bash --norc "$@" || exec sh "$@"'


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "shell", "a shell at a station of a run under way", EXAMPLES)
    parser.usage = "manet shell [RUN] STATION"
    parser.add_argument(
        "words", metavar="RUN|STATION", nargs="+", help="default: the only run under way; then the station or host"
    )


def run(options: argparse.Namespace) -> int:
    """Run the shell; the exit status is the shell's."""
    from testbed.runs.entering import call_in, end_as

    directory, station = run_and_station(options.words, USAGE)
    return end_as(call_in(directory, station, ["sh", "-c", SHELL, "sh"]))
