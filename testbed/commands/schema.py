"""`manet schema`: the JSON Schema of a scenario or experiment file, for editors (formats/scenario.md)."""

import argparse

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet schema > scenario.schema.json                     limits, units and defaults of every key
  ./manet schema experiment > experiment.schema.json

an editor completes a TOML file that names the schema in its first line (Taplo, Even Better TOML):
  #:schema scenario.schema.json
"""


def add(verbs: argparse._SubParsersAction) -> None:
    parser = add_verb(verbs, "schema", "the JSON Schema of scenario and experiment files, for editors", EXAMPLES)
    parser.add_argument("of", nargs="?", choices=("scenario", "experiment"), default="scenario")


def run(options: argparse.Namespace) -> int:
    import json

    from scenarios.json_schema import of_scenario
    from testbed.campaigns.experiment_schema import of_experiment

    print(json.dumps(of_experiment() if options.of == "experiment" else of_scenario(), indent=1))
    return 0
