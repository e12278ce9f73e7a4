#!/usr/bin/env python3

"""A station walks from one access point to another, by the strongest signal, and pings a host at the first one's cable.

The argument `wpa2` encrypts. Access points need the radios of mac80211_hwsim: `./manet script` moves into a guest by itself.
"""

import itertools
import re
import sys
import time

from mininet.log import info, setLogLevel
from mn_wifi.cli import CLI
from mn_wifi.net import Mininet_wifi

HOST = "10.0.0.100"
WALK_S = 8


def topology(args):
    """Build two access points with one network, let the station walk, and open the prompt; `args`: `wpa2`."""
    secret = {"encrypt": "wpa2", "passwd": "123456789a"} if "wpa2" in args else {}
    net = Mininet_wifi(ac_method="ssf")

    info("*** Nodes\n")
    sta1 = net.addStation("sta1")
    ap1 = net.addAccessPoint("ap1", ssid="handover", mode="g", channel="1", position="20,20,0", **secret)
    ap2 = net.addAccessPoint("ap2", ssid="handover", mode="g", channel="1", position="80,20,0", **secret)
    h1 = net.addHost("h1", ip=f"{HOST}/8")
    net.setPropagationModel(model="logDistance", exp=4)
    net.configureNodes()

    info("*** Links\n")
    net.addLink(ap1, ap2)
    net.addLink(ap1, h1)

    net.startMobility(time=0)
    net.mobility(sta1, "start", time=1, position="10,30,0")
    net.mobility(sta1, "stop", time=1 + WALK_S, position="90,30,0")
    net.stopMobility(time=2 + WALK_S)

    info("*** Network\n")
    net.build()
    began = time.monotonic()
    before = access_point(sta1)
    answers = sta1.cmd(f"ping -D -i 0.1 -w {WALK_S + 3} {HOST}")
    at_s = [float(stamp) for stamp in re.findall(r"^\[([\d.]+)\] \d+ bytes from", answers, re.MULTILINE)]
    longest_s = max((b - a for a, b in itertools.pairwise(at_s)), default=0)
    info(f"*** from {before} to {access_point(sta1)}, {time.monotonic() - began:.1f} s\n")
    info(f"*** {len(at_s)} answers; the longest time without one {longest_s:.2f} s\n")
    info("".join(line + "\n" for line in answers.splitlines() if "packet loss" in line))

    info("*** Prompt\n")
    CLI(net)
    net.stop()


def access_point(station):
    """The BSSID of the station's access point."""
    found = re.search(r"Connected to (\S+)", station.cmd(f"iw dev {station.params['wlan'][0]} link"))
    return found.group(1) if found else "none"


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
