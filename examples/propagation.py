#!/usr/bin/env python3

"""How far a radio reaches, by propagation model: one station, and others 25, 50, 100, 130 and 200 m away.

The same power and antennas throughout (-18 dBm, 5 dBi, 1 m high: the models then differ within these distances); ping shows which
stations the first one reaches. The arguments are models; without any, all of them.
"""

import re
import sys

from mininet.log import info, setLogLevel
from mn_wifi.link import adhoc, wmediumd
from mn_wifi.net import Mininet_wifi
from mn_wifi.wmediumdConnector import interference

DISTANCES = (25, 50, 100, 130, 200)
MODELS = {
    "friis": {},
    "logDistance": {"exp": 2.5},
    "logNormalShadowing": {"exp": 2.5, "variance": 6},
    "twoRayGround": {},
}


def reached(model):
    """The distances at which a station answers."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference)
    radio = {"txpower": -18, "antennaGain": 5, "antennaHeight": 1}
    first = net.addStation("sta1", position="0,0,0", **radio)
    others = [
        net.addStation(f"sta{number}", position=f"{distance},0,0", **radio) for number, distance in enumerate(DISTANCES, start=2)
    ]
    net.setPropagationModel(model=model, **MODELS[model])
    net.configureNodes()
    for sta in net.stations:
        net.addLink(sta, cls=adhoc, ssid="adhocNet", mode="g", channel=5)
    net.build()
    answers = [re.search("1 received", first.cmd(f"ping -c1 -W1 {sta.IP()}")) for sta in others]
    net.stop()
    return [distance for distance, answer in zip(DISTANCES, answers, strict=False) if answer]


def topology(args):
    """Print the distances (m) that each model reaches; `args`: names of models (all)."""
    if unknown := [model for model in args if model not in MODELS]:
        sys.exit(f"no propagation model {unknown[0]}; there are {', '.join(MODELS)}")
    for model in args or MODELS:
        info(f"*** {model} {MODELS[model] or ''}: reached {reached(model)}\n")


if __name__ == "__main__":
    setLogLevel("info")
    topology(sys.argv[1:])
