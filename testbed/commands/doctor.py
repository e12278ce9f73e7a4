"""`manet doctor`: what this machine can do, what is missing and how to get it (testbed/host/doctor.py)."""

import argparse

from testbed.commands.options import add_verb

ROUTING = "routing "  # as testbed/host/doctor.py begins the names of their checks
ROUTING_HEADING = "routing protocols other than static and none (routing = NAME in a scenario)"
EXAMPLES = """
  ./manet doctor         every check; status 1 if something needed is missing
  ./manet doctor --json  the same as JSON
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "doctor", "check what this machine can do and how to get what is missing", EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the checks as a JSON list")


def run(options: argparse.Namespace) -> int:
    """Print all checks. The exit status: 1 if something needed is missing."""
    import json
    from dataclasses import asdict, replace

    from testbed.columns import hanging
    from testbed.host.doctor import doctor
    from testbed.programs import INSTALLATION

    checks = [replace(check, remedy=INSTALLATION.reworded(check.remedy)) for check in doctor()]
    missing = [check for check in checks if check.needed and not check.ok]
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=1))
        return 1 if missing else 0
    protocols = [check for check in checks if check.name.startswith(ROUTING)]
    others = [check for check in checks if check not in protocols]
    for heading, section in (("", others), (ROUTING_HEADING, protocols)):
        if heading:
            print(f"\n{heading}")
        width = max(len(check.name) for check in section)
        for check in section:
            word = "ok" if check.ok else "MISSING" if check.needed else "-"
            remedy = f"; {check.remedy}" if check.remedy and not check.ok else ""
            print(hanging(f"{word:8}{check.name.removeprefix(ROUTING):{width}}  ", f"{check.detail}{remedy}"))
    print(f"\n{len(missing)} things needed are missing" if missing else "\nnothing needed is missing")
    return 1 if missing else 0
