"""`manet cli`: Mininet's prompt on a running scenario (testbed/runs/prompt.py)."""

import argparse
from pathlib import Path

from testbed.commands.options import add_internet, add_overrides, add_verb, folder, overrides, place_of, positive, set_words

EXAMPLES = """
  ./manet cli                                      five hops in a line
  ./manet cli experiments/scenarios/hidden3.toml   a scenario file
  ./manet cli hv-fig1 --set hops=3 --variant hv    first cell of an experiment
  echo 'sta1 ping -c 3 sta6' | ./manet cli chain5  commands from a pipe
  ./manet cli --set stations=hwsim                 with mac80211's radios, in a
                                                   guest if need be

At the prompt: links, routes, map, move, replay, power, drops, air, iperf (by
iperf3), and Mininet's own verbs; help lists all.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "cli", "a Mininet prompt on a scenario, with move, power, links", EXAMPLES)
    parser.add_argument(
        "experiment", metavar="NAME|FILE", nargs="?", default="chain5", help="an experiment or a scenario (default: chain5)"
    )
    parser.add_argument("--out", metavar="DIR", type=folder, help="folder for captures and air log (default: results/cli/TIME)")
    add_overrides(parser)
    add_internet(parser)
    parser.add_argument("--variant", metavar="NAME", action="append", default=[], help="this variant of an experiment")
    parser.add_argument("--seed", metavar="N", type=positive, default=1, help="seed of the medium (default: 1)")


def run(options: argparse.Namespace) -> int:
    """Open the prompt; it ends with `exit`. Raises RunError if the run fails."""
    from record.files import read_object
    from testbed.campaigns.experiment import load
    from testbed.campaigns.library import find
    from testbed.campaigns.request import Request
    from testbed.errors import RunError, UsageError
    from testbed.guests.commands import may_move
    from testbed.host.requirements import require_radios
    from testbed.runs.preflight import check_tcps
    from testbed.runs.prompt import default_directory, open_prompt

    request = Request(overrides=overrides(options), variants=tuple(options.variant))
    scenario = load(find(options.experiment), request).cells[0].scenario
    if scenario.clock == "virtual":
        raise UsageError(
            f'{options.experiment}: clock = "virtual" has no prompt: its time does not wait for a user; --set clock=real'
        )
    directory = options.out or default_directory()
    if may_move():
        try:
            require_radios(scenario.radio_devices)
        except UsageError as lacking:
            return _in_guest(options, directory, str(lacking))
    check_tcps(scenario.tcps(), place_of("tcp", options.overrides, options.experiment))
    ended = open_prompt(scenario, seed=options.seed, directory=directory, allow_internet=options.allow_internet)
    if ended.status == "failed":
        raise RunError(ended.error or f"{ended.directory}: failed; see log/ there")
    if ended.status == "interrupted":
        raise KeyboardInterrupt  # as in `manet run`: one line, status 130
    if files := read_object(ended.directory / "verdict.json").get("files"):
        raise RunError(f"{ended.directory}: void: {'; '.join(files[:3])}; open the prompt again")
    return 0


def _in_guest(options: argparse.Namespace, directory: Path, why: str) -> int:
    """Open the prompt in a guest, for a reason that may end with a remedy."""
    from testbed.guests.commands import moved

    command = ["--seed", str(options.seed), *set_words(overrides(options))]
    command += [word for name in options.variant for word in ("--variant", name)]
    command += ["--allow-internet"] if options.allow_internet else []
    return moved("cli", directory.resolve(), [*command, options.experiment], what="the prompt opens", why=why.partition("; ")[0])
