"""The keyword arguments of Mininet-WiFi's calls: used, accepted without effect (with a note), or refused with the remedy.

No argument is ignored silently. An argument that has no effect here and does not change the meaning of a result (a MAC address, a
BSSID) prints a note once, so that the script need not be edited. One that asks for something that this medium lacks (encryption,
802.11n) is an error; so is an unknown name, unless Mininet-WiFi's call ignores it as well.

Names to import are treated alike: Mininet-WiFi's that are unsupported can be imported, as many scripts do, and are refused where
they are used.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from mininet.log import output

from keys.quantities import of_word
from scenarios.owned import Node, problem
from testbed.errors import UsageError, did_you_mean
from topologies.layouts import MAX_COORDINATE_M

Meaning = TypeVar("Meaning")
MISSPELT = 0.8  # difflib's ratio from which a name is taken for a known one, misspelt: "rnage" for "range"
# Arguments of nodes and links that Mininet-WiFi (2.7) or Mininet reads, so that they cannot be passed over.
READ_THERE = frozenset({
    "authmode", "battery_capacity", "beacon_int", "client_isolation", "config_methods", "constantDistance", "constantVelocity",
    "country_code", "cpu", "cores", "defaultRoute", "device_type", "docker", "encrypt", "hostapd_flags", "ht_capab", "ieee80211r",
    "ieee80211w", "ifb", "ignore_broadcast_ssid", "inNamespace", "ip6", "link", "lo", "mac", "macaddr_acl", "mld_ap",
    "mobility_domain", "model", "nvif", "passwd", "phywlan", "privateDirs", "proto", "proto_args", "radius_identity",
    "radius_passwd", "radius_server", "rsn_pairwise", "shared_secret", "speedup", "txpower", "use_hfsc", "use_tbf", "vIface",
    "vht_capab", "voltage", "vssids", "wep_key0", "wpa_key_mgmt", "wpa_psk_file", "wps_state",
})  # fmt: skip


class Unsupported:
    """A name of Mininet-WiFi without a counterpart here. A script may import it; each use raises UsageError with the remedy."""

    def __init__(self, name: str, remedy: str) -> None:
        self._name, self._remedy = name, remedy

    def __repr__(self) -> str:
        return self._name

    def refuse(self, *_positional: object, **_named: object) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{self._name}: {self._remedy}")

    __call__ = __mro_entries__ = refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    def __instancecheck__(self, _node: object) -> bool:
        return False


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call: `accepted` have an effect; `noted` and `refused` map names to the reason or the remedy.
    `defaults` are Mininet-WiFi's own of refused arguments: spelled out, such a value asks for nothing and is a note. `takes_all`:
    Mininet-WiFi's call passes over names that it does not know; here they are notes, unless they look like a known one."""

    call: str
    accepted: frozenset[str]
    noted: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)
    takes_all: bool = False

    def check(self, arguments: Mapping[str, Any], notes: set[str]) -> dict[str, Any]:
        """Return the accepted arguments, their values unchecked. `notes` collects the notes that were printed. A value of None
        counts as not given, as in Mininet. Raises UsageError."""
        for name, value in arguments.items():
            if name in self.accepted:
                if isinstance(value, Unsupported):
                    value.refuse()
                continue
            if name in self.noted:
                note(f"{self.call}: {name}={value!r}: {self.noted[name]}", notes, key=f"{self.call} {name}")
            elif name in self.refused and (value is None or (name in self.defaults and _same(value, self.defaults[name]))):
                note(
                    f"{self.call}: {name}={value!r}: is Mininet-WiFi's default; it has no effect",
                    notes,
                    key=f"{self.call} {name}",
                )
            elif name in self.refused:
                raise UsageError(f"{self.call}: {name}={value!r}: {self.refused[name]}")
            elif self.takes_all and name not in READ_THERE and not self._misspelt(name):
                text = f"{self.call}: {name}={value!r}: Mininet-WiFi does not read it; it has no effect"
                note(text, notes, key=f"{self.call} {name}")
            else:
                raise UsageError(f'{self.call}: unknown argument "{name}"; {self._remedy(name)}')
        return {name: value for name, value in arguments.items() if name in self.accepted and value is not None}

    def _misspelt(self, name: str) -> bool:
        return bool(difflib.get_close_matches(name, [*self.accepted, *self.noted], n=1, cutoff=MISSPELT))

    def _remedy(self, name: str) -> str:
        return did_you_mean(name, [*self.accepted, *self.noted]) or f"the arguments here are {', '.join(sorted(self.accepted))}"


def _same(value: object, default: object) -> bool:
    """Whether a value is the default, also as text (`'-91'`). True and 1 differ."""
    return isinstance(value, bool) == isinstance(default, bool) and (value == default or str(value) == str(default))


def note(text: str, notes: set[str], key: str = "") -> None:
    """Print a note, once for each network (`notes`), independent of setLogLevel."""
    if (key or text) not in notes:
        notes.add(key or text)
        output(f"*** note: {text}\n")


def choice(call: str, name: str, value: object, known: Mapping[Any, Meaning], why: str = "") -> Meaning:
    """The meaning, in `known`, of a value. Raises UsageError for another value."""
    if value not in known:
        raise UsageError(f"{call}: {name}={value!r}: {why or 'is not known'}; use one of {', '.join(map(repr, known))}")
    return known[value]


def number(call: str, name: str, value: object, minimum: float = float("-inf"), maximum: float = float("inf")) -> float:
    """The value as a finite number; as in Mininet-WiFi it may be text. Raises UsageError outside of `minimum` to `maximum`."""
    finite = _as_number(value)
    if finite is None or not math.isfinite(finite):
        raise UsageError(f"{call}: {name}={value!r}: is not a number")
    if not minimum <= finite <= maximum:
        raise UsageError(f"{call}: {name}={value!r}: is outside {minimum:g} to {maximum:g}")
    return finite


def within(call: str, name: str, value: object, limits: Node) -> float:
    """The value as a number within its owner's limits. Raises UsageError with the words of a scenario's key."""
    parsed = _as_number(value)
    if wrong := problem(limits, value if parsed is None else parsed):
        raise UsageError(f"{call}: {name}={value!r}: {wrong}")
    return float(parsed or 0.0)


def _as_number(value: Any) -> float | None:
    """A number, or its text; None for any other value."""
    try:
        parsed = of_word(value.strip()) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if isinstance(parsed, str) else parsed


def point(call: str, name: str, value: object) -> tuple[float, float, float]:
    """A place in metres from `'10,20,0'`, `'10,20'`, or a list of numbers. Raises UsageError."""
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if len(parts) not in (2, 3):
        raise UsageError(f"{call}: {name}={value!r}: is not a place; write 'x,y,z', in metres")
    x, y, z = [number(call, name, part, -MAX_COORDINATE_M, MAX_COORDINATE_M) for part in [*parts, 0.0][:3]]
    return x, y, z


def refuse_others(module: str, names: Mapping[str, str], otherwise: str) -> Callable[[str], Unsupported]:
    """A `__getattr__` for a module: an unsupported name is Unsupported with the remedy of `names`, or `otherwise`."""

    def missing(name: str) -> Unsupported:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unsupported(f"{module}.{name}", names.get(name, otherwise))

    return missing
