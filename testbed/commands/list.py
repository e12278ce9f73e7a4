"""`manet list`: the names that an experiment or a scenario may use, with one line each (testbed/catalogue.py)."""

import argparse
from typing import TYPE_CHECKING

from testbed.commands.options import add_verb

if TYPE_CHECKING:
    from testbed.catalogue import Section

EXAMPLES = """
  ./manet list                  all names, by section
  ./manet list experiments      the experiments, each with its question
  ./manet list radios traffic   two sections
  ./manet list --json           the same as JSON

sections: experiments, scenarios, radios, topologies, mobility,
propagation, traffic, routing, tcp
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "list", "list experiments, scenarios, radios, models and TCPs by name", EXAMPLES)
    parser.add_argument("sections", metavar="SECTION", nargs="*", help="only these sections, with one line for each name")
    parser.add_argument("--json", action="store_true", help="print names and lines as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Print the sections; a section that does not exist is a UsageError."""
    import json
    from dataclasses import asdict

    from testbed.catalogue import SECTIONS

    chosen = _chosen(options.sections)
    if options.json:
        sections = {section.name: [asdict(entry) for entry in section.entries()] for section in chosen or SECTIONS}
        print(json.dumps({"format": "manet-list/1", "sections": sections}, indent=1))
    elif chosen:
        print("\n\n".join(_in_full(section) for section in chosen))
    else:
        print("\n\n".join(_names_only(section) for section in SECTIONS))
        print("\n./manet list SECTION prints one line for each name of a section")
    return 0


def _chosen(names: list[str]) -> "list[Section]":
    from testbed.catalogue import SECTIONS
    from testbed.errors import UsageError, did_you_mean

    by_name = {section.name: section for section in SECTIONS}
    for name in names:
        if name not in by_name:
            close = did_you_mean(name, by_name)
            remedy = f"; {close}" if close else f"; use one of {', '.join(by_name)}"
            raise UsageError(f'"{name}" is not a section{remedy}')
    return [by_name[name] for name in dict.fromkeys(names)]


def _in_full(section: "Section") -> str:
    from testbed.columns import rows

    lines = rows((entry.name, entry.summary) for entry in section.entries())
    return "\n".join([f"{section.name}: {section.usage}", *lines])


def _names_only(section: "Section") -> str:
    from testbed.columns import hanging

    entries = section.entries()
    names = "  ".join(entry.name for entry in entries)
    return f"{section.name} ({len(entries)}): {section.usage}\n{hanging('  ', names)}"
