"""Stations made by Mininet-WiFi (docs/mininet-wifi.md), which the medium and all later stages use like our own.

A process of the Python that has Mininet-WiFi makes them (mininet_wifi_builder.py), in the run's own namespaces, and holds them:
wmediumd is not started, and our medium finds their radios. Nothing has to be undone. hwsim takes a radio away with the namespace
that it lives in, if it was not made in the machine's first one; that goes with its last process, and all of them with the run.
"""

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from testbed.errors import RunError
from testbed.host import modules, namespace
from testbed.host.mininet_wifi import python
from testbed.host.processes import Child, Processes
from testbed.host.requirements import HWSIM
from testbed.stages.radio_rates import OF_PHY, profile
from testbed.stages.site import Site
from topologies.addresses import INTERFACE, PREFIX_BITS, ip_address, mac_address

BUILDER = Path(__file__).with_name("mininet_wifi_builder.py")
# On a loaded emulated machine.
IMPORTED_WITHIN_S, EACH_WITHIN_S = 240.0, 60.0
READY = "ready {"
NETWORK = {"ssid": "manet", "mode": "g", "channel": 1}


@contextmanager
def stations_of_mininet_wifi(site: Site, children: Processes) -> Iterator[dict[str, int]]:
    """By station, the process whose namespaces it uses; the builder and its shells end with the block."""
    config = site.directory / "mininet-wifi.json"
    config.write_text(json.dumps(builder_config(site), indent=1) + "\n")
    with exclusive():
        child = children.start(
            "mininet-wifi",
            [python(), "-I", "-u", BUILDER, config],
            remedy="the stations went with it; see log/mininet-wifi.log, and whether Mininet-WiFi's own examples run here",
        )
        try:
            homes = _stations(site, child, children)
            with _silent_at_the_end(homes):
                yield homes
        finally:
            children.stop([child])


@contextmanager
def _silent_at_the_end(homes: Mapping[str, int]) -> Iterator[None]:
    """Set the radios down at the end, even if the builder is gone. Until then hwsim keeps a frame whose fate no medium has
    reported; the frame keeps its socket, the socket its network namespace, and the namespace its radio: forever."""
    spaces = [os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC) for pid in homes.values()]
    try:
        yield
    finally:
        for space in spaces:
            with suppress(RunError):
                namespace.within(f"/proc/self/fd/{space}", _set_down)
            os.close(space)


def _set_down() -> None:
    subprocess.run(["ip", "link", "set", INTERFACE, "down"], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def builder_config(site: Site) -> dict[str, Any]:
    """The configuration of mininet_wifi_builder.py."""
    stations = enumerate(site.scenario.positions(site.seed), start=1)
    return {
        **NETWORK,
        "interface": INTERFACE,
        "bitrates": f"legacy-2.4 {_rates(site)}",
        "stations": [
            {
                "name": placed.name,
                "mac": mac_address(number),
                "ip": f"{ip_address(number)}/{PREFIX_BITS}",
                "position": [placed.x_m, placed.y_m, placed.z_m],
            }
            for number, placed in stations
        ],
    }


def _rates(site: Site) -> str:
    """The rates of data frames, Mbit/s, in the form of iw(8)."""
    radio = profile(site.scenario)
    kbps = OF_PHY[radio["modulation"]] if site.scenario.hwsim.rates == "kernel" else [radio["data_rate_bps"] / 1000]
    return " ".join(f"{rate / 1000:g}" for rate in kbps)


def _stations(site: Site, child: Child, children: Processes) -> dict[str, int]:
    names = site.scenario.station_names()
    children.wait_for_text([child], READY, within_s=IMPORTED_WITHIN_S + EACH_WITHIN_S * len(names))
    line = next(line for line in child.printed().splitlines() if line.startswith(READY))
    homes: dict[str, int] = json.loads(line.removeprefix("ready "))
    return homes


@contextmanager
def exclusive() -> Iterator[None]:
    """Lock Mininet-WiFi against a second run; RunError if one has it. Both would use the same process number, by which
    Mininet-WiFi identifies its radios."""
    descriptor = os.open(modules.LOADED / HWSIM, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = "another run has Mininet-WiFi's stations, which cannot tell the radios of two runs apart"
            raise RunError(f'net "mininet-wifi": {text}; let them run one after another (--jobs 1)') from None
        yield
    finally:
        os.close(descriptor)
