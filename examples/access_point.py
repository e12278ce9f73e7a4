#!/usr/bin/env python3

"""An access point with two stations and a wired host: association, ping through the access point, and TCP between the stations.

The argument `wpa2` encrypts. Access points need the radios of mac80211_hwsim: `./manet script` moves into a guest by itself.
"""

import sys

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.net import Mininet_wifi


def topology(args):
    """Build the network, show both sides of the association, and open the prompt; `args`: `wpa2`."""
    secret = {"encrypt": "wpa2", "passwd": "123456789a"} if "wpa2" in args else {}
    net = Mininet_wifi()

    info("*** Nodes\n")
    ap1 = net.addAccessPoint("ap1", ssid="new-ssid", mode="g", channel="1", position="50,50,0", **secret)
    sta1 = net.addStation("sta1", position="30,60,0", **secret)
    sta2 = net.addStation("sta2", position="70,30,0", **secret)
    h1 = net.addHost("h1", ip="10.0.0.100/8")
    net.setPropagationModel(model="logDistance", exp=4.5)
    net.configureNodes()

    info("*** Links\n")
    net.addLink(sta1, ap1)
    net.addLink(sta2, ap1)
    net.addLink(ap1, h1)

    info("*** Network\n")
    net.build()
    ap1.start([])

    info(sta1.cmd("iw dev sta1-wlan0 link"))
    info(ap1.cmd("iw dev ap1-wlan1 station dump"))
    lost = net.pingAll()
    info(f"*** {lost:g} % of the pings lost\n")
    net.iperf([sta1, sta2], seconds=1)

    info("*** Prompt\n")
    CLI(net)
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
