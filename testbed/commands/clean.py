"""`manet clean`: remove what a killed run left behind; safe at any time (testbed/clean.py)."""

import argparse


def add(verbs: argparse._SubParsersAction) -> None:
    verbs.add_parser("clean", help="remove what a killed run left behind; safe at any time")


def add_options(parser: argparse.ArgumentParser) -> None:
    from testbed import clean

    clean.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from testbed import clean

    return clean.run(options)
