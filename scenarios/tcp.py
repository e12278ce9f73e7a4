"""The TCP of a flow, as text: `newreno`, `vegas(alpha=2)`, `elfn(reno-f(reno), probe=2s)` (formats/scenario.md).

    tcp   = name [ "(" [ item { "," item } ] ")" ]
    item  = tcp | parameter "=" value

An algorithm is inside zero or more layers; a layer's inner TCP comes first in its parentheses, and has a default. Names,
parameters, units and ranges are those of the table (kernel-tcp/names). A time carries its unit, always. `parse` gives the frozen
value; for any text it raises only TcpError.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from pydantic_core import CoreSchema, core_schema

from keys.quantities import UNITS
from scenarios.tcp_names import RTT, Name, Parameter, Value, microseconds, plain, table

EXAMPLES = '"newreno" or "elfn(newreno, probe=2s)"'
MAX_LENGTH = 300  # characters, far above any sensible TCP
KERNEL = "kernel-"  # prefix of the kernel's algorithm if the table has another of its name: kernel-vegas
KERNEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,14}")  # TCP_CA_NAME_MAX is 16 with the end of the string
ROUTE_ERROR = "route-error"  # value of the parameter `notice` of elfn
_TOKEN = re.compile(r"\s*([(),=]|[^\s(),=](?:[^(),=]*[^\s(),=])?)\s*", re.ASCII)
_NUMBER = re.compile(r"([+-]?[0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([A-Za-z/%]*)")
_TIME_UNITS = ", ".join(UNITS["s"])


class TcpError(ValueError):
    """The error of a TCP's text, in one line with the allowed values."""


@dataclass(frozen=True)
class Part:
    """An algorithm or a layer with all its parameters; `given` are those that the text names."""

    name: str
    parameters: Mapping[str, Value] = field(default_factory=dict, hash=False)
    given: tuple[str, ...] = ()

    def settings(self) -> dict[str, int | float | str]:
        """The parameters as tcp-settings.json has them: times in microseconds."""
        known = table()[self.name].parameters if self.parameters else {}
        return dict(known[name].setting(value) for name, value in self.parameters.items())

    def spelled(self, inner: str, in_full: bool) -> str:
        """The text of this part around `inner`; `in_full`: with all parameters, else with those that were given."""
        known = table()[self.name].parameters if self.parameters else {}
        named = self.parameters if in_full else self.given
        inside = [inner] if inner else []
        inside += [f"{name}={known[name].spelled(self.parameters[name])}" for name in named]
        return f"{self.name}({', '.join(inside)})" if inside else self.name


@dataclass(frozen=True)
class Tcp:
    """A TCP. `layers` are outermost first."""

    inner: Part
    layers: tuple[Part, ...] = ()

    @property
    def spelled(self) -> str:
        """The canonical text, with the parameters that were given: in the table's order, in the largest fitting unit."""
        return self._text(in_full=False)

    @property
    def in_full(self) -> str:
        """The TCP with every parameter written out, for records."""
        return self._text(in_full=True)

    def _text(self, in_full: bool) -> str:
        text = self.inner.spelled("", in_full)
        for layer in reversed(self.layers):
            text = layer.spelled(text, in_full)
        return text

    @property
    def name(self) -> str:
        """The algorithm's name in the text."""
        return self.inner.name

    @property
    def of_table(self) -> Name | None:
        """The algorithm's file, or None if it is the kernel's own."""
        return table().get(self.name)

    @property
    def kernel_algorithm(self) -> str | None:
        """The kernel's name of its own algorithm; None for an algorithm of this testbed, which a run loads."""
        known = self.of_table
        return self.name.removeprefix(KERNEL) if known is None else known.kernel or None

    @property
    def algorithm(self) -> str:
        """Its name in tcp-settings.json: `newreno` for the kernel's reno, since `reno` there is this testbed's too."""
        kernels = self.kernel_algorithm
        if kernels is None:
            return self.name
        return "newreno" if kernels == "reno" else self.name

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """The algorithm's parameters, as in tcp-settings.json."""
        return self.inner.settings()

    @property
    def sack(self) -> bool | None:
        """Whether the TCP requires selective acknowledgements; None: as the profile says."""
        known = self.of_table
        return None if known is None else known.sack

    @property
    def ecn(self) -> bool:
        """Whether the TCP requires explicit congestion notification; if not, the profile decides."""
        return any(table()[layer.name].ecn for layer in self.layers)

    @property
    def wants_notices(self) -> bool:
        """Whether the routing daemons must report `held` and `restored` (TCP-F, TCP-BuS), in addition to ICMP unreachable."""
        return any(table()[layer.name].notices == "held" for layer in self.layers)

    @property
    def wants_error_notices(self) -> bool:
        """Whether DSR's Route Errors must carry notices, which a layer follows instead of ICMP unreachable."""
        return any(layer.parameters.get("notice") == ROUTE_ERROR for layer in self.layers)

    @property
    def hears_unreachable(self) -> bool:
        """Whether a layer acts on ICMP unreachable."""
        return any(table()[layer.name].notices for layer in self.layers) and not self.wants_error_notices

    @property
    def asks_for_hops(self) -> bool:
        """Whether the algorithm needs the length of the path (TCP-AP) and the text does not set it."""
        return self.inner.parameters.get("hops") == 0

    @property
    def wants_struct_ops(self) -> bool:
        """Whether the kernel must support congestion control by BPF: our own algorithms, and layers that set windows."""
        return self.kernel_algorithm is None or bool(self.layers)

    def settings(self) -> dict[str, object]:
        """The keys `algorithm`, `parameters` and `layers` of tcp-settings.json; empty ones are left out."""
        settings_of_run: dict[str, object] = {"algorithm": self.algorithm}
        if self.parameters:
            settings_of_run["parameters"] = self.parameters
        if self.layers:
            settings_of_run["layers"] = [{"name": layer.name, "parameters": layer.settings()} for layer in self.layers]
        return settings_of_run


@lru_cache(maxsize=1024)
def parse(text: str) -> Tcp:
    """Parse a TCP; TcpError for an invalid text."""
    if len(text) > MAX_LENGTH:
        raise TcpError(f"is longer than {MAX_LENGTH} characters; shorten it")
    parts = _Reader(text).whole()
    names = [part.name for part in parts]
    double = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if double:
        raise TcpError(f'"{double}" is inside itself; remove one')
    answering = [name for name in names if name in table() and table()[name].notices]
    if len(answering) > 1:
        raise TcpError(f'both "{answering[0]}" and "{answering[1]}" act on route failures; take one of them')
    return Tcp(parts[-1], tuple(parts[:-1]))


def canonical(text: str) -> str:
    """`parse(text).spelled`, for records."""
    return parse(text).spelled


class _Written:
    """The pydantic schema of a Tcp: read from its text and written as it."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        text = core_schema.str_schema()
        written = core_schema.plain_serializer_function_ser_schema(lambda tcp: tcp.spelled, return_schema=text)
        return core_schema.no_info_after_validator_function(parse, text, serialization=written)


TcpText = Annotated[Tcp, _Written]  # a key whose value is a TCP: text in files, parsed once


def quoted(text: str) -> str:
    """A user's text in quotes, in one line."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return f'"{shown if len(shown) <= 40 else shown[:37] + "..."}"'


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, _TOKEN.findall(text), 0

    def whole(self) -> list[Part]:
        if not self.tokens:
            raise TcpError("the text is empty; write for example " + EXAMPLES)
        if (unclosed := self.tokens.count("(") - self.tokens.count(")")) > 0:
            which = "a parenthesis is" if unclosed == 1 else f"{unclosed} parentheses are"
            raise TcpError(f'{which} not closed in {quoted(self.text)}; add "{")" * unclosed}"')
        parts = self._tcp()
        if self._peek():
            before = quoted(parts[0].name + ("(...)" if self.tokens[1] == "(" else ""))
            remedy = "remove it" if self._peek() == ")" else f"a TCP is written like {EXAMPLES}"
            raise TcpError(f"{quoted(self._peek())} is unexpected after {before}; {remedy}")
        return parts

    def _peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def _next(self, expected: str) -> str:
        token = self._peek()
        if not token or token in "(),=":
            next_token = quoted(token) if token else "the end"
            raise TcpError(f"{expected} is missing before {next_token} in {quoted(self.text)}; write for example elfn(probe=2s)")
        self.at += 1
        return token

    def _tcp(self) -> list[Part]:
        name = self._next("a name")
        known = _known(name)
        inner: list[Part] = []
        values: dict[str, Value] = {}
        if self._peek() == "(":
            self.at += 1
            inner, values = self._inside(name, known)
        if known is None:
            return [Part(name)]
        if known.is_layer and not inner:
            inner = [_filled(table()[known.inner], {})]
        return [_filled(known, values), *inner]

    def _inside(self, name: str, known: Name | None) -> tuple[list[Part], dict[str, Value]]:
        inner: list[Part] = []
        values: dict[str, Value] = {}
        while self._peek() != ")":
            if self._peek(1) == "=":
                parameter = _parameter_of(name, known, self._next("a parameter"))
                self.at += 1
                if parameter.name in values:
                    raise TcpError(f'"{name}" has {parameter.name} twice; remove one')
                values[parameter.name] = _value(name, parameter, self._next(f"the value of {parameter.name}"))
            else:
                _check_holds(name, known, self._peek(), inner, values)
                inner = self._tcp()
            if self._peek() not in (",", ")"):
                raise TcpError(f"{quoted(self._peek())} follows where ',' or ')' is expected, inside \"{name}(\"; correct it")
            self.at += self._peek() == ","
        self.at += 1
        return inner, values


def _known(name: str) -> Name | None:
    """The table's entry; None for a possible algorithm of the kernel. TcpError for any other name."""
    known = table().get(name)
    if known is None and KERNEL_NAME.fullmatch(name.removeprefix(KERNEL)) is None:
        remedy = "load the file first (manet tcp load FILE.o) and give its name" if name.endswith(".o") else did_you_mean(name)
        raise TcpError(f"{quoted(name)} is no name of a TCP; {remedy}")
    return known


def did_you_mean(name: str) -> str:
    """The remedy for an unknown name."""
    close = difflib.get_close_matches(name.lower(), table(), n=1)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"use one of {', '.join(table())}, or an algorithm of the kernel (manet tcp list)"


def _check_holds(name: str, known: Name | None, item: str, inner: list[Part], values: Mapping[str, Value]) -> None:
    """TcpError unless a TCP is allowed here, between the parentheses of `name`."""
    if known is None or not known.is_layer:
        layers = [layer.name for layer in table().values() if layer.is_layer]
        close = difflib.get_close_matches(name.lower(), layers, n=1, cutoff=0.7) if known is None else []
        if close:
            raise TcpError(
                f'"{name}" is not a layer and has no inner TCP, but {quoted(item)} is inside; did you mean "{close[0]}"?'
            )
        some = f", or name a parameter ({', '.join(known.parameters)})" if known and known.parameters else ""
        raise TcpError(f'"{name}" is an algorithm and has no inner TCP, but {quoted(item)} is inside; remove it{some}')
    if inner:
        raise TcpError(f'"{name}" has one inner TCP, but {quoted(item)} is a second one; a parameter is written name=value')
    if values:
        raise TcpError(f'{quoted(item)} comes after a parameter; write the inner TCP of "{name}" first')


def _parameter_of(name: str, known: Name | None, key: str) -> Parameter:
    if known is None:
        text = did_you_mean(name) if difflib.get_close_matches(name, table(), n=1) else "write the name alone"
        raise TcpError(f'"{name}" is not an algorithm of this testbed and takes no parameters; {text}')
    parameter = known.parameters.get(key)
    if parameter is not None:
        return parameter
    close = difflib.get_close_matches(key.lower(), known.parameters, n=1)
    if close:
        remedy = f'did you mean "{close[0]}"?'
    else:
        remedy = f"it has {', '.join(known.parameters)}" if known.parameters else "it has none"
    raise TcpError(f'"{name}" has no parameter {quoted(key)}; {remedy}')


def _value(name: str, parameter: Parameter, text: str) -> Value:
    place = f"{parameter.name} of {name}"
    if parameter.type == "choice":
        if text not in parameter.choices:
            close = difflib.get_close_matches(text.lower(), parameter.choices, n=1)
            hint = f' (did you mean "{close[0]}"?)' if close else ""
            raise TcpError(f"{place}: {quoted(text)} is not known; use {parameter.allowed()}{hint}")
        return text
    match = _NUMBER.fullmatch(text)
    if match is None:
        what = "a time, which is a number with its unit" if parameter.type == "time" else "a number"
        raise TcpError(f"{place}: {quoted(text)} is not {what}; give {parameter.allowed()}")
    number, unit = Decimal(match[1]), match[2]
    if unit == RTT and parameter.rtts:
        if not parameter.rtts[0] <= number <= parameter.rtts[1]:
            raise TcpError(f"{place}: {quoted(text)} is out of range; give {parameter.allowed()}")
        return f"{plain(number)}{RTT}"
    value = _time(place, parameter, number, unit) if parameter.type == "time" else _number(place, parameter, number, unit)
    if not parameter.min <= value <= parameter.max:
        raise TcpError(f"{place}: {quoted(text)} is out of range; give {parameter.allowed()}")
    return value


def _time(place: str, parameter: Parameter, number: Decimal, unit: str) -> int:
    if unit in UNITS["s"]:
        return microseconds(number, unit)
    if unit:
        raise TcpError(f'{place}: "{unit}" is no unit of time; use one of {_TIME_UNITS}')
    raise TcpError(f"{place}: {plain(number)} has no unit; write {plain(number)}s or {plain(number)}ms (units: {_TIME_UNITS})")


def _number(place: str, parameter: Parameter, number: Decimal, unit: str) -> int | Decimal:
    if unit:
        raise TcpError(f'{place}: {plain(number)} has the unit "{unit}"; give a number without unit, {parameter.allowed()}')
    if parameter.type == "number":
        return number + 0  # no negative zero
    if number != int(number):
        raise TcpError(f"{place}: {plain(number)} is not whole; give {parameter.allowed()}")
    return int(number)


def _filled(known: Name, given: Mapping[str, Value]) -> Part:
    """The part with all parameters, in the table's order; missing ones get their defaults."""
    values = {name: given.get(name, parameter.default) for name, parameter in known.parameters.items()}
    for name, parameter in known.parameters.items():
        other = parameter.not_above
        if other and values[name] > values[other]:  # type: ignore[operator]
            text = f"{name}={parameter.spelled(values[name])} is above {other}={parameter.spelled(values[other])}"
            raise TcpError(f'"{known.name}": {text}; lower {name}, or raise {other}')
    return Part(known.name, MappingProxyType(values), tuple(name for name in values if name in given))
