"""Named sets of flows of an experiment: `flows = "NAME"`, and `{ set = "NAME", rate = 43200 }` in a list of flows.

The second form is every flow of the set; keys next to `set` replace the flow's own. A set may have such entries too.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keys.toml_lines import Path as KeyPath
from scenarios.document import dotted
from scenarios.overrides import Change
from testbed.campaigns.declaration import Declaration
from testbed.errors import UsageError, did_you_mean, shortened

KEY = "flows"
SET = "set"


def with_flows(change: Change, declaration: Declaration) -> Change:
    """The change with its flow sets expanded; a change of another key is returned unchanged."""
    if change.key != KEY:
        return change
    place = change.place
    if isinstance(change.value, str):
        flows, parts = _flows_of({SET: change.value}, place, declaration, place)
        return replace(change, value=flows, parts=_numbered(parts))
    if not isinstance(change.value, list):
        return change
    flows, parts = [], []
    for index, entry in enumerate(change.value):
        at = None if place is None else (*place, index)
        if isinstance(entry, dict) and SET in entry:
            more, of_more = _flows_of(entry, at, declaration, None if at is None else (*at, SET))
            flows, parts = flows + more, parts + of_more
        else:
            flows, parts = [*flows, entry], [*parts, {} if at is None else {(): at}]
    return replace(change, value=flows, parts=_numbered(parts))


Parts = list[dict[KeyPath, KeyPath]]  # of each flow: the paths of its keys, in the document


def _flows_of(
    entry: Mapping[str, Any], place: KeyPath | None, declaration: Declaration, named: KeyPath | None, outer: tuple[str, ...] = ()
) -> tuple[list[dict[str, Any]], Parts]:
    """The flows of the set that `entry` names; `named` is the key path of the name, `outer` the sets that `entry` is in."""
    sets, name = declaration.tables.flow_sets, entry[SET]
    if not isinstance(name, str) or name not in sets:
        close = did_you_mean(str(name), sets)
        remedy = close or (f"there are {', '.join(sets)}" if sets else "name one in [flow_sets], or give the flows themselves")
        text = f'there is no flow set "{shortened(str(name))}"; {remedy}'
        if named is None:
            raise UsageError(f'--set: key "{dotted((KEY,))}": {text}')
        raise declaration.document.refusal(named, text)
    if name in outer and named is not None:
        raise declaration.document.refusal(named, f'the flow set "{name}" contains itself: {" > ".join((*outer, name))}')
    flows: list[dict[str, Any]] = []
    parts: Parts = []
    for index, flow in enumerate(sets[name]):
        at: KeyPath = ("flow_sets", name, index)
        if SET in flow:
            more, of_more = _flows_of(flow, at, declaration, (*at, SET), (*outer, name))
            flows += more
            parts += of_more
        else:
            flows.append(flow)
            parts.append({(): at})
    overrides = {key: value for key, value in entry.items() if key != SET}
    own_places = {} if place is None else {(key,): (*place, key) for key in overrides}
    return [{**flow, **overrides} for flow in flows], [of_flow | own_places for of_flow in parts]


def _numbered(parts: Parts) -> dict[KeyPath, KeyPath]:
    return {(KEY, index, *path): place for index, places in enumerate(parts) for path, place in places.items()}
