"""Traffic kinds, one file each: `traffic/<name>.py` implements `traffic = "<name>"` of a flow.

A file offers one value, `KIND`, whose class defines the kind: its keys, the programs that it starts, their readiness, its report
and its metrics (`shared/kind.py` has the list). `scenarios/flows.py` derives the keys of a flow from it,
`testbed/stages/traffic.py` starts the programs, `analysis/metrics/analyse.py` measures; none of them names a kind. `programs/`
holds the programs that run in stations, `shared/` common parts of several kinds, `data/` published figures. Each kind has a row
in formats/scenario.md.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from traffic.shared.kind import Kind

DEFAULT_KIND = "bulk"  # of a flow that names none


@cache
def kind_names() -> tuple[str, ...]:
    """The names of the kinds, as in scenarios, in alphabetical order."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.ispkg))


@cache
def kind_named(name: str) -> Kind[Any]:
    """The kind of this name; KeyError if there is none."""
    if name not in kind_names():
        raise KeyError(f'traffic "{name}" is not known; the kinds are {", ".join(kind_names())}')
    kind: Kind[Any] = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").KIND
    return kind


def kinds() -> dict[str, Kind[Any]]:
    """All kinds, by name."""
    return {name: kind_named(name) for name in kind_names()}


def kinds_with_tcp() -> list[str]:
    """Names of the kinds whose flows are TCP connections, which use a scenario's `tcp`."""
    return [name for name, kind in kinds().items() if kind.has_tcp]


def kinds_with_dscp() -> list[str]:
    """Names of the kinds whose flows can have a DSCP."""
    return [name for name, kind in kinds().items() if kind.sets_dscp]


def kinds_with_key(key: str) -> list[str]:
    """Names of the kinds whose flows have the key."""
    return [name for name, kind in kinds().items() if key in kind.keys.model_fields]


def kinds_without_required_keys() -> list[str]:
    """Names of the kinds without required keys, which default flows may have."""
    fields = {name: kind.keys.model_fields.values() for name, kind in kinds().items()}
    return [name for name, of_kind in fields.items() if not any(field.is_required() for field in of_kind)]


def keys_of_kinds() -> dict[str, FieldInfo]:
    """The keys of all kinds. A key that several kinds have means the same in all of them (shared/keys.py)."""
    return {key: field for kind in kinds().values() for key, field in kind.keys.model_fields.items()}
