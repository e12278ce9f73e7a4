"""Babel (RFC 8966) by babeld, Debian's package of that name.

babeld speaks IPv6 on the link, whatever the scenario's `ipv6` says: the radio gets its link-local address (made of the
MAC, without duplicate address detection and router solicitations, which would take air time). It announces the station's
own address, and at a gateway the networks of its wires; the interface is declared wireless, which babeld cannot detect for a TAP.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.host import namespace
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.third_party import Settling, daemons_running
from testbed.stages.site import SOCKETS
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

PORT = 6696
LINK_LOCAL = {"accept_dad": 0, "dad_transmits": 0, "router_solicitations": 0, "autoconf": 0, "disable_ipv6": 0}


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; gives each radio a link-local IPv6 address."""
    (SOCKETS / "routing").mkdir(exist_ok=True)
    for station in network.stations:
        sysctls = {f"net.ipv6.conf.{INTERFACE}.{key}": value for key, value in LINK_LOCAL.items()}
        namespace.within(station.netns, lambda values=sysctls: namespace.write_sysctls(values))
    with daemons_running(network, lambda station: _argv(network, station), port=PORT):
        yield Settling(network)


def _argv(network: Network, station: Station) -> list:
    path = network.site.folder("routing") / f"{station.name}.babeld.conf"
    path.write_text("".join(f"{line}\n" for line in config(network, station)))
    state = SOCKETS / "routing" / f"{station.name}.babel-state"  # not the machine's /var/lib
    return ["babeld", "-c", path, "-S", state, "-I", "", INTERFACE]


def config(network: Network, station: Station) -> list[str]:
    """The lines of babeld's configuration. Times are written in seconds and kept in hundredths."""
    routing = network.site.scenario.routing
    return [
        f"router-id {router_id(station.MAC())}",
        "skip-kernel-setup true",  # the namespace forwards already (testbed/stages/station.py)
        f"interface {INTERFACE} type wireless "
        f"hello-interval {routing.hello_interval:g} update-interval {routing.update_interval:g}",
        f"redistribute local ip {station.IP()}/32 allow",
        *(f"redistribute proto 3 ip {wire} allow" for wire in network.wires_of(station)),  # 3: boot, who used ip(8)
        "redistribute local deny",
    ]


def router_id(mac: str) -> str:
    """The modified EUI-64 of the MAC (RFC 4291, appendix A), which babeld would else draw at random."""
    first, *rest = mac.split(":")
    return ":".join([f"{int(first, 16) ^ 2:02x}", *rest[:2], "ff", "fe", *rest[2:]])
