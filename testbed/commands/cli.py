"""`manet cli`: a Mininet prompt on a running scenario, with links, routes, move, drops, air (testbed/prompt.py)."""

import argparse


def add(verbs: argparse._SubParsersAction) -> None:
    verbs.add_parser("cli", help="a Mininet prompt on a running scenario, with links, routes, move, drops, air")


def add_options(parser: argparse.ArgumentParser) -> None:
    from testbed import prompt

    prompt.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from testbed import prompt

    return prompt.run(options)
