"""The model and the unit of a key, by its path."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from keys.quantities import Unit, unit_within
from keys.toml_lines import Path as KeyPath
from scenarios.movement import MOVEMENTS
from scenarios.routing import PROTOCOLS
from scenarios.scenario import Scenario

# Units of counts, for the labels of axes.
COUNTED = {"window": "segments", "initial_window": "segments", "queue": "packets", "unres_qlen": "packets"}
# keys whose name selects a class: the key of the name, and the classes
TAGGED: dict[str, tuple[str, Mapping[str, type[BaseModel]]]] = {
    "routing": ("protocol", PROTOCOLS),
    "mobility": ("model", MOVEMENTS),
}


def unit_of(key: str) -> str | None:
    """The unit of a scenario's key (dotted for a table); None without one."""
    path = tuple(key.split("."))
    paths = [path, *((path[0], tag, *path[1:]) for tag in classes_by_name(path))]
    return next((unit for each in paths if (unit := unit_at(Scenario, each))), None) or COUNTED.get(path[-1])


def classes_by_name(path: KeyPath) -> Mapping[str, type[BaseModel]]:
    """The classes that a name in the key `path` selects; empty for most keys."""
    return TAGGED[str(path[0])][1] if path and path[0] in TAGGED else {}


def keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys of the (sub)model that `path` leads to, as they are written in files."""
    inner = _model_at(model, path)
    return [field.alias or name for name, field in inner.model_fields.items()] if inner else []


def unit_at(model: type[BaseModel], path: KeyPath) -> str | None:
    """The unit of the key at the end of `path`, by its annotation."""
    keys = [part for part in path if isinstance(part, str)]
    inner = _model_at(model, tuple(keys[:-1])) if keys else None
    field = _field(inner, keys[-1]) if inner else None
    if field is None:
        return None
    own = next((part.name for part in field.metadata if isinstance(part, Unit)), None)
    return own or unit_within(field.annotation)


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The (sub)model that `path` leads to."""
    for part in path:
        if isinstance(part, int):
            continue
        named = classes_by_name(path)
        if issubclass(model, tuple(named.values())) and part in named:
            model = named[str(part)]
            continue
        field = _field(model, part)
        inner = _model_within(field.annotation) if field else None
        if inner is None:
            return None
        model = inner
    return model


def _field(model: type[BaseModel], key: str) -> FieldInfo | None:
    return next((field for name, field in model.model_fields.items() if (field.alias or name) == key), None)


def _model_within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_within(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in models if model), None)
