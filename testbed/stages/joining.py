"""Stations that iw(8) joins to an ad hoc network or a mesh, beside others that have access points (hwsim mode `managed`).

Channel and, of an IBSS, the BSSID are given, so that nobody scans; beacons are as rare as those of a network whose radios the
medium joins itself (medium/daemon/src/hwsim.rs).
"""

import subprocess
from collections.abc import Sequence

from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages import iproute
from testbed.stages.access_points import frequency_mhz
from testbed.stages.addresses import routes_of_groups
from testbed.stages.radio_rates import profile
from testbed.stages.routing import Network
from testbed.stages.station import FurtherRadio, Station
from topologies.addresses import NETWORK, PREFIX_BITS

BSSID = "02:00:00:00:00:00"  # as medium/daemon/src/captured_frame.rs
BEACON_INTERVAL_TU = 1000
KINDS = {"adhoc": "ibss", "mesh": "mp"}  # nl80211's types of an interface, in the words of iw


def join(network: Network, stations: Sequence[Station | FurtherRadio], kind: str, name: str, channel: int = 1) -> None:
    """Join the radios to the network `name`, an SSID or a mesh ID; `kind` is a key of KINDS, `channel` one of CHANNELS. Raises
    RunError."""
    frequency = str(frequency_mhz(channel))
    rate = f"{profile(network.site.scenario)['broadcast_rate_bps'] / 1e6:g}"
    rates, beacons = ["basic-rates", rate, "mcast-rate", rate], ["beacon-interval", str(BEACON_INTERVAL_TU)]
    words = ["ibss", "join", name, frequency, "NOHT", "fixed-freq", BSSID, *beacons, *rates]
    if kind == "mesh":
        words = ["mesh", "join", name, "freq", frequency, "NOHT", *rates, *beacons]
    for station in stations:
        _set_type(network, station, kind)
        iw(station, *words)


def _set_type(network: Network, station: Station | FurtherRadio, kind: str) -> None:
    """mac80211 makes a mesh interface only of one that is down, which costs it its routes."""
    if kind != "mesh":
        iw(station, "set", "type", KINDS[kind])
        return
    device, owner = station.radio.name, station.station
    iproute.batches({owner: [f"link set {device} down"]}, "mesh-down", network.site.log)
    iw(station, "set", "type", KINDS[kind])
    routes = [f"route replace {NETWORK}/{PREFIX_BITS} dev {device} scope link"] if station.radio.ip else []
    routes += routes_of_groups(device) if station is owner else []
    iproute.batches({owner: [f"link set {device} up", *routes]}, "mesh-up", network.site.log)


def iw(station: Station | FurtherRadio, *words: str) -> str:
    """The output of `iw dev DEVICE WORDS` for a radio. Raises RunError."""
    argv = ["iw", "dev", station.radio.name, *words]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    done = namespace.within(station.netns, run)
    if done.returncode != 0:
        raise RunError(f"{station.name}: {' '.join(argv)}: {(done.stderr or done.stdout).strip()[:200]}; see dmesg")
    return done.stdout
