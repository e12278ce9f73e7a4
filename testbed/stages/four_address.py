"""Links of four addresses between access points (hwsim mode `managed`): the radio of one has a second interface, a station of the
other whose frames name source and destination, too, so that a bridge may stand behind it (IEEE Std 802.11-2012 table 8-19).

hostapd gives each such station an interface of its own (`wds_sta`), `ap1-wlan0.sta1`, in the access point's bridge.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.errors import RunError
from testbed.host.processes import SLOWER
from testbed.stages import iproute
from testbed.stages.access_points import BRIDGE, AccessPoint, frequency_mhz
from testbed.stages.joining import iw
from testbed.stages.routing import Network
from testbed.stages.station import FurtherRadio, MediumInterface
from topologies.addresses import PREFIX_BITS

CONNECTED_WITHIN_S = 20.0 * SLOWER
AGAIN_AFTER_S = 5.0
EVERY_S = 0.2


@dataclass(frozen=True)
class FourAddressLink:
    """The access point `client`, by its radio's name, is a station of `point`."""

    point: AccessPoint
    client: AccessPoint


def connect(network: Network, links: Sequence[FourAddressLink]) -> None:
    """Make the second interfaces and associate them. Raises RunError for one that has no link in time."""
    counts: dict[str, int] = {}
    ends = []
    for link in links:
        number = counts.setdefault(link.client.name, 0)
        counts[link.client.name] += 1
        ends.append((link, _second_interface(network, link.client, number)))
    for link, end in ends:
        _associate(end, link.point)
        iproute.batches({end.station: [f"link set {end.name} master {BRIDGE}"]}, "four-address", network.site.log)


def _second_interface(network: Network, client: AccessPoint, number: int) -> FurtherRadio:
    """An additional interface on the radio of an access point, `ap2.wds0`, with an address of its own."""
    radio = network.net.radio(client.name)
    station = radio.station
    name = f"{client.name}.wds{number}"
    octets = client.bssid.split(":")
    mac = ":".join([octets[0], "09", f"{number:02x}", *octets[3:]])  # as Mininet-WiFi's
    iw(radio, "interface", "add", name, "type", "managed", "4addr", "on")
    iproute.batches({station: [f"link set {name} address {mac}", f"link set {name} up"]}, "four-address-up", network.site.log)
    return FurtherRadio(name, station, MediumInterface(station, name, mac, "", PREFIX_BITS, ""))


def _associate(end: FurtherRadio, point: AccessPoint) -> None:
    deadline = time.monotonic() + CONNECTED_WITHIN_S
    again = 0.0
    while not iw(end, "link").startswith(f"Connected to {point.bssid}"):
        now = time.monotonic()
        if now > deadline:
            raise RunError(f"{end.name}: no link to {point.name} within {CONNECTED_WITHIN_S:g} s; is it in range?")
        if now > again:
            again = now + AGAIN_AFTER_S
            iw(end, "connect", point.ssid, str(frequency_mhz(point.channel)), point.bssid)
        time.sleep(EVERY_S)
