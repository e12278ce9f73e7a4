"""The table of names (kernel-tcp/names/*.toml, formats/tcp.md): our own TCPs and the ranges of their parameters.

A file is an algorithm (congestion control) or a layer around one. A name without a file is an algorithm of the kernel, accepted
by its form; whether this kernel has it is checked before a run (testbed/host/algorithms.py). Values are in the units of
tcp-settings.json: times in whole microseconds.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import ROUND_HALF_EVEN, Decimal
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keys.errors import UsageError
from keys.quantities import UNITS, parse_quantity

FOLDER = Path(__file__).resolve().parents[1] / "kernel-tcp" / "names"
KINDS = ("algorithm", "layer")
TYPES = ("time", "number", "integer", "choice")
NOTICES = ("unreachable", "held")  # messages that a layer uses: ICMP unreachable; also the daemons' held and restored
US_PER_S = 1_000_000
RTT = "rtt"  # unit of a time that is a multiple of the smoothed round-trip time; such a value is text, like "2rtt"
Value = int | Decimal | str


@dataclass(frozen=True)
class Parameter:
    """One parameter. `min`, `max` and `default` are microseconds if the type is "time"."""

    name: str
    type: str
    text: str
    default: Value
    min: int | Decimal = 0
    max: int | Decimal = 0
    unit: str = ""
    choices: tuple[str, ...] = ()
    not_above: str = ""  # another parameter of the same TCP, which this one must not exceed
    rtts: tuple[Decimal, ...] = ()  # least and greatest multiple of the round-trip time that a time may be

    @property
    def key(self) -> str:
        """The default's name in tcp-settings.json."""
        return self.setting(self.default)[0]

    def setting(self, value: Value) -> tuple[str, int | float | str]:
        """Its name and value in tcp-settings.json."""
        if self.type != "time":
            return self.name, _as_json(value)
        if isinstance(value, str):
            return f"{self.name}_rtts", _as_json(Decimal(value.removesuffix(RTT)))
        return f"{self.name}_us", _as_json(value)

    def spelled(self, value: Value) -> str:
        """The shortest exact text of a value in a scenario."""
        if isinstance(value, str):
            return value
        return spelled_time(int(value)) if self.type == "time" else plain(Decimal(value))

    def allowed(self) -> str:
        """The allowed values as text: `0.1 to 30 s`, `one of first, lost`."""
        if self.type == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.type == "time":
            rtts = f", or {plain(self.rtts[0])} to {plain(self.rtts[1])}{RTT}" if self.rtts else ""
            return f"{spelled_time(int(self.min))} to {spelled_time(int(self.max))}{rtts}"
        whole = "a whole number from " if self.type == "integer" else ""
        unit = f" ({self.unit})" if self.unit else ""
        return f"{whole}{self.spelled(self.min)} to {self.spelled(self.max)}{unit}"


@dataclass(frozen=True)
class Name:
    """One file. `kernel`: the kernel's name of an algorithm that is its own; `sack` None: as the profile has it."""

    name: str
    kind: str
    summary: str
    source: str = ""
    kernel: str = ""
    sack: bool | None = None
    inner: str = ""
    ecn: bool = False  # a layer that needs explicit congestion notification
    notices: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def is_layer(self) -> bool:
        """Whether it is a layer, not a congestion control."""
        return self.kind == "layer"


@cache
def table(folder: Path = FOLDER) -> Mapping[str, Name]:
    """All names in alphabetical order. A UsageError names the file and the invalid key."""
    names = {path.stem: _read(path) for path in sorted(folder.glob("*.toml"))}
    for name in names.values():
        inner = names.get(name.inner)
        if name.is_layer and (inner is None or inner.is_layer):
            raise _wrong(folder / f"{name.name}.toml", "inner", f'"{name.inner}" is no algorithm of this folder')
    return MappingProxyType(names)


def spelled_time(us: int) -> str:
    """`2s`, `1.5s`, `100ms`, `20us`."""
    for unit, scale in (("s", US_PER_S), ("ms", 1000)):
        if us >= scale:
            return plain(Decimal(us) / scale) + unit
    return f"{us}us" if us else "0s"


def plain(number: Decimal) -> str:
    """The number without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _as_json(value: Value) -> int | float | str:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == int(value) else float(value)


def microseconds(number: Decimal, unit: str) -> int:
    """`unit` is one of UNITS["s"]; rounded to the microsecond."""
    return int((number * Decimal(str(UNITS["s"][unit])) * US_PER_S).quantize(Decimal(1), ROUND_HALF_EVEN))


# --- reading a file ---------------------------------------------------------------------------------------------------


def _wrong(path: Path, key: str, text: str) -> UsageError:
    return UsageError(f'{path}: key "{key}": {text}; formats/tcp.md says what a names file holds')


def _read(path: Path) -> Name:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"{path}: cannot be read as TOML ({problem}); correct it") from None
    known = {key.name for key in fields(Name)} - {"name"}
    for key, value in raw.items():
        if key not in known:
            raise _wrong(path, key, f"unknown; the keys are {', '.join(sorted(known))}")
        expected = {"sack": bool, "ecn": bool, "parameters": dict}.get(key, str)
        if not isinstance(value, expected):
            raise _wrong(path, key, f"is of the wrong type, {expected.__name__} is expected")
    for key in ("kind", "summary", *(["inner"] if raw.get("kind") == "layer" else [])):
        if not raw.get(key):
            raise _wrong(path, key, "is missing")
    for key, choices in (("kind", KINDS), ("notices", ("", *NOTICES))):
        if raw.get(key, "") not in choices:
            raise _wrong(path, key, f'"{raw[key]}" is not known; use one of {", ".join(filter(None, choices))}')
    parameters = {name: _parameter(path, name, keys) for name, keys in raw.pop("parameters", {}).items()}
    for parameter in parameters.values():
        if parameter.not_above and parameter.not_above not in parameters:
            raise _wrong(path, f"parameters.{parameter.name}.not_above", f'there is no parameter "{parameter.not_above}"')
    return Name(name=path.stem, parameters=MappingProxyType(parameters), **raw)


def _parameter(path: Path, name: str, keys: Any) -> Parameter:
    place = f"parameters.{name}"
    if not isinstance(keys, dict):
        raise _wrong(path, place, "is no table")
    known = {key.name for key in fields(Parameter)} - {"name"}
    for key in keys:
        if key not in known:
            raise _wrong(path, f"{place}.{key}", f"unknown; the keys are {', '.join(sorted(known))}")
    if keys.get("type") not in TYPES:
        raise _wrong(path, f"{place}.type", f"must be one of {', '.join(TYPES)}")
    needed = {"text", "default", *(["choices"] if keys["type"] == "choice" else ["min", "max"])}
    for key in sorted(needed - set(keys)):
        raise _wrong(path, f"{place}.{key}", "is missing")
    if keys["type"] == "choice":
        if keys["default"] not in keys["choices"]:
            raise _wrong(path, f"{place}.default", "is none of the choices")
        return Parameter(**{**keys, "name": name, "choices": tuple(keys["choices"])})
    if rtts := keys.get("rtts"):
        if keys["type"] != "time" or not isinstance(rtts, list) or len(rtts) != 2:
            raise _wrong(path, f"{place}.rtts", "must be the least and the greatest multiple, of a time")
        keys = {**keys, "rtts": tuple(_number(path, f"{place}.rtts", "number", bound) for bound in rtts)}
    numbers = {key: _number(path, f"{place}.{key}", keys["type"], keys[key]) for key in ("min", "max", "default")}
    if not numbers["min"] <= numbers["default"] <= numbers["max"]:
        raise _wrong(path, f"{place}.default", "is not between min and max")
    return Parameter(**{**keys, **numbers, "name": name, "unit": "s" if keys["type"] == "time" else keys.get("unit", "")})


def _number(path: Path, place: str, kind: str, value: object) -> int | Decimal:
    """A bound or a default in the unit of tcp-settings.json; a time is text with its unit."""
    if kind == "time":
        if not isinstance(value, str):
            raise _wrong(path, place, 'a time is text with its unit, as "2s"')
        try:
            return round(float(str(parse_quantity(value, "s"))) * US_PER_S)
        except ValueError as problem:
            raise _wrong(path, place, str(problem)) from None
    if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
        raise _wrong(path, place, "must be a whole number" if kind == "integer" else "must be a number")
    return value if kind == "integer" else Decimal(str(value))
