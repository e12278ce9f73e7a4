"""The settings of TCP without eBPF, for a run without root: by metrics of the stations' routes, and sysctls of their namespaces.

A connection takes the metrics of the route to its peer when it begins: `initcwnd` and `advmss` (RFC 5681, RFC 9293), `rto_min`
and `quickack` also from a route that replaces its own, `congctl` (ip-route(8)). So a station has one TCP: that of the flows that
end there.

A window of N segments (kernel-tcp/README.md) has two halves. The receiver's: the metric `window`, which the kernel replaces since
6.10 with the first segment of a new size by what the receive buffer has room for (tcp_measure_rcv_mss(), net/ipv4/tcp_input.c);
therefore the buffer has room for N segments as they arrive from a radio and one more, which is unread when it is acknowledged.
The sender's: the metric `cwnd`, locked, bounds the congestion window, but the kernel reads it from its cache of earlier
connections to the same address alone (tcp_init_metrics(), net/ipv4/tcp_metrics.c). So before any radio exists each station makes
one connection to each peer's address over its loopback device, by a route with this metric.

Not set: the first retransmission timeout, 1 s (RFC 6298); the profile's is 3 s.
"""

import errno
import fcntl
import itertools
import os
import platform
import re
import socket
import struct
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from typing import Any

from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.host import namespace, rtnetlink
from testbed.stages.station import StationNet

HEADER_BYTES = 14 + 40  # Ethernet, IPv4, TCP
SAVED = "net.ipv4.tcp_no_metrics_save"
BUFFER = "net.ipv4.tcp_rmem"
RTO_MAX = "net.ipv4.tcp_rto_max_ms"  # Linux 6.15
LEAST_BUFFER = 4096
SHARES = 256  # 1 << TCP_RMEM_TO_WIN_SCALE, include/net/tcp.h
SCALES_BY_ARRIVALS = (6, 6)  # since when the room of a buffer follows from the memory that segments take (scaling_ratio)
MAX_ALL_PAIRS = 64  # hosts; with more, only the ends of flows know each other's window
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x4004_54CA, 0x0002, 0x1000  # <linux/if_tun.h>
SO_MEMINFO, ETH_P_IP = 55, 0x0800  # <asm-generic/socket.h>, <linux/if_ether.h>
IP_FREEBIND = 15  # <linux/in.h>
PROBE = "arrival0"


@dataclass(frozen=True)
class Metrics:
    """The metrics of a station's routes; None: the kernel's own. `window` and `advmss` in bytes, `cwnd` (locked) and `initcwnd`
    in segments, `rto_min` (locked) in milliseconds. The names are those of ip(8)."""

    quickack: int | None = None
    window: int | None = None
    cwnd: int | None = None
    initcwnd: int | None = None
    rto_min: int | None = None
    advmss: int | None = None
    congctl: str | None = None

    def words(self) -> str:
        """For a line of ip-route(8), each word after a space."""
        return "".join(f" {name} {_SPELLED.get(name, '{}').format(value)}" for name, value in self.set().items())

    def set(self) -> dict[str, int | str]:
        """Those that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


_SPELLED = {"cwnd": "lock {}", "rto_min": "{}ms"}  # ip(8) locks rto_min by itself
NAMES = tuple(field.name for field in fields(Metrics))
METRIC = re.compile(rf" (?:{'|'.join(NAMES)})(?: lock)? \S+")  # in the output of ip(8)


@dataclass(frozen=True)
class WithoutRoot:
    """A run of an ordinary user: how TCP was set, and which of the profile's settings it did not have (docs/rootless.md)."""

    not_set: list[str]

    def judgement(self) -> tuple[str, list[str]]:
        """`valid`: the medium's lateness and the programs' waits judge what the missing priority has done."""
        return "valid", []

    def report(self) -> dict[str, object]:
        """`without_root` of verdict.json and run.json (formats/air.md)."""
        return {"tcp": "routes", "not_set": self.not_set}


def metrics_of(settings: Mapping[str, Any], segment_bytes: int, algorithm: str | None) -> Metrics:
    """The metrics for these settings (formats/tcp.md). `segment_bytes`: the data of a full segment; `algorithm`: the kernel's
    name of the congestion control."""
    window, initial = settings.get("window_segments"), settings.get("initial_window_segments")
    if window is not None and initial is not None:
        initial = min(initial, window)
    rto_min_us = settings.get("rto_min_us")
    return Metrics(
        quickack=1 if settings.get("delayed_ack") is False else None,
        window=None if window is None else window * segment_bytes,
        cwnd=window,
        initcwnd=initial,
        rto_min=None if rto_min_us is None else -(-rto_min_us // 1000),
        advmss=settings.get("mss"),
        congctl=algorithm,
    )


def sysctls_of(settings: Mapping[str, Any], segment_bytes: int) -> dict[str, object]:
    """The sysctls of a station for these settings, which no metric of a route sets. To be called in the run's own network
    namespace."""
    values: dict[str, object] = {}
    if (rto_max_ms := settings.get("rto_max_ms")) is not None:
        values[RTO_MAX] = rto_max_ms
    window = settings.get("window_segments")
    if window is not None and _release() >= SCALES_BY_ARRIVALS:
        room = max(LEAST_BUFFER, room_bytes(window, segment_bytes, arrival_bytes(segment_bytes + HEADER_BYTES)))
        values[BUFFER] = f"{LEAST_BUFFER} {room} {room}"
    return values


def room_bytes(window: int, segment_bytes: int, arrival_bytes: int) -> int:
    """The receive buffer with which a socket offers `window` segments while one is unread: the kernel counts the share of data in
    the memory of a segment in 256ths, and offers whole segments (__tcp_select_window(), net/ipv4/tcp_output.c)."""
    share = segment_bytes * SHARES // arrival_bytes
    return -(-window * segment_bytes * SHARES // share) + arrival_bytes


def _release() -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", platform.release())[:2])


@cache
def arrival_bytes(frame_bytes: int) -> int:
    """The memory (bytes) that a frame of this length takes after a TAP device has delivered it, by what a socket is charged for
    one. The device is in the caller's network namespace for a moment. Raises RunError."""
    frame = bytes(12) + struct.pack("!H", ETH_P_IP) + bytes(frame_bytes - 14)
    try:
        with ExitStack() as stack:
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # as the medium opens it
            stack.callback(os.close, device)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", PROBE.encode(), IFF_TAP | IFF_NO_PI))
            rtnetlink.set_up(PROBE)
            arrivals = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP)))
            arrivals.bind((PROBE, ETH_P_IP))
            os.write(device, frame)
            charged = struct.unpack_from("=I", arrivals.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, 4))[0]
    except OSError as problem:
        raise RunError(f"{PROBE}: a TAP device to measure the memory of a frame: {problem.strerror}; see manet doctor") from None
    return int(charged)


# --- the sender's half of the window ----------------------------------------------------------------------------------


def make_windows_known(net: StationNet, windows: Mapping[str, int | None], scenario: Scenario) -> None:
    """Let the kernel know the `windows` (segments, by host's name) of connections between any two hosts, with more than
    MAX_ALL_PAIRS between the ends of the scenario's flows; before any device but the loopback exists. Raises RunError."""
    peers: dict[str, list[str]] = {}
    for one, other in sorted(_pairs(scenario)):
        peers.setdefault(one, []).append(other)
    for name, others in peers.items():
        if (window := windows.get(name)) is not None:
            host = net[name]
            versions = (4, 6) if scenario.ipv6 else (4,)
            addresses = [(host.address(ip), net[peer].address(ip)) for ip in versions for peer in others]
            namespace.within(host.netns, partial(_connect_over_loopback, name, window, addresses))


def _pairs(scenario: Scenario) -> set[tuple[str, str]]:
    names = [*scenario.station_names(), *scenario.host_names()]
    if len(names) <= MAX_ALL_PAIRS:
        return set(itertools.permutations(names, 2))
    ends = [(flow.source, flow.target) for flow in scenario.flows]
    return {*ends, *((target, source) for source, target in ends)}


def _connect_over_loopback(name: str, window: int, addresses: list[tuple[str, str]]) -> None:
    """In a host's namespace: a connection from each own address to each peer's, all of them on the loopback device."""
    saved = namespace.read_sysctls([SAVED])
    namespace.write_sysctls({SAVED: 0})
    versions = {6 if ":" in own else 4 for own, _peer in addresses}
    everything = [("-6", "::/0")] * (6 in versions) + [("-4", "0.0.0.0/0")] * (4 in versions)
    rtnetlink.set_up("lo")
    try:
        for version, destination in everything:
            _ip(name, version, "route", "add", "local", destination, "dev", "lo", "table", "local", "cwnd", "lock", str(window))
        for own, peer in addresses:
            _connect(own, peer)
    except OSError as problem:
        text = f"its window of {window} segments: a connection over lo: {problem.strerror or problem}"
        raise RunError(f"{name}: {text}; leave out window") from None
    finally:
        for version, destination in everything:
            _ip(name, version, "route", "delete", "local", destination, "dev", "lo", "table", "local")
        namespace.write_sysctls(saved)


def _connect(own: str, peer: str) -> None:
    """One connection, which the peer ends first: this end then stores what it knows of the peer (tcp_update_metrics())."""
    family = socket.AF_INET6 if ":" in own else socket.AF_INET
    with socket.socket(family) as listening, socket.socket(family) as here:
        for each in (listening, here):
            each.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
            each.settimeout(5)
        listening.bind((peer, 0))
        listening.listen(1)
        here.bind((own, 0))
        here.connect(listening.getsockname()[:2])
        there, _ = listening.accept()
        there.close()
        if here.recv(1):
            raise OSError(errno.EPROTO, "unexpected data")


def _ip(name: str, *words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        error = (done.stderr.strip().splitlines() or ["failed"])[0]
        raise RunError(f"{name}: ip {' '.join(words)}: {error}; this kernel refuses it")
