"""`manet routes`: routes, neighbours and counters of a run's routing daemons (testbed/runs/routes.py)."""

import argparse

from testbed.commands.options import add_verb, split_run

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

    directory, arguments = split_run(options.which)
    station = arguments.pop(0) if arguments else None
    if arguments:
        raise UsageError(f'"{arguments[0]}" is one word too many; give the directory of a run, a station, or both in this order')
    routes = known_routes(directory, station)
    for name, problem in routes.silent.items():
        print(f"manet routes: {name}: {problem}", file=sys.stderr)
    failed = 1 if routes.silent else 0
    if options.json:
        print(json.dumps(routes.as_json(), indent=1))
        return failed
    if routes.when != "now":
        print(f"{routes.directory}: at the {routes.when} of the traffic")
    for name, status in routes.stations.items():
        print("\n".join(folded(line) for line in lines(name, status)))
    return failed
