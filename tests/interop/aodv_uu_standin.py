"""Stands in for AODV-UU's kernel module, one process a station, and runs the daemon: nothing of it is changed.

    aodv_uu_standin.py INTERFACE ADDRESS SHIM AODVD [OPTION...]

The daemon installs its kernel routes itself; its module's part is to hold packets without a route and ask for one, to
say which routes are used, to say when it forwards blindly, and the half tunnel to Internet gateways. Here packets
without a route come by a default route to a TUN; use is seen by a packet socket; what was held goes on by a raw socket.
Messages on the socket (of lnx/kaodv-netlink.h): a netlink header and a body of 32 bytes. Local repair is left out.
"""

import fcntl
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

TUN, TUN_MTU = "uu0", 1480  # leaves room for the tunnel's header
TUNSETIFF, IFF_TUN_NO_PI = 0x4004_54CA, 0x1001
ETH_P_IP, PACKET_HOST, PACKET_OUTGOING = 0x0800, 0, 4
PORT, IPPROTO_MINIMAL = 654, 55
HEADER, BODY = struct.Struct("=IHHII"), struct.Struct("=Bxxx4s4s4sBxxxiq")
ADD, DELETE, REQUEST, NOT_FOUND, USED, SEND_RERR, CONFIG = 101, 102, 104, 106, 107, 108, 109
INBOUND, OUTBOUND = 1, 2
ENCAPSULATE = 1
MAX_HELD, REPORT_EVERY_S, RETRY_S = 64, 0.1, 0.02
UNSPECIFIED = bytes(4)


@dataclass
class StandIn:
    interface: str
    own: bytes
    daemon: socket.socket
    tun: int
    next_hops: dict[bytes, tuple[bytes, bool]] = field(default_factory=dict)
    held: dict[bytes, list[bytes]] = field(default_factory=dict)
    later: list[tuple[float, bytes]] = field(default_factory=list)
    reported: dict[tuple, float] = field(default_factory=dict)
    gateway: bool = False

    def __post_init__(self) -> None:
        self.index = socket.if_nametoindex(self.interface)
        self.tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_IP))
        self.tap.bind((self.interface, ETH_P_IP))
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.tunnel = socket.socket(socket.AF_INET, socket.SOCK_RAW, IPPROTO_MINIMAL)

    def run(self) -> None:
        ready = selectors.DefaultSelector()
        for source, act in [
            (self.daemon, self.on_daemon),
            (self.tun, lambda: self.on_miss(os.read(self.tun, 65_536))),
            (self.tap, self.on_tap),
            (self.tunnel, lambda: self.on_tunnelled(self.tunnel.recv(65_536))),
        ]:
            ready.register(source, selectors.EVENT_READ, act)
        while True:
            for key, _ in ready.select(RETRY_S if self.later else None):
                key.data()
            due = [packet for at, packet in self.later if at <= time.monotonic()]
            self.later = [(at, packet) for at, packet in self.later if at > time.monotonic()]
            for packet in due:
                self.send(packet)

    # --- the daemon ---

    def tell(self, kind: int, what: int, source: bytes, destination: bytes) -> None:
        body = BODY.pack(what, source, destination, UNSPECIFIED, 0, self.index, 0)
        self.daemon.send(HEADER.pack(HEADER.size + BODY.size, kind, 0, 0, 0) + body)

    def on_daemon(self) -> None:
        message = self.daemon.recv(4096)
        if not message:
            sys.exit("the daemon has ended")
        _, kind, *_ = HEADER.unpack_from(message)
        if kind == CONFIG:
            self.gateway = struct.unpack_from("=iii", message, HEADER.size)[2] != 0
            # in one piece, between what the daemon prints
            os.write(sys.stdout.fileno(), b"ready\n")
        if kind not in (ADD, DELETE, NOT_FOUND):
            return
        _, _, destination, next_hop, flags, *_ = BODY.unpack_from(message, HEADER.size)
        if kind == ADD:
            self.next_hops[destination] = (next_hop, bool(flags & ENCAPSULATE))
            if flags & ENCAPSULATE:
                # before the route that the daemon itself will try to make
                route("replace", socket.inet_ntoa(destination), "src", socket.inet_ntoa(self.own))
            # the kernel's route comes a moment after this message
            self.later += [(time.monotonic() + RETRY_S, packet) for packet in self.held.pop(destination, [])]
        elif kind == DELETE:
            if self.next_hops.pop(destination, (UNSPECIFIED, False))[1]:
                route("delete", socket.inet_ntoa(destination))
        else:
            for packet in self.held.pop(destination, [])[:1]:
                self.unreachable(packet)

    # --- packets ---

    def on_miss(self, packet: bytes) -> None:
        if packet[0] >> 4 != 4 or packet[16] >= 224:
            return
        source, destination = packet[12:16], packet[16:20]
        next_hop, encapsulate = self.next_hops.get(destination, (None, False))
        if next_hop and encapsulate and source == self.own:
            self.encapsulate(packet, next_hop)
        elif next_hop and not encapsulate:
            self.later.append((time.monotonic() + RETRY_S, packet))
        elif source == self.own:
            waiting = self.held.setdefault(destination, [])
            if not waiting:
                self.tell(REQUEST, 0, UNSPECIFIED, destination)
            if len(waiting) < MAX_HELD:
                waiting.append(packet)
        elif source[0] == self.own[0]:
            self.tell(SEND_RERR, INBOUND, source, destination)

    def on_tap(self) -> None:
        try:
            packet, (_, _, kind, *_) = self.tap.recvfrom(65_536)
        except OSError:
            sys.exit(f"{self.interface}: gone")
        if len(packet) < 28 or kind not in (PACKET_HOST, PACKET_OUTGOING) or packet[16:20] == b"\xff" * 4:
            return
        control = packet[9] == socket.IPPROTO_UDP and PORT in struct.unpack_from("!HH", packet, (packet[0] & 15) * 4)
        if kind == PACKET_HOST or not control:
            self.used(INBOUND if kind == PACKET_HOST else OUTBOUND, packet[12:16], packet[16:20])

    def used(self, which: int, source: bytes, destination: bytes) -> None:
        flow, now = (which, source, destination), time.monotonic()
        if now - self.reported.get(flow, 0.0) >= REPORT_EVERY_S:
            self.reported[flow] = now
            self.tell(USED, which, source, destination)

    def send(self, packet: bytes) -> None:
        if packet[16:20] not in self.next_hops:
            return self.on_miss(packet)
        if self.next_hops[packet[16:20]][1]:
            return self.encapsulate(packet, self.next_hops[packet[16:20]][0])
        self.emit(packet)

    def emit(self, packet: bytes) -> None:
        """The kernel fills in length and checksum."""
        try:
            self.raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
        except OSError as problem:
            print(f"standin: {socket.inet_ntoa(packet[16:20])}: {problem}", flush=True)

    # --- the half tunnel: RFC 2004 ---

    def encapsulate(self, packet: bytes, gateway: bytes) -> None:
        self.used(OUTBOUND, packet[12:16], packet[16:20])
        end = (packet[0] & 15) * 4
        minimal = bytes([packet[9], 0]) + b"\0\0" + packet[16:20]
        minimal = minimal[:2] + checksum(minimal) + minimal[4:]
        self.emit(packet[:9] + bytes([IPPROTO_MINIMAL]) + packet[10:16] + gateway + packet[20:end] + minimal + packet[end:])

    def on_tunnelled(self, packet: bytes) -> None:
        end = (packet[0] & 15) * 4
        minimal = packet[end : end + 8]
        if not self.gateway or len(minimal) < 8 or minimal[1] & 0x80 or checksum(minimal) != b"\0\0":
            return
        # one hop further
        head = packet[:8] + bytes([packet[8] - 1, minimal[0]]) + packet[10:16] + minimal[4:8] + packet[20:end]
        self.emit(head + packet[end + 8 :])

    def unreachable(self, packet: bytes) -> None:
        """ICMP host unreachable to our own stack."""
        quoted = packet[: (packet[0] & 15) * 4 + 8]
        message = b"\3\1\0\0" + bytes(4) + quoted
        message = message[:2] + checksum(message) + message[4:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_ICMP, 0)
        self.emit(head + self.own + packet[12:16] + message)


def checksum(data: bytes) -> bytes:
    """RFC 1071."""
    words = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return struct.pack("!H", ~words & 0xFFFF)


def route(action: str, destination: str, *more: str) -> None:
    subprocess.run(["ip", "route", action, destination, "dev", TUN, *more], check=True)


def open_tun(address: str) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", TUN.encode(), IFF_TUN_NO_PI))
    subprocess.run(["ip", "link", "set", TUN, "mtu", str(TUN_MTU), "up"], check=True)
    for lost in ("default", "10.0.0.0/8"):
        route("add", lost, "src", address, "metric", "4096")
    for which in ("all", TUN):
        Path(f"/proc/sys/net/ipv4/conf/{which}/rp_filter").write_text("0")
    return tun


def main() -> None:
    interface, address, shim, *aodvd = sys.argv[1:]
    Path(f"/proc/sys/net/ipv4/conf/{interface}/rp_filter").write_text("0")
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    standin = StandIn(interface, socket.inet_aton(address), near, open_tun(address))
    environment = {**os.environ, "LD_PRELOAD": shim, "AODV_UU_SOCKET": str(far.fileno())}
    daemon = subprocess.Popen(aodvd, env=environment, pass_fds=[far.fileno()])
    far.close()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        standin.run()
    finally:
        # it says nothing when it ends in order either; and its signals may be blocked
        daemon.kill()
        daemon.wait()


if __name__ == "__main__":
    main()
