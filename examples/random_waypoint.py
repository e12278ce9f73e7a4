#!/usr/bin/env python3

"""Six stations wander by random waypoint, 1 to 5 m/s, over 200 m x 200 m, with AODV.

The argument is another model: RandomDirection, RandomWalk, GaussMarkov. The same seed gives the same movement every time.
"""

import sys
import time

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference


def topology(args):
    """Build the network, start the movement and open the prompt; `args`: the model (RandomWayPoint)."""
    model = args[0] if args else "RandomWayPoint"
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)

    info("*** Stations\n")
    for number in range(1, 7):
        net.addStation(f"sta{number}", min_v=1, max_v=5, range=100)
    net.configureNodes()

    info("*** Links\n")
    for sta in net.stations:
        net.addLink(sta, cls=adhoc, ssid="adhocNet", mode="g", channel=5, proto="aodv")

    net.plotGraph(max_x=200, max_y=200)
    net.setMobilityModel(time=0, model=model, max_x=200, max_y=200, min_wt=0, max_wt=2, seed=20)

    info("*** Network\n")
    net.build()
    for _ in range(3):
        places = ", ".join("{} ({:.0f}, {:.0f})".format(sta.name, *sta.position[:2]) for sta in net.stations)
        info(f"*** {places}\n")
        time.sleep(2)

    CLI(net)
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
