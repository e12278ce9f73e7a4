"""Stations and hosts as a script declares them. Once the network is up, each passes calls on to its running Mininet host."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from record.events_file import SCRIPT
from testbed.errors import UsageError
from testbed.host import namespace
from testbed.mn_wifi.arguments import number, point, refuse_others, within
from testbed.mn_wifi.interface import NotHere, WirelessInterface, WireLink
from testbed.mn_wifi.settings import LIMITS
from testbed.stages.addresses import routes_of_groups
from testbed.stages.station import ipv6_sysctls
from topologies.addresses import GATEWAY_END, INTERFACE, NETWORK, PREFIX_BITS, ip_address, wire_ip

if TYPE_CHECKING:
    from testbed.mn_wifi.net import Mininet_wifi
    from testbed.stages.station import NamespaceHost


MAX_RADIOS = 8
WIFI = {"adhoc": "wifiAdhoc", "mesh": "wifiMesh", "ITSLink": "wifiITS"}  # by the class of the radio's link
# Attributes that Mininet's constructor sets, so that dir() of the class does not list them.
ATTRIBUTES_OF_HOSTS = (
    "decoder", "execed", "intfs", "lastCmd", "lastPid", "master", "nameToIntf", "pid", "pollOut", "ports", "radio", "readbuf",
    "shell", "slave", "stdin", "stdout", "waitExited", "waiting",
)  # fmt: skip


def _known_of_hosts() -> set[str]:
    """The attributes of a running host."""
    from testbed.stages.station import NamespaceHost

    return {*dir(NamespaceHost), *ATTRIBUTES_OF_HOSTS}


def _remedy(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, [word for word in known if not word.startswith("_")], n=1, cutoff=0.8)
    return f'is not supported; did you mean "{close[0]}"?' if close else "is not supported; docs/mininet-wifi.md lists what is"


class Node:
    """The common part of stations and hosts. A script may set other attributes, as in Mininet-WiFi."""

    def __init__(self, net: "Mininet_wifi", name: str, params: dict[str, Any]) -> None:
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
        known = _known_of_hosts() if host is None else dir(host)
        if name not in known:
            raise NotHere(f"{self.name}.{name}: {_remedy(name, {*known, *dir(self)})}")
        if host is None:
            raise NotHere(f"{self.name}.{name}: not available before the network is up; move the line below net.build()")
        return getattr(host, name)

    @property
    def host(self) -> "NamespaceHost":
        """The running host. Raises NotHere before the network is up."""
        found = self.net.host_of(self.name)
        if found is None:
            raise NotHere(f"{self.name}: the network is not up; move the line below net.build()")
        return found

    def wire_ends(self) -> dict[str, int]:
        """The index of each wire of it by Mininet-WiFi's name of its end: ports are numbered, after the radios."""
        wires = [index for index, wire in enumerate(self.net.wires) if self.name in (wire["station"], wire["host"])]
        first = len(self.params.get("wlan", ())) + len(self.cable_ends())
        return {f"{self.name}-eth{port}": wire for port, wire in enumerate(wires, start=first)}

    def cable_ends(self) -> dict[str, int]:
        """The index of each cable of it by the name of its end (testbed/stages/access_points.py)."""
        cables = [index for index, cable in enumerate(self.net.infrastructure.cables) if self.name in (cable.a, cable.b)]
        return {f"{self.name}-eth{port}": cable for port, cable in enumerate(cables, start=int(isinstance(self, Station)))}

    def intfNames(self) -> list[str]:
        """The names of its interfaces, as in Mininet-WiFi."""
        return [*self.params.get("wlan", ()), *self.cable_ends(), *self.wire_ends()]

    def connections(self) -> list[tuple[str, str]]:
        """Each interface, with the other end of its wire or cable, or the kind of its radio's network."""
        adhoc = self.net._adhoc
        kinds = [WIFI.get(adhoc.get(radio.radio, {}).get("cls"), "wifi") for radio in getattr(self, "wintfs", {}).values()]
        ends = [(link.intf1, link.intf2) for link in self.net.links if isinstance(link, WireLink)]
        return [
            *zip(self.params.get("wlan", ()), kinds, strict=True),
            *((str(a), str(b)) for pair in ends for a, b in (pair, pair[::-1]) if a.node is self),
        ]

    def name_wires(self) -> None:
        """Give the ends of its wires Mininet-WiFi's names, besides their own."""
        ends, host = self.wire_ends(), self.host
        wires = self.net.standing.network.net.wires
        here = {name: wires[at] for name, at in ends.items()}
        devices = {name: wire.interface if wire.gateway is host else wire.host_interface for name, wire in here.items()}
        lines = [f"link property add dev {device} altname {name}" for name, device in devices.items()]
        self.net.standing.configure({host: lines} if lines else {}, "names")
        host.nameToIntf |= {name: host.nameToIntf[device] for name, device in devices.items()}

    def set_address(self, device: str, address: str) -> None:
        """Give a device that has no routes of the testbed an address, with the kernel's route to its network."""
        lines = [f"address flush dev {device} scope global to 0.0.0.0/0", f"address add {address} dev {device}"]
        self.net.standing.configure({self.host: lines}, "own-address")
        interface = self.host.nameToIntf[device]
        interface.ip, _, interface.prefixLen = address.partition("/")

    def set_cable_address(self, intf: object, address: str) -> bool:
        """Give the end of a wire or a cable an address, now or in build(); False if `intf` is none of this node."""
        name = str(intf)
        if self.net.standing is None:
            if found := name in {**self.cable_ends(), **self.wire_ends()}:
                self.wire_ips[name] = address
            return found
        if found := name.startswith(("eth", f"{self.name}-eth")) and name in self.host.nameToIntf:
            self.set_address(name, address)
        return found

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
        wire = next(wire for wire in self.net.standing.network.net.wires if wire.host is host)
        address, _, bits = str(text).partition("/")
        default = f"via {wire_ip(wire.number, GATEWAY_END)} dev {wire.host_interface}"
        lines = {
            host: [
                f"address add {address}/{bits or PREFIX_BITS} dev {wire.host_interface} noprefixroute",
                f"route replace default {default} src {address}",
            ],
            wire.gateway: [f"route add {address}/32 dev {wire.interface} scope link"],
        }
        self.net.standing.configure(lines, "own-address")
        host.defaultIntf().ip, host.defaultIntf().prefixLen = address, bits or str(PREFIX_BITS)


class Nat(Host):
    """addNAT: a host at an access point's cable. A run has no network outside, so it translates nothing."""

    def configDefault(self) -> None:
        """No effect: there is no network outside for a default route."""


class Station(Node):
    """A station (addStation), number `order` from 1. `position`, in metres, is where it stands, or starts."""

    def __init__(self, net: "Mininet_wifi", name: str, order: int, params: dict[str, Any]) -> None:
        super().__init__(net, name, params)
        self.order = order
        self.ip = str(params.get("ip") or f"{ip_address(order)}/{PREFIX_BITS}")
        self.ip6 = [str(params["ip6"])] if "ip6" in params else []  # set by build()
        wlans = int(number(name, "wlans", self.params.pop("wlans", 1), 1, MAX_RADIOS))
        self.params["wlan"] = [f"{name}-wlan{index}" for index in range(wlans)]
        self.wintfs = {index: WirelessInterface(self, index) for index in range(wlans)}
        self._place = point(name, "position", params["position"]) if "position" in params else None

    @property
    def position(self) -> tuple[float, float, float]:
        """The current position of a running station, else the declared one. Without one: NotHere, an AttributeError as in
        Mininet-WiFi."""
        standing = self.net.standing
        if standing is not None:
            return tuple(standing.network.medium.ask("positions")["positions"][self.name])
        if self._place is None:
            raise NotHere(f"{self.name}.position: has none; add position='x,y,z' to addStation, in metres")
        return self._place

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
        self._place = place

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
        self.net.master_mode(self.interface("setMasterMode", intf), {"ssid": ssid, **given})

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
        self.net.standing.configure({host: lines}, "own-address")
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
        namespace.within(host.netns, lambda: namespace.write_sysctls(sysctls))
        self.net.standing.configure({host: [f"address replace {address} dev {radio} nodad"]}, "ip6")

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
