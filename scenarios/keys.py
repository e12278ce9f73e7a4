"""The keys of a scenario before they are checked, each with the place that it was given at."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from scenarios.document import Document, dotted
from scenarios.errors import UsageError, shortened
from scenarios.overrides import Change
from scenarios.toml_lines import Path as KeyPath


@dataclass(frozen=True)
class Keys:
    """`prefix` is the table that holds them in the document; `origins` has those that stand elsewhere in it (an axis, a
    variant): path in the scenario, path in the document."""

    values: Any
    document: Document
    prefix: KeyPath = ()
    origins: Mapping[KeyPath, KeyPath] = field(default_factory=dict)
    after_set: frozenset[str] = frozenset()  # the keys that `--set` gave, dotted

    @classmethod
    def of_file(cls, document: Document) -> Self:
        """Of a scenario's file: keys at top level or in a `[scenario]` table."""
        if "scenario" not in document.tables:
            return cls(document.tables, document)
        stray = next((key for key in document.tables if key != "scenario"), None)
        if stray is not None:
            raise document.refusal((stray,), "unknown key beside [scenario]; put it into the table, or remove it")
        return cls(document.tables["scenario"], document, ("scenario",))

    @classmethod
    def of_script(cls, values: dict[str, Any], name: str) -> Self:
        """Of a program, which messages call `name`; relative paths count from the current folder."""
        return cls(values, Document(Path(), name, values))

    def changed(self, change: Change) -> "Keys":
        """With the change in place, which is the last one of its key."""
        path = tuple(change.key.split("."))
        values = change.of(self.values)
        if change.place is None:
            return replace(self, values=values, after_set=self.after_set | {change.key})
        kept = {key: place for key, place in self.origins.items() if len(path) > 1 or key[0] != path[0]}
        origins = kept | {path[:1]: change.place, path: change.place} | dict(change.parts)
        return replace(self, values=values, origins=origins)

    def set(self, settings: Iterable[str]) -> "Keys":
        """With `key=value` settings in place, in their order."""
        keys = self
        for setting in settings:
            keys = keys.changed(Change.of_setting(setting))
        return keys

    def refusal(self, path: KeyPath, text: str) -> UsageError:
        """`path` is a key's path in the scenario."""
        if path and str(path[0]) in {key.split(".")[0] for key in self.after_set}:
            return UsageError(f'--set: key "{shortened(dotted(path))}": {text}')
        return self.document.refusal(self._in_document(path), text)

    def folder_of(self, key: str) -> Path:
        """What a relative path in the value of `key` counts from."""
        place = self.document.place(self._in_document((key,)))
        return (place.path if place else self.document.path).parent

    def _in_document(self, path: KeyPath) -> KeyPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return (*self.origins[path[:length]], *path[length:])
        return (*self.prefix, *path)
