#!/usr/bin/env python3

"""A mesh of routed hops: a grid of 3 x 2 stations with OLSR. The far corner is reachable once the protocol has found a route.

802.11s (cls=mesh) is mac80211's own, for `--set stations=hwsim`; `proto` is the mesh that works on any radio.
"""

import re
import sys
import time

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference

DEADLINE_S = 90  # seconds


def topology(args):
    """Build the grid, wait for routes and open the prompt; `args`: the protocol (olsrd)."""
    proto = args[0] if args else "olsrd"
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)

    info("*** Stations\n")
    for number in range(6):
        position = f"{40 * (number % 3)},{40 * (number // 3)},0"
        net.addStation(f"sta{number + 1}", position=position, range=50)
    net.configureNodes()

    info("*** Links\n")
    for sta in net.stations:
        net.addLink(sta, cls=adhoc, ssid="meshNet", mode="g", channel=5, proto=proto)

    info("*** Network\n")
    net.build()
    first, last = net.get("sta1", "sta6")

    start = time.time()
    while not re.search("1 received", first.cmd(f"ping -c1 -W1 {last.IP()}")):
        if time.time() - start > DEADLINE_S:
            sys.exit(f"no way from sta1 to sta6 within {DEADLINE_S} s")
        time.sleep(1)
    info(f"*** {proto} has found the way after {time.time() - start:.0f} s:\n")
    info(first.cmd(f"ip route get {last.IP()}"))

    CLI(net)
    net.stop()


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
