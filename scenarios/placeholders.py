"""Templates of a daemon's description: text with placeholders such as `{address}` (docs/own-routing-daemon.md).

A placeholder is a name in braces without blanks, with a format after a colon or without: `{hello_interval:.2f}`. All other braces
are text, as configuration files have many; `{{address}}` is the text `{address}`. A line or group of words that names one of
`WIRE_NAMES` stands once for each wire of a gateway, and not at all at another station.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from scenarios.errors import did_you_mean

STATION_NAMES = (
    "station", "number", "stations", "interface", "address", "network", "prefix_bits", "mac", "router_id", "mtu", "seed",
    "config", "state",
)  # fmt: skip
WIRE_NAMES = ("wire", "wire_address", "wire_netmask", "wire_bits")
HERE = "here"  # the folder of the description, filled in when it is read, before anything else
KNOWN = frozenset({*STATION_NAMES, *WIRE_NAMES})
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


def of_wires(templates: Iterable[str]) -> bool:
    """Whether a line or group of words stands once for each wire."""
    return any(name in WIRE_NAMES for template in templates for name in names_in(template))


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


def lines_filled(template: str, values: Mapping[str, Any], wires: Iterable[Mapping[str, Any]], files: Mapping[str, str]) -> str:
    """A file's content; a line of wires stands once for each of them."""
    each = list(wires)
    lines = []
    for line in template.splitlines():
        of = [{**values, **wire} for wire in each] if of_wires([line]) else [values]
        lines += [filled(line, one, files) for one in of]
    return "".join(f"{line}\n" for line in lines)


def words_filled(
    words: Iterable[str | tuple[str, ...]],
    values: Mapping[str, Any],
    wires: Iterable[Mapping[str, Any]],
    files: Mapping[str, str],
) -> list[str]:
    """The words of a command. A group stands once for each wire; a word that is only a placeholder and empty is left out."""
    each, made = list(wires), []
    for word in words:
        if isinstance(word, tuple):
            made += [filled(part, {**values, **wire}, files) for wire in each for part in word]
        elif (text := filled(word, values, files)) or not names_in(word):
            made.append(text)
    return made


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
