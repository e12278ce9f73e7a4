"""An experiment: a question, a scenario, the axes of its sweep and what is expected (formats/scenario.md).

`load` reads `experiments/<name>.toml`, or a scenario file, which is an experiment of one cell; `of_document` takes what a script
has made. Every cell's scenario is made and checked here, before anything starts; an error names its line. Each step takes the
value of the step before:

    file -> Document -> Declaration -> Sweep -> Draft of each cell -> Scenario of each cell -> Experiment
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.decisions.question import MAX_PAIRS, SEEDS_FOR_T, Question
from record.found_runs import scenario_sum
from scenarios import toml_file
from scenarios.definition import scenario_of
from scenarios.document import Document
from scenarios.key_models import unit_of
from scenarios.keys import Keys
from scenarios.scenario import Scenario
from testbed.campaigns.cells import ONLY_CELL, Cell, drafts_of
from testbed.campaigns.declaration import Declaration, Plot
from testbed.campaigns.expectations import Expected
from testbed.campaigns.request import FULL_SIZE, Request
from testbed.campaigns.sweep import Sweep
from testbed.errors import UsageError
from testbed.programs import ROOT

EXPERIMENT_FORMAT = "manet-experiment/1"
MAX_RUNS = 100_000


@dataclass(frozen=True)
class Experiment:
    """A checked experiment: its cells, the number of seeds of each, and the metadata for the analysis."""

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
    shown: tuple[str, ...] = ()
    plot: Plot | None = None
    questions: tuple[Question, ...] = ()
    looks: tuple[int, int] = (1, MAX_PAIRS)  # seeds of the first look of a campaign, and the limit of seeds
    asked_only: bool = False  # without the cells that no question compares
    definition: tuple[tuple[str, str], ...] = ()  # name and text of a user's own file and of its bases

    def to_json(self, resume: str = "") -> str:
        """Text of experiment.json (formats/results.md), from which tables and figures can be regenerated; `resume` is
        the command that completes the results."""
        cells = [
            {"name": c.name, "variant": c.variant, "axes": c.axes, "profile": c.scenario.profile,
             "scenario_sha256": scenario_sum(json.loads(c.scenario.to_json())), "identity": c.identity}
            for c in self.cells
        ]  # fmt: skip
        text: dict[str, Any] = {"format": EXPERIMENT_FORMAT, "name": self.name, "question": self.question, "source": self.source}
        text |= {"figure": self.figure, "published": self.published, "ns2": self.ns2, "quick": self.quick}
        text |= {
            "expected": self.expected,
            "shown": list(self.shown),
            **({"plot": self.plot.model_dump(exclude_defaults=True)} if self.plot is not None else {}),
            "axes": self.axes,
            "units": {axis: unit for axis in self.axes if (unit := unit_of(axis))},
            "variants": list(self.variants),
            "seeds": self.seeds,
            "resume": resume,
            "cells": cells,
        }
        text |= {"expect": self.expect.model_dump(mode="json")}
        if self.questions:
            questions = [question.model_dump(mode="json", by_alias=True, exclude_none=True) for question in self.questions]
            text |= {"questions": questions, "looks": list(self.looks)}
        if self.asked_only:
            text |= {"asked_only": True}
        if self.definition:
            text |= {"definition": [{"name": name, "text": content} for name, content in self.definition]}
        return json.dumps(text, indent=1) + "\n"


def load(path: Path, request: Request = FULL_SIZE, within: Path | None = None) -> Experiment:
    """Load and check the experiment or scenario in `path`; `within`: as of Document. UsageError names the file, the line and the
    key of the first error."""
    return of_document(toml_file.read(path, toml_file.short_name(path), within=within), request)


def of_document(document: Document, request: Request = FULL_SIZE) -> Experiment:
    """The checked experiment or scenario of a document, which need not be a file; UsageError names the key of the first error."""
    if not document.is_experiment:
        keys = Keys.of_file(document)
        if request.variants:
            raise UsageError(f"--variant {request.variants[0]}: {document.name} has no variants; leave it out")
        return of_keys(keys.set(request.overrides), request.seeds, request.quick)
    sweep = Sweep.of(Declaration.of(document), request)
    cells = tuple(Cell(draft.name, draft.variant, draft.axes, _scenario(draft.keys), draft.keys) for draft in drafts_of(sweep))
    return _experiment(sweep, cells, request)


def _experiment(sweep: Sweep, cells: tuple[Cell, ...], request: Request) -> Experiment:
    document, tables = sweep.declaration.document, sweep.declaration.tables
    return Experiment(
        name=document.path.stem, question=tables.question, source=tables.source, figure=sweep.declaration.figure,
        published=tables.published, ns2=tables.ns2, quick=request.quick, axes={axis.key: axis.values for axis in sweep.axes},
        variants=tuple(variant.name for variant in sweep.variants if variant is not None),
        seeds=_seeds(document, len(cells), sweep.seeds or cells[0].scenario.seeds), cells=cells,
        expect=tables.expect, expected=tables.expected, shown=tables.shown, plot=tables.plot, questions=tables.questions,
        looks=(tables.quick.get("seeds", 1), max(tables.full.get("seeds", MAX_PAIRS), SEEDS_FOR_T)),
        definition=_own_files(document),
    )  # fmt: skip


def of_keys(keys: Keys, seeds: int | None = None, quick: bool = False) -> Experiment:
    """The experiment of one cell that a scenario's keys are; `seeds` None: the scenario's own."""
    document, scenario = keys.document, _scenario(keys)
    return Experiment(
        name=document.path.stem, question="", source=None, figure=None, published=None, ns2=None, quick=quick,
        axes={}, variants=(), seeds=_seeds(document, 1, seeds or scenario.seeds),
        cells=(Cell(ONLY_CELL, "", {}, scenario, keys),), expect=Expected(), definition=_own_files(document),
    )  # fmt: skip


def _own_files(document: Document) -> tuple[tuple[str, str], ...]:
    """Name and text of a file outside of the checkout and of its bases, the file first, or of what a script has made; none for a
    file of the checkout, which the commit identifies. The names are relative to the folder that has all of them, so that each
    `base` leads to its file."""
    texts = {path.resolve(): text for path, text in document.texts.items()}
    if not texts or (document.places and document.path.resolve().is_relative_to(ROOT)):
        return ()
    common = Path(os.path.commonpath([path.parent for path in texts]))
    return tuple((str(path.relative_to(common)), text) for path, text in texts.items())


def _scenario(keys: Keys) -> Scenario:
    """The scenario of a run, which must have flows."""
    scenario = scenario_of(keys)
    if not scenario.flows:
        raise keys.refusal(("flows",), "is empty, and a run measures flows; name one, or leave it out for the default")
    return scenario


def _seeds(document: Document, cells: int, seeds: int) -> int:
    if cells * seeds > MAX_RUNS:
        text = f"{cells} {'cell' if cells == 1 else 'cells'} x {seeds} seeds are {cells * seeds} runs, above {MAX_RUNS}"
        raise UsageError(f"{document.name}: {text}; give fewer seeds with --seeds")
    return seeds
