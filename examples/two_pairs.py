#!/usr/bin/env python3

"""Two pairs of stations: side by side they share the air; far apart each has all of it.

    sta1 -> sta2 (100 m), alone; with sta3 -> sta4 100 m aside; with that pair 2000 m away. The argument is the duration of each
measurement, in seconds.
"""

import sys

from mininet.log import info, setLogLevel
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference
from udp import mark, throughputs

OFFERED = 1800  # kbit/s: more than the capacity at 2 Mbit/s


def measure(aside, seconds):
    """Throughput of each pair (kbit/s) and the verdict; `aside`: how far away the second pair is, None for a first pair alone."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference, scenario={"radio": "ns2-dsss-2m"})
    net.setPropagationModel(model="twoRayGround")
    pairs = []
    for number, y in enumerate((0, aside or 2000)):
        ends = [net.addStation(f"sta{2 * number + k}", position=f"{100 * k},{y},0") for k in (1, 2)]
        pairs.append(ends)
    net.configureNodes()
    for sta in net.stations:
        net.addLink(sta, cls=adhoc, ssid="adhocNet")
    net.build()
    found = throughputs(net, pairs[:1] if aside is None else pairs, OFFERED, seconds)
    return found, net.stop()


def topology(args):
    """Measure one pair alone, both side by side, both far apart; `args`: seconds of each measurement (10)."""
    seconds = float(args[0]) if args else 10
    for what, aside in (("alone", None), ("side by side", 100), ("far apart", 2000)):
        found, verdict = measure(aside, seconds)
        info(f"*** {what}: {' and '.join(f'{kbps:.0f}' for kbps in found)} kbit/s{mark(verdict)}\n")


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
