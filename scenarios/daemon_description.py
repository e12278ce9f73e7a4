"""The description of a third-party routing daemon: a TOML file, one of routing/third-party or the user's own.

docs/extend.md has the keys. Everything is checked here, when the file is read: names, limits and every placeholder.
testbed/stages/routing/shared/described.py starts what it describes. The commands run as root in the stations, as those of a
flow do: a description is trusted like a program.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from signal import Signals
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    model_validator,
)

from keys.models import KeyProblem, Strict, as_tuple
from keys.quantities import Seconds, Whole
from scenarios import placeholders

MAX_TEXT = 65_536  # characters of a file's content
SHELL = "sh"  # every machine has it
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MODULE = re.compile(r"[a-z0-9_]{1,56}")
_SYSCTL = re.compile(r"net(\.([a-z0-9_]+|\{interface\}))+")
NAME_RULE = 'a-z, 0-9 and "_", at most 32, beginning with a letter'
# keys of the testbed's own, and names of the class that the options become fields of (scenarios/routing.py, `Described`)
RESERVED_OPTIONS = frozenset({
    "protocol", "settle", "events", "description", "options", "headers_bytes", "udp_port", "needs_ipv6", "has_gateways",
    "description_of", "for_stations", "settle_s", *dir(BaseModel),
})  # fmt: skip


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("has a line break or control character; write one line of plain text")
    return text


def _pattern(pattern: re.Pattern[str], rule: str) -> AfterValidator:
    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise ValueError(f"{text!r} is not allowed here; {rule}")
        return text

    return AfterValidator(check)


def _folder(text: str) -> str:
    path = PurePosixPath(text)
    if not path.is_absolute() or len(path.parts) < 2 or ".." in path.parts or not text.isprintable():
        raise ValueError(f"{text!r} is no folder; write an absolute path, for example /run")
    return str(path)


Line = Annotated[str, AfterValidator(_one_line), Field(max_length=500)]
Word = Annotated[str, AfterValidator(_one_line), Field(max_length=4096)]
Group = Annotated[tuple[Word, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=16)]
_STRICT = ConfigDict(strict=True, defer_build=True)
_WORD, _GROUP = TypeAdapter[str](Word, config=_STRICT), TypeAdapter[tuple[str, ...]](Group, config=_STRICT)


def _word_or_group(value: object) -> str | tuple[str, ...]:
    """Select the type by the form of the value, so that an error concerns that form."""
    return _GROUP.validate_python(value) if isinstance(value, list | tuple) else _WORD.validate_python(value)


# serialized as it is: PlainValidator's own serializer warns of a group in JSON, which is a list there and no tuple
Element = Annotated[str | tuple[str, ...], PlainValidator(_word_or_group), PlainSerializer(lambda value: value)]
Command = Annotated[tuple[Element, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=256)]
PlainCommand = Annotated[tuple[Word, ...], BeforeValidator(as_tuple), Field(min_length=1, max_length=256)]
Port = Annotated[Whole, Field(ge=1, le=65_535)]
Value = bool | int | float | str
OptionName = Annotated[str, _pattern(_NAME, f"use {NAME_RULE}")]


class Option(Strict):
    """A key that scenarios may set next to `protocol`; the type is that of the default. `above`: as `min`, itself excluded."""

    default: Value
    about: Line = ""
    unit: Literal["s"] | None = None
    min: float | None = None
    above: float | None = None
    max: float | None = None
    choices: Annotated[tuple[Line, ...], BeforeValidator(as_tuple)] = ()
    written: dict[Literal["true", "false"], Word] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        number = isinstance(self.default, int | float) and not isinstance(self.default, bool)
        if not number and (self.unit or (self.min, self.above, self.max) != (None, None, None)):
            raise KeyProblem(("default",), "unit, min, above and max are for numbers; remove them")
        if self.choices and not isinstance(self.default, str):
            raise KeyProblem(("choices",), "is for text; remove it")
        if self.written and (not isinstance(self.default, bool) or len(self.written) != 2):
            raise KeyProblem(("written",), "is for true and false; give a text for each of the two")
        if problem := self.problem(self.default):
            raise KeyProblem(("default",), problem)
        return self

    def problem(self, value: Any) -> str | None:
        """The error of a value outside the limits; None for a right one."""
        if self.choices and value not in self.choices:
            return f'"{value}" is not known; use one of {", ".join(self.choices)}'
        if isinstance(value, str) and not value.isprintable():
            return "has a line break or control character; write one line of plain text"
        wrong = [
            words
            for words, bad in (
                (f"at least {self.min}", self.min is not None and value < self.min),
                (f"more than {self.above}", self.above is not None and value <= self.above),
                (f"at most {self.max}", self.max is not None and value > self.max),
            )
            if bad
        ]
        unit = f" {self.unit}" if self.unit else ""
        return f"{value} is out of range; give {wrong[0]}{unit}" if wrong else None

    def field(self) -> tuple[Any, Any]:
        """Type and default, for a model of the options."""
        default = self.default
        if isinstance(default, bool):
            return bool, default
        if isinstance(default, str):
            return (Literal[self.choices] if self.choices else Line), default
        limits: dict[str, Any] = {"ge": self.min, "gt": self.above, "le": self.max}
        bounds: Any = Field(**{key: value for key, value in limits.items() if value is not None})
        if self.unit == "s":
            return Annotated[Seconds, bounds], float(default)
        return Annotated[float if isinstance(default, float) else Whole, bounds], default

    def text(self, value: Any) -> Any:
        """The value as inserted into a template."""
        return self.written["true" if value else "false"] if self.written else value


class ConfigFile(Strict):
    """A file that each station gets in the results' `routing/`, as STATION.NAME."""

    name: Annotated[str, _pattern(_FILE_NAME, 'use a file\'s name of letters, digits, ".", "_" and "-"')]
    content: Annotated[str, Field(max_length=MAX_TEXT)]


class Ready(Strict):
    """One sign that a process works: a socket, a file, or a text in its output."""

    udp: Port | None = None
    tcp: Port | None = None
    file: Word | None = None
    text: Line | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise KeyProblem((), "names none or several signs; give one of udp, tcp, file, text")
        return self


class Helper(Strict):
    """A process that runs before and beside the daemon, at every station."""

    name: Annotated[str, _pattern(_NAME, f"use {NAME_RULE}")]
    command: Command
    ready: Ready | None = None


class StartApart(Strict):
    """Station n starts (n - 1) modulo `groups` times `seconds` late."""

    seconds: Annotated[Seconds, Field(ge=0, le=60)]
    groups: Whole = Field(ge=2, le=100)


class Settle(Strict):
    """The default of `settle`: seconds, and seconds for each hop that the stations allow."""

    once: Annotated[Seconds, Field(ge=0, le=600)]
    per_hop: Annotated[Seconds, Field(ge=0, le=600)] = 0.0


class Module(Strict):
    """A kernel module: loaded once, before there are stations, or for each run when the radios exist."""

    name: Annotated[str, _pattern(_MODULE, "use the module's name, as lsmod shows it")]
    load: Literal["before", "with-radios"] = "before"
    parameters: PlainCommand = ()


class Radio(Strict):
    """The state of the radio before the daemon starts. By default 10.0.0.1/8 without any route, as our own daemons have it."""

    address: Literal["network", "host"] = "network"
    prefix_route: bool = False
    broadcast: bool = False
    link_local: bool = False
    routes: Annotated[tuple[Word, ...], BeforeValidator(as_tuple), Field(max_length=64)] = ()
    sysctls: dict[Annotated[str, _pattern(_SYSCTL, "use net. and dotted names")], bool | int | Word] = Field(
        default_factory=dict, max_length=64
    )

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.address == "host" and (self.prefix_route or self.broadcast):
            raise KeyProblem(("address",), '"host" has neither prefix_route nor broadcast; remove them')
        return self


class Description(Strict):
    """A daemon's description; see the head of this file."""

    CHANGED_BY_PATH: ClassVar[tuple[str, ...]] = ("command", "helpers", "files", "after_start", "status", "programs")
    about: Line
    homepage: Line = ""
    programs: PlainCommand = ()
    package: Line = ""
    remedy: Line = ""
    version: Line = "--version"
    module: Module | None = None
    command: Command
    helpers: Annotated[tuple[Helper, ...], BeforeValidator(as_tuple)] = Field((), max_length=8)
    files: Annotated[tuple[ConfigFile, ...], BeforeValidator(as_tuple)] = Field((), max_length=16)
    options: dict[OptionName, Option] = Field(default_factory=dict, max_length=64)
    radio: Radio = Radio()
    udp_port: Port | None = None
    ready: Ready | None = None
    private_folders: Annotated[
        tuple[Annotated[str, AfterValidator(_folder)], ...], BeforeValidator(as_tuple), Field(max_length=8)
    ] = ()
    start_apart: StartApart | None = None
    stop: Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP", "SIGKILL"] = "SIGTERM"
    settle: Settle | None = None
    gateways: bool = True
    ipv6: bool | Literal["only"] = False
    header_bytes: Whole = Field(0, ge=0, le=256)
    devices: PlainCommand = ()
    after_start: Annotated[tuple[PlainCommand, ...], BeforeValidator(as_tuple), Field(max_length=8)] = ()
    status: Annotated[tuple[PlainCommand, ...], BeforeValidator(as_tuple), Field(max_length=8)] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in self.options:
            if key in placeholders.RESERVED | RESERVED_OPTIONS:
                raise KeyProblem(("options", key), "is a name of the testbed's own; take another")
        names = [file.name for file in self.files]
        twice = next((index for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise KeyProblem(("files", twice, "name"), f'"{names[twice]}" stands twice; give each file a name of its own')
        helpers = [helper.name for helper in self.helpers]
        if len(set(helpers)) < len(helpers):
            raise KeyProblem(("helpers",), "two have the same name; give each its own")
        for path, words in self._commands():
            if isinstance(words[0], tuple) or placeholders.names_in(words[0]) or not words[0]:
                raise KeyProblem((*path, 0), "is no program; begin with the program's name or path")
        for path, template, wires in self._templates():
            if problem := placeholders.problem_of(template, self.options, names):
                raise KeyProblem(path, problem)
            if not wires and placeholders.is_conditional([template]):
                text = "wires and IPv6 stand in a list of its own, which is repeated or left out: "
                raise KeyProblem(path, text + '["-a", "{wire}"]')
            if placeholders.mixes_wires([template]):
                raise KeyProblem(path, "has wires of IPv4 and of IPv6; write two lines")
            self._check_formats(path, template)
        for path, group in self._groups():
            if not placeholders.is_conditional(group):
                text = "is a list of its own without {wire} or another name of wires or IPv6; "
                raise KeyProblem(path, text + "write its words into the command itself")
            if placeholders.mixes_wires(group):
                raise KeyProblem(path, "has wires of IPv4 and of IPv6; write two lists")
        return self

    def _check_formats(self, path: tuple[str | int, ...], template: str) -> None:
        """A format is for numbers."""
        for name, form in re.findall(r"\{(\w+):([^{}\s]*)\}", template):
            option = self.options.get(name)
            if name == placeholders.OF_FILES or not placeholders.is_format(form):
                continue
            if option is None or isinstance(option.default, bool | str):
                raise KeyProblem(path, f"{name} takes no format, only options that are numbers do; write {{{name}}}")

    def _commands(self) -> Iterator[tuple[tuple[str | int, ...], Command]]:
        yield ("command",), self.command
        for index, helper in enumerate(self.helpers):
            yield ("helpers", index, "command"), helper.command
        for key, commands in (("after_start", self.after_start), ("status", self.status)):
            yield from (((key, index), command) for index, command in enumerate(commands))

    def _groups(self) -> Iterator[tuple[tuple[str | int, ...], tuple[str, ...]]]:
        for path, command in self._commands():
            yield from (((*path, index), word) for index, word in enumerate(command) if isinstance(word, tuple))

    def _templates(self) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
        """Each template: its key, its text, and whether it may name a wire or IPv6."""
        for path, command in self._commands():
            for index, word in enumerate(command):
                for part in word if isinstance(word, tuple) else (word,):
                    yield (*path, index), part, isinstance(word, tuple)
        for index, file in enumerate(self.files):
            yield from ((("files", index, "content"), line, True) for line in file.content.splitlines())
        for index, line in enumerate(self.radio.routes):
            yield ("radio", "routes", index), line, True
        for key, value in self.radio.sysctls.items():
            yield ("radio", "sysctls", key), str(value), False
        for index, word in enumerate(self.module.parameters if self.module else ()):
            yield ("module", "parameters", index), word, False
        for path, ready in [(("ready",), self.ready), *((("helpers", i, "ready"), h.ready) for i, h in enumerate(self.helpers))]:
            if ready is not None and ready.file is not None:
                yield (*path, "file"), ready.file, False

    @classmethod
    def is_like(cls, tables: dict[str, Any]) -> bool:
        """Whether a file is meant as a description: it has a key that every description needs."""
        required = {key for key, field in cls.model_fields.items() if field.is_required()}
        return bool(required & tables.keys())

    def required_programs(self) -> tuple[str, ...]:
        """The programs that must be there: `programs`, else the first word of each command."""
        first = dict.fromkeys(command[0] for _, command in self._commands() if isinstance(command[0], str))
        return self.programs or tuple(word for word in first if word != SHELL) or (SHELL,)

    def how_to_get(self) -> str:
        """The remedy if something is missing."""
        if self.remedy:
            return self.remedy
        if self.package:
            return f"apt-get install {self.package}" + (f" ({self.homepage})" if self.homepage else "")
        if any("/" in program for program in self.required_programs()):
            return "correct its path in the description, or make it executable (chmod +x)"
        return f"install it{f' from {self.homepage}' if self.homepage else ''} and put it on the PATH"

    def stop_signal(self) -> int:
        """The signal that ends the daemon."""
        return Signals[self.stop].value

    def ready_sign(self) -> Ready | None:
        """The sign that the daemon works: `ready`, else the socket of its UDP port."""
        return self.ready or (None if self.udp_port is None else Ready(udp=self.udp_port))


def in_folder(tables: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The unchecked description with the full paths of what it names in its own folder: `{here}`, and programs that begin with
    `./` or `../`."""

    def filled(value: Any, *, program: bool = False) -> Any:
        if isinstance(value, str):
            text = placeholders.with_folder(value, str(folder))
            return str((folder / text).resolve()) if program and text.startswith(("./", "../")) else text
        if isinstance(value, list):
            return [filled(each) for each in value]
        return {key: filled(each) for key, each in value.items()} if isinstance(value, dict) else value

    def command(words: Any) -> Any:
        return [filled(word, program=index == 0) for index, word in enumerate(words)] if isinstance(words, list) else words

    full = {key: filled(value) if key in Description.CHANGED_BY_PATH else value for key, value in tables.items()}
    full |= {"command": command(tables["command"])} if "command" in tables else {}
    if isinstance(tables.get("programs"), list):
        full["programs"] = [filled(word, program=True) for word in tables["programs"]]
    for key in ("after_start", "status"):
        if isinstance(tables.get(key), list):
            full[key] = [command(words) for words in tables[key]]
    if isinstance(tables.get("helpers"), list):
        full["helpers"] = [
            {**filled(helper), "command": command(helper["command"])}
            if isinstance(helper, dict) and "command" in helper
            else filled(helper)
            for helper in tables["helpers"]
        ]
    return full


@cache
def shipped(folder: Path) -> dict[str, Description]:
    """The descriptions of a folder of the project, by the names of their files."""

    def read(path: Path) -> Description:
        return Description.model_validate(in_folder(tomllib.loads(path.read_text(encoding="utf-8")), path.parent))

    return {path.stem: read(path) for path in sorted(folder.glob("*.toml"))}
