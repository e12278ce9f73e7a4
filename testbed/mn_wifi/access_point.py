"""net.addAccessPoint: an access point as a script declares it, and the commands for a switch that it answers.

Of OpenFlow it has one rule, by which scripts let the stations of an isolated access point reach each other: what arrives by radio
is sent back there, too (`in_port=1,actions=in_port,normal`). The bridge does that for all kinds of frames.
"""

import shlex
from typing import Any

from testbed.errors import UsageError
from testbed.mn_wifi.arguments import note, number, point
from testbed.mn_wifi.node import MAX_RADIOS, Node, ScriptNetwork, Station, WirelessInterface
from testbed.stages import access_points
from topologies.addresses import PREFIX_BITS

OPENFLOW = ("ovs-", "dpctl")
ADD_FLOW = ["ovs-ofctl", "add-flow"]
OF_ALL_FRAMES = {"arp", "icmp", "ip", "tcp", "udp", "in_port=1"}  # matches that the bridge does not tell apart
NO_OPENFLOW = "access points are learning bridges here (bridge(8)), without OpenFlow; leave the line out"


class AccessPoint(Station):
    """An access point; its number follows those of all stations. It bridges, and has no address of its own, unless `ip` states
    one. Each of several radios serves one network, unless it joins a mesh."""

    def __init__(self, net: ScriptNetwork, name: str, params: dict[str, Any]) -> None:
        Node.__init__(self, net, name, params)
        self.ip, self.ip6 = str(params.get("ip", "")), []
        wlans = int(number(name, "wlans", self.params.pop("wlans", 1), 1, MAX_RADIOS))
        self.params["wlan"] = [f"{name}-wlan{port}" for port in range(1, wlans + 1)]  # as Mininet-WiFi counts them
        self.wintfs = {index: WirelessInterface(self, index) for index in range(wlans)}
        self.declared_position = point(name, "position", params["position"]) if "position" in params else None
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

    def setIP(self, ip: str, prefixLen: int = 8, intf: object = None) -> None:
        """Not supported. Raises UsageError."""
        raise UsageError(f"{self.name}.setIP: an access point is a bridge; give addAccessPoint its ip, or leave it out")

    def take_address(self) -> None:
        """The script's address, on the bridge or the only radio."""
        if self.ip:
            device = access_points.BRIDGE if self.name in self.net.bridges() else self.host.radio.name
            lines = [f"address replace {self.ip if '/' in self.ip else f'{self.ip}/{PREFIX_BITS}'} dev {device}"]
            self.net.running.configure({self.host: lines}, "own-address")

    def cmd(self, *words: object, **more: object) -> str:
        """Like Mininet's. Of the commands for a switch only the rule that sends frames back is executed; others raise
        UsageError."""
        line = " ".join(map(str, words)).strip()
        if sends_back(line, self.name):
            return self._send_back(line)
        if line.startswith(OPENFLOW):
            raise UsageError(f"{self.name}.cmd: {line.split()[0]}: {NO_OPENFLOW}")
        return self.host.cmd(*words, **more)

    def _send_back(self, line: str) -> str:
        call = f"{self.name}.cmd: {line.split()[0]}"
        if not self.params.get("client_isolation"):
            note(f"{call}: its stations reach each other without the rule; it has no effect", self.net.notes)
            return ""
        note(f"{call}: frames of every kind are sent back to the radio that they came from, by the bridge", self.net.notes)
        access_points.send_back(self.net.running.site, self.host)
        return ""


def sends_back(line: str, name: str) -> bool:
    """Whether a command adds the rule, to the switch `name`, that forwards what arrives by radio also to where it came from."""
    try:
        argv = shlex.split(line)
    except ValueError:
        return False
    if argv[:2] != ADD_FLOW or argv[2:3] != [name] or len(argv) != 4:
        return False
    matches, _, actions = argv[3].partition("actions=")
    chosen = {match for match in matches.split(",") if match and not match.startswith("priority=")}
    return chosen <= OF_ALL_FRAMES and {action.removeprefix("output:") for action in actions.split(",")} == {"in_port", "normal"}
