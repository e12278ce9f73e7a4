"""Makes the stations of a run with Mininet-WiFi's own classes, and keeps them until it is ended.

mininet_wifi.py starts it with the Python that has Mininet-WiFi, which may differ from the Python of this testbed. So it imports
nothing of this project. Its one argument is a JSON file (`builder_config` there). It prints `ready` and the pid of each station's
shell, and a signal ends it. Mininet-WiFi's `net.stop()` is never called: it ends all processes named like its daemons and unloads
the module.
"""

import ctypes
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

CARRIER_WITHIN_S = 60.0
CLONE_NEWNS = 0x0002_0000  # <linux/sched.h>


def main(path: str) -> None:
    """Build the stations that the JSON file at `path` describes, print their pids, and wait for a signal."""
    config = json.loads(Path(path).read_text())
    see_own_radios()
    net = build(config)
    pids = {station.name: station.pid for station in net.stations}
    wait_for_carriers(pids, config["interface"])
    print(f"\nready {json.dumps(pids)}", flush=True)  # Mininet's output may end without a newline
    while True:
        signal.pause()


def see_own_radios() -> None:
    """A /sys of this network namespace, with the debugging folder in which Mininet-WiFi looks for radios, for this process and
    its children alone. The run's is the machine's, which shows the radios of the first namespace only."""
    libc = ctypes.CDLL(None, use_errno=True)
    steps: list[Callable[[], int]] = [partial(libc.unshare, CLONE_NEWNS)]
    for kind, where in ((b"sysfs", b"/sys"), (b"debugfs", b"/sys/kernel/debug")):
        steps.append(partial(libc.mount, kind, where, kind, 0, None))
    for step in steps:
        if step() != 0:
            sys.exit(f"/sys: {os.strerror(ctypes.get_errno())}; run as root, outside of a restricted container")


def build(config: dict[str, Any]) -> Any:
    """A running network with every station in the ad hoc network; its radios still have the kernel's medium."""
    os.environ["MPLBACKEND"] = "Agg"  # it loads a drawing library, and there is no display
    logging.basicConfig(level=logging.WARNING)  # before it opens a log of its own in /tmp
    from mininet.log import setLogLevel
    from mininet.net import VERSION as MININET
    from mininet.net import Mininet
    from mn_wifi.link import adhoc
    from mn_wifi.net import VERSION, Mininet_wifi

    print(f"Mininet-WiFi {VERSION}, Mininet {MININET}, Python {sys.version.split()[0]}", flush=True)
    setLogLevel("info")
    Mininet.inited = True  # or it raises limits of the whole system, and never restores them
    net = Mininet_wifi()
    for station in config["stations"]:
        net.addStation(station["name"], mac=station["mac"], ip=station["ip"], position=station["position"])
    net.configureNodes()
    for station in net.stations:
        station.setIntfName(config["interface"], 0)
        settings = {key: config[key] for key in ("ssid", "mode", "channel", "bitrates")}
        net.addLink(station, cls=adhoc, intf=config["interface"], **settings)
    net.build()
    return net


def wait_for_carriers(pids: dict[str, int], interface: str) -> None:
    """Wait until every station has joined, which Mininet-WiFi does not; each scans for some seconds first."""
    deadline = time.monotonic() + CARRIER_WITHIN_S
    for name, pid in pids.items():
        while not has_carrier(pid, interface):
            if time.monotonic() > deadline:
                sys.exit(f"{name}: {interface} is not in the ad hoc network within {CARRIER_WITHIN_S:g} s")
            time.sleep(0.1)


def has_carrier(pid: int, interface: str) -> bool:
    """Whether the interface has a carrier, by the /sys of the station's network namespace."""
    try:
        return Path(f"/proc/{pid}/root/sys/class/net/{interface}/carrier").read_text().strip() == "1"
    except OSError:  # not there, or down
        return False


if __name__ == "__main__":
    main(sys.argv[1])
