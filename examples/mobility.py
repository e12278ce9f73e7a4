#!/usr/bin/env python3

"""Two stations walk in straight lines, each from a place at one time to another place at another time.

Every five seconds the script prints their distance and whether they reach each other; `-c` sets several places to walk to. At
the prompt: distance sta1 sta2, links, map, stop.
"""

import re
import sys
import time

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference


def topology(args):
    """Build the network, let the stations walk and open the prompt."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)

    info("*** Stations\n")
    sta1 = net.addStation("sta1", ip="10.0.0.1/8", range=50)
    sta2 = net.addStation("sta2", ip="10.0.0.2/8", range=50)
    net.setPropagationModel(model="logDistance", exp=4.5)
    net.configureNodes()

    info("*** Links\n")
    for sta in (sta1, sta2):
        net.addLink(sta, cls=adhoc, ssid="adhocNet", mode="g", channel=5)

    net.plotGraph(max_x=200, max_y=200)

    begin, end = {"position": "10,30,0"}, {"position": "10,40,0"}
    away, there = {"position": "100,30,0"}, {"position": "40,40,0"}
    if "-c" in args:
        sta1.coord = ["10,30,0", "100,30,0", "100,60,0"]
        sta2.coord = ["10,40,0", "40,40,0", "40,60,0"]
        begin = end = away = there = {}

    net.startMobility(time=0)
    net.mobility(sta1, "start", time=1, **begin)
    net.mobility(sta2, "start", time=2, **end)
    net.mobility(sta1, "stop", time=11, **away)
    net.mobility(sta2, "stop", time=12, **there)
    net.stopMobility(time=13)

    info("*** Network\n")
    net.build()
    for _ in range(3):
        heard = re.search("1 received", sta1.cmd(f"ping -c1 -W1 {sta2.IP()}"))
        info("*** {:.1f} m apart: {}\n".format(sta1.get_distance_to(sta2), "within reach" if heard else "out of reach"))
        time.sleep(5)

    CLI(net)
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
