"""net.addAccessPoint: an access point as a script declares it."""

from typing import TYPE_CHECKING, Any

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import point
from testbed.mn_wifi.interface import WirelessInterface
from testbed.mn_wifi.node import Node, Station

if TYPE_CHECKING:
    from testbed.mn_wifi.net import Mininet_wifi

OPENFLOW = ("ovs-", "dpctl")
NO_OPENFLOW = "access points are learning bridges here (bridge(8)), without OpenFlow; leave the line out"


class AccessPoint(Station):
    """An access point; its number follows those of all stations. It bridges, and has no address of its own."""

    passphrase: str | None = None

    def __init__(self, net: "Mininet_wifi", name: str, params: dict[str, Any]) -> None:
        Node.__init__(self, net, name, params)
        self.ip = ""
        self.params["wlan"] = [f"{name}-wlan1"]  # Mininet-WiFi counts an access point's from 1
        self.wintfs = {0: WirelessInterface(self)}
        self._place = point(name, "position", params["position"]) if "position" in params else None
        self.ssid = params["ssid"] = str(params.get("ssid", f"ssid-{name}"))

    @property
    def order(self) -> int:  # type: ignore[override]
        """Its number among stations and access points, from 1."""
        points = self.net.aps
        return len(self.net.stations) + 1 + (points.index(self) if self in points else len(points))

    def start(self, _controllers: object = None) -> None:
        """No effect: build() has started it."""

    def stop(self) -> None:
        """No effect: it ends with the network."""

    def IP(self, intf: object = None) -> str:
        """Empty: it has no address."""
        self.interface("IP", intf)
        return ""

    def setIP(self, ip: str, prefixLen: int = 8, intf: object = None) -> None:
        """Not supported. Raises UsageError."""
        raise UsageError(f"{self.name}.setIP: an access point is a bridge without an address; leave it out")

    def cmd(self, *words: object, **more: object) -> str:
        """As Mininet's; a command for a switch raises UsageError, for its effect would be missing."""
        line = " ".join(map(str, words)).strip()
        if line.startswith(OPENFLOW):
            raise UsageError(f"{self.name}.cmd: {line.split()[0]}: {NO_OPENFLOW}")
        return self.host.cmd(*words, **more)
