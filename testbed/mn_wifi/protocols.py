"""`proto` of addLink: Mininet-WiFi's names of routing protocols and ours."""

from scenarios.routing import OUR_DAEMONS
from testbed.errors import UsageError
from testbed.host.protocols import why_not
from testbed.programs import BUILT, Programs

# theirs: the protocol of the same daemon here; ours in its place where that is not installed
THEIRS = {
    "olsrd": ("olsrd", "olsr"),
    "aodv": ("aodv-uu", "aodv"),
    "babel": ("babeld", None),
    "batmand": ("batmand", None),
    "batman_adv": ("batman-adv", None),
}
OURS = (*OUR_DAEMONS, "static")
REFUSED = {"olsrd2": "OLSR version 2 (RFC 7181) is not here; proto='olsrd' is version 1"}


def protocol(proto: str | None, programs: Programs = BUILT, path: str | None = None) -> tuple[str, str]:
    """The key `routing` for a `proto`, and what is to be said about it. None is none: whom a station hears it reaches."""
    if proto is None:
        return "none", ""
    if proto in REFUSED:
        raise UsageError(f"addLink: proto={proto!r}: {REFUSED[proto]}")
    if proto in THEIRS:
        name, stand_in = THEIRS[proto]
        missing = why_not(name, programs=programs, path=path)
        if missing is None or stand_in is None:
            return name, ""  # what is missing is said before the run starts
        return stand_in, f"proto={proto!r}: {missing[0]}; this testbed's own {stand_in.upper()} stands in for it"
    if proto in OURS:
        return proto, ""
    raise UsageError(f"addLink: proto={proto!r}: is not known; use one of {', '.join(map(repr, sorted({*THEIRS, *OURS})))}")
