"""An experiment: a scenario over the values of axes and in variants, each combination a cell (formats/scenario.md)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from manet_testbed.errors import WrongScenario
from manet_testbed.lab.execution import Runnable
from manet_testbed.lab.refusals import translated
from manet_testbed.lab.scenario import Scenario
from manet_testbed.lab.values import document_of, plain, settings_of
from scenarios import toml_file
from scenarios.document import Document
from scenarios.toml_text import file_text
from testbed.campaigns import experiment as definitions
from testbed.campaigns.library import find
from testbed.campaigns.request import Request


class Experiment(Runnable):
    """A checked experiment. Raises WrongScenario, which names the key and the remedy, as `manet run` does for a file."""

    def __init__(self, document: Document, request: Request, words: Sequence[str]) -> None:
        """Of a document and a request; `of` and `load` make them. `words` name it on the command line."""
        with translated(WrongScenario):
            self._experiment = definitions.of_document(document, request)
        self._document, self._words = document, list(words)

    @classmethod
    def of(
        cls, scenario: Scenario, *, name: str = "experiment", axes: Mapping[str, Sequence[Any]] | None = None,
        variants: Mapping[str, Mapping[str, Any]] | None = None, question: str = "", seeds: int | None = None,
        **tables: Any,
    ) -> Self:  # fmt: skip
        """`scenario` over each combination of the values of `axes` (keys, dotted for tables), in each of the `variants` (name:
        keys that it replaces), with the seeds 1 to `seeds` (None: those of the scenario). `tables`: other keys of an experiment's
        file, such as `figure`, `expect`, `questions`, `shown`, `flow_sets`."""
        content = {"question": question, "scenario": scenario.given, **tables}
        content |= {"axes": axes} if axes else {}
        content |= {"variants": [{"name": each, "set": keys} for each, keys in variants.items()]} if variants else {}
        content |= {} if seeds is None else {"full": dict(tables.get("full", {})) | {"seeds": seeds}}
        document = document_of(plain(content), name, scenario.folder)
        return cls(document, Request(), [document.path.name])

    @classmethod
    def load(
        cls, name: Path | str, *, quick: bool = False, set: Mapping[str, Any] | None = None, variants: Sequence[str] = (),
    ) -> Self:  # fmt: skip
        """An experiment of `manet list` by name, or a TOML file by path, at its full or quick size. `set` replaces keys of every
        cell, or the values of an axis, as `--set`; `variants`: only these."""
        settings = settings_of(set or {})
        with translated(WrongScenario):
            path = find(str(name))
            document = toml_file.read(path, toml_file.short_name(path))
            if not document.is_experiment:
                raise WrongScenario(f"{document.name}: is a scenario, not an experiment; load it with Scenario.load")
        words = [str(name), *(["--quick"] if quick else []), *settings]
        words += [word for variant in variants for word in ("--variant", variant)]
        return cls(document, Request(quick, tuple(settings[1::2]), tuple(variants)), words)

    @property
    def toml(self) -> str:
        """The definition as the text of an experiment's file, for `manet run` and `manet campaign`; without the `set`, `quick`
        and `variants` of `load`."""
        return file_text(self._document.tables)

    @property
    def question(self) -> str:
        """The question that the experiment answers."""
        return self._experiment.question

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each axis."""
        return dict(self._experiment.axes)

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants; empty without any."""
        return self._experiment.variants

    @property
    def cells(self) -> tuple[str, ...]:
        """The names of the cells, which are those of their folders."""
        return tuple(cell.name for cell in self._experiment.cells)

    @property
    def seeds(self) -> int:
        """The number of seeds of each cell."""
        return self._experiment.seeds

    def __len__(self) -> int:
        return len(self._experiment.cells) * self._experiment.seeds

    def __repr__(self) -> str:
        sizes = [f"{len(values)} {axis}" for axis, values in self.axes.items()]
        sizes += [f"{len(self.variants)} variants"] if self.variants else []
        profiles = " and ".join(sorted({cell.scenario.profile for cell in self._experiment.cells}))
        return f"<Experiment {self.name}: {' x '.join(sizes) or '1 cell'} x {self.seeds} seeds, profile {profiles}>"
