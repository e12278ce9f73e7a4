"""`manet validate`: the medium against closed forms, Bianchi's model and ns-2 (testbed/validate)."""

import argparse


def add(verbs: argparse._SubParsersAction) -> None:
    verbs.add_parser("validate", help="check the medium against a closed form, Bianchi's model and ns-2.35")


def add_options(parser: argparse.ArgumentParser) -> None:
    from testbed.validate import command

    command.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from testbed.validate import command

    return command.run(options)
