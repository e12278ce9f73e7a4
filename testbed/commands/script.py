"""`manet script`: a Mininet-WiFi script, unchanged, on this testbed (testbed/mn_wifi, docs/mininet-wifi.md)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_overrides, add_verb, folder, overrides, positive, set_words

EXAMPLES = """
  ./manet script examples/adhoc.py
  ./manet script examples/adhoc.py olsrd    arguments of the script follow it
  ./manet script --set radio=ns2-dsss-2m examples/mobility.py
  ./manet script --out results/hidden examples/hidden_terminals.py
  echo 'sta1 ping -c 3 sta2' | ./manet script examples/adhoc.py

--set, --seed and --out come before the file. docs/mininet-wifi.md lists what is
supported of Mininet-WiFi.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "script", "execute an unmodified Mininet-WiFi script on this testbed", EXAMPLES)
    parser.add_argument("--out", metavar="DIR", type=folder, help="folder of results (default: results/script/NAME-TIME)")
    add_overrides(parser)
    parser.add_argument("--seed", metavar="N", type=positive, default=1, help="seed of the medium (default: 1)")
    parser.add_argument("script", metavar="FILE.py", type=Path, help="the script")
    parser.add_argument("words", metavar="ARG", nargs=argparse.REMAINDER, help="the script's own arguments")


def run(options: argparse.Namespace) -> int:
    """Execute the script; its exit status, or 1 if a network of it was void."""
    import signal
    import sys

    from testbed.guests.commands import may_move, moved
    from testbed.mn_wifi.launch import run_script

    end = run_script(
        options.script, options.words, overrides=overrides(options), seed=options.seed, directory=options.out,
        may_move=may_move(),
    )  # fmt: skip
    if end.moves_for is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        arguments = ["--seed", str(options.seed), *set_words(overrides(options)), str(options.script), *options.words]
        return moved("script", end.directory, arguments, what="the script begins anew", why=end.moves_for)
    if end.interrupted:
        raise KeyboardInterrupt
    if end.error is not None:
        print(f"manet script: {end.error}", file=sys.stderr)
    return end.exit_status
