"""Addresses of radios and wires, and static ARP tables for experiments without ARP traffic.

A station's address is 10.0.<i/256>.<i%256>/8 without a prefix route: a station reaches only the destinations of its routes, and a
missing route is "unreachable" instead of an unanswered ARP request. A wire is a network of its own, 192.168.<k>.0/30; both of its
ends get their routes to it here, all other routes come from the routing protocol.

Broadcasts (255.255.255.255) and multicasts of programs that name no device leave by the radio, as on a host with one network, or
by bat0. DSR carries unicast only, so with it they are unreachable. The routes are in the table `local`, which no routing daemon
reads and announces. IPv6 needs no such routes: the kernel has one for each device.

With `ipv6` each device has an IPv6 address too, in addition to the link-local one that the kernel gives it; of the radio's it is
fd6d:616e:6574::<i>/128, hence again without a route to its network. It is assigned without duplicate address detection
(testbed.stages.station.ipv6_sysctls).
"""

import itertools
from functools import partial

from testbed.host import namespace, offloads
from testbed.stages import iproute, kernel_tcp
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, Station, StationNet, WiredLink, ipv6_sysctls
from topologies.addresses import (
    GATEWAY_END,
    HOST_END,
    INTERFACE,
    NETWORK,
    PREFIX6_BITS,
    PREFIX_BITS,
    WIRE_PREFIX_BITS,
    WIRES_NETWORK,
    link_local_address,
    wire_ip,
    wire_ip6,
    wire_mac,
    wire_network,
    wire_network6,
)

OTHER_WIRE_METRIC = 10  # preferred to a routing daemon's routes (100), which lead over the air
GROUPS = {"255.255.255.255/32": "broadcast", "224.0.0.0/4": "multicast"}  # RFC 919, RFC 1112
OWN_WIRE_METRIC = 1  # of IPv6, which has no metric 0: the kernel takes 1024 for it (IP6_RT_PRIO_USER, include/net/ip6_route.h)


def assign(site: Site, net: StationNet) -> None:
    """Set addresses, loopback and device settings; the medium has made the devices."""
    lines: dict[NamespaceHost, list[str]] = {host: ["link set lo up"] for host in net.hosts}
    for station in net.stations:
        radio = station.radio.name
        lines[station] += [*_device(site, station, radio), f"link set {radio} mtu {site.scenario.mtu}"]
        for further in station.further_radios:
            lines[station] += [*_device(site, station, further.name), f"link set {further.name} mtu {site.scenario.mtu}"]
        if radio != INTERFACE:
            lines[station].append(f"link property add dev {radio} altname {INTERFACE}")
        if station.home is not None:
            # its maker gave it an address, with a route to all stations
            lines[station].append(f"address flush dev {radio} scope global")
        lines[station].append(f"address add {station.IP()}/{PREFIX_BITS} dev {radio} noprefixroute")
        if site.scenario.routing.protocol == "dsr":
            lines[station] += [f"route replace unreachable {group} table local" for group in GROUPS]
        else:
            lines[station] += routes_of_groups(radio)
        if site.scenario.ipv6:
            lines[station].append(f"address add {station.IP6()}/128 dev {radio} noprefixroute nodad")
        if site.scenario.arp == "static":
            others = [other for other in net.stations if other is not station]
            lines[station] += [_neighbour(ip, other.MAC(), radio) for other in others for ip in _on_link(site, other)]
    for wire in net.wires:
        _assign_wire(site, wire, lines)
    _join_wires(site, net, lines)
    iproute.batches(lines, "addresses", site.log)


def routes_of_groups(device: str) -> list[str]:
    """The lines of ip(8) by which broadcasts and multicasts leave by a device. The kernel removes these routes with the last
    address of the device."""
    return [f"route replace {kind} {group} dev {device} table local scope link" for group, kind in GROUPS.items()]


def mtus(net: StationNet) -> dict[str, int]:
    """The MTU of each station's radio in the kernel, bytes; batman-adv has raised it by its headers."""
    values = namespace.within_each([(station.netns, partial(offloads.mtu, station.radio.name)) for station in net.stations])
    return {station.name: mtu for station, mtu in zip(net.stations, values, strict=True)}


def _on_link(site: Site, station: Station) -> list[str]:
    """The addresses by which others on the radio's link send to a station."""
    return [station.IP(), *([station.IP6(), link_local_address(station.MAC())] if site.scenario.ipv6 else [])]


def _assign_wire(site: Site, wire: WiredLink, lines: dict[NamespaceHost, list[str]]) -> None:
    """Both ends, with the routes to the wire's network and the host's default route."""
    metric, metric_at_gateway = (kernel_tcp.ack_metric(site.scenario, host.name) for host in (wire.host, wire.gateway))
    ends = ((wire.gateway, wire.interface, GATEWAY_END, HOST_END), (wire.host, wire.host_interface, HOST_END, GATEWAY_END))
    for host, interface, here, there in ends:
        own = kernel_tcp.ack_metric(site.scenario, host.name)
        lines[host] += [
            *_device(site, host, interface),
            f"address add {wire_ip(wire.number, here)}/{WIRE_PREFIX_BITS} dev {interface} noprefixroute",
            f"route add {wire_network(wire.number)} dev {interface} scope link{own}",
        ]
        if site.scenario.arp == "static":
            lines[host].append(_neighbour(wire_ip(wire.number, there), wire_mac(wire.number, there), interface))
        if site.scenario.ipv6:
            lines[host].append(f"address add {wire_ip6(wire.number, here)}/{PREFIX6_BITS} dev {interface} noprefixroute nodad")
            lines[host].append(f"route add {wire_network6(wire.number)} dev {interface} metric {OWN_WIRE_METRIC}{own}")
        if site.scenario.ipv6 and site.scenario.arp == "static":
            lines[host].append(_neighbour(wire_ip6(wire.number, there), wire_mac(wire.number, there), interface))
    place = int(wire.host_interface.removeprefix("eth"))
    # of several wires the first with a carrier has the default route
    behind = f" metric {place}" if place else ""
    gateway = f"via {wire_ip(wire.number, GATEWAY_END)}{behind}{metric}"
    if site.scenario.ipv6:  # of hosts that lead to the real network, too: they reach it by IPv4 alone
        behind6 = f"metric {OWN_WIRE_METRIC + place}{metric}"
        lines[wire.host].append(f"route add default via {wire_ip6(wire.number, GATEWAY_END)} {behind6}")
    if not wire.settings.nat:
        lines[wire.host].append(f"route add default {gateway}")
        return
    # the host's default route leads to the real network (testbed/stages/uplink.py)
    lines[wire.host] += [f"route add {network} {gateway}" for network in (f"{NETWORK}/{PREFIX_BITS}", WIRES_NETWORK)]
    to_host = f"via {wire_ip(wire.number, HOST_END)} dev {wire.interface} metric {OTHER_WIRE_METRIC}{metric_at_gateway}"
    lines[wire.gateway].append(f"route append default {to_host}")


def _join_wires(site: Site, net: StationNet, lines: dict[NamespaceHost, list[str]]) -> None:
    """Hosts on several wires: a dead wire is detected by its carrier, and each gateway delivers to all addresses of the host."""
    for host in dict.fromkeys(wire.host for wire in net.wires):
        wires = [wire for wire in net.wires if wire.host is host]
        if len(wires) > 1:
            names = ["all", "default", *(wire.host_interface for wire in wires)]
            versions = ("ipv4", "ipv6") if site.scenario.ipv6 else ("ipv4",)
            sysctls = {f"net.{ip}.conf.{name}.ignore_routes_with_linkdown": 1 for ip in versions for name in names}
            namespace.within(host.netns, partial(namespace.write_sysctls, sysctls))
        for wire, other in itertools.permutations(wires, 2):
            metric = kernel_tcp.ack_metric(site.scenario, wire.gateway.name)
            via = f"via {wire_ip(wire.number, HOST_END)} dev {wire.interface}"
            lines[wire.gateway].append(f"route add {wire_network(other.number)} {via} metric {OTHER_WIRE_METRIC}{metric}")
            if site.scenario.ipv6:
                via = f"via {wire_ip6(wire.number, HOST_END)} dev {wire.interface}"
                lines[wire.gateway].append(f"route add {wire_network6(other.number)} {via} metric {OTHER_WIRE_METRIC}{metric}")


def _neighbour(ip: str, mac: str, interface: str) -> str:
    return f"neighbour replace {ip} lladdr {mac} dev {interface} nud permanent"


def _device(site: Site, host: NamespaceHost, interface: str) -> list[str]:
    """Apply the profile's settings of a device by ioctl and sysctl; returns the lines for those that ip(8) sets."""
    offload = kernel_tcp.profile(site.scenario.profile).get("offload", {})
    namespace.within(host.netns, lambda: _set_device(site, interface, offload))
    return [f"link set {interface} gso_max_segs {offload['gso_max_segs']}"] if "gso_max_segs" in offload else []


def _set_device(site: Site, interface: str, offload: dict[str, object]) -> None:
    """The settings by ioctl and sysctl, in the caller's namespace."""
    offloads.set_offloads(interface, offload)
    if site.scenario.ipv6:  # a device that was made before the namespace's defaults were set has others
        namespace.write_sysctls(ipv6_sysctls(interface))
    if site.scenario.unres_qlen is not None:
        # packets that wait for one answer of ARP or neighbour discovery; only the device's own value belongs to the namespace
        versions = ("ipv4", "ipv6") if site.scenario.ipv6 else ("ipv4",)
        namespace.write_sysctls({f"net.{ip}.neigh.{interface}.unres_qlen": site.scenario.unres_qlen for ip in versions})
