#!/usr/bin/env python3

"""Three stations in a row, 40 m apart, in one ad hoc network.

Each hears its neighbours; the outer two reach each other over the middle one if a routing protocol runs:
    ./manet script examples/adhoc.py            # none
    ./manet script examples/adhoc.py aodv       # also: olsrd, babel, batmand, batman_adv, dsr, dsdv, adv, tora
"""

import sys

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference


def topology(args):
    """Build the network, open the prompt and stop."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)

    info("*** Stations\n")
    sta1 = net.addStation("sta1", position="10,10,0", range=60)
    sta2 = net.addStation("sta2", position="50,10,0", range=60)
    sta3 = net.addStation("sta3", position="90,10,0", range=60)

    net.setPropagationModel(model="logDistance", exp=4)
    net.configureNodes()

    info("*** Links\n")
    options = {"proto": args[0]} if args else {}
    for sta in (sta1, sta2, sta3):
        net.addLink(sta, cls=adhoc, intf=f"{sta.name}-wlan0", ssid="adhocNet", mode="g", channel=5, **options)

    info("*** Network\n")
    net.build()

    info("*** Who reaches whom\n")
    net.pingAll(timeout=3)

    CLI(net)
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
