"""AODV by AODV-UU, where the user has installed daemon and kernel module (`manet doctor` says where from).

Its module `kaodv` searches all network namespaces for interfaces once, when it is loaded. From then on it drops packets on an
interface of that name without a daemon. So it is loaded here, after the radios exist, and such runs cannot run in parallel with
others. Only ports of 2020 and later support namespaces. Their gateway mode crashes the kernel and is not used. The daemon's logs
have fixed names: each daemon gets its own /var/log.

Untested with the module, because the development machines' kernels load no modules; the daemon without it is a peer of our own
daemon in tests/interop.
"""

import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.errors import RunError
from testbed.stages import iproute
from testbed.stages.routing import Network, Protocol
from testbed.stages.routing.shared.third_party import daemons_running
from testbed.stages.station import Station
from topologies.addresses import INTERFACE

PORT = 654
MODULE = "kaodv"


@contextmanager
def running(network: Network) -> Iterator[Protocol]:
    """See `testbed.stages.routing`; loads and unloads the module kaodv."""
    # its hooks see only packets that have a route (its README)
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
