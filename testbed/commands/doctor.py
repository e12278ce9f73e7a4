"""`manet doctor`: what this machine can do, what is missing and how to get it (testbed/host/doctor.py)."""

import argparse

from testbed.commands.options import add_verb

ROUTING = "routing "  # as testbed/host/doctor.py begins the names of their checks
OF_ROOT = ("root", "privileges", "TUN", "namespaces", "kernel-tcp")  # only root sees whether they are there for root
LEGEND = "root: for runs of root; user: for runs of an ordinary user (docs/rootless.md). MISSING: needed; -: optional"
ASK_ROOT = "; ?: sudo ./manet doctor knows"
ROUTING_HEADING = "routing protocols other than static and none (routing = NAME in a scenario)"
EXAMPLES = """
  ./manet doctor         every check; status 1 if something needed is missing
  ./manet doctor --json  the same as JSON
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "doctor", "check what this machine can do and how to get what is missing", EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the checks as a JSON list")


def run(options: argparse.Namespace) -> int:
    """Print all checks, for root and for an ordinary user. The exit status: 1 if something is missing that this user's runs
    need."""
    import json
    import os
    from dataclasses import asdict, replace

    from testbed.columns import folded, hanging
    from testbed.host.doctor import Check, doctor
    from testbed.host.privileges import rootless
    from testbed.programs import INSTALLATION

    is_user = os.geteuid() != 0

    def word_of(check: Check, *, root: bool) -> str:
        if root and is_user and not check.ok and check.name in OF_ROOT:
            return "?"
        return "ok" if check.ok_for(root=root) else "MISSING" if check.needed else "-"

    checks = [replace(check, remedy=INSTALLATION.reworded(check.remedy)) for check in doctor()]
    is_root = not rootless()
    missing = [check for check in checks if check.needed and not check.ok_for(root=is_root)]
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=1))
        return 1 if missing else 0
    protocols = [check for check in checks if check.name.startswith(ROUTING)]
    others = [check for check in checks if check not in protocols]
    print(folded(LEGEND + (ASK_ROOT if is_user else "")))
    for heading, section in (("", others), (ROUTING_HEADING, protocols)):
        print(f"\n{heading}" if heading else "")
        width = max(len(check.name) for check in section)
        print(f"{'root':8}{'user':8}")
        for check in section:
            words = [word_of(check, root=root) for root in (True, False)]
            remedy = f"; {check.remedy}" if check.remedy and not {*words} <= {"ok", "?"} else ""
            detail = "only root sees it" if words == ["?", "ok"] and check.name != "root" else f"{check.detail}{remedy}"
            columns = "".join(f"{word:8}" for word in words)
            print(hanging(f"{columns}{check.name.removeprefix(ROUTING):{width}}  ", detail))
    whom = "root" if is_root else "an ordinary user"
    names = ", ".join(check.name for check in missing)
    print(f"\nmissing, and needed for runs of {whom}: {names}" if missing else "\nnothing needed is missing")
    if os.environ.get("MANET_SET_UP") == "incomplete":  # of the launcher (manet), which has listed the parts
        print("parts of this checkout are older than their sources, as listed above; the next run builds them, or ./setup.sh")
    if not is_root and not missing:
        print("runs are made without root; docs/rootless.md lists what that refuses")
    return 1 if missing else 0
