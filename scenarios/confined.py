"""The limits of keys that come from elsewhere, such as a request over HTTP: they name no file, program or network of this
machine.

`Document.foreign` lists the keys at the top of a scenario that such a request gave. A file's own keys are not limited. Refused is
what reads a file, starts a program as root, or reaches a network: a movement file, a daemon's description, a file of a flow, the
programs of a flow or an event, a station's root file system, NAT.
"""

from keys.errors import UsageError, did_you_mean
from keys.toml_lines import Path as KeyPath
from scenarios.keys import Keys
from scenarios.routing import PRESETS, PROTOCOLS
from scenarios.scenario import Scenario

REFUSED = "which a request may not do"


def check_routing(keys: Keys) -> None:
    """Refuse the description of a daemon, before it is looked for. Raises UsageError."""
    if "routing" not in keys.document.foreign or not isinstance(keys.values, dict):
        return
    given = keys.values.get("routing")
    table = {"protocol": given} if isinstance(given, str) else given
    if not isinstance(table, dict):
        return
    if "description" in table:
        raise keys.refusal(("routing", "description"), f"names programs, {REFUSED}; use a protocol of the testbed")
    name = table.get("protocol")
    known = [*PROTOCOLS, *PRESETS]
    if isinstance(name, str) and name not in known:
        remedy = did_you_mean(name, known) or f"use one of {', '.join(known)}"
        raise keys.refusal(("routing",), f"is no protocol of the testbed, and a request may name no file; {remedy}")


def check(scenario: Scenario, keys: Keys) -> None:
    """Refuse what the foreign keys of a valid scenario would read, start or reach, before it happens. Raises UsageError."""
    if keys.document.foreign:
        for found in (_movement(scenario), _stations(scenario), _flows(scenario), _events(scenario), _wires(scenario)):
            if found is not None and found[0][0] in keys.document.foreign:
                raise _refusal(keys, *found)


def _refusal(keys: Keys, path: KeyPath, text: str) -> UsageError:
    does, _, remedy = text.partition("; ")
    return keys.refusal(path, f"{does}, {REFUSED}; {remedy}")


Found = tuple[KeyPath, str] | None


def _movement(scenario: Scenario) -> Found:
    return (("mobility",), "names a file; use a model") if scenario.mobility.model == "file" else None


def _stations(scenario: Scenario) -> Found:
    return (("stations",), "names a root file system; leave it out") if scenario.containers else None


def _flows(scenario: Scenario) -> Found:
    for index, flow in enumerate(scenario.flows):
        if programs := flow.kind.own_programs(flow.own_keys()):
            return ("flows", index, next(iter(programs))), "names a program; use another kind of traffic"
        for key in flow.kind.path_keys:
            value = getattr(flow, key)
            if value is not None and flow.kind.names_file(key, value):
                return ("flows", index, key), "names a file; leave it out"
    return None


def _events(scenario: Scenario) -> Found:
    started = (index for index, event in enumerate(scenario.events) if event.command is not None)
    return next(((("events", index, "command"), "names a program; leave it out") for index in started), None)


def _wires(scenario: Scenario) -> Found:
    leading = (index for index, wire in enumerate(scenario.wires) if wire.nat)
    return next(((("wires", index, "nat"), "reaches the networks of this machine; leave it out") for index in leading), None)
