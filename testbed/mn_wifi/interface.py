"""The interfaces and links of a script's network, as scripts read them: `sta.wintfs[0]`, `net.links`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbed.mn_wifi.node import Node, Station


class WirelessInterface:
    """The radio of a station: its name, addresses, network and power. It is the station's link, too: a radio has no other end."""

    id = 0

    def __init__(self, station: "Station") -> None:
        self.node = station

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def name(self) -> str:
        """The name of the interface, also in the kernel: `sta1-wlan0`."""
        return str(self.node.params["wlan"][0])

    @property
    def mac(self) -> str:
        """The MAC address."""
        return self.node.MAC()

    @property
    def ip(self) -> str:
        """The IPv4 address."""
        return self.node.IP()

    @property
    def prefixLen(self) -> str:
        """The prefix length of the IPv4 address, as text."""
        return self.node.ip.partition("/")[2]

    @property
    def ssid(self) -> str:
        """The name of the ad hoc network."""
        return str(self.node.net.option_of(self.node, "ssid", "adhocNet"))

    @property
    def mode(self) -> str:
        """`a`, `b` or `g`."""
        return self.node.net.radio_of(self.node).mode

    @property
    def channel(self) -> int:
        """The number of the channel."""
        return self.node.net.radio_of(self.node).channel

    @property
    def freq(self) -> float:
        """The frequency of the channel, GHz."""
        return self.node.net.radio_of(self.node).frequency_hz() / 1e9

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

    def IP(self) -> str:
        """The IPv4 address."""
        return self.ip

    def MAC(self) -> str:
        """The MAC address."""
        return self.mac

    def setRange(self, range: object) -> None:
        """As the station's."""
        self.node.setRange(range)

    def setTxPower(self, txpower: object) -> None:
        """As the station's."""
        self.node.setTxPower(txpower)

    def setAntennaGain(self, gain: object) -> None:
        """As the station's."""
        self.node.setAntennaGain(gain)

    def setAntennaHeight(self, height: object) -> None:
        """As the station's."""
        self.node.setAntennaHeight(height)

    def setMediumId(self, medium_id: object) -> None:
        """As the station's."""
        self.node.setMediumId(medium_id)

    def setIP(self, ip: str, **given: Any) -> None:
        """As the station's."""
        self.node.setIP(ip, **given)


class WireEnd:
    """One end of a wire; `name` is its interface once the network is up, before that the node's name."""

    def __init__(self, node: "Node", link: "WireLink", end: str) -> None:
        self.node, self.link, self._end = node, link, end

    @property
    def name(self) -> str:
        """The name of the interface."""
        standing = self.node.net.standing
        if standing is None:
            return self.node.name
        return str(getattr(standing.network.net.wires[self.link.number - 1], self._end))

    def __str__(self) -> str:
        return self.name


class WireLink:
    """Wire number `number`, from 1: what addLink(station, host) returns."""

    def __init__(self, number: int, station: "Node", host: "Node") -> None:
        self.number = number
        self.intf1, self.intf2 = WireEnd(station, self, "interface"), WireEnd(host, self, "host_interface")

    def __str__(self) -> str:
        return f"{self.intf1.node}-{self.intf1}<->{self.intf2.node}-{self.intf2}"

    __repr__ = __str__
