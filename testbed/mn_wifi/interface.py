"""The interfaces and links of a script's network, as scripts read them: `sta.wintfs[0]`, `net.links`."""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from testbed.errors import UsageError
from topologies.addresses import mac_address

if TYPE_CHECKING:
    from testbed.mn_wifi.node import Node, Station


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

    def __init__(self, station: "Station", number: int = 0, bss: Bss | None = None) -> None:
        self.node, self.id, self.bss = station, number, bss
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
        return self.node.net.infrastructure.associated(self)

    @property
    def rssi(self) -> float:
        """The power, dBm, at which it receives its access point, on Mininet-WiFi's scale; 0 without one, -60 before build()."""
        return self.node.net.infrastructure.rssi(self)

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

    def setMasterMode(self, **given: object) -> None:
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
