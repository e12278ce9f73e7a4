"""Stations, hosts and their interfaces as a script declares them, and the network as they use it.

Once the network is up, each node passes calls on to its running Mininet host.
"""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from record.events_file import SCRIPT
from testbed.errors import UsageError
from testbed.mn_wifi.arguments import number, point, refuse_others, within
from testbed.mn_wifi.radio import Radio
from testbed.mn_wifi.session import Session, Standing
from testbed.mn_wifi.settings import LIMITS
from testbed.stages.access_points import Cable
from testbed.stages.addresses import routes_of_groups
from testbed.stages.station import NamespaceHost, ipv6_sysctls
from topologies.addresses import GATEWAY_END, INTERFACE, NETWORK, PREFIX_BITS, ip_address, mac_address, wire_ip

MAX_RADIOS = 8
WIFI = {"adhoc": "wifiAdhoc", "mesh": "wifiMesh", "ITSLink": "wifiITS"}  # by the class of the radio's link
# Attributes that Mininet's constructor sets, so that dir() of the class does not list them.
ATTRIBUTES_OF_HOSTS = (
    "decoder", "execed", "intfs", "lastCmd", "lastPid", "master", "nameToIntf", "pid", "pollOut", "ports", "radio", "readbuf",
    "shell", "slave", "stdin", "stdout", "waitExited", "waiting",
)  # fmt: skip


class ScriptNetwork:
    """A script's network as its nodes use it; net.py completes it."""

    session: Session
    notes: set[str]
    options: dict[str, Any]
    stations: "list[Station]"
    aps: "list[Station]"
    wired: "list[Host]"
    wires: list[dict[str, Any]]
    cables: list[Cable]
    links: "list[WirelessInterface | WireLink]"
    adhoc: dict[str, dict[str, Any]]  # by radio, the options of the ad hoc network or mesh that it joins
    standing: Standing | None  # from build() to stop()

    get: Callable[..., Any]
    radios: "Callable[[], list[WirelessInterface]]"
    number_of: "Callable[[WirelessInterface], int]"
    option_of: Callable[..., Any]
    common_option: Callable[..., Any]
    common_mode: Callable[[], str]
    radio_of: "Callable[[Station], Radio]"
    power_of: "Callable[[Station], Radio]"
    reach_of: "Callable[[Station], float]"
    channel_of: "Callable[[WirelessInterface], int]"
    shift_db: Callable[[], float]
    change_radio: "Callable[[Station, str, str, float], None]"
    check_addresses: Callable[[], None]
    make_master: "Callable[[WirelessInterface, dict[str, Any]], None]"
    plotGraph: Callable[..., None]
    setInitialMediums: Callable[[object], None]
    bridges: Callable[[], list[str]]
    associated: "Callable[[WirelessInterface], WirelessInterface | str | None]"
    rssi: "Callable[[WirelessInterface], float]"

    @property
    def running(self) -> Standing:
        """The network that is up."""
        assert self.standing is not None
        return self.standing

    def host_of(self, name: str) -> NamespaceHost | None:
        """The running Mininet host of a node; None before build()."""
        return None if self.standing is None else self.standing.network.net[name]


class NotHere(UsageError, AttributeError):
    """An attribute that a node or an interface lacks, or lacks now. An AttributeError, so that hasattr() works."""


@dataclass
class Bss:
    """The network of a radio that is an access point; `channel` None: the default one."""

    ssid: str
    passphrase: str | None = None
    isolated: bool = False
    channel: object = None


class WirelessInterface:
    """Radio number `id`, from 0, of a station: its name, addresses, network and power. It is the station's link, too: a radio has
    no other end. `bss`: its network, if it is an access point."""

    def __init__(self, station: "Station", number: int = 0) -> None:
        self.node, self.id = station, number
        self.bss: Bss | None = None
        self.own_ip = ""  # of a further radio

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def name(self) -> str:
        """The name of the interface, also in the kernel: `sta1-wlan0`."""
        return str(self.node.params["wlan"][self.id])

    def name_of_kind(self, kind: str) -> str:
        """Its name as `wlan` or as `mp`: in a mesh of 802.11s, where Mininet-WiFi gives the radio another interface."""
        return re.sub(r"-(wlan|mp)(\d+)$", rf"-{kind}\2", self.name)

    @property
    def radio(self) -> str:
        """Its name in the scenario and in the medium's logs: the station's of a first radio, else that of the interface."""
        return self.node.name if self.id == 0 else self.name_of_kind("wlan")

    @property
    def mac(self) -> str:
        """The MAC address."""
        return mac_address(self.node.net.number_of(self))

    @property
    def address(self) -> str:
        """The IPv4 address with its prefix length; empty if it has none."""
        return self.own_ip if self.id else self.node.ip

    @property
    def ip(self) -> str:
        """The IPv4 address."""
        return self.address.partition("/")[0]

    @property
    def prefixLen(self) -> str:
        """The prefix length of the IPv4 address, as text."""
        return self.address.partition("/")[2]

    @property
    def ssid(self) -> str:
        """The name of its network."""
        return self.bss.ssid if self.bss is not None else str(self.node.net.option_of(self.node, "ssid", "adhocNet", self.radio))

    @property
    def mode(self) -> str:
        """`a`, `b` or `g`."""
        return self.node.net.radio_of(self.node).mode

    @property
    def channel(self) -> int:
        """The number of the channel."""
        return self.node.net.channel_of(self)

    @property
    def freq(self) -> float:
        """The frequency of the channel, GHz."""
        return replace(self.node.net.radio_of(self.node), channel=self.channel).frequency_hz() / 1e9

    @property
    def txpower(self) -> float:
        """Transmit power, dBm: as stated, or the one that gives the stated range."""
        return round(self.node.net.power_of(self.node).tx_power_dbm, 2)

    @property
    def antennaGain(self) -> float:
        """Antenna gain, dBi."""
        return self.node.net.power_of(self.node).gain_db

    @property
    def antennaHeight(self) -> float:
        """Height of the antenna, m."""
        return self.node.net.power_of(self.node).height_m

    @property
    def range(self) -> float:
        """The distance, m, up to which a station with the same antenna receives this one."""
        return round(self.node.net.reach_of(self.node), 2)

    @property
    def associatedTo(self) -> "WirelessInterface | str | None":
        """The radio of its access point, None without one; of a radio in another network `adhoc`, `mesh` or `ITS`."""
        return self.node.net.associated(self)

    @property
    def rssi(self) -> float:
        """The power, dBm, at which it receives its access point, on Mininet-WiFi's scale; 0 without one, -60 before build()."""
        return self.node.net.rssi(self)

    def __getattr__(self, name: str) -> object:
        """Raise NotHere, with the remedy, for an unsupported attribute."""
        if name.startswith("__") or "node" not in self.__dict__:
            raise AttributeError(name)
        if isinstance(masked := getattr(type(self), name, None), property):  # its own AttributeError brought us here
            return masked.fget(self)  # type: ignore[misc]
        raise NotHere(f"{self}.{name}: is not supported; docs/mininet-wifi.md lists what is")

    def IP(self) -> str:
        """The IPv4 address."""
        return self.ip

    def MAC(self) -> str:
        """The MAC address."""
        return self.mac

    def setRange(self, range: object) -> None:
        """See the station's method."""
        self.node.setRange(range)

    def setTxPower(self, txpower: object) -> None:
        """See the station's method."""
        self.node.setTxPower(txpower)

    def setAntennaGain(self, gain: object) -> None:
        """See the station's method."""
        self.node.setAntennaGain(gain)

    def setAntennaHeight(self, height: object) -> None:
        """See the station's method."""
        self.node.setAntennaHeight(height)

    def setMediumId(self, medium_id: object) -> None:
        """See the station's method."""
        self.node.setMediumId(medium_id)

    def setMasterMode(self, **given: Any) -> None:
        """See the station's method."""
        self.node.setMasterMode(intf=self, **given)

    def setIP(self, ip: str, **given: Any) -> None:
        """See the station's method."""
        self.node.setIP(ip, intf=self, **given)


class WireEnd:
    """One end of a wire or cable. `name` is Mininet-WiFi's; once the network is up, that of the interface, or one more of it."""

    def __init__(self, node: "Node", link: "WireLink") -> None:
        self.node, self.link = node, link

    @property
    def name(self) -> str:
        """The name of the interface."""
        ends = self.node.cable_ends() if self.link.cable else self.node.wire_ends()
        return next(name for name, index in ends.items() if index == self.link.index)

    def __str__(self) -> str:
        return self.name


class WireLink:
    """Wire or cable number `index`, from 0: what addLink(station, host), addLink(ap, ap) and addLink(ap, host) return."""

    def __init__(self, index: int, one: "Node", other: "Node", *, cable: bool = False) -> None:
        self.index, self.cable = index, cable
        self.intf1, self.intf2 = WireEnd(one, self), WireEnd(other, self)

    def __str__(self) -> str:
        return f"{self.intf1}<->{self.intf2}"

    __repr__ = __str__


class Node:
    """The common part of stations and hosts. A script may set other attributes, as in Mininet-WiFi."""

    def __init__(self, net: ScriptNetwork, name: str, params: dict[str, Any]) -> None:
        self.net, self.name, self.params = net, name, params
        self.wire_ips: dict[str, str] = {}  # by the end of a wire or cable; set by build()

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        host = self.net.host_of(self.name)
        if host is None:
            return f"<{type(self).__name__} {self.name}>"
        radios = {radio.name: radio.ip for radio in getattr(self, "wintfs", {}).values()}
        addresses = {name: radios.get(name) if name in radios else host.nameToIntf[name].IP() for name in self.intfNames()}
        shown = ",".join(f"{name}:{address or None}" for name, address in addresses.items())
        return f"<{type(self).__name__} {self.name}: {shown} pid={host.pid}> "

    def __getattr__(self, name: str) -> Any:
        """An attribute of the running host: cmd, popen, pid, sendCmd, intfs ..."""
        if name.startswith("__") or "net" not in self.__dict__:
            raise AttributeError(name)
        if isinstance(masked := getattr(type(self), name, None), property):  # its own AttributeError brought us here
            return masked.fget(self)  # type: ignore[misc]
        host = self.net.host_of(self.name)
        known = {*dir(NamespaceHost), *ATTRIBUTES_OF_HOSTS} if host is None else {*dir(host)}
        if name not in known:
            close = difflib.get_close_matches(name, [a for a in known | {*dir(self)} if not a.startswith("_")], n=1, cutoff=0.8)
            remedy = f'did you mean "{close[0]}"?' if close else None
            raise NotHere(f"{self.name}.{name}: is not supported; {remedy or 'docs/mininet-wifi.md lists what is'}")
        if host is None:
            raise NotHere(f"{self.name}.{name}: not available before the network is up; move the line below net.build()")
        return getattr(host, name)

    @property
    def host(self) -> NamespaceHost:
        """The running host. Raises NotHere before the network is up."""
        host = self.net.host_of(self.name)
        if host is None:
            raise NotHere(f"{self.name}: the network is not up; move the line below net.build()")
        return host

    def wire_ends(self) -> dict[str, int]:
        """The index of each wire of it by Mininet-WiFi's name of its end: ports are numbered, after the radios."""
        wires = [index for index, wire in enumerate(self.net.wires) if self.name in (wire["station"], wire["host"])]
        first = len(self.params.get("wlan", ())) + len(self.cable_ends())
        return {f"{self.name}-eth{port}": wire for port, wire in enumerate(wires, start=first)}

    def cable_ends(self) -> dict[str, int]:
        """The index of each cable of it by the name of its end (testbed/stages/access_points.py)."""
        cables = [index for index, cable in enumerate(self.net.cables) if self.name in (cable.a, cable.b)]
        return {f"{self.name}-eth{port}": cable for port, cable in enumerate(cables, start=int(isinstance(self, Station)))}

    def intfNames(self) -> list[str]:
        """The names of its interfaces, as in Mininet-WiFi."""
        return [*self.params.get("wlan", ()), *self.cable_ends(), *self.wire_ends()]

    def connections(self) -> list[tuple[str, str]]:
        """Each interface, with the other end of its wire or cable, or the kind of its radio's network."""
        kinds = [
            WIFI.get(self.net.adhoc.get(radio.radio, {}).get("cls", ""), "wifi") for radio in getattr(self, "wintfs", {}).values()
        ]
        ends = [(link.intf1, link.intf2) for link in self.net.links if isinstance(link, WireLink)]
        return [
            *zip(self.params.get("wlan", ()), kinds, strict=True),
            *((str(a), str(b)) for pair in ends for a, b in (pair, pair[::-1]) if a.node is self),
        ]

    def name_wires(self) -> None:
        """Give the ends of its wires Mininet-WiFi's names, besides their own."""
        ends, host = self.wire_ends(), self.host
        wires = self.net.running.network.net.wires
        here = {name: wires[at] for name, at in ends.items()}
        devices = {name: wire.interface if wire.gateway is host else wire.host_interface for name, wire in here.items()}
        lines = [f"link property add dev {device} altname {name}" for name, device in devices.items()]
        self.net.running.configure({host: lines} if lines else {}, "names")
        host.nameToIntf |= {name: host.nameToIntf[device] for name, device in devices.items()}

    def set_address(self, device: str, address: str) -> None:
        """Give a device that has no routes of the testbed an address, with the kernel's route to its network."""
        lines = [f"address flush dev {device} scope global to 0.0.0.0/0", f"address add {address} dev {device}"]
        self.net.running.configure({self.host: lines}, "own-address")
        interface = self.host.nameToIntf[device]
        interface.ip, _, interface.prefixLen = address.partition("/")

    def set_cable_address(self, intf: object, address: str) -> bool:
        """Give the end of a wire or a cable an address, now or in build(); False if `intf` is none of this node."""
        name = str(intf)
        if self.net.standing is None:
            if is_end := name in {**self.cable_ends(), **self.wire_ends()}:
                self.wire_ips[name] = address
            return is_end
        if is_end := name.startswith(("eth", f"{self.name}-eth")) and name in self.host.nameToIntf:
            self.set_address(name, address)
        return is_end

    def terminate(self) -> None:
        """Not supported: nodes end with the network. Raises UsageError."""
        raise UsageError(f"{self.name}.terminate: nodes end with the network; call net.stop()")


class Host(Node):
    """addHost: a host without a radio, at the other end of a wire to a station. `ip` is an address of its own, not the wire's."""

    def setIP(self, ip: str, prefixLen: int = PREFIX_BITS, intf: object = None) -> None:
        """Replace the address of its end of a wire or a cable, the first one by default."""
        address = ip if "/" in ip else f"{ip}/{prefixLen}"
        if intf is None and self.net.standing is None:
            self.params["ip"] = address
        elif not self.set_cable_address(intf or self.host.defaultIntf(), address):
            raise UsageError(f"{self.name}.setIP: intf={str(intf)!r}: is no interface of it; use {', '.join(self.intfNames())}")

    def take_address(self) -> None:
        """Add the script's address to the first wire's end. The host sends from it, and its gateway delivers to it."""
        text = self.params.get("ip")
        if text is None:
            return
        host = self.host
        wire = next(wire for wire in self.net.running.network.net.wires if wire.host is host)
        address, _, bits = str(text).partition("/")
        default = f"via {wire_ip(wire.number, GATEWAY_END)} dev {wire.host_interface}"
        lines = {
            host: [
                f"address add {address}/{bits or PREFIX_BITS} dev {wire.host_interface} noprefixroute",
                f"route replace default {default} src {address}",
            ],
            wire.gateway: [f"route add {address}/32 dev {wire.interface} scope link"],
        }
        self.net.running.configure(lines, "own-address")
        host.defaultIntf().ip, host.defaultIntf().prefixLen = address, bits or str(PREFIX_BITS)


class Nat(Host):
    """addNAT: a host at an access point's cable. A run has no network outside, so it translates nothing."""

    def configDefault(self) -> None:
        """No effect: there is no network outside for a default route."""


class Station(Node):
    """A station (addStation), number `order` from 1. `position`, in metres, is where it stands, or starts."""

    def __init__(self, net: ScriptNetwork, name: str, order: int, params: dict[str, Any]) -> None:
        super().__init__(net, name, params)
        self.order = order
        self.ip = str(params.get("ip") or f"{ip_address(order)}/{PREFIX_BITS}")
        self.ip6 = [str(params["ip6"])] if "ip6" in params else []  # set by build()
        wlans = int(number(name, "wlans", self.params.pop("wlans", 1), 1, MAX_RADIOS))
        self.params["wlan"] = [f"{name}-wlan{index}" for index in range(wlans)]
        self.wintfs = {index: WirelessInterface(self, index) for index in range(wlans)}
        self.declared_position = point(name, "position", params["position"]) if "position" in params else None

    @property
    def position(self) -> tuple[float, float, float]:
        """The current position of a running station, else the declared one. Without one: NotHere, an AttributeError as in
        Mininet-WiFi."""
        standing = self.net.standing
        if standing is not None:
            return tuple(standing.network.medium.ask("positions")["positions"][self.name])
        if self.declared_position is None:
            raise NotHere(f"{self.name}.position: has none; add position='x,y,z' to addStation, in metres")
        return self.declared_position

    @position.setter
    def position(self, place: object) -> None:
        """See setPosition()."""
        self.setPosition(place)

    def setPosition(self, pos: object) -> None:
        """Move to `'x,y,z'` in metres; a running station moves at once."""
        place = point(f"{self.name}.setPosition", "pos", pos)
        standing = self.net.standing
        if standing is not None:
            try:
                standing.live.do({"move": self.name, "to": list(place)}, SCRIPT, {"to": "pos"})
            except UsageError as problem:
                raise UsageError(f"{self.name}.setPosition: {problem}") from None
        self.declared_position = place

    def get_distance_to(self, dst: "Station") -> float:
        """The distance to another station in metres, rounded to centimetres."""
        a, b = self.position, dst.position
        return round(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5, 2)

    def setRange(self, range: object, intf: object = None) -> None:
        """Range of the radio in metres; replaces a power."""
        self._radio("setRange", "range", range, intf)

    def setTxPower(self, txpower: object, intf: object = None) -> None:
        """Transmit power in dBm; replaces a range."""
        self._radio("setTxPower", "txpower", txpower, intf)

    def setAntennaGain(self, gain: object, intf: object = None) -> None:
        """Antenna gain in dBi, for what the station sends and what it receives."""
        self._radio("setAntennaGain", "antennaGain", gain, intf)

    def setAntennaHeight(self, height: object, intf: object = None) -> None:
        """Height of the antenna in metres; only twoRayGround depends on it."""
        self._radio("setAntennaHeight", "antennaHeight", height, intf)

    def get_txpower(self, intf: object = None) -> float:
        """Transmit power in dBm."""
        return self.interface("get_txpower", intf).txpower

    def setMediumId(self, medium_id: object, intf: object = None) -> None:
        """No effect, with a note: distance decides which networks contend."""
        self.interface("setMediumId", intf)
        self.net.setInitialMediums(medium_id)

    def getNameToWintf(self, intf: object = None) -> WirelessInterface:
        """The interface of this name."""
        return self.interface("getNameToWintf", intf)

    def _radio(self, call: str, name: str, value: object, intf: object) -> None:
        self.interface(call, intf)
        self.net.change_radio(self, call, name, within(f"{self.name}.{call}", name, value, LIMITS[name]))

    def IP(self, intf: object = None) -> str:
        """The IPv4 address."""
        return self.interface("IP", intf).ip

    def MAC(self, intf: object = None) -> str:
        """The MAC address of the radio."""
        return self.interface("MAC", intf).mac

    def setMasterMode(self, intf: object = None, ssid: str = "new-ssid", **given: object) -> None:
        """Make a radio an access point, before build(); the other arguments are those of infrastructure.MASTER. Raises
        UsageError."""
        self.net.make_master(self.interface("setMasterMode", intf), {"ssid": ssid, **given})

    def setIP(self, ip: str, prefixLen: int = PREFIX_BITS, intf: object = None) -> None:
        """Replace the address of a radio, the first one by default, or of the end of a cable."""
        address = ip if "/" in ip else f"{ip}/{prefixLen}"
        if intf is not None and self.set_cable_address(intf, address):
            return
        radio = self.interface("setIP", intf)
        if radio.id:
            radio.own_ip = address
            if self.net.standing is not None:
                self.set_address(radio.name, address)
            return
        self.ip = address
        if self.net.standing is not None:
            self.net.check_addresses()
            self.take_address()

    def take_address(self) -> None:
        """The script's address on the radio, in place of the one that comes with the station's number."""
        host, own = self.host, f"{ip_address(self.order)}/{PREFIX_BITS}"
        radio = host.radio.name
        address, _, bits = self.ip.partition("/")
        if host.radio.ip == address and self.ip == own:
            return
        # the network's own route is there already (routing/none.py)
        inside = " noprefixroute" if (address.split(".")[0], bits) == (NETWORK.split(".")[0], str(PREFIX_BITS)) else ""
        lines = [f"address flush dev {radio} scope global to 0.0.0.0/0", f"address add {self.ip} dev {radio}{inside}"]
        lines += [f"route replace {NETWORK}/{PREFIX_BITS} dev {radio} scope link", *routes_of_groups(radio)]
        self.net.running.configure({host: lines}, "own-address")
        host.radio.ip, host.radio.prefixLen = address, bits

    def setIP6(self, ip: str, prefixLen: int = 64, intf: object = None) -> None:
        """Add an IPv6 address. The kernel sends IPv6 control traffic from then on."""
        self.interface("setIP6", intf)
        address = ip if "/" in ip else f"{ip}/{prefixLen}"
        if self.net.standing is None:
            self.ip6.append(address)
            return
        host = self.host
        radio = host.radio.name
        sysctls = {"net.ipv6.conf.all.forwarding": 1, **ipv6_sysctls(radio)}
        self.net.running.configure({host: [f"address replace {address} dev {radio} nodad"]}, "ip6", sysctls)

    def interface(self, call: str, intf: object) -> WirelessInterface:
        """The radio of this name, by default the first. Raises UsageError for another name."""
        names = {"None": 0, INTERFACE: 0}
        for index, radio in self.wintfs.items():
            names |= {radio.name: index, radio.name_of_kind("wlan"): index}
        if str(intf) not in names:
            known = ", ".join(map(str, self.params["wlan"]))
            raise UsageError(f"{self.name}.{call}: intf={str(intf)!r}: is no radio of it; use {known}")
        return self.wintfs[names[str(intf)]]


class AP:
    """The classes of access points, for addAccessPoint(cls=...) and Mininet_wifi(accessPoint=...), which note that they have no
    effect."""


UserAP = OVSAP = OVSKernelAP = AP
REMEDY = "is not supported: a node is a Station (addStation) or a Host (addHost); docs/mininet-wifi.md lists the classes"
__getattr__ = refuse_others(
    "mn_wifi.node",
    {"physicalAP": "radios of the machine are not used here; use net.addAccessPoint without cls"},
    REMEDY,
)  # fmt: skip
