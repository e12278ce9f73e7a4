"""`manet schema`: the JSON Schema of a scenario or experiment file, for editors (formats/scenario.md)."""

import argparse

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet schema > scenario.schema.json               of a scenario file
  ./manet schema experiment > experiment.schema.json  of an experiment file

Editors (Taplo, Even Better TOML) complete a file with keys, limits, units and
defaults if its first line names the schema:
  #:schema ./scenario.schema.json
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "schema", "the JSON Schema of scenario and experiment files, for editors", EXAMPLES)
    parser.add_argument(
        "of", nargs="?", choices=("scenario", "experiment"), default="scenario", help="kind of file (default: scenario)"
    )


def run(options: argparse.Namespace) -> int:
    """Print the schema; the exit status is 0."""
    import json

    from scenarios.json_schema import of_scenario
    from testbed.campaigns.experiment_schema import of_experiment

    print(json.dumps(of_experiment() if options.of == "experiment" else of_scenario(), indent=1))
    return 0
