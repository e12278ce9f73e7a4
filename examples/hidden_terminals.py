#!/usr/bin/env python3

"""Hidden terminals: sta1 and sta3 do not hear each other, and both send to sta2, which is between them.

            200 m          200 m
    sta1 ---------- sta2 ---------- sta3        reception 250 m, carrier sense 300 m

Without RTS/CTS each sends during the other's frames, and sta2 receives little of either; sta2's CTS silences the other one.
The argument is how long each case is measured, in seconds.
"""

import sys

from mininet.log import info, setLogLevel
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference
from udp import mark, throughputs

OFFERED = 1500  # kbit/s from each side: together more than the capacity at 2 Mbit/s


def measure(rts, seconds):
    """Throughput from the left and from the right (kbit/s), how many frames collided, and the verdict."""
    net = Mininet_wifi(
        link=wmediumd,
        wmediumd_mode=interference,
        scenario={
            "radio": "ns2-dsss-2m",
            "radio_overrides": {"rts_threshold_bytes": 0 if rts else 3000},
            "propagation": {"model": "disc", "range_m": 250, "sense_m": 300},
        },
    )
    sta1 = net.addStation("sta1", position="0,0,0")
    sta2 = net.addStation("sta2", position="200,0,0")
    sta3 = net.addStation("sta3", position="400,0,0")
    net.configureNodes()
    for sta in (sta1, sta2, sta3):
        net.addLink(sta, cls=adhoc, ssid="adhocNet")
    net.build()
    before = lost(net)
    left, right = throughputs(net, [(sta1, sta2), (sta3, sta2)], OFFERED, seconds)
    after = lost(net)
    return left, right, after - before, net.stop()


def lost(net):
    """The number of frames (data, RTS) lost to a hidden sender, or to a sender that began in the same slot."""
    return sum(counted["fate_hidden"] + counted["fate_collision"] for counted in net.counters().values())


def topology(args):
    """Measure without and with RTS/CTS; `args`: seconds of each measurement (10)."""
    seconds = float(args[0]) if args else 10
    for rts in (False, True):
        left, right, lost, verdict = measure(rts, seconds)
        word = "with" if rts else "without"
        total = f"sta1 {left:.0f} + sta3 {right:.0f} = {left + right:.0f} kbit/s"
        info(f"*** {word} RTS/CTS: {total}, {lost} frames collided{mark(verdict)}\n")


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
