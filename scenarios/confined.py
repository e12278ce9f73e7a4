"""The limits of keys that come from elsewhere, such as a request over HTTP: they name no file, program or network of this
machine.

`Document.foreign` lists the keys at the top of a scenario that such a request gave. A file's own keys are not limited. Refused is
what reads a file, starts a program as root, or reaches a network: a movement file, measured links, a radio profile's file, the
description of a daemon or traffic kind, a file of a flow, the programs of a flow or an event, a station's root file system, NAT.
"""

from collections.abc import Iterator

from keys.errors import did_you_mean
from keys.toml_lines import Path as KeyPath
from scenarios import profiles
from scenarios.keys import Keys, is_path
from scenarios.routing import PRESETS, PROTOCOLS
from scenarios.scenario import Scenario

REFUSED = "which a request may not do"


def check_routing(keys: Keys) -> None:
    """Refuse the description of a daemon, before it is looked for. Raises UsageError."""
    if "routing" not in keys.document.foreign or not isinstance(keys.values, dict):
        return
    routing = keys.values.get("routing")
    table = {"protocol": routing} if isinstance(routing, str) else routing
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
    for path, action, remedy in _reaching_out(scenario):
        if path[0] in keys.document.foreign:
            raise keys.refusal(path, f"{action}, {REFUSED}; {remedy}")


def _reaching_out(scenario: Scenario) -> Iterator[tuple[KeyPath, str, str]]:
    """The keys that read a file, start a program or reach a network, each with what it does and the remedy."""
    if scenario.mobility.model == "file":
        yield ("mobility",), "names a file", "use a model"
    if scenario.propagation.model == "trace":
        yield ("propagation",), "names a file", "use another model"
    if is_path(scenario.radio, profiles.ENDING):
        yield ("radio",), "names a file", "use a profile of medium/radios"
    if scenario.containers:
        yield ("stations",), "names a root file system", "leave it out"
    for index, flow in enumerate(scenario.flows):
        for key in flow.kind.own_programs(flow.own_keys()):
            yield ("flows", index, key), "names a program", "use another kind of traffic"
        for key in flow.named_files():
            yield ("flows", index, key), "names a file", "leave it out"
    for index, event in enumerate(scenario.events):
        if event.command is not None:
            yield ("events", index, "command"), "names a program", "leave it out"
    for index, wire in enumerate(scenario.wires):
        if wire.nat:
            yield ("wires", index, "nat"), "reaches the networks of this machine", "leave it out"
