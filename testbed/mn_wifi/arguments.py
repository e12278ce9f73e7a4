"""The keyword arguments of Mininet-WiFi's calls: obeyed, taken without effect and said so, or refused with the remedy.

No argument is ever ignored in silence. What has no effect here and changes nothing of what a result means (a MAC address, a
BSSID) is said once, aloud, so that a script need not be edited for it; what would mean something that this medium has not
(encryption, 802.11n) is an error; so is a name that nobody knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mininet.log import output

from testbed.errors import UsageError, did_you_mean


@dataclass(frozen=True)
class Arguments:
    """Of one call: `taken` are obeyed; `aloud` and `refused` say why, or what to do instead."""

    call: str
    taken: frozenset[str]
    aloud: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    def check(self, given: Mapping[str, object], said: set[str]) -> dict[str, object]:
        """Those of `given` that are obeyed; `said` remembers what was said aloud. None means "not given", as in Mininet."""
        for name, value in given.items():
            if name in self.taken:
                continue
            if name in self.aloud:
                say(f"{self.call}: {name}={value!r}: {self.aloud[name]}", said, key=f"{self.call} {name}")
            elif name in self.refused:
                raise UsageError(f"{self.call}: {name}={value!r}: {self.refused[name]}")
            else:
                raise UsageError(f'{self.call}: unknown argument "{name}"; {self._remedy(name)}')
        return {name: value for name, value in given.items() if name in self.taken and value is not None}

    def _remedy(self, name: str) -> str:
        return did_you_mean(name, [*self.taken, *self.aloud]) or f"the arguments here are {', '.join(sorted(self.taken))}"


def say(text: str, said: set[str], key: str = "") -> None:
    """Once a network, whatever setLogLevel says."""
    if (key or text) not in said:
        said.add(key or text)
        output(f"*** note: {text}\n")


def choice(call: str, name: str, value: object, known: Mapping[str, object], why: str = "") -> object:
    """The meaning of a value that is one of a few names."""
    if value not in known:
        raise UsageError(f"{call}: {name}={value!r}: {why or 'is not known'}; use one of {', '.join(map(repr, known))}")
    return known[value]  # type: ignore[index]


def number(call: str, name: str, value: object, least: float = float("-inf"), most: float = float("inf")) -> float:
    """Mininet-WiFi takes numbers as text, too."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"{call}: {name}={value!r}: is no number") from None
    if not least <= found <= most:
        raise UsageError(f"{call}: {name}={value!r}: is outside {least:g} to {most:g}")
    return found


def point(call: str, name: str, value: object) -> tuple[float, float, float]:
    """`'10,20,0'`, `'10,20'`, or the numbers in a list."""
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if len(parts) not in (2, 3):
        raise UsageError(f"{call}: {name}={value!r}: is no place; write 'x,y,z', in metres")
    x, y, z = [number(call, name, part) for part in [*parts, 0.0][:3]]
    return x, y, z


def refusing(module: str, names: Mapping[str, str], otherwise: str):
    """A module's `__getattr__`: importing what is not here is one line with the remedy."""

    def missing(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(f"{module}.{name}: {names.get(name, otherwise)}")

    return missing
