"""`manet validate`: the medium against closed forms, Bianchi's model, ns-2 and ns-3 (testbed/validate)."""

import argparse

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet validate                      every check, in three to five minutes
  ./manet validate --only 'ns2/*'       the comparison with ns-2 alone
  ./manet validate --only closed-form   checks whose name contains this
  ./manet validate --json               a list of {name, ours, reference, ...}
  ./manet validate --rerun-ns2          run ns-2 itself, and rewrite its tables
  MANET_NS3=/opt/ns3 ./manet validate --rerun-ns3 --only 'ns3/n-mcs/*'
                    run ns-3 itself, from the wheel in that environment

--rerun-ns3 compares ns-3's new figures with the stored ones (rerun/...) and
the medium with the new ones (ns3/...); it writes nothing. All cases take half
an hour. The wheel: python3 -m venv /opt/ns3 &&
/opt/ns3/bin/pip install --no-deps ns3==3.44.post0; g++ builds the program.
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "validate", "check the medium against closed forms, Bianchi, ns-2.35, ns-3.44", EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument("--only", metavar="PATTERN", help="checks whose name matches (shell pattern) or contains it")
    parser.add_argument(
        "--rerun-ns2", action="store_true", help="regenerate medium/validation/ns2_*.csv; needs Debian's package ns2"
    )
    parser.add_argument(
        "--rerun-ns3", action="store_true",
        help="run ns-3's cases again and compare; needs the wheel ns3 in the environment that MANET_NS3 names, and g++",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the checks of testbed/validate. The exit status: 1 if one failed."""
    from testbed.validate import command

    return command.run(options)
