"""`manet exec`: a command at a station of a run under way (testbed/runs/entering.py)."""

import argparse

from testbed.commands.options import add_verb, split_run
from testbed.errors import UsageError

EXAMPLES = """
  ./manet exec sta1 -- ping -c 3 10.0.0.5   the run under way
  ./manet exec results/chain5/all/seed-1 sta1 -- ip route
  ./manet exec sta2 -- ss -ti               its connections
  ./manet exec sta1 -- sh -c 'cat > /tmp/x' < file

Any run: of `manet run`, the prompt, a script, a mesh of a test, `serve`. The
exit status is the command's. The run records the command as an event of the
source `exec`, and ends it with its traffic. `manet shell` starts a shell.
"""
USAGE = 'give a station and a command, as in "manet exec sta1 -- ip route"'


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "exec", "run a command at a station of a run under way", EXAMPLES)
    parser.usage = "manet exec [RUN] STATION -- COMMAND..."
    parser.add_argument(
        "words", metavar="RUN|STATION", nargs="+", help="default: the only run under way; then the station or host"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit status is the command's, also if a signal ended it."""
    from testbed.runs.entering import call_in, end_as

    directory, words = split_run(options.words)
    if len(words) < 2:
        raise UsageError(USAGE)
    return end_as(call_in(directory, words[0], words[1:]))
