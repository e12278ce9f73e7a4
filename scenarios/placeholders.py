"""Templates of a daemon's description: text with placeholders such as `{address}` (docs/extend.md).

A placeholder is a name in braces without blanks, with a format after a colon or without: `{hello_interval:.2f}`. All other braces
are text, as configuration files have many; `{{address}}` is the text `{address}`. A line or group of words that names one of
`WIRE_NAMES` stands once for each wire of a gateway, and not at all at another station. One that names one of `IPV6_NAMES` stands
only if the scenario has `ipv6`; of `WIRE6_NAMES` both is true.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keys.errors import did_you_mean

STATION_NAMES = (
    "station", "number", "stations", "interface", "address", "network", "prefix_bits", "mac", "router_id", "mtu", "seed",
    "config", "state", "link_local",
)  # fmt: skip
WIRE_NAMES = ("wire", "wire_address", "wire_netmask", "wire_bits")
IPV6_NAMES = ("ipv6", "address6", "network6", "prefix6_bits")
WIRE6_NAMES = ("wire6", "wire6_address", "wire6_bits")
HERE = "here"  # the folder of the description, filled in when it is read, before anything else
KNOWN = frozenset({*STATION_NAMES, *WIRE_NAMES, *IPV6_NAMES, *WIRE6_NAMES})
RESERVED = KNOWN | {HERE}
OF_FILES = "config"  # its format is the name of one of the `files`
SCALES = {"ms": 1000, "us": 1_000_000}  # formats of times: whole milliseconds, whole microseconds
_PLACEHOLDER = re.compile(r"\{(\{?)([A-Za-z_]\w*)(?::([^{}\s]*))?\}(\}?)")
_FIXED = re.compile(r"\.[0-9]f")


def problem_of(template: str, names: Collection[str], files: Collection[str] = ()) -> str | None:
    """The error of the first wrong placeholder, in one line; None if the template is right. `names`: of the options."""
    for match in _placeholders(template):
        name, form = match[2], match[3]
        known = {*KNOWN, *names}
        if name not in known:
            remedy = did_you_mean(name, known) or f"the names are {', '.join(sorted(known))}"
            return f"there is no placeholder {{{name}}}; {remedy} (the text itself is written {{{{{name}}}}})"
        if name == OF_FILES and not files:
            return f"{{{name}}} is the path of a file, and the description has none; add a table [[files]]"
        if name == OF_FILES and form and form not in files:
            return f'there is no file "{form}"; {did_you_mean(form, files) or "the files are " + ", ".join(files)}'
        if name != OF_FILES and form is not None and not is_format(form):
            return f'"{form}" of {{{name}:{form}}} is no format; use .2f (decimals) or {", ".join(SCALES)} (times)'
    return None


def is_format(form: str) -> bool:
    """Whether numbers can be written in this format."""
    return form in SCALES or _FIXED.fullmatch(form) is not None


def names_in(template: str) -> list[str]:
    """The names of the placeholders, in their order."""
    return [match[2] for match in _placeholders(template)]


@dataclass(frozen=True)
class Values:
    """The values of a station. `wires`: of each of its wires, by the names of WIRE_NAMES and, with `ipv6`, of WIRE6_NAMES;
    `wires6` has one entry less where a wire leads to the real network, which is reached by IPv4 only."""

    station: Mapping[str, Any]
    files: Mapping[str, str]  # path of each file, by its name
    wires: Sequence[Mapping[str, Any]] = ()
    wires6: Sequence[Mapping[str, Any]] = ()
    ipv6: bool = False

    def each(self, templates: Collection[str]) -> list[Mapping[str, Any]]:
        """The values of each copy of a line or group of words."""
        names = {name for template in templates for name in names_in(template)}
        if names & {*IPV6_NAMES, *WIRE6_NAMES} and not self.ipv6:
            return []
        if names & {*WIRE6_NAMES}:
            return [{**self.station, **wire} for wire in self.wires6]
        return [{**self.station, **wire} for wire in self.wires] if names & {*WIRE_NAMES} else [self.station]


def is_conditional(templates: Iterable[str]) -> bool:
    """Whether a line or group of words may stand several times or not at all."""
    some = {*WIRE_NAMES, *IPV6_NAMES, *WIRE6_NAMES}
    return any(name in some for template in templates for name in names_in(template))


def mixes_wires(templates: Iterable[str]) -> bool:
    """Whether a line or group of words names wires of IPv4 and of IPv6, which are not repeated together."""
    names = {name for template in templates for name in names_in(template)}
    return bool(names & {*WIRE_NAMES}) and bool(names & {*WIRE6_NAMES})


def filled(template: str, values: Mapping[str, Any], files: Mapping[str, str] | None = None) -> str:
    """The text with the values; those without a format as numbers are written in short (`4`, `0.5`)."""

    def text(match: re.Match[str]) -> str:
        if match[1] and match[4]:
            return match[0][1:-1]
        name, form = match[2], match[3]
        value = files[form] if files and name == OF_FILES and form else written(values[name], form)
        return f"{match[1]}{value}{match[4]}"

    return _PLACEHOLDER.sub(text, template)


def with_folder(template: str, folder: str) -> str:
    """The template with the folder of the description; its other placeholders stay."""
    return re.sub(rf"(?<!\{{)\{{{HERE}\}}", lambda _match: folder, template)


def lines_filled(template: str, values: Values) -> str:
    """A file's content."""
    lines = [filled(line, copy, values.files) for line in template.splitlines() for copy in values.each([line])]
    return "".join(f"{line}\n" for line in lines)


def words_filled(words: Iterable[str | tuple[str, ...]], values: Values) -> list[str]:
    """The words of a command. A word that is only a placeholder and empty is left out."""
    filled_words = []
    for word in words:
        if isinstance(word, tuple):
            parts = [(part, copy) for copy in values.each(word) for part in word]
        else:
            parts = [(word, values.station)]
        filled_words += [text for part, copy in parts if (text := filled(part, copy, values.files)) or not names_in(part)]
    return filled_words


def written(value: Any, form: str | None = None) -> str:
    """A value as text."""
    if form in SCALES:
        return str(round(value * SCALES[form]))
    if form:
        return f"{value:{form}}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _placeholders(template: str) -> list[re.Match[str]]:
    return [match for match in _PLACEHOLDER.finditer(template) if not (match[1] and match[4])]
