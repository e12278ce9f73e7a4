"""Frames, capture files and run directories with contents that are known to the byte, for tests and fixtures.

Times are nanoseconds after T0. A crafted packet is IPv4 without options; TCP has no options either, so that headers are
40 bytes (28 for UDP).
"""

import json
import struct
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from pathlib import Path

from record.scenario import RunFlow
from topologies.addresses import ip6_address

T0_NS = 1_700_000_000_000_000_000
MS = 1_000_000
SNAP_BYTES = 128
SYN, ACK, FIN = 0x02, 0x10, 0x01


@dataclass(frozen=True)
class Frame:
    """A frame at an instant; `ip_bytes` is its IP packet's length, whatever the snap length cut."""

    t_ns: int
    data: bytes
    ip_bytes: int


def mac(number: int) -> bytes:
    return bytes([2, 0, 0, 0, number >> 8, number & 0xFF])


def ip(number: int) -> bytes:
    return bytes([10, 0, number >> 8, number & 0xFF])


def tcp(t_ns, source, destination, ports, seq, ack, payload=0, flags=ACK) -> Frame:
    """A segment from station number `source` to `destination`; `ports` are (source's, destination's)."""
    acknowledged = ack % 2**32 if flags & ACK else 0
    header = struct.pack("!HHIIBBHHH", *ports, seq % 2**32, acknowledged, 0x50, flags, 8192, 0, 0)
    return _packet(t_ns, source, destination, 6, header + bytes(payload))


def udp(t_ns, source, destination, ports, stamp: bytes, payload: int) -> Frame:
    """A datagram whose payload begins with `stamp`."""
    body = stamp + bytes(payload - len(stamp))
    return _packet(t_ns, source, destination, 17, struct.pack("!HHHH", *ports, 8 + payload, 0) + body)


def ip6(number: int) -> bytes:
    return IPv6Address(ip6_address(number)).packed


def over_ipv6(frame: Frame) -> Frame:
    """The packet of stations with the header of IPv6 in place of IPv4's, whose identification is lost."""
    inner = frame.data[34:]
    ends = [ip6(int.from_bytes(frame.data[at : at + 4], "big") & 0xFFFF) for at in (26, 30)]
    header = struct.pack("!IHBB16s16s", 6 << 28, len(inner), frame.data[23], 255, *ends)
    return Frame(frame.t_ns, frame.data[:12] + b"\x86\xdd" + header + inner, frame.ip_bytes + 20)


def icmp6(source: int, destination: int, kind: int, code: int, body: bytes) -> Frame:
    """A message of ICMPv6 (RFC 4443, 2.1) between stations; the checksum is left zero."""
    message = struct.pack("!BBHI", kind, code, 0, 0) + body
    header = struct.pack("!IHBB16s16s", 6 << 28, len(message), 58, 255, ip6(source), ip6(destination))
    return Frame(0, mac(destination) + mac(source) + b"\x86\xdd" + header + message, 40 + len(message))


def arp(t_ns, source, destination) -> Frame:
    """An ARP request, sent to the station itself."""
    body = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac(source), ip(source), bytes(6), ip(destination))
    return Frame(t_ns, mac(destination) + mac(source) + b"\x08\x06" + body, 28)


def in_dsr(frame: Frame, options: bytes) -> Frame:
    """The packet with a DSR header (RFC 4728, 6.1) of these options between IP header and transport header."""
    return _wrapped(frame, 48, struct.pack("!BBH", frame.data[23], 0, len(options)) + options, frame.data[30:34])


def dsr_source_route(*through: int, segments_left: int = 0) -> bytes:
    """Option 96 (RFC 4728, 6.7): type, length, F L reserved salvage segments left, the stations between the ends."""
    return struct.pack("!BBH", 96, 2 + 4 * len(through), segments_left) + b"".join(ip(number) for number in through)


def in_minimal(frame: Frame, gateway: int, with_source: bool = False) -> Frame:
    """The packet encapsulated towards station `gateway` (RFC 2004, 3.1); the checksum is left zero."""
    header = struct.pack("!BBH", frame.data[23], 0x80 if with_source else 0, 0) + frame.data[30:34]
    return _wrapped(frame, 55, header + (frame.data[26:30] if with_source else b""), ip(gateway))


def in_batman(frame: Frame, source: int, destination: int) -> Frame:
    """The frame in a batman-adv unicast (type, version, TTL, TTVN, originator) from one radio to the next."""
    header = struct.pack("!BBBB6s", 0x40, 15, 50, 1, mac(destination))
    data = mac(destination) + mac(source) + b"\x43\x05" + header + frame.data
    return Frame(frame.t_ns, data, len(header) + 14 + frame.ip_bytes)


def _wrapped(frame: Frame, protocol: int, header: bytes, destination: bytes) -> Frame:
    length = frame.ip_bytes + len(header)
    outer = frame.data[14:16] + struct.pack("!H", length) + frame.data[18:23] + bytes([protocol]) + frame.data[24:30]
    return Frame(frame.t_ns, frame.data[:14] + outer + destination + header + frame.data[34:], length)


def _packet(t_ns, source, destination, protocol, inner: bytes) -> Frame:
    length = 20 + len(inner)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, protocol, 0, ip(source), ip(destination))
    return Frame(t_ns, mac(destination) + mac(source) + b"\x08\x00" + header + inner, length)


def capture_bytes(frames: list[Frame], nanoseconds: bool = True, order: str = "<", snap: int = SNAP_BYTES) -> bytes:
    """A classic pcap file, snapped as the testbed's are."""
    unit = 1 if nanoseconds else 1000
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, 1)]
    for frame in sorted(frames, key=lambda frame: frame.t_ns):
        at = T0_NS + frame.t_ns
        kept = frame.data[:snap]
        parts.append(struct.pack(order + "IIII", at // 10**9, at % 10**9 // unit, len(kept), len(frame.data)) + kept)
    return b"".join(parts)


@dataclass
class Transfer:
    """One TCP transfer, segment by segment, as both ends' captures see it."""

    source: int
    destination: int
    isn: int
    ports: tuple[int, int] = (40000, 5201)
    at_source: list[Frame] = field(default_factory=list)
    at_destination: list[Frame] = field(default_factory=list)

    def open(self, t_ns: int, trip_ns: int) -> None:
        """Three-way handshake; the peer's own sequence numbers start at 5000."""
        self._forward(t_ns, trip_ns, self.isn, 0, flags=SYN)
        self._backward(t_ns + trip_ns, trip_ns, seq=5000, ack=self.isn + 1, flags=SYN | ACK)
        self._forward(t_ns + 2 * trip_ns, trip_ns, self.isn + 1, 0)

    def segment(self, t_ns: int, start: int, payload: int, trip_ns: int | None) -> None:
        """Bytes start..start+payload-1 (0 is the first); None for a trip that ends in the air."""
        self._forward(t_ns, trip_ns, self.isn + 1 + start, payload)

    def ack(self, t_ns: int, end: int, trip_ns: int) -> None:
        """The receiver acknowledges all bytes before `end`."""
        self._backward(t_ns, trip_ns, seq=5001, ack=self.isn + 1 + end)

    def close(self, t_ns: int, total: int, trip_ns: int) -> None:
        """FIN after `total` bytes, and its ACK, which is one higher."""
        self._forward(t_ns, trip_ns, self.isn + 1 + total, 0, flags=FIN | ACK)
        self._backward(t_ns + trip_ns, trip_ns, seq=5001, ack=self.isn + 2 + total)

    def _forward(self, t_ns, trip_ns, seq, payload, flags=ACK) -> None:
        ends = (self.source, self.destination, self.ports, seq, 5001, payload, flags)
        self.at_source.append(tcp(t_ns, *ends))
        if trip_ns is not None:
            self.at_destination.append(tcp(t_ns + trip_ns, *ends))

    def _backward(self, t_ns, trip_ns, seq, ack, flags=ACK) -> None:
        ends = (self.destination, self.source, self.ports[::-1], seq, ack, 0, flags)
        self.at_destination.append(tcp(t_ns, *ends))
        self.at_source.append(tcp(t_ns + trip_ns, *ends))


def flow(name: str, source: str, target: str, traffic: str = "bulk") -> RunFlow:
    """A flow of a run without keys of its kind."""
    return RunFlow.model_validate({"name": name, "from": source, "to": target, "traffic": traffic})


class RunFolder:
    """A run directory under construction; `write` makes the files of formats/results.md that the analysis reads."""

    def __init__(self, stations: int, warmup_s: float, duration_s: float) -> None:
        self.captures: dict[int, list[Frame]] = {number: [] for number in range(1, stations + 1)}
        self.scenario = {"topology": "chain", "hops": stations - 1, "warmup": warmup_s, "duration": duration_s, "flows": []}
        self.reports: list[dict] = []
        self.air: list[tuple] = []
        self.packets = 0

    def add_transfer(self, transfer: Transfer, report: dict) -> None:
        self._add_flow(transfer.source, transfer.destination, "bulk", report)
        self.captures[transfer.source] += transfer.at_source
        self.captures[transfer.destination] += transfer.at_destination

    def add_datagrams(self, source: int, destination: int, at_source, at_destination, report: dict) -> None:
        self._add_flow(source, destination, "cbr", report)
        self.captures[source] += at_source
        self.captures[destination] += at_destination

    def _add_flow(self, source: int, destination: int, traffic: str, report: dict) -> None:
        flow = {"from": f"sta{source}", "to": f"sta{destination}", "traffic": traffic, "start": 0.0}
        self.scenario["flows"].append(flow)
        self.reports.append(report)

    def deliver(self, frame: Frame, sender: str, station: str, epoch_ns: int, lag_ns: int = MS // 2) -> None:
        """Air rows of a packet that needed one attempt: RTS, CTS, data, ACK, then handed up `lag_ns` before capture."""
        self.packets += 1
        t_ns = T0_NS + frame.t_ns - epoch_ns - lag_ns
        start, number, length = t_ns - 8 * MS, self.packets, frame.ip_bytes
        on_air_ns = 192_000 + (length + 34) * 4000
        self.air += [
            (start, sender, "enqueue", "data", station, number, 0, length, 0, 0, 0, "", 0),
            (start, sender, "tx", "rts", station, number, 1, 20, 1000000, 352000, 3, "delivered", 0),
            (start + 362000, station, "tx", "cts", sender, 0, 1, 14, 1000000, 304000, 0, "delivered", 0),
            (start + 676000, sender, "tx", "data", station, number, 1, length + 34, 2000000, on_air_ns, 0, "delivered", 0),
            (start + 686000 + on_air_ns, station, "tx", "ack", sender, 0, 1, 14, 1000000, 304000, 0, "delivered", 0),
            (t_ns, station, "deliver", "data", sender, number, 0, length, 0, 0, 0, "", 0),
        ]

    def lose(self, t_ns: int, sender: str, station: str, ip_bytes: int, epoch_ns: int) -> None:
        """Air rows of a packet whose RTS met a hidden station seven times (the short retry limit)."""
        self.packets += 1
        start, number = T0_NS + t_ns - epoch_ns, self.packets
        self.air.append((start, sender, "enqueue", "data", station, number, 0, ip_bytes, 0, 0, 0, "", 0))
        for attempt in range(1, 8):
            at = start + (attempt - 1) * MS
            self.air.append((at, sender, "tx", "rts", station, number, attempt, 20, 1000000, 352000, 9, "hidden", 0))
        self.air.append((start + 7 * MS, sender, "drop", "data", station, number, 0, ip_bytes, 0, 0, 0, "retry-short", 0))

    def write(self, folder: Path, epoch_ns: int, verdict: str = "valid", **run: object) -> Path:
        for name in ("captures", "traffic"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        stations = [{"name": f"sta{number}", "mac": mac(number).hex(":")} for number in self.captures]
        _dump(folder / "scenario.json", self.scenario)
        _dump(folder / "run.json", {"format": "manet-run/1", "epoch_ns": epoch_ns, "status": "complete", **run})
        _dump(folder / "medium.json", {"format": "manet-medium/1", "stations": stations})
        _dump(folder / "verdict.json", {"format": "manet-verdict/1", "verdict": verdict, "reasons": []})
        for number, frames in self.captures.items():
            (folder / "captures" / f"sta{number}.pcap").write_bytes(capture_bytes(frames))
        for number, report in enumerate(self.reports, start=1):
            _dump(folder / "traffic" / f"flow{number}.json", report)
        self._write_air(folder)
        return folder

    def _write_air(self, folder: Path) -> None:
        header = "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers\n"
        rows = sorted(self.air, key=lambda row: row[0])
        (folder / "air.csv").write_text(header + "".join(",".join(map(str, row)) + "\n" for row in rows))
        counters = {f"sta{number}": _count(rows, f"sta{number}") for number in self.captures}
        _dump(folder / "counters.json", {"format": "manet-counters/1", "stations": counters})


def iperf_report(transfer: Transfer, received_bytes: int, seconds: float, retransmits: int, intervals: list[int]) -> dict:
    """The parts of iperf3's report that the analysis reads; `intervals` are bytes of the server's seconds."""
    source, destination = (".".join(map(str, ip(number))) for number in (transfer.source, transfer.destination))
    ends = {"local_host": source, "local_port": transfer.ports[0]}
    ends |= {"remote_host": destination, "remote_port": transfer.ports[1]}
    served = [{"sum": {"start": at, "end": at + 1, "bytes": count}} for at, count in enumerate(intervals)]
    return {
        "start": {"connected": [ends], "test_start": {"protocol": "TCP", "blksize": 1000, "duration": seconds}},
        "end": {
            "sum_sent": {"bytes": received_bytes, "seconds": seconds, "retransmits": retransmits},
            "sum_received": {"bytes": received_bytes, "seconds": seconds},
        },
        "server_output_json": {"intervals": served},
    }


def _count(rows: list[tuple], station: str) -> dict[str, int]:
    """Counters as the medium would have counted them."""
    own = [row for row in rows if row[1] == station]
    counts = {f"tx_{frame}": sum(row[2:4] == ("tx", frame) for row in own) for frame in ("rts", "cts", "data", "ack", "bcast")}
    counts["enqueued"] = sum(row[2] == "enqueue" for row in own)
    counts["delivered_up"] = sum(row[2] == "deliver" for row in own)
    for reason in ("queue-full", "retry-short", "retry-long", "purged"):
        counts[reason.replace("-", "_")] = sum(row[2] == "drop" and row[11] == reason for row in own)
    return counts


def _dump(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")
