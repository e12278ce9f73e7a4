"""Prints layer_table.h, the table of layers: names/*.toml (formats/tcp.md) joined with layers/*.layer.c.

Run by the Makefile in kernel-tcp. A row has the layer's name as users write it, its module, and its parameters under their
names in tcp-settings.json, in the unit in which the agent keeps them (layer.h). Exit code 1 and one line on standard error
where a layer has only one of its two files, or a names file cannot be read.
"""

import re
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODULE = ".layer.c"
US = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000}
RTTS = {"type": "number", "min": 0, "default": 0}  # of a time that may be a multiple of the round-trip time; 0: it is not
SCALES = {"time": "1", "integer": "1", "number": "NUMBER_SCALE", "choice": "1"}


class TableError(Exception):
    """One line that names the file and the remedy."""


def layers(root: Path) -> dict[str, dict[str, Any]]:
    """The names files of all layers, by the layer's name, in alphabetical order."""
    files = {path.stem: _read(path) for path in sorted((root / "names").glob("*.toml"))}
    named = {
        name: file | {"parameters": _split(file.get("parameters", {}))}
        for name, file in files.items()
        if file.get("kind") == "layer"
    }
    modules = {path.name.removesuffix(MODULE) for path in (root / "layers").glob(f"*{MODULE}")}
    for name in sorted(set(named) ^ modules):
        present, missing = f"names/{name}.toml", f"layers/{name}{MODULE}"
        if name in modules:
            present, missing = missing, present
        raise TableError(f"{present}: the layer has no {missing}; add it")
    return named


def header(root: Path) -> str:
    """The text of layer_table.h."""
    known = layers(root)
    lines = ["/* Made by layers/table.py. */", "#ifndef LAYER_TABLE_H", "#define LAYER_TABLE_H", ""]
    lines += ['#include "layers/layer.h"', ""]
    for name, layer in known.items():
        lines += [*_constants(name, layer["parameters"]), f"extern const struct layer {_identifier(name)}_layer;", ""]
    rows = [row for name, layer in known.items() for row in _rows(name, layer)]
    return "\n".join([*lines, "#define LAYER_TABLE \\", *(f"{row} \\" for row in rows), "", "#endif", ""])


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise TableError(f"{path}: cannot be read as TOML ({problem}); correct it") from None


def _split(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters as the loader keeps them: beside a time with `rtts` the number NAME_rtts, up to that maximum."""
    split = {}
    for name, parameter in parameters.items():
        split[name] = parameter
        if "rtts" in parameter:
            split[f"{name}_rtts"] = RTTS | {"max": parameter["rtts"][1]}
    return split


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _key(name: str, parameter: dict[str, Any]) -> str:
    """The parameter's name in tcp-settings.json."""
    return f"{name}_us" if parameter["type"] == "time" else name


def _constants(layer: str, parameters: dict[str, Any]) -> list[str]:
    """The places of the parameters in `values`, and the values of choices."""
    prefix = _identifier(layer).upper()
    enough = f'_Static_assert({len(parameters)} <= LAYER_VALUES, "names/{layer}.toml: more parameters than LAYER_VALUES");'
    lists = [[f"{prefix}_{_identifier(_key(name, parameter)).upper()}" for name, parameter in parameters.items()]]
    for name, parameter in parameters.items():
        of_choice = f"{prefix}_{_identifier(name).upper()}"
        lists.append([f"{of_choice}_{_identifier(choice).upper()}" for choice in parameter.get("choices", [])])
        if "rtts" in parameter:
            bounds = {bound.upper(): _number(parameter[bound], "time") for bound in ("min", "max")}
            lists.append([f"{of_choice}_US_{bound} = {value}" for bound, value in bounds.items()])
    return [*(f"enum {{ {', '.join(names)} }};" for names in lists if names), enough]


def _rows(name: str, layer: dict[str, Any]) -> list[str]:
    held = "true" if layer.get("notices") == "held" else "false"
    parameters = [f"\t\t{_parameter(key, parameter)}," for key, parameter in layer["parameters"].items()]
    return [f'\t{{ "{name}", &{_identifier(name)}_layer, {held}, {{', *parameters, "\t} },"]


def _parameter(name: str, parameter: dict[str, Any]) -> str:
    if parameter["type"] == "choice":
        choices = parameter["choices"]
        texts = ", ".join(f'"{choice}"' for choice in choices)
        bounds, listed = f"0, 0, {choices.index(parameter['default'])}", f"(const char *const[]){{ {texts}, NULL }}"
    else:
        bounds = ", ".join(_number(parameter[key], parameter["type"]) for key in ("min", "max", "default"))
        listed = "NULL"
    return f'{{ "{_key(name, parameter)}", {bounds}, {SCALES[parameter["type"]]}, {listed} }}'


def _number(value: Any, kind: str) -> str:
    """A bound or a default; times in microseconds."""
    if kind != "time":
        return str(value)
    time = re.fullmatch(rf"([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(US)})", str(value))
    if time is None:
        raise TableError(f'names: "{value}" is no time; write a number with one of {", ".join(US)}')
    return str(int(Decimal(time[1]) * US[time[2]]))


if __name__ == "__main__":
    try:
        sys.stdout.write(header(ROOT))
    except TableError as error:
        sys.exit(f"{error}")
