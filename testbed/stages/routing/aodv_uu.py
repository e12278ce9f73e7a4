"""AODV by AODV-UU, where the user has installed daemon and kernel module (`manet doctor` says where from).

Its module `kaodv` looks for interfaces once, when it is loaded, in every network namespace there is, and from then on
drops what passes an interface of that name without a daemon: it is loaded here, after the radios are there, and such
runs cannot be side by side with any other. Only the ports of 2020 and later know of namespaces at all. Their gateway
mode crashes the kernel and is never asked for. The daemon's logs have fixed names: each gets a /var/log of its own.

Not tried on the machines this was written on, whose kernels take no modules; its daemon without the module is a peer of
ours in tests/interop.
"""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.errors import RunError
from testbed.stages import iproute
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.foreign import daemons_running
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

PORT = 654
MODULE = "kaodv"


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; loads and unloads the module kaodv."""
    # its hooks see only packets that have some route (its README)
    lines = {station: [f"route add default dev {INTERFACE} metric 4096"] for station in network.stations}
    iproute.batches(lines, "routes", network.site.log)
    with _module_loaded(), daemons_running(network, lambda station: _argv(network, station), port=PORT):
        yield Protocol(network)


@contextmanager
def _module_loaded() -> Iterator[None]:
    _modprobe("-r", MODULE)
    _modprobe(MODULE, f"ifnames={INTERFACE}")
    try:
        yield
    finally:
        _modprobe("-r", MODULE)


def _modprobe(*words: str) -> None:
    done = subprocess.run(["modprobe", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"modprobe {' '.join(words)}: {done.stderr.strip()}; see `manet doctor`")


def _argv(network: Network, _station: Station) -> list[str]:
    options = network.site.scenario.routing
    aodvd = ["aodvd", "-i", INTERFACE, "-D"]  # -D: no waiting for what a daemon before this one may have promised
    aodvd += ["-g"] if options.gratuitous else []
    aodvd += [] if options.expanding_ring else ["-x"]
    aodvd += ["-L"] if options.local_repair else []
    script = f"mount -t tmpfs log /var/log && exec {shlex.join(aodvd)}"
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
