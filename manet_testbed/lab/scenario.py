"""A scenario: one network with its traffic, by the keys of a scenario file (formats/scenario.md)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from manet_testbed.errors import WrongScenario
from manet_testbed.lab.execution import Runnable
from manet_testbed.lab.refusals import translated
from manet_testbed.lab.values import document_of, plain, settings_of
from scenarios import toml_file
from scenarios.keys import Keys
from scenarios.overrides import Change
from scenarios.toml_text import file_text
from testbed.campaigns import experiment as definitions
from testbed.campaigns.library import find


class Scenario(Runnable):
    """A checked scenario. Raises WrongScenario, which names the key and the remedy, as `manet run` does for a file."""

    def __init__(self, keys: Mapping[str, Any], *, name: str = "scenario") -> None:
        """`keys` as in a TOML file; a relative path of a file refers to the current folder. `name` begins the messages about keys
        and names the folder of results."""
        if not isinstance(keys, Mapping):
            raise WrongScenario(f"keys={keys!r}: is no table of keys; Scenario.load takes a name or a file")
        document = document_of(plain(keys), name)
        self._words = [document.path.name]
        with translated(WrongScenario):
            self._take(Keys.of_file(document))

    @classmethod
    def load(cls, name: Path | str, *, set: Mapping[str, Any] | None = None) -> Self:
        """A scenario of `manet list` by name, or a TOML file by path. `set` replaces keys, dotted for tables, as `--set`."""
        with translated(WrongScenario):
            path = find(str(name))
            document = toml_file.read(path, toml_file.short_name(path))
            if document.is_experiment:
                text = "is an experiment, which has several scenarios; load it with Experiment.load"
                raise WrongScenario(f"{document.name}: {text}")
            loaded = cls.__new__(cls)
            loaded._words = [str(name), *settings_of(set or {})]
            loaded._take(_changed(Keys.of_file(document), set or {}))
            return loaded

    def changed(self, keys: Mapping[str, Any]) -> Self:
        """The scenario with other values of these keys, dotted for tables: `changed({"routing.link": "hello"})`."""
        other = self.__class__.__new__(self.__class__)
        other._words = [*self._words, *settings_of(keys)]
        with translated(WrongScenario):
            other._take(_changed(self._keys, keys))
        return other

    @property
    def keys(self) -> dict[str, Any]:
        """All keys with their values, the defaults too, as in scenario.json of a run."""
        return dict(json.loads(self._experiment.cells[0].scenario.to_json()))

    @property
    def given(self) -> dict[str, Any]:
        """The keys that were given, as written."""
        return dict(self._keys.values)

    @property
    def toml(self) -> str:
        """The keys as the text of a scenario file for `manet run`."""
        return file_text(self.given)

    @property
    def folder(self) -> Path:
        """The folder to which relative paths of files refer."""
        return self._keys.document.path.parent

    def _take(self, keys: Keys) -> None:
        self._keys = keys
        self._experiment = definitions.of_keys(keys)

    def __repr__(self) -> str:
        scenario = self._experiment.cells[0].scenario
        stations = len(scenario.station_names())
        flows = f"{len(scenario.flows)} flow{'' if len(scenario.flows) == 1 else 's'}"
        return (
            f"<Scenario {self.name}: {scenario.topology} of {stations} stations, {flows}, {scenario.routing.protocol}, "
            f"{scenario.tcp.spelled}, profile {scenario.profile}, {scenario.duration:g} s>"
        )


def _changed(keys: Keys, values: Mapping[str, Any]) -> Keys:
    for key, value in plain(values).items():
        keys = keys.changed(Change(key, value, f"--set {key}"))
    return keys
