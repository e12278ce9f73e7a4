"""What forged, replayed, cut, oversized and flooding control packets do to the real daemons: nothing but be counted.

Two stations on a pair of devices: the victim, and a neighbour whose daemon behaves. The attacker writes frames of its
own into the neighbour's end of the wire. Nothing here depends on how fast the machine is: what is asserted are counters,
memory, and that the victim goes on answering and routing; the times are printed (`pytest -s`).
"""

import json
import os
import random
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from routing.host.tests.conftest import DAEMONS, Daemon, Station
from testbed.host import namespace

PROTOCOLS = ("aodv", "dsdv", "olsr", "dsr")
PORTS = {"aodv": 654, "dsdv": 269, "olsr": 698}
UDP, DSR = 17, 48
ETH_P_IP = 0x0800
# idle daemons are promised to stay below it; attacked ones do too
MOST_KB = 8 * 1024
# OLSR keeps what others say of the whole network, as much of it as its tables allow (routing/olsr/src: MOST_ of topology.rs,
# neighbours.rs, associations.rs, duplicates.rs): lists of its status, and a number
OLSR_TABLES = {"topology": 16_384, "two_hop": 16_384, "interfaces": 4096, "networks": 4096, "duplicates": 16_384}
# a route to each of those addresses; three times, while it is calculated anew: as it was, as it will be, as the kernel has it
OLSR_ROUTES = 16_384 + 16_384 + 4096 + 4096
# a key, a value and what a B-tree and the allocator leave empty beside them
ENTRY_BYTES = 256
# the entry in the answer to `status`, as a JSON value and as text
ANSWER_BYTES = 512
_KEPT, _TOLD = sum(OLSR_TABLES.values()) + 3 * OLSR_ROUTES, sum(OLSR_TABLES.values()) + OLSR_ROUTES
MOST_OLSR_KB = MOST_KB + (_KEPT * ENTRY_BYTES + _TOLD * ANSWER_BYTES) // 1024
MOST_ROUTES = {"aodv": 1024, "dsdv": 1024, "dsr": 4096, "olsr": OLSR_ROUTES}
FLOOD, PER_SECOND, BATCH = 100_000, 10_000, 100
ROUNDS = 150
EVERYBODY = "255.255.255.255"
# in the network, nobody's; the attacker's own
FIRST_FORGED, LIAR, OTHER = 0x0A_10_00_00, "10.0.0.66", "10.0.0.67"
VICTIM, FRIEND = "10.0.0.1", "10.0.0.2"

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(
        not all((DAEMONS / f"manet-{protocol}").exists() for protocol in PROTOCOLS),
        reason="the routing daemons are not built (./setup.sh)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces and TUN"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="the kernel has no TUN"),
]


def packed(address: str | int) -> bytes:
    return IPv4Address(address).packed


def forged(n: int) -> str:
    return str(IPv4Address(FIRST_FORGED + n))


class Attacker:
    """Sends IP packets of any content from the friend's end of the wire."""

    def __init__(self, victim: Station, friend: Station) -> None:
        self.victim_mac = bytes.fromhex(victim.mac.replace(":", ""))
        self.socket = namespace.within(friend.netns, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
        self.socket.bind(("wlan0", 0))
        self.sent = 0

    def send(self, frames: Iterable[bytes]) -> None:
        for frame in frames:
            self.socket.send(frame)
            self.sent += 1

    def ip(
        self, source: str, payload: bytes, *, protocol: int, to: str = EVERYBODY, ttl: int = 10, mtu: int = 1500
    ) -> list[bytes]:
        """The frames of one packet: fragments if it is longer than the MTU."""
        mac = b"\xff" * 6 if to == EVERYBODY else self.victim_mac
        # a link address for each address: DSR learns which belongs to which
        ethernet = mac + b"\x02\x01" + packed(source) + struct.pack("!H", ETH_P_IP)
        room = (mtu - 20) // 8 * 8
        pieces = [payload[at : at + room] for at in range(0, max(1, len(payload)), room)]
        ident = random.getrandbits(16)
        frames = []
        for i, piece in enumerate(pieces):
            offset = i * room // 8 | (0x2000 if i + 1 < len(pieces) else 0)
            head = (
                struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(piece), ident, offset, ttl, protocol, 0) + packed(source) + packed(to)
            )
            words = sum(struct.unpack("!10H", head))
            words = (words & 0xFFFF) + (words >> 16)
            checksum = ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF
            frames.append(ethernet + head[:10] + struct.pack("!H", checksum) + head[12:] + piece)
        return frames

    def udp(self, protocol: str, source: str, message: bytes, **more) -> list[bytes]:
        port = PORTS[protocol]
        return self.ip(source, struct.pack("!HHHH", port, port, 8 + len(message), 0) + message, protocol=UDP, **more)


class Victim:
    """The daemon under attack, and what it had in memory before."""

    def __init__(self, station: Station, daemon: Daemon) -> None:
        self.station, self.daemon = station, daemon
        self.most_kb = MOST_OLSR_KB if "olsr" in daemon.program.name else MOST_KB
        self.before_kb, self.slowest_s = self.memory_kb("VmRSS"), 0.0

    def memory_kb(self, key: str) -> int:
        # the daemon is what nsenter has become
        lines = Path(f"/proc/{self.daemon.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))

    def status(self) -> dict:
        assert self.daemon.process.poll() is None, self.daemon.stop()
        start = time.monotonic()
        status = self.daemon.ask()
        self.slowest_s = max(self.slowest_s, time.monotonic() - start)
        return status

    def counters(self) -> Counter:
        status = self.status()
        return Counter(status["counters"]) + Counter({f"host-{name}": n for name, n in status["host"].items()})

    def unharmed(self, what: str) -> Counter:
        """Waits until it has taken in all that waits for it."""
        counters, before = self.counters(), None
        while counters != before:
            time.sleep(0.2)
            counters, before = self.counters(), counters
        after_kb, most_kb = self.memory_kb("VmRSS"), self.memory_kb("VmHWM")
        figures = {"memory_kb": [self.before_kb, after_kb, most_kb], "slowest_answer_s": round(self.slowest_s, 3)}
        print(f"hostile: {what}: {json.dumps(figures)} {json.dumps(counters)}")
        assert most_kb < self.most_kb, figures
        return counters


@pytest.fixture
def pair(tmp_path) -> Iterator[list[Station]]:
    stations = []
    try:
        stations += [Station(1, tmp_path), Station(2, tmp_path)]
        victim, friend = stations
        peer = ["peer", "name", "wlan0", "address", friend.mac, "netns", str(friend.process.pid)]
        victim.sh("ip", "link", "add", "wlan0", "address", victim.mac, "type", "veth", *peer)
        for station in stations:
            station.sh("ip", "link", "set", "wlan0", "up")
            station.sh("ip", "address", "add", f"{station.address}/8", "dev", "wlan0", "noprefixroute")
        yield stations
    finally:
        for station in stations:
            station.stop()


@pytest.fixture
def attacked(pair) -> Callable[[str], tuple[Victim, Attacker, Callable[[], int]]]:
    """Both daemons at work and in touch; the third is how many pings of the friend are answered."""

    def start(protocol: str) -> tuple[Victim, Attacker, Callable[[], int]]:
        station, friend = pair
        # the event log would hold the whole flood
        daemon, _ = [each.start(protocol, feedback="none", notes=None, events=None) for each in pair]
        victim = Victim(station, daemon)

        def pings() -> int:
            return friend.pings_answered(VICTIM, 5)

        deadline = time.monotonic() + 60
        while pings() < 5:
            assert time.monotonic() < deadline, f"{protocol}: no route before anybody attacked"
        return victim, Attacker(station, friend), pings

    return start


def rreq(ident: int, originator: str, destination: str, *, sequence: int = 1, hops: int = 0, flags: int = 0x08) -> bytes:
    """RFC 3561, section 5.1; the flag is U."""
    head = struct.pack("!BBBBI", 1, flags, 0, hops, ident)
    return head + packed(destination) + bytes(4) + packed(originator) + struct.pack("!I", sequence & 0xFFFF_FFFF)


def rrep(destination: str, originator: str, sequence: int, *, hops: int = 0) -> bytes:
    """RFC 3561, section 5.2; lifetime a minute."""
    return (
        struct.pack("!BBBB", 2, 0, 0, hops)
        + packed(destination)
        + struct.pack("!I", sequence)
        + packed(originator)
        + b"\0\0\xea\x60"
    )


def rerr(count: int, *destinations: str) -> bytes:
    """RFC 3561, section 5.3."""
    return struct.pack("!BBBB", 3, 0, 0, count) + b"".join(packed(d) + bytes(4) for d in destinations)


def aodv_mix(attacker: Attacker, n: int) -> Iterator[list[bytes]]:
    def say(message: bytes, source: str = LIAR, **more) -> list[bytes]:
        return attacker.udp("aodv", source, message, **more)

    whole = [rreq(n, OTHER, forged(1)), rrep(OTHER, VICTIM, 7), rerr(2, OTHER, forged(1)), b"\x04\x00"]
    for message in whole:
        yield say(message[: n % len(message)])
    yield say(bytes([5 + n % 251]) + bytes(30))
    yield say(rerr(n % 256, OTHER) if n % 256 > 1 else rerr(0))
    # longer than a datagram may be for us; longer than a frame, with extensions that are none; with one that overshoots
    yield say(rreq(n, OTHER, forged(2)) + bytes(20_000))
    yield say(rreq(10_000 + n, OTHER, forged(2)) + b"\xff" * 3000)
    yield say(rrep(OTHER, VICTIM, 8) + b"\x04\x40\x00")
    # to oneself, by oneself; once as if the victim itself had sent it, which its kernel takes for a lie
    yield say(rreq(n, VICTIM, forged(3)))
    yield say(rreq(20_000 + n, forged(4), forged(3)), source=VICTIM)
    yield say(rrep(VICTIM, OTHER, 0xFFFF_FFFF), to=VICTIM)
    yield say(rreq(30_000 + n, EVERYBODY, forged(3)))
    yield say(rreq(40_000 + n, forged(4), forged(3), hops=255))
    # replayed
    yield say(rreq(50_000, OTHER, forged(5)))
    yield say(rrep(OTHER, VICTIM, 9), to=VICTIM)


def dsdv_mix(attacker: Attacker, n: int) -> Iterator[list[bytes]]:
    def entry(destination: str, hops: int, number: int) -> bytes:
        return packed(destination) + struct.pack("!II", hops, number & 0xFFFF_FFFF)

    def say(message: bytes, source: str = LIAR, **more) -> list[bytes]:
        return attacker.udp("dsdv", source, message, **more)

    yield say(entry(OTHER, 2, 2)[: n % 12])
    yield say(entry(OTHER, 2, 2) * 1500)
    yield say(b"".join(entry(forged(1000 * n + k), 2, 2) for k in range(300)))
    yield say(entry(VICTIM, 2, 1000 + 2 * n) + entry(VICTIM, 2, 1001 + 2 * n))
    yield say(entry(OTHER, 0xFFFF_FFFF, 2 * n) + entry(OTHER, 0, 2 * n))
    yield say(entry(EVERYBODY, 1, 2) + entry("224.0.0.1", 1, 2) + entry("0.0.0.0", 1, 2) + entry("127.0.0.1", 1, 2))
    yield say(entry(VICTIM, 1, 2), source=VICTIM)
    yield say(entry("192.168.7.7", 1, 2), source="192.168.7.7")
    yield say(entry(forged(n), 1, 2), source=forged(n))
    yield say(entry(LIAR, 1, 0xFFFF_FF00 + 2 * n) + entry(OTHER, 2, 0xFFFF_FF01 + 2 * n))
    yield say(entry(OTHER, 2, 2))


def olsr_packet(n: int, *messages: bytes) -> bytes:
    """RFC 3626, section 3.3."""
    return struct.pack("!HH", 4 + sum(map(len, messages)), n & 0xFFFF) + b"".join(messages)


def olsr_message(kind: int, originator: str, n: int, body: bytes, *, ttl: int = 255, hops: int = 0, length: int = 0) -> bytes:
    # 0x8b: valid for 1/16 x (1 + 8/16) x 2^11 = 192 s, so that nothing ends meanwhile
    head = struct.pack("!BBH", kind, 0x8B, length or 12 + len(body)) + packed(originator)
    return head + struct.pack("!BBH", ttl, hops, n & 0xFFFF) + body


def olsr_mix(attacker: Attacker, n: int) -> Iterator[list[bytes]]:
    hello, tc, mid, hna = 1, 2, 3, 4
    sequence = iter(range(100 * n, 100 * n + 100))

    def say(*messages: bytes, source: str = LIAR) -> list[bytes]:
        return attacker.udp("olsr", source, olsr_packet(n, *messages), ttl=1)

    def block(code: int, *addresses: str) -> bytes:
        return struct.pack("!BBH", code, 0, 4 + 4 * len(addresses)) + b"".join(map(packed, addresses))

    def message(kind: int, originator: str, body: bytes, **more: int) -> bytes:
        return olsr_message(kind, originator, next(sequence), body, **more)

    # 6: symmetric; 2 times 4 and 2: a symmetric link to a multipoint relay, so that the victim listens and passes on
    yield say(message(hello, LIAR, b"\0\0\x05\x03" + block(10, VICTIM, forged(n)), ttl=1))
    yield say(message(hello, LIAR, b"\0\0\x05\x03" + block(10, VICTIM) + block(2, OTHER), ttl=1))
    yield say(
        message(hello, forged(n), b"\0\0\x05\x03" + block(10, VICTIM, *(forged(9 * n + k) for k in range(20))), ttl=1),
        source=forged(n),
    )
    lies = [forged(1000 + 40 * n + k) for k in range(40)]
    yield say(message(tc, forged(n), struct.pack("!HH", n, 0) + b"".join(map(packed, lies))))
    yield say(message(mid, forged(n), b"".join(map(packed, lies))))
    yield say(message(hna, forged(n), b"".join(packed(a) + b"\xff" * 4 for a in lies)))
    yield say(message(tc, OTHER, struct.pack("!HH", 0xFFF0 + n & 0xFFFF, 0) + packed(forged(1))))
    yield say(olsr_message(tc, OTHER, 7, bytes(4)))
    yield say(message(tc, VICTIM, bytes(4)))
    yield say(message(tc, EVERYBODY, bytes(4)))
    yield say(message(tc, OTHER, bytes(4), ttl=0))
    yield say(message(tc, OTHER, bytes(4)), source=OTHER)
    yield say(message(1 + n % 4, OTHER, bytes(n % 4)))
    yield say(message(200, OTHER, bytes(40)))
    yield say(message(tc, OTHER, bytes(8), length=4000))
    yield say(message(hna, OTHER, packed("10.1.0.0") + b"\xff\x00\xff\x00"))
    yield say(message(hna, OTHER, bytes(19_000)))
    yield say(message(tc, OTHER, struct.pack("!HH", n, 0) + b"".join(packed(forged(k)) for k in range(1000))))
    yield attacker.udp("olsr", LIAR, olsr_packet(n, message(tc, OTHER, bytes(8)))[: n % 16])
    yield say(message(tc, OTHER, bytes(8)), source=VICTIM)


def dsr_header(*options: bytes, next_header: int = 59, length: int | None = None) -> bytes:
    """RFC 4728, section 6.1; 59: nothing follows."""
    body = b"".join(options)
    return struct.pack("!BBH", next_header, 0, len(body) if length is None else length) + body


def request(ident: int, target: str, *by: str) -> bytes:
    """RFC 4728, section 6.2."""
    return struct.pack("!BBH", 1, 6 + 4 * len(by), ident & 0xFFFF) + packed(target) + b"".join(map(packed, by))


def dsr_mix(attacker: Attacker, n: int) -> Iterator[list[bytes]]:
    def route(left: int, *by: str) -> bytes:
        return struct.pack("!BBH", 96, 2 + 4 * len(by), left) + b"".join(map(packed, by))

    def reply(*by: str) -> bytes:
        return struct.pack("!BBB", 2, 1 + 4 * len(by), 0) + b"".join(map(packed, by))

    def say(payload: bytes, source: str = LIAR, **more) -> list[bytes]:
        return attacker.ip(source, payload, protocol=DSR, **more)

    yield say(dsr_header(request(n, forged(n)))[: n % 12])
    yield say(dsr_header(request(n, forged(n)), length=200 + n))
    yield say(dsr_header(bytes([1, 2 + n % 3, 0, 0])))
    yield say(dsr_header(request(n, forged(n), *(forged(k) for k in range(62)))))
    for source in (forged(n), LIAR):
        yield say(dsr_header(request(n, forged(n + 1))), source=source)
    yield say(dsr_header(request(n, forged(n + 1))))
    yield say(dsr_header(request(n, LIAR, OTHER)))
    yield say(dsr_header(request(n, forged(1), OTHER, OTHER)))
    yield say(dsr_header(request(n, forged(1))), source=VICTIM)
    yield say(dsr_header(route(200, OTHER, VICTIM)), to=VICTIM)
    yield say(dsr_header(route(1, VICTIM, VICTIM)), to=OTHER)
    yield say(dsr_header(route(0, OTHER)), source=VICTIM, to=VICTIM)
    yield say(dsr_header(reply(forged(1), forged(2)), route(0)), to=VICTIM)
    yield say(dsr_header(request(n, forged(1)), bytes([0x64, 2, 0, 0])))
    yield say(dsr_header(next_header=DSR) + dsr_header(route(0, OTHER)), to=VICTIM)
    yield say(dsr_header(request(n, forged(3))) + bytes(5000))
    yield say(b"\0\x80" + bytes(10), to=VICTIM)
    yield say(bytes(n))
    yield attacker.udp("aodv", LIAR, bytes(9), to=OTHER)


MIXES = {"aodv": aodv_mix, "dsdv": dsdv_mix, "olsr": olsr_mix, "dsr": dsr_mix}
REASONS = {
    "aodv": "malformed-address malformed-count malformed-extension malformed-truncated malformed-type rreq-own rreq-hops "
    "rreq-duplicate rrep-own host-truncated",
    "dsdv": "malformed foreign-source own-number-learnt bad-destination bad-hops neighbours-full not-nearer older-number "
    "table-full host-truncated",
    "olsr": "malformed-packet malformed-message bad-link-code bad-network bad-originator own-message ttl-zero asymmetric-sender "
    "duplicate stale-tc aliases-full networks-full host-truncated",
    "dsr": "truncated bad-length bad-route fragment flow-state nested no-source-route own-source reply-elsewhere request-loop "
    "request-own request-returned request-seen too-long unknown-option",
}


def tables_beyond(protocol: str, status: dict) -> dict[str, int]:
    """The tables of the daemon that hold more than they may."""
    sizes, most = {"routes": len(status["routes"])}, {"routes": MOST_ROUTES[protocol]}
    if protocol == "olsr":
        details = status["details"]
        sizes |= {name: details[name] if name == "duplicates" else len(details[name]) for name in OLSR_TABLES}
        most |= OLSR_TABLES
    return {name: size for name, size in sizes.items() if size > most[name]}


def flood(protocol: str, attacker: Attacker, n: int) -> bytes:
    """A request by somebody new for somebody new; half of them come by as many neighbours, half by one."""
    neighbour, originator, wanted = (forged(3 * n) if n % 2 else LIAR), forged(3 * n + 1), forged(3 * n + 2)
    if protocol == "aodv":
        return attacker.udp("aodv", neighbour, rreq(n, originator, wanted))[0]
    return attacker.ip(originator, dsr_header(request(n, wanted, neighbour)), protocol=DSR)[0]


@pytest.mark.alone("10,000 packets a second")
@pytest.mark.parametrize("protocol", ["aodv", "dsr"])
def test_ten_thousand_requests_a_second_make_nothing_grow_and_the_daemon_goes_on(attacked, protocol):
    victim, attacker, pings = attacked(protocol)
    frames = [flood(protocol, attacker, n) for n in range(FLOOD)]
    start, answers = time.monotonic(), 0
    for first in range(0, FLOOD, BATCH):
        attacker.send(frames[first : first + BATCH])
        if first % PER_SECOND == 0:
            assert victim.status()["ok"]
            answers += 1
        ahead_s = start + attacker.sent / PER_SECOND - time.monotonic()
        if ahead_s > 0:
            time.sleep(ahead_s)
    rate = attacker.sent / (time.monotonic() - start)
    counters = victim.unharmed(f"{protocol}, requests")
    # what its kernel dropped since it did not keep up
    missed = counters["host-overrun"]
    print(f"hostile: {rate:.0f} requests a second, {missed} not taken in, {answers} answers meanwhile")
    # what the friend's daemon passes on of them comes back, and may be dropped as well
    heard = counters["rreq-received"] if protocol == "aodv" else counters["requests-passed-on"] + counters["delayed-full"]
    assert FLOOD / 100 < heard <= FLOOD + 10 and heard + missed >= FLOOD
    assert len(victim.status()["routes"]) <= 1024
    assert pings() >= 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_cut_forged_replayed_or_oversized_is_counted_by_reason(attacked, protocol):
    victim, attacker, pings = attacked(protocol)
    for half in (range(ROUNDS), range(ROUNDS, 2 * ROUNDS)):
        for n in half:
            for frames in MIXES[protocol](attacker, n):
                attacker.send(frames)
            # at its pace, since what the kernel drops is not counted by reason
            assert victim.status()["ok"]
        counters = victim.unharmed(f"{protocol}, {half.stop} rounds")
        # however much of it was taken in: no table is beyond its limit
        assert not (beyond := tables_beyond(protocol, victim.status())), beyond
    assert not (missing := {reason for reason in REASONS[protocol].split() if not counters[reason]}), (missing, counters)
    assert pings() >= 4


def test_a_number_that_has_gone_around_the_circle_is_newer_and_a_replayed_one_older(attacked):
    victim, attacker, _ = attacked("aodv")
    # RFC 3561, 6.1: compared by their signed difference
    for n, number in enumerate([0x7FFF_FFFF, 0x8000_0001, 0xFFFF_FFFF, 1, 0x8000_0001, 0xFFFF_FFFF]):
        attacker.send(attacker.udp("aodv", LIAR, rreq(n, LIAR, VICTIM, sequence=number)))
    victim.unharmed("aodv, around the circle")
    known = {route["destination"]: route["sequence"] for route in victim.status()["routes"]}
    assert known[LIAR] == 1
