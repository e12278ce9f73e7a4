"""A run over a chain of three stations in which every packet's way is known, for the tests of journeys and stories.

sta1 sends to sta3 over sta2. Times are milliseconds after the start of the traffic, which is T0; a hop takes 10 ms, of which the
packet is in the queue for one. The captures are those of craft.py: IPv4, TCP without options.
"""

import json
import struct
from itertools import pairwise
from pathlib import Path

from analysis.tests.craft import (
    ACK,
    MS,
    T0_NS,
    Frame,
    RunFolder,
    Transfer,
    icmp6,
    ip,
    ip6,
    iperf_report,
    mac,
    over_ipv6,
    tcp,
)
from topologies.addresses import ip6_address

ISN, SEGMENT, PORTS = 1000, 1000, (40000, 5201)
EPOCH_NS = T0_NS - 2000 * MS
FORWARD, BACKWARD = (1, 2, 3), (3, 2, 1)
HOP_MS = 10
SAMPLES = (
    "t_ns,station,cookie,saddr,sport,daddr,dport,data_len,snd_nxt,snd_una,snd_cwnd,ssthresh,snd_wnd,srtt_us,rto_us,rcv_wnd,"
    "ca_state,event,detail"
)
OF_AGENT = ("notice", "stand-by", "probe", "retransmit")  # events whose rows have no window (formats/tcp.md)


def pcapng_block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


class Chain:
    """Builds the run; `write` gives its directory."""

    def __init__(self, stations: int = 3) -> None:
        self.folder = RunFolder(stations, warmup_s=0.0, duration_s=10.0)
        self.folder.scenario["flows"].append({"from": "sta1", "to": "sta3", "traffic": "bulk", "start": 0.0})
        self.folder.scenario |= {"tcp": "newreno"}
        self.folder.reports.append(iperf_report(Transfer(1, 3, ISN, PORTS), 0, 10.0, 0, []))
        self.notes: dict[str, list[dict]] = {}
        self.held: dict[str, int] = {}
        self.taken: dict[str, list[str]] = {}
        self.holdings: dict[str, list[bytes]] = {}
        self.events: list[tuple] = []
        self.samples: list[str] = []
        self.late_ms: float | None = None  # the medium's, at worst, as its verdict says
        self._identification = 0

    def data(self, number: int, identification: int | None = None) -> Frame:
        """Segment `number` from 1 of sta1's connection, as IP packet of a new identification unless it is given."""
        return self._packet(1, 3, PORTS, ISN + 1 + (number - 1) * SEGMENT, 5001, SEGMENT, identification)

    def ack(self, segment: int) -> Frame:
        """sta3 has everything up to `segment`."""
        return self._packet(3, 1, PORTS[::-1], 5001, ISN + 1 + segment * SEGMENT, 0, None)

    def _packet(self, source, target, ports, seq, ack, payload, identification) -> Frame:
        self._identification += 1
        number = self._identification if identification is None else identification
        frame = tcp(0, source, target, ports, seq, ack, payload, ACK)
        return Frame(0, frame.data[:18] + struct.pack("!H", number) + frame.data[20:], frame.ip_bytes)

    def identification_of(self, frame: Frame) -> int:
        return struct.unpack("!H", frame.data[18:20])[0]

    def travel(self, frame: Frame, at_ms: float, through: tuple[int, ...]) -> float:
        """The packet goes hop by hop; returns when it is at the last of them."""
        for here, there in pairwise(through):
            self.leave(frame, at_ms, here, there)
            at_ms = self.arrive(frame, at_ms, here, there)
        return at_ms

    def leave(self, frame: Frame, at_ms: float, here: int, there: int, queued_after_ms: float = 0.2) -> int:
        """Captured at its sender and queued there; returns the air's number of it."""
        self.folder.packets += 1
        self._capture(here, frame, at_ms, here, there)
        self._air(at_ms + queued_after_ms, here, "enqueue", "data", there, self.folder.packets, 0, frame.ip_bytes)
        return self.folder.packets

    def arrive(self, frame: Frame, at_ms: float, here: int, there: int, captured: bool = True) -> float:
        """The packet that left last goes over the air at the first attempt."""
        number = self.folder.packets
        self._air(at_ms + 1, here, "tx", "rts", there, number, 1, 20, "delivered")
        self._air(at_ms + 2, here, "tx", "data", there, number, 1, frame.ip_bytes + 34, "delivered")
        self._air(at_ms + HOP_MS - 0.5, there, "deliver", "data", here, number, 0, frame.ip_bytes)
        if captured:
            self._capture(there, frame, at_ms + HOP_MS, here, there)
        return at_ms + HOP_MS

    def lose(self, frame: Frame, at_ms: float, here: int, there: int, reason: str = "retry-short", fate: str = "hidden") -> float:
        """Seven attempts, or none where the queue drops it; returns when it was dropped."""
        number = self.leave(frame, at_ms, here, there)
        attempts = 7 if reason == "retry-short" else 0
        for attempt in range(1, attempts + 1):
            self._air(at_ms + attempt, here, "tx", "rts", there, number, attempt, 20, fate)
        self._air(at_ms + attempts + 1, here, "drop", "data", there, number, 0, frame.ip_bytes, reason)
        return at_ms + attempts + 1

    def icmp(self, at_ms: float, frame: Frame, here: int, kind: int, code: int) -> None:
        """`here` (sta2) tells sta1 of the packet that it quotes; captured at both."""
        quoted = frame.data[14:][:60]
        message = struct.pack("!BBHI", kind, code, 0, 0) + quoted
        header = struct.pack("!HHHBBH4s4s", 20 + len(message), 0, 0, 64, 1, 0, ip(here), ip(1))
        error = Frame(0, bytes(12) + b"\x08\x00" + b"\x45\xc0" + header + message, 20 + len(message))
        self.travel(error, at_ms, (here, 1))

    def arp_request(self, at_ms: float, here: int) -> None:
        body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + mac(here) + ip(here) + bytes(6) + ip(3)
        data = b"\xff" * 6 + mac(here) + b"\x08\x06" + body
        self.folder.captures[here].append(Frame(round(at_ms * MS), data, 28))

    def give_up(self, at_ms: float, here: int, number: int, event: str = "unreachable") -> None:
        """sta`here`'s daemon writes that it gave up segment `number`, or another note about it."""
        note = {"t_ns": T0_NS + round(at_ms * MS) - EPOCH_NS, "event": event, "about": "10.0.0.3", "value": 6,
                "source": "10.0.0.1", "ports": list(PORTS), "seq": ISN + 1 + (number - 1) * SEGMENT}  # fmt: skip
        if event in ("resolving", "displaced"):
            note["via"] = f"10.0.0.{here + 1}"
        self.notes.setdefault(f"sta{here}", []).append(note)

    def take_over(self, at_ms: float, frame: Frame, here: int) -> None:
        """sta`here`'s daemon is given the packet; it started 500 ms before the traffic."""
        input_ = {"packet": {"bytes": frame.data[14:].hex()}}
        line = json.dumps({"at": round((at_ms + 500) * MS), "input": input_}, separators=(",", ":"))
        self.taken.setdefault(f"sta{here}", []).append(line)

    def hold(self, at_ms: float, frame: Frame, here: int, comment: str = "held") -> None:
        """A block of the capture of held packets of sta`here`'s daemon."""
        packet = frame.data[14:]
        padding, at_ns = bytes(-len(packet) % 4), T0_NS + round(at_ms * MS)
        words = struct.pack("<5I", 0, at_ns >> 32, at_ns & 0xFFFF_FFFF, len(packet), frame.ip_bytes)
        text = comment.encode()
        option = struct.pack("<HH", 1, len(text)) + text + bytes(-len(text) % 4)
        block = pcapng_block(6, words + packet + padding + option + bytes(4))
        self.holdings.setdefault(f"sta{here}", []).append(block)

    def sample(self, at_ms: float, cwnd: int = 4, ssthresh: int = 8, event: str = "", detail: str = "") -> None:
        """A row of tcp.csv of sta1's data connection."""
        at_ns = T0_NS + round(at_ms * MS)
        state = f"0,{ISN + 1},{ISN + 1},{cwnd},{ssthresh},8192,40000,240000,8192,0"
        if event in OF_AGENT:
            state = f",{ISN + 1},{ISN + 1},,,,,,,"
        self.samples.append(f"{at_ns},sta1,7,10.0.0.1,{PORTS[0]},10.0.0.3,{PORTS[1]},{state},{event},{detail}")

    def power(self, at_s: float, station: int, on: bool) -> None:
        model_s = at_s + (T0_NS - EPOCH_NS) / 1e9
        self.events.append((f"{model_s:.6f}", f"{at_s:g}", "power", f"sta{station}", "on" if on else "off"))

    def write(self, folder: Path) -> Path:
        self.folder.write(folder, EPOCH_NS, traffic_ns=T0_NS - EPOCH_NS)
        if self.late_ms is not None:
            verdict = json.loads((folder / "verdict.json").read_text()) | {"lateness": {"max_us": self.late_ms * 1000}}
            (folder / "verdict.json").write_text(json.dumps(verdict))
        (folder / "routing").mkdir()
        for station, lines in self.taken.items():
            started = {"t_ns": T0_NS - 500 * MS - EPOCH_NS, "event": "started", "about": "10.0.0.9", "value": 0}
            self.notes.setdefault(station, []).insert(0, started)
            log = ['{"at":0,"started":{"restarted":false}}', *lines, '{"at":9']  # a killed daemon's last line
            (folder / "routing" / f"{station}.events.jsonl").write_text("\n".join(log))
        for station, notes in self.notes.items():
            (folder / "routing" / f"{station}.jsonl").write_text("".join(json.dumps(note) + "\n" for note in notes))
        for station, blocks in self.holdings.items():
            section = pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
            interface = pcapng_block(1, struct.pack("<HHI", 228, 0, 188) + struct.pack("<HHB3xI", 9, 1, 9, 0))
            # a killed daemon's last block
            (folder / "captures" / f"{station}.held.pcapng").write_bytes(b"".join([section, interface, *blocks]) + section[:9])
        for station, held in self.held.items():
            (folder / "routing" / f"{station}.status.json").write_text(json.dumps({"end": {"held": held}}))
        if self.events:
            rows = [("t_s", "at_s", "event", "station", "detail"), *self.events]
            (folder / "events.csv").write_text("".join(",".join(row) + "\n" for row in rows))
        (folder / "tcp.csv").write_text("\n".join([SAMPLES, *self.samples]) + "\n")
        return folder

    def _capture(self, station: int, frame: Frame, at_ms: float, here: int, there: int) -> None:
        data = mac(there) + mac(here) + frame.data[12:]
        self.folder.captures[station].append(Frame(round(at_ms * MS), data, frame.ip_bytes))

    def _air(self, at_ms, station, event, frame, peer, number, attempt, size, fate="") -> None:
        at_ns = T0_NS + round(at_ms * MS) - EPOCH_NS
        self.folder.air.append((at_ns, f"sta{station}", event, frame, f"sta{peer}", number, attempt, size, 0, 0, 0, fate, 0))


class Chain6(Chain):
    """The same over IPv6, whose packets have no identification."""

    def __init__(self) -> None:
        super().__init__()
        self.folder.scenario["ipv6"] = True
        self.folder.scenario["flows"][0]["ip"] = 6
        (ends,) = self.folder.reports[0]["start"]["connected"]
        ends |= {"local_host": ip6_address(1), "remote_host": ip6_address(3)}

    def _packet(self, source, target, ports, seq, ack, payload, identification) -> Frame:
        return over_ipv6(super()._packet(source, target, ports, seq, ack, payload, identification))

    def icmp(self, at_ms: float, frame: Frame, here: int, kind: int, code: int) -> None:
        self.travel(icmp6(here, 1, kind, code, frame.data[14:]), at_ms, (here, 1))

    def solicit(self, at_ms: float, here: int) -> None:
        """A neighbour solicitation (RFC 4861, 4.3) for sta3, to its solicited-node multicast address."""
        frame = icmp6(here, 3, 135, 0, ip6(3))
        data = b"\x33\x33\xff\x00\x00\x03" + frame.data[6:]
        self.folder.captures[here].append(Frame(round(at_ms * MS), data, frame.ip_bytes))
