"""The unchecked keys of a scenario, each with its place in the file or command."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from keys.errors import MAX_VALUE_LENGTH, UsageError, did_you_mean, printable, shortened
from keys.toml_lines import Path as KeyPath
from scenarios.document import EXPERIMENT_KEYS, Document, dotted
from scenarios.overrides import SHORT_FOR, Change
from scenarios.routing import PRESETS
from scenarios.toml_file import BASE, first, outside


def is_path(written: str, ending: str) -> bool:
    """Whether the value of a key that takes names, too, is a path: it has a slash, or ends with `ending`."""
    return "/" in written or written.endswith(ending)


# lists with an implicit default: its description, and how to set a list
ABSENT_LISTS = {
    "flows": "by default there is one, sta1 to the last station (of a cross: one along each arm); "
    'write --set \'flows=[{from="sta1", to="sta2"}]\'',
}


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
    def of_file(cls, document: Document, settings: Iterable[str] = ()) -> Self:
        """The keys of a scenario file, at top level or in a table `[scenario]`, with `key=value` settings applied in order."""
        if "scenario" not in document.tables:
            return cls(document.tables, document).set(settings)
        stray = next((key for key in document.tables if key != "scenario"), None)
        if stray is not None:
            remedy = did_you_mean(stray, {BASE, *EXPERIMENT_KEYS}) or "put it into the table, or remove it"
            raise document.refusal((stray,), f"unknown key outside [scenario]; {remedy}")
        return cls(document.tables["scenario"], document, ("scenario",)).set(settings)

    @classmethod
    def of_script(cls, values: dict[str, Any], name: str) -> Self:
        """The keys of a script, which messages call `name`; paths are relative to the current folder."""
        return cls(values, Document(Path(), name, values))

    def changed(self, change: Change) -> Self:
        """The keys with the change applied; UsageError if its key leads nowhere."""
        path = tuple(change.key.split("."))
        values = _within(self.values, change.key.split("."), change)
        if change.place is None:
            return replace(self, values=values, after_set=self.after_set | {change.key})
        others = {key: place for key, place in self.origins.items() if len(path) > 1 or key[0] != path[0]}
        origins = others | {path[:1]: change.place, path: change.place} | dict(change.parts)
        return replace(self, values=values, origins=origins)

    def set(self, settings: Iterable[str]) -> Self:
        """The keys with `key=value` settings applied in order; UsageError for an invalid one."""
        keys = self
        for setting in settings:
            keys = keys.changed(Change.of_setting(setting))
        return keys

    def refusal(self, path: KeyPath, text: str) -> UsageError:
        """The error for a key; `path` is its path in the scenario."""
        if path and str(path[0]) in {key.split(".")[0] for key in self.after_set}:
            return UsageError(f'--set: key "{shortened(dotted(path))}": {printable(text)}')
        return self.document.refusal(self._in_document(path), text)

    def refusal_of_name(self, path: KeyPath, text: str) -> UsageError:
        """The error for the name of a key, which an axis has once for all its values."""
        origin = self.origins.get(path, ())
        of_value = origin and isinstance(origin[-1], int)
        named = replace(self, origins={**self.origins, path: origin[:-1]}) if of_value else self
        return named.refusal(path, text)

    def paths_of(self, path: KeyPath, written: str, part: str | None = None) -> tuple[list[Path], str]:
        """The paths that `written`, in the value of the key at `path`, may mean, and the remedy for one that leads nowhere. It is
        relative to the file that has the key, and first to the current folder, if `--set` gave the key: any part of it, or only
        the whole or `part`. UsageError if the document may not open them (Document.within)."""
        top = str(path[0])
        by_set = any(key in (top, f"{top}.{part}") if part else key.split(".")[0] == top for key in self.after_set)
        place = self.document.place(self._in_document(path))
        base = (place.path if place else self.document.path).parent
        if not self.document.places:
            remedy = f"relative to the current folder, {Path().resolve()}"
        else:
            remedy = "relative to where you are, or to the scenario's file" if by_set else "relative to this file"
        return self.opened(path, [folder / written for folder in ([Path(), base] if by_set else [base])]), remedy

    def opened(self, path: KeyPath, files: list[Path]) -> list[Path]:
        """The files that the key at `path` names; UsageError if the document may not open one of them (Document.within)."""
        if not all(map(self.document.holds, files)):
            raise self.refusal(path, outside(self.document))
        return files

    def file_of(self, path: KeyPath, written: str, what: str, part: str | None = None) -> Path:
        """The full path of the file that `written` names, as `paths_of` finds it; UsageError for none. `what`: words after "give
        the path of"."""
        paths, remedy = self.paths_of(path, written, part)
        if (found := first(paths)) is not None:
            return found.resolve()
        told = str(paths[-1].resolve()) if len(written) <= MAX_VALUE_LENGTH and written.isprintable() else shortened(written)
        text = f'there is no file "{told}"; give the path of {what}, {remedy}'
        raise self.refusal(path, text)

    def _in_document(self, path: KeyPath) -> KeyPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return (*self.origins[path[:length]], *path[length:])
        return (*self.prefix, *path)


def _within(raw: Any, path: list[str], change: Change, inside: str = "") -> Any:
    """A copy of `raw`, which is the value of key `inside`, with the new value at the end of `path`."""
    if not path:
        return change.value
    first, rest = path[0], path[1:]
    if isinstance(raw, list):
        if not first.isdigit() or int(first) >= len(raw):
            raise UsageError(f'{change.name}: "{first}" is no element of the list; count from 0 to {len(raw) - 1}')
        index = int(first)
        return [*raw[:index], _within(raw[index], rest, change), *raw[index + 1 :]]
    if not isinstance(raw, dict):
        if isinstance(raw, str) and inside in SHORT_FOR:
            raw = dict(PRESETS.get(raw, {SHORT_FOR[inside]: raw}))
        else:
            raise UsageError(f'{change.name}: there is no table to hold "{first}"; set the whole key instead')
    if first.isdigit() and inside and not raw:
        remedy = ABSENT_LISTS.get(inside, "give the whole list")
        raise UsageError(f'{change.name}: the scenario has no key "{inside}"; {remedy}')
    if first.isdigit():
        raise UsageError(f"{change.name}: there is no list with such an element; give the whole list, or set it in the file")
    return {**raw, first: _within(raw.get(first, {}), rest, change, first)}
