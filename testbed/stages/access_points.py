"""Access points on hwsim radios in the mode `managed`: hostapd, the bridge to their cables, and their hosts.

hostapd (Debian's) makes the radio of a station an access point: beacons, authentication, association and the four-way handshake
are its own and mac80211's; the medium carries their frames (docs/hwsim.md). An access point with cables is a learning bridge
between them and its radio, and has no address of its own. A cable is a veth(4) pair, without rate or delay.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from testbed.host.processes import Child
from testbed.stages import iproute
from testbed.stages.radio_rates import basic_rates, rates
from testbed.stages.routing import Network
from testbed.stages.site import SOCKETS, Site
from testbed.stages.station import SHELL_DEADLINE_S, FurtherRadio, MediumInterface, NamespaceHost, Station, StationNet
from topologies.addresses import PREFIX_BITS

# IEEE Std 802.11-2012 clause 17.4.6.3. On these channels the kernel's world regulatory domain lets a station start a network.
CHANNELS = range(1, 12)
BEACON_INTERVAL_TU = 100  # hostapd's own default, in units of 1024 us
UP_WITHIN_S = 60.0
BRIDGE = "br0"
REMEDY = "the access point went with it; see its log, and run it again"
CONTROL_FOLDER = SOCKETS / "hostapd"


@dataclass(frozen=True)
class AccessPoint:
    """One BSS: `name` of the radio that is its access point (of a first radio, its station's), `bssid` its address.
    `passphrase`: of WPA2-PSK; None: open. `isolated`: stations do not reach each other through it. `channel`: one of CHANNELS.
    `four_addresses`: stations may have bridges behind them (testbed/stages/four_address.py)."""

    name: str
    ssid: str
    bssid: str
    passphrase: str | None = None
    isolated: bool = False
    channel: int = 1
    four_addresses: bool = False


@dataclass(frozen=True)
class Cable:
    """A cable between two nodes that are access points, stations or hosts; `a` and `b` are their names."""

    a: str
    b: str


@dataclass(frozen=True)
class CabledHost:
    """A host at an access point's cables; `address` with its prefix length."""

    name: str
    address: str


def hostapd_config(site: Site, point: AccessPoint, interface: str, *, bridged: bool) -> str:
    """The configuration of hostapd for one access point. 802.11n and later are off: aggregation is not modelled."""
    lines = {
        "interface": interface,
        "driver": "nl80211",
        "ctrl_interface": str(CONTROL_FOLDER / point.name),
        **({"bridge": BRIDGE} if bridged else {}),
        "ssid2": f'"{point.ssid}"',
        "hw_mode": "g",
        "channel": point.channel,
        "beacon_int": BEACON_INTERVAL_TU,
        "supported_rates": rates(site.scenario),
        "basic_rates": basic_rates(site.scenario),
        "ieee80211n": 0,
        "wmm_enabled": 1,
        "ap_isolate": int(point.isolated),
    }
    if point.four_addresses:
        lines |= {"wds_sta": 1, "wds_bridge": BRIDGE}
    if point.passphrase is not None:
        lines |= {"wpa": 2, "wpa_key_mgmt": "WPA-PSK", "rsn_pairwise": "CCMP", "wpa_passphrase": point.passphrase}
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def frequency_mhz(channel: int) -> int:
    """The centre frequency of a channel of the 2.4 GHz band (IEEE Std 802.11-2012 clause 17.4.6.3)."""
    return 2407 + 5 * channel


@contextmanager
def access_points_up(
    network: Network,
    points: Sequence[AccessPoint],
    cables: Sequence[Cable] = (),
    hosts: Sequence[CabledHost] = (),
    bridges: Sequence[str] = (),
) -> Iterator[list[Child]]:
    """Run hostapd for each access point and lay the cables; all beacons are on the air when the block begins. `bridges`: the
    nodes whose access points and cables are joined. RunError if an access point does not come up."""
    site, net = network.site, network.net
    folder = site.folder("access-points")
    plan = {"access_points": [asdict(p) for p in points], "cables": [asdict(c) for c in cables], "bridges": list(bridges)}
    (folder / "plan.json").write_text(json.dumps(plan, indent=1) + "\n")
    CONTROL_FOLDER.mkdir(exist_ok=True)
    started_hosts = [_host_up(network, host) for host in hosts]
    children = []
    try:
        iproute.batches({net[name]: [f"link add {BRIDGE} type bridge"] for name in bridges}, "bridges", site.log)
        for point in points:
            radio = net.radio(point.name)
            bridged = radio.station.name in bridges
            path = folder / f"{point.name}.conf"
            path.write_text(hostapd_config(site, point, radio.radio.name, bridged=bridged))
            children.append(network.children.start(f"hostapd-{point.name}", ["hostapd", path], netns=radio.netns, remedy=REMEDY))
        network.children.wait_for_text(children, "AP-ENABLED", within_s=UP_WITHIN_S)
        iproute.batches({net[name]: [f"link set {BRIDGE} up"] for name in bridges}, "bridges-up", site.log)
        _lay(site, net, cables, bridges)
        yield children
    finally:
        network.children.stop(children)
        for host in started_hosts:
            net.hosts.remove(host)
            del net.nameToNode[host.name]
            host.terminate()


def forget_addresses(site: Site, stations: Sequence[Station]) -> None:
    """An access point joins links (IEEE Std 802.1Q); it is no hop of the network above them."""
    lines = [[f"address flush dev {s.radio.name}", f"route flush dev {s.radio.name}"] for s in stations]
    iproute.batches(dict(zip(stations, lines, strict=True)), "access-points", site.log)


def bridge_radios(site: Site, radios: Sequence[FurtherRadio | Station]) -> None:
    """Join radios of a mesh to the bridges of their nodes."""
    lines: dict[NamespaceHost, list[str]] = {}
    for radio in radios:
        lines.setdefault(radio.station, []).append(f"link set {radio.radio.name} master {BRIDGE}")
    iproute.batches(lines, "bridged", site.log)


def _host_up(network: Network, host: CabledHost) -> NamespaceHost:
    """A host in a network namespace of its own, with its address known to Mininet's prompt."""
    node: NamespaceHost = network.net.addHost(host.name, cls=NamespaceHost)
    node.wait_for_shell(time.monotonic() + SHELL_DEADLINE_S)
    address, _, bits = host.address.partition("/")
    MediumInterface(node, f"{host.name}-eth0", "", address, int(bits), ip6="")
    return node


def send_back(site: Site, station: Station) -> None:
    """Let an isolated access point's bridge forward frames to the radio that they came from (hairpin mode of bridge(8)): its
    stations reach each other through the bridge."""
    iproute.batches({station: [f"link set dev {station.radio.name} type bridge_slave hairpin on"]}, "hairpin", site.log)


def _lay(site: Site, net: StationNet, cables: Sequence[Cable], bridges: Sequence[str]) -> None:
    """Make each cable from its first end's namespace, then attach both ends."""
    here: dict[NamespaceHost, list[str]] = {}
    after: dict[NamespaceHost, list[str]] = {}
    for cable in cables:
        a, b = net[cable.a], net[cable.b]
        names = [_next_end(net, node) for node in (a, b)]
        here.setdefault(a, []).append(f"link add {names[0]} type veth peer name {names[1]} netns {b.pid}")
        for name, node in zip(names, (a, b), strict=True):
            lines = after.setdefault(node, [])
            if node.name in bridges:
                lines.append(f"link set {name} master {BRIDGE}")
            elif name.endswith("-eth0"):
                lines.append(f"address add {node.IP()}/{node.defaultIntf().prefixLen} dev {name}")
            lines.append(f"link set {name} up")
    iproute.batches(here, "cables", site.log)
    iproute.batches(after, "cable-ends", site.log)


def _next_end(net: StationNet, node: NamespaceHost) -> str:
    """The name of a node's next cable, registered with the node: Mininet counts the ends of a host from 0, those of other nodes
    from 1. A host's first end is there already, with its address."""
    laid = {name for name in node.nameToIntf if name.startswith(f"{node.name}-eth")}
    if node not in net.stations and not node.cabled:
        node.cabled = True
        return f"{node.name}-eth0"
    name = f"{node.name}-eth{len(laid) + (node in net.stations)}"
    MediumInterface(node, name, "", "", PREFIX_BITS, "")
    return name
