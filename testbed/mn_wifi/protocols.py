"""`proto` of addLink: Mininet-WiFi's names of routing protocols, and the names in scenarios."""

from scenarios.routing import OWN_DAEMONS
from testbed.errors import UsageError
from testbed.host.protocols import missing_requirement
from testbed.programs import BUILT, Programs

# name in Mininet-WiFi: the protocol with the same daemon here, and our own that replaces it if that is not installed
MININET_WIFI_PROTOCOLS = {
    "olsrd": ("olsrd", "olsr"),
    "olsrd2": ("olsrd2", None),
    "aodv": ("aodv-uu", "aodv"),
    "babel": ("babeld", None),
    "batmand": ("batmand", None),
    "batman_adv": ("batman-adv", None),
}
OURS = (*OWN_DAEMONS, "static")


def protocol(proto: str | None, programs: Programs = BUILT, path: str | None = None) -> tuple[str, str]:
    """The key `routing` for a `proto`, and a note for the user. None is no routing. Raises UsageError."""
    if proto is None:
        return "none", ""
    if proto in MININET_WIFI_PROTOCOLS:
        name, stand_in = MININET_WIFI_PROTOCOLS[proto]
        missing = missing_requirement(name, programs=programs, path=path)
        if missing is None or stand_in is None:
            return name, ""  # the check before the run reports what is missing
        return stand_in, f"proto={proto!r}: {missing[0]}; this testbed's own {stand_in.upper()} stands in for it"
    if proto in OURS:
        return proto, ""
    raise UsageError(
        f"addLink: proto={proto!r}: is not known; use one of {', '.join(map(repr, sorted({*MININET_WIFI_PROTOCOLS, *OURS})))}"
    )
