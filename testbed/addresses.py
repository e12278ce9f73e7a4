"""Addresses of the stations' radios, and the ARP tables where an experiment wants none of ARP's traffic.

The address is 10.0.<i/256>.<i%256>/8 with no prefix route: a station can reach whom its routing says it can, and a
missing route is "unreachable", not a vain ARP request to all the network.
"""

from testbed import iproute, kernel_tcp, namespace, offloads
from testbed.site import Site
from testbed.station import StationNet
from topologies.addresses import INTERFACE, PREFIX_BITS


def assign(site: Site, net: StationNet) -> None:
    """Addresses, loopback, and the radio's own settings; the medium has made the devices."""
    offload = kernel_tcp.profile(site.scenario.profile).get("offload", {})
    lines = {}
    for station in net.stations:
        lines[station] = [
            "link set lo up",
            f"address add {station.IP()}/{PREFIX_BITS} dev {INTERFACE} noprefixroute",
        ]
        if "gso_max_segs" in offload:
            lines[station].append(f"link set {INTERFACE} gso_max_segs {offload['gso_max_segs']}")
        if site.scenario.arp == "static":
            others = [other for other in net.stations if other is not station]
            lines[station] += [
                f"neighbour replace {other.IP()} lladdr {other.MAC()} dev {INTERFACE} nud permanent" for other in others
            ]
        namespace.within(station.netns, lambda: _set_device(site, offload))
    iproute.batches(lines, "addresses", site.log)


def _set_device(site: Site, offload: dict[str, object]) -> None:
    """What is set by ioctl and sysctl, in the station's namespace."""
    offloads.switch(INTERFACE, offload)
    if site.scenario.unres_qlen is not None:
        # packets that wait for one ARP answer; only the device's own value belongs to the namespace
        namespace.write_sysctls({f"net.ipv4.neigh.{INTERFACE}.unres_qlen": site.scenario.unres_qlen})
