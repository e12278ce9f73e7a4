"""`manet routes`: routes, neighbours and counters of a run's routing daemons (testbed/runs/routes.py)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet routes                             the run under way, every station
  ./manet routes sta1                        one station of it
  ./manet routes results/chain5/all/seed-1   that run: now, or at its end
  ./manet routes results/chain5              a folder with one run is enough
  ./manet routes results/chain5/all/seed-1 sta1 --json

Our own daemons and batman-adv report hops, states and counters. Of any other
routing it shows the kernel's tables and what the `status` commands of the
daemon's description print (docs/extend.md).
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb and its options."""
    parser = add_verb(verbs, "routes", "show routes, neighbours and counters of routing daemons", EXAMPLES)
    parser.add_argument("which", metavar="RUN|STATION", nargs="*", help="default: the run under way, every station")
    parser.add_argument("--json", action="store_true", help="print one JSON object (formats/routing.md, status)")


def run(options: argparse.Namespace) -> int:
    """Print the status of the routing daemons. The exit status: 1 if one did not answer."""
    import json
    import sys

    from testbed.columns import folded
    from testbed.errors import UsageError
    from testbed.runs.routes import known_routes
    from testbed.stages.status import lines

    words = list(options.which)
    directory = Path(words.pop(0)) if words and ("/" in words[0] or Path(words[0]).is_dir()) else None
    station = words.pop(0) if words else None
    if words:
        raise UsageError(f'"{words[0]}" is one word too many; give the directory of a run, a station, or both in this order')
    known = known_routes(directory, station)
    for name, problem in known.silent.items():
        print(f"manet routes: {name}: {problem}", file=sys.stderr)
    failed = 1 if known.silent else 0
    if options.json:
        print(json.dumps(known.as_json(), indent=1))
        return failed
    if known.when != "now":
        print(f"{known.directory}: at the {known.when} of the traffic")
    for name, status in known.stations.items():
        print("\n".join(folded(line) for line in lines(name, status)))
    return failed
