#!/usr/bin/env python3

"""Two stations follow recorded tracks: a file for each, with a position (x y, metres) in every line.

`speed` is the number of positions per second. (A movement file of ns-2, BonnMotion or GPX: `replay FILE` at the prompt.)
"""

import sys
import time
from pathlib import Path

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.replaying import ReplayingMobility
from mn_wifi.wmediumdConnector import interference

FOLDER = Path(__file__).parent / "replay"


def topology(args):
    """Build the network, replay both files and open the prompt."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)

    info("*** Stations\n")
    sta1 = net.addStation("sta1", speed=4, range=80)
    sta2 = net.addStation("sta2", speed=2, range=80)
    net.setPropagationModel(model="logDistance", exp=4.5)
    net.configureNodes()

    info("*** Links\n")
    for sta in (sta1, sta2):
        net.addLink(sta, cls=adhoc, ssid="adhocNet", mode="g", channel=5)

    net.isReplaying = True
    for sta in (sta1, sta2):
        sta.p = places(FOLDER / f"{sta.name}.dat")

    info("*** Network\n")
    net.build()

    info("*** Replay\n")
    ReplayingMobility(net)
    for _ in range(4):
        info("*** sta1 at ({:.0f}, {:.0f}), {:.1f} m from sta2\n".format(*sta1.position[:2], sta1.get_distance_to(sta2)))
        time.sleep(2)

    CLI(net)
    net.stop()


def places(path):
    """The positions (x, y, z) in metres of a file with `x y` in every line."""
    with path.open() as file:
        return [(float(x), float(y), 0.0) for x, y in (line.split() for line in file)]


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
