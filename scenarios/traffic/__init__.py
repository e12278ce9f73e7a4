"""Traffic kinds, one file each: `traffic/<name>.py` is what `traffic = "<name>"` of a flow means.

A file offers one value, `KIND`, whose class says everything of the kind: its keys, the programs that it starts, when they are
ready, its report, its metrics (`shared/kind.py` has the list). `scenarios/flows.py` makes the keys of a flow of it,
`testbed/stages/traffic.py` starts the programs, `analysis/metrics.py` measures; none of them knows a kind by name. `programs/` is
what runs inside stations, `shared/` what several kinds use. Each kind has its row in formats/scenario.md.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from scenarios.traffic.shared.kind import Kind

DEFAULT_KIND = "bulk"  # of a flow that names none


@cache
def kind_names() -> tuple[str, ...]:
    """As scenarios name them, in alphabetical order. A folder is none."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__) if not module.ispkg))


@cache
def kind_named(name: str) -> Kind[Any]:
    """KeyError for a name that no file has."""
    if name not in kind_names():
        raise KeyError(f'traffic "{name}" is not known; the kinds are {", ".join(kind_names())}')
    kind: Kind[Any] = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").KIND
    return kind


def kinds() -> dict[str, Kind[Any]]:
    """All of them, by name."""
    return {name: kind_named(name) for name in kind_names()}


def kinds_with_tcp() -> list[str]:
    """Those whose flows are TCP connections, which a scenario's `tcp` sets."""
    return [name for name, kind in kinds().items() if kind.has_tcp]


def kinds_with_key(key: str) -> list[str]:
    """Those whose flows take the key."""
    return [name for name, kind in kinds().items() if key in kind.keys.model_fields]


def kinds_without_required_keys() -> list[str]:
    """Those that a scenario's default flows, which have no keys, may be of."""
    fields = {name: kind.keys.model_fields.values() for name, kind in kinds().items()}
    return [name for name, of_kind in fields.items() if not any(field.is_required() for field in of_kind)]


def keys_of_kinds() -> dict[str, FieldInfo]:
    """Every key that some kind takes. One that several take means the same in all of them (shared/keys.py)."""
    return {key: field for kind in kinds().values() for key, field in kind.keys.model_fields.items()}
