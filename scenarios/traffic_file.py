"""From the key `traffic` of a flow to the file that describes a traffic kind of the user's own (docs/extend.md).

`traffic = "./burst.toml"` is a path, as of `routing`. The description is a `command` flow with keys: its words have the keys'
names in braces. Here each such flow becomes the `command` flow that it means, so that scenario.json has the whole command lines
and needs no other file. The commands run as root in the station: a description is trusted like a program.
"""

import string
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, create_model, model_validator

from keys.errors import did_you_mean, shortened
from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Seconds, Whole
from scenarios import placeholders, toml_file
from scenarios.confined import REFUSED
from scenarios.daemon_description import Line, Option, OptionName, Word
from scenarios.keys import Keys, is_path
from scenarios.refusal import Refusal, validated
from traffic.command import BRACES, FIELDS, CommandKeys

ENDING = ".toml"
KIND = "command"
OF_ALL_FLOWS = ("from", "to", "traffic", "start", "stop", "warmup", "ip", "dscp", "tcp", "set")
RESERVED = (*OF_ALL_FLOWS, *FIELDS, *CommandKeys.model_fields, placeholders.HERE)
Words = Annotated[tuple[Word, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=256)]


class Description(Strict):
    """A traffic kind: the command lines of its programs, when its server is ready, and the keys of its flows."""

    about: Line
    command: Words
    server: Words | None = None
    ready_port: Whole | None = None
    ready_line: Line | None = None
    ready_after: Seconds | None = None
    keys: dict[OptionName, Option] = Field(default_factory=dict, max_length=64)

    @model_validator(mode="after")
    def _names_known_keys(self) -> "Description":
        for key in self.keys:
            if key in RESERVED:
                raise KeyProblem(("keys", key), "is the name of a key or field that every such flow has; give it another name")
        for line, words in (("command", self.command), ("server", self.server or ())):
            for index, word in enumerate(words):
                if wrong := self._problem_of(word):
                    raise KeyProblem((line, index), wrong)
        return self

    def _problem_of(self, word: str) -> str | None:
        known = (*FIELDS, placeholders.HERE, *self.keys)
        try:
            parts = list(string.Formatter().parse(word))
        except ValueError as problem:
            return f"{problem}; {BRACES}"
        for _text, name, form, conversion in parts:
            if name is None:
                continue
            if name not in known or conversion:
                close = did_you_mean(name, known) or f"the fields are {', '.join(known)}"
                return f"has the unknown field {{{shortened(name)}}}; {close}; {BRACES}"
            if form and (name not in self.keys or not placeholders.is_format(form)):
                return f'"{shortened(form)}" of {{{name}}} is no format; use .2f (decimals) or ms, us (times), of the keys alone'
        return None

    def flow_of(self, values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The keys of the `command` flow with these values of `keys`; programs and `{here}` are below `folder`."""
        texts = {key: self.keys[key].text(value) for key, value in values.items()}
        flow = {key: getattr(self, key) for key in CommandKeys.model_fields}
        for line in ("command", "server"):
            if flow[line] is not None:
                flow[line] = [_filled(word, texts, folder, is_program=not index) for index, word in enumerate(flow[line])]
        return {"traffic": KIND} | {key: value for key, value in flow.items() if value is not None}


def with_commands(keys: Keys) -> Keys:
    """The keys with the `command` flow in place of each flow whose kind a file describes; UsageError for a missing or wrong
    file, or a wrong key of such a flow. Keys without one are returned as they are."""
    if not isinstance(keys.values, dict):
        return keys
    if _is_own(keys.values.get("traffic")):
        text = 'a kind of your own is given for each flow; write flows = [{ from = "sta1", to = "sta2", traffic = "FILE" }]'
        raise keys.refusal(("traffic",), text)
    flows = keys.values.get("flows")
    if not isinstance(flows, list) or not any(isinstance(flow, dict) and _is_own(flow.get("traffic")) for flow in flows):
        return keys
    return replace(keys, values={**keys.values, "flows": list(_expanded(flows, keys))})


def read(path: Path, within: Path | None = None) -> Description:
    """The checked description; `within`: as of Document. UsageError names file, line and key."""
    document = toml_file.read(path, toml_file.short_name(path), within=within)
    description = validated(Description, document.tables, document.refusal)
    defaults = {key: option.default for key, option in description.keys.items()}
    command = description.flow_of(defaults, path.resolve().parent)
    validated(CommandKeys, {key: value for key, value in command.items() if key != "traffic"}, document.refusal)
    return description


def _is_own(traffic: object) -> bool:
    return isinstance(traffic, str) and is_path(traffic, ENDING)


def _expanded(flows: list[Any], keys: Keys) -> Iterator[Any]:
    kinds: dict[Path, tuple[Description, type[Strict]]] = {}  # each file is read once
    for index, flow in enumerate(flows):
        if not isinstance(flow, dict) or not _is_own(flow.get("traffic")):
            yield flow
            continue
        if "flows" in keys.document.foreign:
            raise keys.refusal(("flows", index, "traffic"), f"names a file, {REFUSED}; use a kind of the testbed")
        path = keys.file_of(("flows", index, "traffic"), flow["traffic"], "a traffic kind's description (TOML)")
        if path not in kinds:
            description = read(path, keys.document.within)
            fields: Any = {key: option.field() for key, option in description.keys.items()}
            kinds[path] = description, create_model("FlowKeys", __base__=Strict, **fields)
        description, model = kinds[path]
        yield {key: value for key, value in flow.items() if key in OF_ALL_FLOWS} | description.flow_of(
            _values(model, flow, _at(keys, index)), path.parent
        )


def _at(keys: Keys, index: int) -> Refusal:
    return lambda path, text: keys.refusal(("flows", index, *path), text)


def _values(model: type[Strict], flow: Mapping[str, Any], refusal: Refusal) -> dict[str, Any]:
    """The checked values of the description's keys in this flow, with the defaults."""
    fields = model.model_fields
    own = {key: value for key, value in flow.items() if key not in OF_ALL_FLOWS}
    for key in own:
        if key not in fields:
            close = did_you_mean(key, fields) or (f"its keys are {', '.join(fields)}" if fields else "it has none")
            raise refusal((key,), f'"{shortened(flow["traffic"])}" describes no such key; {close}')
    return dict(validated(model, own, refusal))


def _filled(word: str, texts: Mapping[str, Any], folder: Path, *, is_program: bool) -> str:
    """The word of a `command` flow: the fields of a flow stay, braces of values are doubled."""
    if is_program and word.startswith(("./", "../")):
        return _escaped(str((folder / word).resolve()))
    parts = []
    for text, name, form, _conversion in string.Formatter().parse(word):
        parts.append(_escaped(text))
        if name in FIELDS:
            parts.append(f"{{{name}}}")
        elif name is not None:
            value = folder if name == placeholders.HERE else placeholders.written(texts[name], form or None)
            parts.append(_escaped(str(value)))
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
