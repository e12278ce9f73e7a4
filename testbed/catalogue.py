"""The names that scenarios and `manet run` accept, each with one line, as `manet list` prints them.

The names and lines are read from their definitions: the question of an experiment, the first comment of a TOML file, the first
sentence of a docstring. No list is kept here, and no file is run.
"""

import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios import profiles
from testbed.errors import UsageError
from testbed.programs import INSTALLATION, ROOT

EXPERIMENTS = ROOT / "experiments"
STAGES = ROOT / "testbed" / "stages"
# A full stop after a small letter, a digit or a closing bracket; "B.A.T.M.A.N. III" does not end at its dots.
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)])\.(\s|$)")


@dataclass(frozen=True)
class Entry:
    """A name and the line about it."""

    name: str
    summary: str


@dataclass(frozen=True)
class Section:
    """One kind of names; `usage` shows where such a name is written."""

    name: str
    usage: str
    entries: Callable[[], list[Entry]]


def first_sentence(text: str) -> str:
    """The first sentence of a comment or docstring, on one line, without its full stop and without a usage after a colon."""
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    sentence = _SENTENCE_END.split(paragraph)[0]
    return sentence.partition(": `")[0].rstrip(".:")


def first_comment(text: str) -> str:
    """The comment that a TOML file begins with, up to its first empty line; empty if the file begins with a key."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        lines.append(line.lstrip("# "))
    return "\n".join(lines)


def docstring_of(path: Path) -> str:
    """The docstring of a Python file that is not imported (its imports may be missing on this machine)."""
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def experiments() -> list[Entry]:
    """The experiments by name, with their questions."""
    return [Entry(path.stem, _question(path.read_text())) for path in _files(EXPERIMENTS)]


def _question(text: str) -> str:
    """The key `question` of an experiment, which is before its first table: to parse all of it takes ten times as long."""
    try:
        content = tomllib.loads(text.partition("\n[")[0] + "\n")
    except tomllib.TOMLDecodeError:  # a list, or a text, has a line that begins so
        content = tomllib.loads(text)
    question: str = content.get("question", "")
    return question


def scenarios() -> list[Entry]:
    """The single scenarios of experiments/scenarios."""
    return _commented(EXPERIMENTS / "scenarios")


def radios() -> list[Entry]:
    """The radio profiles of medium/radios."""
    return _commented(profiles.RADIOS)


def topologies() -> list[Entry]:
    """The topologies, by the value of the scenario key `topology`."""
    from topologies.layouts import LAYOUTS

    return [Entry(name, _summary(function)) for name, function in LAYOUTS.items()]


def mobility() -> list[Entry]:
    """The mobility models. A random one is described in its own file, the others in their class."""
    from mobility.models import MODELS
    from scenarios.movement import MOVEMENTS

    described = {name: sys.modules[model.__module__] for name, model in MODELS.items()}
    return [Entry(name, _summary(described.get(name, movement))) for name, movement in MOVEMENTS.items()]


def propagation() -> list[Entry]:
    """The propagation models, as the medium describes them (formats/schema/medium.json)."""
    from scenarios.propagation import TABLES

    return [Entry(name, first_sentence(table["description"])) for name, table in TABLES.items()]


def traffic() -> list[Entry]:
    """The traffic kinds, from their modules."""
    from traffic import kinds

    return [Entry(name, _summary(sys.modules[type(kind).__module__])) for name, kind in kinds().items()]


def routing() -> list[Entry]:
    """The routing protocols, from the files that start them, their descriptions or their classes, the names for tables of their
    options, and the user's own in MANET_ROUTING_PATH; `manet doctor` lists the usable ones."""
    from scenarios.daemon_file import own_descriptions
    from scenarios.routing import PRESETS, PROTOCOLS

    def text(name: str) -> str:
        file = STAGES / "routing" / f"{name.replace('-', '_')}.py"
        return docstring_of(file) if file.exists() else inspect.getdoc(PROTOCOLS[name]) or ""

    def options(table: dict[str, Any]) -> str:
        values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items() if key != "protocol")
        return f"{table['protocol']} with {values}"

    described = {name: first_sentence(text(name)) for name in PROTOCOLS} | {name: options(PRESETS[name]) for name in PRESETS}
    descriptions = own_descriptions().items()
    described |= {name: str(each) if isinstance(each, UsageError) else first_sentence(each.about) for name, each in descriptions}
    return [Entry(name, described[name]) for name in sorted(described)]


def tcps() -> list[Entry]:
    """The TCPs of kernel-tcp/names; `manet tcp list` adds what this kernel has."""
    from scenarios.tcp_names import table

    return [Entry(name, tcp.summary) for name, tcp in table().items()]


SECTIONS = (
    Section("experiments", INSTALLATION.reworded("./manet run NAME"), experiments),
    Section("scenarios", INSTALLATION.reworded("./manet run NAME, ./manet cli NAME"), scenarios),
    Section("radios", 'radio = "NAME"', radios),
    Section("topologies", 'topology = "NAME"', topologies),
    Section("mobility", 'mobility = "NAME"', mobility),
    Section("propagation", 'propagation = "NAME"', propagation),
    Section("traffic", 'traffic = "NAME" of a flow', traffic),
    Section("routing", 'routing = "NAME"', routing),
    Section("tcp", INSTALLATION.reworded('tcp = "NAME"; ./manet tcp show NAME'), tcps),
)


def _files(folder: Path) -> list[Path]:
    """The TOML files in the order of their names, numbers as numbers: hv-fig3 before hv-fig10."""

    def key(path: Path) -> list[str | int]:
        return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.stem)]

    return sorted(folder.glob("*.toml"), key=key)


def _commented(folder: Path) -> list[Entry]:
    return [Entry(path.stem, first_sentence(first_comment(path.read_text()))) for path in _files(folder)]


def _summary(described: object) -> str:
    return first_sentence(inspect.getdoc(described) or "")
