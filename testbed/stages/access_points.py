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
from testbed.stages.station import SHELL_DEADLINE_S, MediumInterface, NamespaceHost, Station

FREQ_MHZ, CHANNEL = 2412, 1  # of all radios: medium/daemon/src/hwsim.rs
BEACON_INTERVAL_TU = 100  # hostapd's own default, in units of 1024 us
UP_WITHIN_S = 60.0
BRIDGE = "br0"
REMEDY = "the access point went with it; see its log, and run it again"
CONTROL_FOLDER = SOCKETS / "hostapd"


@dataclass(frozen=True)
class AccessPoint:
    """One BSS: `name` of the station that is its access point, `bssid` its address. `passphrase`: of WPA2-PSK; None: open.
    `isolated`: stations do not reach each other through it."""

    name: str
    ssid: str
    bssid: str
    passphrase: str | None = None
    isolated: bool = False


@dataclass(frozen=True)
class Cable:
    """A cable between two access points, or between an access point and a host; `a` and `b` are their names."""

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
        "channel": CHANNEL,
        "beacon_int": BEACON_INTERVAL_TU,
        "supported_rates": rates(site.scenario),
        "basic_rates": basic_rates(site.scenario),
        "ieee80211n": 0,
        "wmm_enabled": 1,
        "ap_isolate": int(point.isolated),
    }
    if point.passphrase is not None:
        lines |= {"wpa": 2, "wpa_key_mgmt": "WPA-PSK", "rsn_pairwise": "CCMP", "wpa_passphrase": point.passphrase}
    return "".join(f"{key}={value}\n" for key, value in lines.items())


@contextmanager
def access_points_up(
    network: Network, points: Sequence[AccessPoint], cables: Sequence[Cable] = (), hosts: Sequence[CabledHost] = ()
) -> Iterator[list[Child]]:
    """Run hostapd for each access point and lay the cables; all beacons are on the air when the block begins. RunError if one
    does not come up."""
    site, net = network.site, network.net
    folder = site.folder("access-points")
    plan = {"access_points": [asdict(p) for p in points], "cables": [asdict(c) for c in cables]}
    (folder / "plan.json").write_text(json.dumps(plan, indent=1) + "\n")
    CONTROL_FOLDER.mkdir(exist_ok=True)
    made = [_host_up(network, host) for host in hosts]
    children = []
    try:
        _forget_addresses(site, [net[point.name] for point in points])
        for point in points:
            station: Station = net[point.name]
            bridged = point.isolated or any(point.name in (cable.a, cable.b) for cable in cables)
            path = folder / f"{point.name}.conf"
            path.write_text(hostapd_config(site, point, station.radio.name, bridged=bridged))
            children.append(
                network.children.start(f"hostapd-{point.name}", ["hostapd", path], netns=station.netns, remedy=REMEDY)
            )
        network.children.wait_for_text(children, "AP-ENABLED", within_s=UP_WITHIN_S)
        _lay(site, net, cables, points, {host.name: host for host in hosts})
        yield children
    finally:
        network.children.stop(children)
        for host in made:
            net.hosts.remove(host)
            del net.nameToNode[host.name]
            host.terminate()


def _forget_addresses(site: Site, stations: Sequence[Station]) -> None:
    """An access point joins links (IEEE Std 802.1Q); it is no hop of the network above them."""
    lines = [[f"address flush dev {s.radio.name}", f"route flush dev {s.radio.name}"] for s in stations]
    iproute.batches(dict(zip(stations, lines, strict=True)), "access-points", site.log)


def _host_up(network: Network, host: CabledHost) -> NamespaceHost:
    """A host in a network namespace of its own, with its address known to Mininet's prompt."""
    found: NamespaceHost = network.net.addHost(host.name, cls=NamespaceHost)
    found.wait_for_shell(time.monotonic() + SHELL_DEADLINE_S)
    address, _, bits = host.address.partition("/")
    MediumInterface(found, f"{host.name}-eth0", "", address, int(bits), ip6="")
    return found


def send_back(site: Site, station: Station) -> None:
    """Let an isolated access point's bridge forward frames to the radio that they came from (hairpin mode of bridge(8)): its
    stations reach each other through the bridge."""
    iproute.batches({station: [f"link set dev {station.radio.name} type bridge_slave hairpin on"]}, "hairpin", site.log)


def _lay(
    site: Site, net: object, cables: Sequence[Cable], access_points: Sequence[AccessPoint], hosts: dict[str, CabledHost]
) -> None:
    """Make each cable from its first end's namespace, then attach both ends. Bridges of isolated access points are up, too."""
    counts: dict[str, int] = {}
    here: dict[NamespaceHost, list[str]] = {}
    points = {point.name for point in access_points}
    ends = {end for cable in cables for end in (cable.a, cable.b)} | {point.name for point in access_points if point.isolated}
    bridged = [net[point] for point in sorted(points & ends)]  # type: ignore[index]
    after: dict[NamespaceHost, list[str]] = {node: [f"link set {BRIDGE} up"] for node in bridged}
    for cable in cables:
        names = []
        for end in (cable.a, cable.b):
            first = 1 if end in points else 0  # as Mininet names them: eth0 of a host, eth1 up of a switch
            names.append(f"{end}-eth{first + counts.get(end, 0)}")
            counts[end] = counts.get(end, 0) + 1
        a, b = net[cable.a], net[cable.b]  # type: ignore[index]
        here.setdefault(a, []).append(f"link add {names[0]} type veth peer name {names[1]} netns {b.pid}")
        for end, name, node in ((cable.a, names[0], a), (cable.b, names[1], b)):
            lines = after.setdefault(node, [])
            if end in points:
                lines.append(f"link set {name} master {BRIDGE}")
            elif name.endswith("-eth0"):
                lines.append(f"address add {hosts[end].address} dev {name}")
            lines.append(f"link set {name} up")
    iproute.batches(here, "cables", site.log)
    iproute.batches(after, "cable-ends", site.log)
