"""`manet clean`: remove what a killed run left behind (testbed/host/clean.py)."""

import argparse

from testbed.commands.options import add_verb

EXAMPLES = """
  ./manet clean          safe at any time, also while experiments run
  ./manet clean --all    also end the runs that other manet commands started
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "clean", "remove what a killed run left behind; results stay", EXAMPLES)
    parser.add_argument("--all", action="store_true", help="also end runs under way")
    parser.add_argument("--json", action="store_true", help="print what was removed as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Clean up and print what was removed. The exit status: 1 if something could not be removed."""
    import json
    from dataclasses import asdict

    from testbed.columns import hanging
    from testbed.host.clean import clean

    cleaned = clean(include_running=options.all)
    if options.json:
        print(json.dumps(asdict(cleaned), indent=1))
        return 1 if cleaned.could_not else 0
    for word, lines in (
        ("removed", cleaned.removed),
        ("left alone", cleaned.still_running),
        ("could not remove", cleaned.could_not),
    ):
        for line in lines:
            print(hanging(f"{word:18}", line))
    if not (cleaned.removed or cleaned.still_running or cleaned.could_not):
        print("nothing was left behind")
    return 1 if cleaned.could_not else 0
