"""`manet doctor`: what this machine can do, what is missing and how to get it (testbed/doctor.py)."""

import argparse


def add(verbs: argparse._SubParsersAction) -> None:
    verbs.add_parser("doctor", help="what this machine can do, what is missing and how to get it")


def add_options(parser: argparse.ArgumentParser) -> None:
    from testbed import doctor

    doctor.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from testbed import doctor

    return doctor.run(options)
