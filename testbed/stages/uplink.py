"""Uplinks: hosts of wires with `nat = true` reach the network of the machine, by NAT (docs/internet.md).

    station's gateway ==wire== host [uplink] ==veth== [manet-nat<k>] the namespace of `manet` -- its networks

The host replaces source addresses by that of its uplink, and the machine this one by its own: no address of stations or wires
appears outside, and the machine gets no route but that of the veth. All of it ends with its owner, in order or by `kill -9`: the
veth with the host's namespace, both NAT tables with sockets of the run's process (testbed/host/masquerade.py). So `manet clean`
only has to end processes.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.errors import RunError
from testbed.host import namespace
from testbed.host.masquerade import masquerading
from testbed.stages import iproute
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, StationNet

UPLINK = "uplink"  # the host's end
MACHINE_END = "manet-nat{}"  # the machine's; it is the lock of its number too, which side-by-side runs do not share
NUMBERS = range(64)
NETWORK = "198.18.{}"  # RFC 2544's range for benchmarks, which no network uses
PREFIX_BITS = 30
MACHINE, HOST = 1, 2


@contextmanager
def uplinks_up(site: Site, net: StationNet) -> Iterator[None]:
    """One uplink for each such host, until the block ends."""
    with ExitStack() as stages:
        for host in dict.fromkeys(wire.host for wire in net.wires if wire.settings.nat):
            if site.outside is None:
                raise RunError('key "wires.nat": this command has no way to the real network; use ./manet run or ./manet cli')
            stages.enter_context(_uplink(site, host, site.outside))
        yield


@contextmanager
def _uplink(site: Site, host: NamespaceHost, outside: Path) -> Iterator[None]:
    number = _make_veth(host, outside)
    machine_end, network = MACHINE_END.format(number), NETWORK.format(number)
    try:
        lines = [
            f"address add {network}.{MACHINE}/{PREFIX_BITS} dev {machine_end}",
            f"link set {machine_end} up",
        ]
        off = {f"net.ipv6.conf.{machine_end}.disable_ipv6": 1}
        namespace.within(outside, lambda: namespace.write_sysctls(off, absent_is_error=False))
        for line in lines:
            if refusal := _try_ip(outside, line):
                raise RunError(f"ip {line}: {refusal}; look at the machine's network settings")
        at_host = [
            f"address add {network}.{HOST}/{PREFIX_BITS} dev {UPLINK}",
            f"link set {UPLINK} up",
            f"route add default via {network}.{MACHINE} dev {UPLINK}",
        ]
        iproute.batches({host: at_host}, "uplink", site.log)
        with (
            masquerading(host.netns, UPLINK, device=UPLINK),
            masquerading(outside, machine_end, source=f"{network}.{HOST}"),
        ):
            yield
    finally:
        # at once; the end of the host's namespace removes it a moment later
        _try_ip(outside, f"link delete {machine_end}")


def _make_veth(host: NamespaceHost, outside: Path) -> int:
    """Make the pair of devices, with the first number that is free."""
    refusal = ""
    for number in NUMBERS:
        name = MACHINE_END.format(number)
        refusal = _try_ip(outside, f"link add {name} type veth peer name {UPLINK} netns {host.netns}")
        if not refusal:
            return number
        if "File exists" not in refusal:
            break
    raise RunError(f"{host.name}: no uplink: {refusal}; this machine refuses a veth")


def _try_ip(netns: Path, line: str) -> str:
    """The error message of `ip <line>` in a namespace; empty if it succeeded."""
    argv = ["ip", *line.split()]
    done = namespace.within(netns, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""
