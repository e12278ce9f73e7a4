"""Reading scenarios from TOML and `--set`, and wording what is wrong with them.

Every error is one line: file, line, key, what is wrong, remedy. `--set` takes the same keys as the files, dotted for
tables, and its values are TOML values (bare words are taken as text: `--set tcp=cubic`).
"""

import re
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

import mobility.trace
from scenarios.errors import UsageError, did_you_mean, shortened
from scenarios.models import KeyProblem
from scenarios.movement import MODEL_NAMES, MOVEMENTS, Replay
from scenarios.movement_files import matching, replayed
from scenarios.quantities import NAMES, Unit, unit_within
from scenarios.routing import AS_NS2, PROTOCOLS
from scenarios.scenario import Scenario
from scenarios.toml_lines import Path as KeyPath
from scenarios.toml_lines import line_of, locate

MAX_FILE_BYTES = 16 << 20  # of a definition; the largest of the project has 6 kB
RADIOS = Path(__file__).resolve().parents[1] / "medium" / "radios"
Model = TypeVar("Model", bound=BaseModel)

# Of whole numbers that count something; an axis over them is labelled with it.
COUNTED = {"window": "segments", "initial_window": "segments", "queue": "packets", "unres_qlen": "packets"}
EXPERIMENT_KEYS = {"question", "axes", "variants"}  # any of them at the top makes a file an experiment
# keys with a class for each name: what the name is called, and the classes
TAGGED: dict[str, tuple[str, Mapping[str, type[BaseModel]]]] = {
    "routing": ("protocol", PROTOCOLS),
    "mobility": ("model", MOVEMENTS),
}
SHORT_FOR = {"propagation": "model", "routing": "protocol", "mobility": "model"}  # propagation = "name": { model = "name" }
# lists with a default that is not written down: what stands in their place, and how to give one
ABSENT_LISTS = {
    "flows": "by default there is one, sta1 to the last station (of a cross: one along each arm); "
    'write --set \'flows=[{from="sta1", to="sta2"}]\'',
}
_TYPE_WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "string": "text in quotes",
    "tuple": "a list", "list": "a list", "dict": "a table", "model": "a table", "model_attributes": "a table",
}  # fmt: skip


def unit_of(key: str) -> str | None:
    """The unit of a scenario's key, dotted or not; None where it has none."""
    path = tuple(key.split("."))
    paths = [path, *((path[0], tag, *path[1:]) for tag in _tags(path))]
    return next((unit for each in paths if (unit := _unit_at(Scenario, each))), None) or COUNTED.get(path[-1])


class Source:
    """Where raw values came from: a file with its lines, and the keys that `--set` replaced."""

    def __init__(self, name: str, lines: dict[KeyPath, int] | None = None) -> None:
        self.name = name
        self.lines = lines or {}
        self.set_keys: set[str] = set()
        self.set_paths: set[str] = set()  # the same, in full: "mobility.file"

    def error(self, path: KeyPath, text: str) -> UsageError:
        """`path` is the whole key path in the file, `scenario` included where the file has that table."""
        bare = path[1:] if path[:1] == ("scenario",) else path
        if bare and str(bare[0]) in self.set_keys:
            return UsageError(f'--set: key "{shortened(_dotted(bare))}": {text}')
        key = shortened(_dotted(bare))
        line = line_of(self.lines, path)
        place = f"{self.name}: line {line}: " if line else f"{self.name}: "
        return UsageError(place + (f'key "{key}": ' if key else "") + text)


def read_toml(path: Path) -> tuple[dict[str, Any], Source]:
    """The raw tables of a TOML file and where its keys stand."""
    try:
        text = _text_of(path)
        return tomllib.loads(text), Source(str(path), locate(text))
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror}); give the path of a TOML file") from None
    except RecursionError:
        raise UsageError(f"{path}: tables or lists are nested too deep; no key needs more than five levels") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as problem:
        what, _, where = str(problem).partition(" (at ")
        line = where.split(",")[0].removesuffix(")")
        place = f"{line}: " if line.startswith("line") else f"line {max(1, len(text.splitlines()))}: "
        raise UsageError(f"{path}: {place}not TOML: {what}; see https://toml.io for the syntax") from None


def _text_of(path: Path) -> str:
    """Of a plain file of reasonable size: a pipe or device would be waited for, or never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{path}: is no plain file; give the path of a TOML file")
    if status.st_size > MAX_FILE_BYTES:
        raise UsageError(f"{path}: has {status.st_size >> 20} MiB, above {MAX_FILE_BYTES >> 20}; give the path of a TOML file")
    return path.read_text(encoding="utf-8")


def load_scenario(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in `path` (keys at top level or in a `[scenario]` table), with `--set` values applied."""
    raw, source = read_toml(path)
    if EXPERIMENT_KEYS & raw.keys():
        raise UsageError(f"{path}: is an experiment, which has several scenarios; give a scenario or a movement file")
    prefix: KeyPath = ()
    if "scenario" in raw:
        for key in raw:
            if key != "scenario":
                raise source.error((key,), "unknown key beside [scenario]; put it into the table, or remove it")
        raw, prefix = raw["scenario"], ("scenario",)
    return build_scenario(apply_overrides(raw, overrides, source), source, prefix, path.parent)


def build_scenario(
    raw: object, source: Source, prefix: KeyPath = (), base: Path = Path(), origins: Mapping[str, KeyPath] | None = None
) -> Scenario:
    """Validates raw keys. `base` is the folder that a relative trace file name counts from; `origins` says of a top
    key that it stands elsewhere in the file than under `prefix` (an axis, a variant)."""
    scenario = build(Scenario, raw, source, prefix, origins)
    place = partial(_place, origins or {}, prefix)
    _check_radio(scenario, source, place)
    if not isinstance(scenario.mobility, Replay):
        return scenario
    return _with_movement(scenario, scenario.mobility, source, place, base)


def _place(origins: Mapping[str, KeyPath], prefix: KeyPath, key: str) -> KeyPath:
    return origins.get(key, (*prefix, key))


def _check_radio(scenario: Scenario, source: Source, place: Callable[[str], KeyPath]) -> None:
    known = sorted(path.stem for path in RADIOS.glob("*.toml"))
    if scenario.radio not in known:
        text = f'"{scenario.radio}" is no radio profile of medium/radios; use one of {", ".join(known)}'
        raise source.error(place("radio"), text)
    profile = tomllib.loads((RADIOS / f"{scenario.radio}.toml").read_text())
    for key in scenario.radio_overrides:
        if key not in profile:
            text = did_you_mean(key, profile) or f"the keys are those of medium/radios/{scenario.radio}.toml"
            raise source.error((*place("radio_overrides"), key), f"unknown key; {text}")


def _with_movement(scenario: Scenario, movement: Replay, source: Source, place: Callable[[str], KeyPath], base: Path) -> Scenario:
    """The scenario with its movement files' full path, once each of them is known to be good for the whole run.

    A path that `--set` gave counts from where the user stands, then from the file as all others do.
    """
    by_set = not source.set_paths.isdisjoint({"mobility", "mobility.file"})
    for folder in [Path(), base] if by_set else [base]:
        there = movement.model_copy(update={"file": str((folder / movement.file).resolve())})
        found = [path for path in matching(there) if path.is_file()]
        if found:
            break
    else:
        models = ", ".join(f'"{name}"' for name in MODEL_NAMES)
        from_here = " to where you are, or to the scenario's file" if by_set else " to this file"
        text = f"there is no trace file {there.file}; use {models} or the path of a movement file, relative{from_here}"
        raise source.error(place("mobility"), text)
    movement = there
    begin_s = (scenario.traffic_at or 0.0) if movement.with_traffic else 0.0
    for path in found:
        try:
            made = replayed(movement, path, scenario.station_names(), begin_s)
            made.check_inside(scenario.area)
            made.check_covers(begin_s + scenario.traffic_seconds())
        except mobility.trace.TraceError as problem:
            raise UsageError(str(problem)) from None
    return scenario.model_copy(update={"mobility": movement})


def build(
    model: type[Model],
    raw: object,
    source: Source,
    prefix: KeyPath = (),
    origins: Mapping[str, KeyPath] | None = None,
) -> Model:
    """Validates `raw` as `model`; the first thing wrong becomes the one-line error."""
    try:
        return model.model_validate(raw)
    except ValidationError as problem:
        path, text = _explain(_first(problem), model)
        if origins and path and path[0] in origins:
            raise source.error((*origins[str(path[0])], *path[1:]), text) from None
        raise source.error((*prefix, *path), text) from None


def apply_overrides(raw: dict[str, Any], overrides: Sequence[str], source: Source) -> dict[str, Any]:
    """`raw` with `key=value` settings in place; dotted keys reach into tables, numbers into lists."""
    for setting in overrides:
        key, equals, written = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {shortened(setting)}: is not key=value; write for example --set hops=3")
        raw = replaced(raw, key.strip().split("."), parse_value(written.strip()), f"--set {shortened(setting)}")
        source.set_keys.add(key.strip().split(".")[0])
        source.set_paths.add(key.strip())
    return raw


def parse_value(written: str) -> Any:
    """A TOML value; what is not one is taken as text, so that words need no quotes in a shell."""
    try:
        keys = tomllib.loads(f"value = {written}")
        return keys["value"] if len(keys) == 1 else written  # a line break begins another key
    except tomllib.TOMLDecodeError:
        return written
    except RecursionError:
        text = "lists or tables are nested too deep; no key needs more than five levels"
        raise UsageError(f"--set: {shortened(written, 20)}: {text}") from None


def replaced(raw: Any, path: list[str], value: Any, setting: str, inside: str = "") -> Any:
    """`raw`, which is the value of key `inside`, with `value` at the end of `path`; nothing given is changed in place."""
    if not path:
        return value
    if isinstance(raw, list):
        if not path[0].isdigit() or int(path[0]) >= len(raw):
            raise UsageError(f'{setting}: "{path[0]}" is no element of the list; count from 0 to {len(raw) - 1}')
        index = int(path[0])
        return [*raw[:index], replaced(raw[index], path[1:], value, setting), *raw[index + 1 :]]
    if not isinstance(raw, dict):
        if isinstance(raw, str) and inside in SHORT_FOR:
            raw = dict(AS_NS2.get(raw, {SHORT_FOR[inside]: raw}))
        else:
            raise UsageError(f'{setting}: there is no table to hold "{path[0]}"; set the whole key instead')
    if path[0].isdigit() and inside and not raw:
        raise UsageError(f'{setting}: the scenario has no key "{inside}"; {ABSENT_LISTS.get(inside, "give the list whole")}')
    if path[0].isdigit():
        raise UsageError(f"{setting}: there is no list to count in; give it whole, or write it into the file")
    return {**raw, path[0]: replaced(raw.get(path[0], {}), path[1:], value, setting, path[0])}


def _dotted(path: KeyPath) -> str:
    """As `--set` takes it (formats/scenario.md): dotted, and lists counted from 0."""
    return ".".join(str(part) for part in path)


def _first(problem: ValidationError) -> ErrorDetails:
    """Unknown keys first: a misspelt key is the cause of the missing one beside it."""
    errors = problem.errors(include_url=False)
    return next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])


def _explain(error: ErrorDetails, model: type[BaseModel]) -> tuple[KeyPath, str]:
    """The key as the user wrote it, and the text. (pydantic's path has the chosen name after `routing` and `mobility`.)"""
    path: KeyPath = tuple(error["loc"])
    within, text = _worded(error, model, path)
    return (within[:1] + within[2:] if within[1:2] and within[1] in _tags(within) else within), text


def _tags(path: KeyPath) -> Mapping[str, type[BaseModel]]:
    """The classes among which a key of `path` chooses by name; none for most keys."""
    return TAGGED[str(path[0])][1] if path and path[0] in TAGGED else {}


def _worded(error: ErrorDetails, model: type[BaseModel], path: KeyPath) -> tuple[KeyPath, str]:
    kind, given, ctx = error["type"], error["input"], error.get("ctx", {})
    if kind == "value_error":
        cause = ctx["error"]
        return path + (cause.path if isinstance(cause, KeyProblem) else ()), str(cause)
    if kind == "extra_forbidden":
        return path, _unknown(str(path[-1]), model, path[:-1])
    if kind == "union_tag_invalid":
        return path, _not_a_tag(str(path[0]), ctx)
    if kind == "union_tag_not_found":
        tag, named = TAGGED[str(path[0])]
        return path, f"names no {tag}; add {tag} = one of {', '.join(named)}"
    if kind == "missing":
        return path, "the table [scenario] is missing; add it" if path == ("scenario",) else "is missing; add it"
    if kind in ("literal_error", "string_pattern_mismatch"):
        return path, _not_a_choice(given, ctx)
    if kind in ("greater_than", "greater_than_equal", "less_than", "less_than_equal"):
        return path, _out_of_range(given, ctx, _unit_at(model, path))
    if path[:-1] and path[-1] in ("bool", "int", "float", "str"):
        return path[:-1], f"{_shown(given)} is of the wrong type; give a number, true, false or text in quotes"
    wanted = _TYPE_WORDS.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if kind == "int_from_float":
        wanted = "a whole number"
    if wanted:
        unit = _unit_at(model, path)
        in_unit = f" in {unit} ({NAMES[unit]})" if unit else ""
        return path, f"{_shown(given)} is of the wrong type; give {wanted}{in_unit}"
    return path, f"{error['msg'][0].lower()}{error['msg'][1:]}; correct it"


def _unknown(key: str, model: type[BaseModel], path: KeyPath) -> str:
    known = _keys_at(model, path)
    if path[:1] == ("routing",) and known == ["protocol"]:
        return f'routing "{path[1]}" has no options'
    if close := did_you_mean(key, known):
        return f"unknown key; {close}"
    return f"unknown key; the keys here are {', '.join(known)}" if known else "unknown key; remove it"


def _keys_at(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys of the (sub)model that `path` leads to, as they are written in files."""
    inner = _model_at(model, path)
    return [field.alias or name for name, field in inner.model_fields.items()] if inner else []


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The (sub)model that `path` leads to."""
    for part in path:
        if isinstance(part, int):
            continue
        named = _tags(path)
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


def _unit_at(model: type[BaseModel], path: KeyPath) -> str | None:
    """The unit of the key at the end of `path`, by its annotation."""
    keys = [part for part in path if isinstance(part, str)]
    inner = _model_at(model, tuple(keys[:-1])) if keys else None
    field = _field(inner, keys[-1]) if inner else None
    if field is None:
        return None
    own = next((part.name for part in field.metadata if isinstance(part, Unit)), None)
    return own or unit_within(field.annotation)


def _model_within(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_within(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in found if model), None)


def _not_a_choice(given: object, ctx: dict[str, Any]) -> str:
    if "expected" in ctx:
        choices = ctx["expected"].replace("'", '"').replace(" or ", ", ")
        close = did_you_mean(str(given), re.findall(r'"([^"]*)"', choices))
        return f"{_shown(given)} is not known; use one of {choices}" + (f" ({close})" if close else "")
    return f"{_shown(given)} is not a name; use letters, digits, '-' and '_' only"


def _not_a_tag(key: str, ctx: dict[str, Any]) -> str:
    """Beside the protocols, `routing` has names that stand for a table; such a name is none for the table's own `protocol`."""
    tables = list(AS_NS2) if key == "routing" else []
    if ctx["tag"] in tables:
        return f'"{ctx["tag"]}" stands for a whole table; write routing = "{ctx["tag"]}"'
    return _not_a_choice(ctx["tag"], {"expected": ", ".join([ctx["expected_tags"], *(f"'{name}'" for name in tables)])})


def _out_of_range(given: object, ctx: dict[str, Any], unit: str | None) -> str:
    words = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
    bound = next(f"{words[key]} {value:g}" for key, value in ctx.items() if key in words)
    return f"{_shown(given)} is out of range; give {bound}" + (f" {unit}" if unit else "")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{shortened(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    return shortened(str(value)) if isinstance(value, int | float) else "this"
