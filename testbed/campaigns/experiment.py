"""An experiment: a question, a scenario, the axes of its sweep and what is expected (formats/scenario.md).

`load` reads `experiments/<name>.toml`, or a scenario file, which is an experiment of a single cell. Everything is
checked before anything starts: every cell's scenario is built here, and an error names the line it comes from.
"""

import ast
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from analysis.references import known_references
from scenarios.definition import (
    EXPERIMENT_KEYS,
    Source,
    apply_overrides,
    build,
    build_scenario,
    parse_value,
    read_toml,
    replaced,
    unit_of,
)
from scenarios.models import STRICT, as_tuple
from scenarios.quantities import Whole, as_whole
from scenarios.scenario import Scenario
from scenarios.tcp import TcpError, canonical
from scenarios.toml_lines import Path as KeyPath
from testbed.errors import UsageError, did_you_mean, shortened
from testbed.programs import ROOT

FOLDER = ROOT / "experiments"
FIGURES = ROOT / "analysis" / "figures"
LONGEST_VALUE = 60  # characters of an axis value in a cell's name: several of them make a folder's, of at most 255
ONLY_CELL = "all"  # the name of the cell of an experiment without axes and variants
MAX_CELLS = 10_000  # checking them takes a minute, running them days
MAX_RUNS = 100_000
# what a folder of results has beside its cells, or a cell beside its seeds
TAKEN = {"void", "experiment.json", "table.csv", "summary.csv"}
FILE_ENDINGS = (".csv", ".json", ".png", ".pdf")
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class Variant(BaseModel):
    """A named alternative: keys that replace the scenario's."""

    model_config = STRICT
    name: str = Field(pattern=NAME)
    set: dict[str, Any] = Field(default_factory=dict)


class Expectation(BaseModel):
    """One thing the outcome is compared with, cell by cell."""

    model_config = STRICT
    metric: str = "acked_kbps"
    variants: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None
    against: Literal["ns2", "published"] = "ns2"
    profile: Literal["period", "modern"] = "period"
    within_percent: float = Field(gt=0, le=1000)
    quick_within_percent: float | None = Field(default=None, gt=0, le=1000)
    quick_run_percent: float | None = Field(default=None, gt=0, le=1000)  # 95 of 100 runs are so near to their mean

    def of_size(self, quick: bool) -> "Expectation":
        """At quick size one short run stands for a mean, which may be farther away."""
        if not quick:
            return self.model_copy(update={"quick_run_percent": None})
        return self.model_copy(update={"within_percent": self.quick_within_percent or self.within_percent})


class Expected(BaseModel):
    """The outcome stated beforehand, in words and as checks."""

    model_config = STRICT
    outcome: str | None = None
    checks: Annotated[tuple[Expectation, ...], BeforeValidator(as_tuple)] = ()


class Definition(BaseModel):
    """The tables of an experiment file. `full` and `quick` also take scenario keys, hence are plain tables here."""

    model_config = STRICT
    question: str
    source: str | None = None
    figure: str | None = None
    published: str | None = None
    ns2: str | None = None
    expected: bool = False  # whether throughput is held against what the movement lets one expect (testbed/curves)
    scenario: dict[str, Any]
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    variants: Annotated[tuple[Variant, ...], BeforeValidator(as_tuple)] = ()
    full: dict[str, Any] = Field(default_factory=dict)
    quick: dict[str, Any] = Field(default_factory=dict)
    expect: Expected = Expected()


class Size(BaseModel):
    """What `[full]` and `[quick]` say beside scenario keys."""

    model_config = STRICT
    seeds: Whole | None = Field(None, ge=1, le=10_000)
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    variants: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None


@dataclass(frozen=True)
class Cell:
    """One combination of axis values and variant; `name` is its folder."""

    name: str
    variant: str
    axes: dict[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Request:
    """What the command line asks of an experiment."""

    quick: bool = False
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    seeds: int | None = None


@dataclass(frozen=True)
class Experiment:
    """A checked experiment: its cells, how many seeds each, and what the analysis needs to know."""

    name: str
    question: str
    source: str | None
    figure: str | None
    published: str | None
    ns2: str | None
    quick: bool
    axes: dict[str, list[Any]]
    variants: tuple[str, ...]
    seeds: int
    cells: tuple[Cell, ...]
    expect: Expected
    expected: bool = False

    def to_json(self, resume: str = "") -> str:
        """Text of experiment.json (formats/results.md), by which tables and figures can be drawn again; `resume` is the
        command that completes the results."""
        cells = [{"name": c.name, "variant": c.variant, "axes": c.axes, "profile": c.scenario.profile} for c in self.cells]
        text = {"format": "manet-experiment/1", "name": self.name, "question": self.question, "source": self.source}
        text |= {"figure": self.figure, "published": self.published, "ns2": self.ns2, "quick": self.quick}
        text |= {
            "expected": self.expected,
            "axes": self.axes,
            "units": {axis: unit for axis in self.axes if (unit := unit_of(axis))},
            "variants": list(self.variants),
            "seeds": self.seeds,
            "resume": resume,
            "cells": cells,
        }
        return json.dumps(text | {"expect": self.expect.model_dump(mode="json")}, indent=1) + "\n"


def names() -> list[str]:
    """The experiments that can be run by name."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def figures() -> list[str]:
    """The figures that can be drawn; read as text, because importing them takes as long as matplotlib."""
    modules = sorted(FIGURES.glob("*.py"))
    return [path.stem for path in modules if re.search(r"^def draw\(", path.read_text(encoding="utf-8"), re.MULTILINE)]


def is_folder(name: str) -> bool:
    """Whether it is a folder's, and not that of an experiment or a ready-made scenario."""
    with suppress(OSError):  # a name too long for a file
        return Path(name).is_dir() and not any(named.is_file() for named in _files_of(name))
    return False


def _files_of(name: str) -> tuple[Path, Path]:
    return FOLDER / f"{name}.toml", FOLDER / "scenarios" / f"{name}.toml"


def axes_of(figure: str) -> tuple[str, ...]:
    """The axes that a figure is over (its AXES), which an experiment must have; read as text, too."""
    tree = ast.parse((FIGURES / f"{figure}.py").read_text(encoding="utf-8"))
    stated = (node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "AXES")
    return next((ast.literal_eval(value) for value in stated), ())


def misfit(experiment: str, figure: str, axes: Iterable[str]) -> str | None:
    """Why the figure cannot be drawn of an experiment with these axes, in one line; None if it can."""
    if figure not in figures():
        return f'no such figure "{figure}"; there are {", ".join(figures())}'
    missing = [axis for axis in axes_of(figure) if axis not in axes]
    if not missing:
        return None
    has = f"has {', '.join(axes)}" if axes else "has none"
    text = f'figure "{figure}" is over the axis {" and ".join(missing)}, but experiment {experiment} {has}; '
    return text + "add it to [axes], name another figure, or none for the general one"


def find(name: str) -> Path:
    """The file of an experiment's or a ready-made scenario's name, or the file itself."""
    with suppress(OSError):  # a name too long for a file
        for named in (*_files_of(name), Path(name)):
            if named.is_file():
                return named
    known = [*names(), *sorted(path.stem for path in FOLDER.glob("scenarios/*.toml"))]
    if "/" in name or name.endswith(".toml"):
        raise UsageError(f"{shortened(name)}: there is no such file{_nearest_file(Path(name))}")
    text = f"{shortened(name)}: there is no experiment or file of this name"
    close = did_you_mean(name, known)
    raise UsageError(f"{text}; {close}" if close else f"{text}; there are {', '.join(known)}")


def _nearest_file(path: Path) -> str:
    """What its folder has instead, in words."""
    try:
        if not path.parent.is_dir():
            return f", and no folder {shortened(str(path.parent))}; correct the path"
        if path.exists():
            return " that could be read as TOML; give the path of a plain file"
        close = did_you_mean(path.name, [file.name for file in path.parent.iterdir() if file.is_file()])
    except OSError:  # a name too long for a file, or a folder that may not be read
        close = None
    return f"; {close}" if close else "; give the path of a TOML file"


def load(path: Path, request: Request = Request()) -> Experiment:
    """The experiment or scenario in `path` as it is to run."""
    raw, source = read_toml(path)
    source.name = _shown(path)
    if EXPERIMENT_KEYS & raw.keys():
        return _Loader(path, raw, source, request).experiment()
    return _single(path, raw, source, request)


def _shown(path: Path) -> str:
    """Relative to the current folder where that is shorter, as people write it."""
    return min(str(path), os.path.relpath(path), key=len)


def _single(path: Path, raw: dict[str, Any], source: Source, request: Request) -> Experiment:
    prefix: KeyPath = ()
    if "scenario" in raw:
        stray = next((key for key in raw if key != "scenario"), None)
        if stray is not None:
            raise source.error((stray,), "unknown key beside [scenario]; put it into the table, or remove it")
        raw, prefix = raw["scenario"], ("scenario",)
    if request.variants:
        raise UsageError(f"--variant {request.variants[0]}: {source.name} has no variants; leave it out")
    raw = apply_overrides(raw, request.overrides, source)
    scenario = build_scenario(raw, source, prefix, path.parent)
    _require_flows(scenario, source, (*prefix, "flows"))
    _check_runs(source.name, 1, request.seeds or scenario.seeds)
    return Experiment(
        name=path.stem, question="", source=None, figure=None, published=None, ns2=None, quick=request.quick,
        axes={}, variants=(), seeds=request.seeds or scenario.seeds,
        cells=(Cell(ONLY_CELL, "", {}, scenario),), expect=Expected(),
    )  # fmt: skip


def _require_flows(scenario: Scenario, source: Source, place: KeyPath) -> None:
    if not scenario.flows:
        raise source.error(place, "is empty, and a run measures flows; name one, or leave it out for the default")


def _check_runs(name: str, cells: int, seeds: int) -> None:
    if cells * seeds > MAX_RUNS:
        text = f"{cells} {'cell' if cells == 1 else 'cells'} x {seeds} seeds are {cells * seeds} runs, above {MAX_RUNS}"
        raise UsageError(f"{name}: {text}; give fewer seeds with --seeds")


class _Loader:
    """Joins scenario, size, variant, axis values and `--set`, in this order; the later one wins."""

    def __init__(self, path: Path, raw: dict[str, Any], source: Source, request: Request) -> None:
        self.path, self.source, self.request = path, source, request
        self.definition = build(Definition, raw, source)
        self.size_name = "quick" if request.quick else "full"
        table = getattr(self.definition, self.size_name)
        own = {key: value for key, value in table.items() if key in Size.model_fields}
        self.size = build(Size, own, source, (self.size_name,))
        self.size_keys = {key: value for key, value in table.items() if key not in own}
        self.axes, self.axis_paths = self._axes()

    def experiment(self) -> Experiment:
        definition, size = self.definition, self.size
        variants = self._variants()
        self._check_size(len(variants))
        cells = tuple(self._cell(variant, values) for variant in variants for values in self._combinations())
        self._check_expectations()
        self._check_analysis()
        seeds = self.request.seeds or self._seeds_set() or size.seeds or cells[0].scenario.seeds
        _check_runs(self.source.name, len(cells), seeds)
        return Experiment(
            name=self.path.stem, question=definition.question, source=definition.source, figure=definition.figure,
            published=definition.published, ns2=definition.ns2, quick=self.request.quick, axes=self.axes,
            variants=tuple(v.name for v in variants if v is not None), seeds=seeds, cells=cells,
            expect=definition.expect, expected=definition.expected,
        )  # fmt: skip

    def _check_size(self, variants: int) -> None:
        """Before the first cell is built."""
        count = math.prod(len(values) for values in self.axes.values()) * variants
        if count > MAX_CELLS:
            sizes = " x ".join(f"{len(values)} {key}" for key, values in self.axes.items())
            text = f"{sizes} x {variants} variants are {count} cells, above {MAX_CELLS}"
            raise self.source.error(("axes",), f"{text}; narrow an axis with --set, or split the file")

    def _axes(self) -> tuple[dict[str, list[Any]], dict[str, KeyPath]]:
        """The axes at this size and where each stands; `--set` of an axis narrows it."""
        axes = {**self.definition.axes, **self.size.axes}
        paths: dict[str, KeyPath] = {key: ("axes", key) for key in self.definition.axes}
        paths |= {key: (self.size_name, "axes", key) for key in self.size.axes}
        for key, values in axes.items():
            axes[key] = [_meant(key, value) for value in values]
            self._check_axis(paths[key], axes[key])
        for setting in self.request.overrides:
            key, _, written = setting.partition("=")
            if key.strip() in axes:
                value = parse_value(written.strip())
                axes[key.strip()] = [_meant(key.strip(), one) for one in (value if isinstance(value, list) else [value])]
                self.source.set_keys.add(key.strip())
                self.source.set_paths.add(key.strip())
                self._check_axis((key.strip(),), axes[key.strip()])
        return axes, paths

    def _check_axis(self, place: KeyPath, values: list[Any]) -> None:
        if not values:
            raise self.source.error(place, "has no values; give at least one")
        double = next((v for i, v in enumerate(values) if v in values[:i]), None)
        if double is not None:
            raise self.source.error(place, f"{double} stands there twice; remove one")

    def _variants(self) -> list[Variant | None]:
        known = {variant.name: variant for variant in self.definition.variants}
        for index, variant in enumerate(self.definition.variants):
            if variant.name in TAKEN or variant.name.endswith(FILE_ENDINGS):
                text = f'"{variant.name}" would be taken for a file or folder of the results; give the variant another name'
                raise self.source.error(("variants", index, "name"), text)
            if any(variant.name == earlier.name for earlier in self.definition.variants[:index]):
                text = f'two variants are named "{variant.name}"; give each its own name'
                raise self.source.error(("variants", index, "name"), text)
        for name in self.size.variants or ():
            if name not in known:
                text = f'there is no variant "{name}"; the variants are {", ".join(known)}'
                raise self.source.error((self.size_name, "variants"), text)
        for name in self.request.variants:
            if name not in known:
                has = f"the variants are {', '.join(known)}" if known else "it has none"
                raise UsageError(f"--variant {name}: {self.source.name} has no such variant; {has}")
        wanted: Sequence[str] = self.request.variants or self.size.variants or tuple(known)
        return [known[name] for name in wanted] or [None]

    def _combinations(self) -> list[dict[str, Any]]:
        return [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values())]

    def _cell(self, variant: Variant | None, values: dict[str, Any]) -> Cell:
        raw: Any = {**self.definition.scenario, **self.size_keys}
        origins: dict[str, KeyPath] = {key: (self.size_name, key) for key in self.size_keys}
        if variant is not None:
            index = self.definition.variants.index(variant)
            for key, value in variant.set.items():
                raw = replaced(raw, key.split("."), value, f"{self.source.name}: variant {variant.name}")
                origins[key.split(".")[0]] = ("variants", index, "set", key)
        for key, value in values.items():
            raw = replaced(raw, key.split("."), value, f"{self.source.name}: axis {key}")
            place = self.axis_paths[key]
            origins[key.split(".")[0]] = (*place, self.axes[key].index(value))
        settings = [s for s in self.request.overrides if s.partition("=")[0].strip() not in self.axes]
        raw = apply_overrides(raw, settings, self.source)
        for key in self.source.set_keys:
            origins[key] = (key,)
        scenario = build_scenario(raw, self.source, ("scenario",), self.path.parent, origins)
        _require_flows(scenario, self.source, origins.get("flows", ("scenario", "flows")))
        return Cell(_cell_name(variant, values, self.axes), variant.name if variant else "", values, scenario)

    def _seeds_set(self) -> int | None:
        """`--set seeds=5` means the number of seeds, as everywhere."""
        given = [s.partition("=")[2] for s in self.request.overrides if s.partition("=")[0].strip() == "seeds"]
        value = as_whole(parse_value(given[-1].strip())) if given else None
        return value if isinstance(value, int) else None

    def _check_expectations(self) -> None:
        known = {variant.name for variant in self.definition.variants}
        for index, check in enumerate(self.definition.expect.checks):
            unknown = next((name for name in check.variants or () if name not in known), None)
            if unknown is not None:
                text = f'there is no variant "{unknown}"; the variants are {", ".join(sorted(known))}'
                raise self.source.error(("expect", "checks", index, "variants"), text)

    def _check_analysis(self) -> None:
        """What is only read after the last run must be known to be there before the first."""
        definition = self.definition
        wrong = misfit(self.path.stem, definition.figure, self.axes) if definition.figure else None
        if wrong is not None:
            raise self.source.error(("figure",), wrong)
        for key, name in (("published", definition.published), ("ns2", definition.ns2)):
            if name and name not in known_references(key):
                text = f'no such table "{name}" in analysis/{key}; there are {", ".join(known_references(key))}'
                raise self.source.error((key,), text)


def _meant(key: str, value: Any) -> Any:
    """An axis value as it is recorded: a TCP in its canonical spelling, so that none is there twice under two spellings.
    What is wrong with one is said where its scenario is built."""
    if key.rpartition(".")[2] != "tcp" or not isinstance(value, str):
        return value
    try:
        return canonical(value)
    except TcpError:
        return value


def _cell_name(variant: Variant | None, values: dict[str, Any], axes: dict[str, list[Any]]) -> str:
    """`ns2-hops3`, `tcpelfn_newreno_probe_2s`: a folder name that says what differs."""
    parts = [variant.name] if variant else []
    parts += [f"{key}{_own_word(value, axes[key])}" for key, value in values.items()]
    return "-".join(parts) or ONLY_CELL


def _own_word(value: Any, values: list[Any]) -> str:
    """`value` as a part of a file name, unlike that of any other of its axis."""
    word = _plain(value)
    if sum(_plain(other) == word for other in values) == 1 and len(word) <= LONGEST_VALUE:
        return word
    digest = hashlib.sha256(json.dumps(value).encode()).hexdigest()
    return f"{word[:LONGEST_VALUE]}_{digest[:6]}"


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    plain = "".join(c if c.isalnum() or c in "._" else "_" for c in text)
    return re.sub("__+", "_", plain).rstrip("_") if isinstance(value, str) and "(" in value else plain


def with_overrides(request: Request, *more: str) -> Request:
    """`request` with further `--set` values, which win."""
    return replace(request, overrides=(*request.overrides, *more))
