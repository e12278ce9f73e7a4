"""The unchecked keys of a scenario, each with its place in the file or command."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from keys.errors import UsageError, did_you_mean, shortened
from keys.toml_lines import Path as KeyPath
from scenarios.document import EXPERIMENT_KEYS, Document, dotted
from scenarios.overrides import Change
from scenarios.toml_file import BASE


@dataclass(frozen=True)
class Keys:
    """`prefix` is their table in the document; `origins` lists keys from other places of it (an axis, a variant): path in the
    scenario, path in the document."""

    values: Any
    document: Document
    prefix: KeyPath = ()
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    after_set: frozenset[str] = frozenset()  # the keys that `--set` gave, dotted

    @classmethod
    def of_file(cls, document: Document) -> Self:
        """The keys of a scenario file, at top level or in a table `[scenario]`."""
        if "scenario" not in document.tables:
            return cls(document.tables, document)
        stray = next((key for key in document.tables if key != "scenario"), None)
        if stray is not None:
            remedy = did_you_mean(stray, {BASE, *EXPERIMENT_KEYS}) or "put it into the table, or remove it"
            raise document.refusal((stray,), f"unknown key outside [scenario]; {remedy}")
        return cls(document.tables["scenario"], document, ("scenario",))

    @classmethod
    def of_script(cls, values: dict[str, Any], name: str) -> Self:
        """The keys of a script, which messages call `name`; paths are relative to the current folder."""
        return cls(values, Document(Path(), name, values))

    def changed(self, change: Change) -> "Keys":
        """The keys with the change applied."""
        path = tuple(change.key.split("."))
        values = change.of(self.values)
        if change.place is None:
            return replace(self, values=values, after_set=self.after_set | {change.key})
        others = {key: place for key, place in self.origins.items() if len(path) > 1 or key[0] != path[0]}
        origins = others | {path[:1]: change.place, path: change.place} | dict(change.parts)
        return replace(self, values=values, origins=origins)

    def set(self, settings: Iterable[str]) -> "Keys":
        """The keys with `key=value` settings applied in order; UsageError for an invalid one."""
        keys = self
        for setting in settings:
            keys = keys.changed(Change.of_setting(setting))
        return keys

    def refusal(self, path: KeyPath, text: str) -> UsageError:
        """The error for a key; `path` is its path in the scenario."""
        if path and str(path[0]) in {key.split(".")[0] for key in self.after_set}:
            return UsageError(f'--set: key "{shortened(dotted(path))}": {text}')
        return self.document.refusal(self._in_document(path), text)

    def refusal_of_name(self, path: KeyPath, text: str) -> UsageError:
        """The error for the name of a key, which an axis has once for all its values."""
        origin = self.origins.get(path, ())
        of_value = origin and isinstance(origin[-1], int)
        named = replace(self, origins={**self.origins, path: origin[:-1]}) if of_value else self
        return named.refusal(path, text)

    def folders_of(self, *path: str | int, by_set: bool) -> list[Path]:
        """The folders to which a relative path in the value of the key at `path` may refer: the current one, if `--set` gave the
        path, and that of the file that has the key."""
        place = self.document.place(self._in_document(path))
        base = (place.path if place else self.document.path).parent
        return [Path(), base] if by_set else [base]

    def path_remedy(self, by_set: bool) -> str:
        """The folder to which a relative path refers, as part of an error; `by_set`: `--set` gave the path."""
        if not self.document.places:
            return f"relative to the current folder, {Path().resolve()}"
        return "relative to where you are, or to the scenario's file" if by_set else "relative to this file"

    def _in_document(self, path: KeyPath) -> KeyPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return (*self.origins[path[:length]], *path[length:])
        return (*self.prefix, *path)
