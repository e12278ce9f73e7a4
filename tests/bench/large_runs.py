"""Folders of large runs and of large results, written by columns: a million rows of air log in seconds.

`write_run`: stations on chains of HOPS hops, a TCP flow over each chain. A segment goes hop by hop, each in HOP_NS with RTS, CTS,
data and ACK, then its acknowledgement goes back. One of LOST segments is lost at its first hop after the retry limit and sent
again, one of RETRIED frames needs a second RTS. Captures, air log, samples and reports agree, as in a run of the testbed.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from topologies.addresses import ip_address, mac_address

HOPS = 4
SEGMENT = 1000  # bytes of payload
LOST, RETRIED = 50, 10
HOP_NS = 10_000_000
EPOCH_NS = 1_700_000_000_000_000_000
PORTS = (40_000, 5201)
ISN = 1000
SHORT_RETRIES = 7
ROWS_OF_A_HOP = 6 + 1 / RETRIED
_SEGMENT_BYTES, _ACK_BYTES = SEGMENT + 40, 40
_HEAD = np.dtype([("magic", "<u4"), ("version", "<u2", 2), ("zone", "<u4", 2), ("snap", "<u4"), ("link", "<u4")])
_FRAME = np.dtype(
    [("s", "<u4"), ("ns", "<u4"), ("kept", "<u4"), ("length", "<u4"), ("there", "u1", 6), ("here", "u1", 6), ("kind", ">u2"),
     ("version", ">u2"), ("ip_bytes", ">u2"), ("identification", ">u2"), ("fragment", ">u2"), ("ttl", ">u2"), ("sum", ">u2"),
     ("source", ">u4"), ("target", ">u4"), ("source_port", ">u2"), ("target_port", ">u2"), ("sequence", ">u4"), ("ack", ">u4"),
     ("flags", ">u2"), ("window", ">u2"), ("rest", ">u4")]
)  # fmt: skip


@dataclass(frozen=True)
class Trips:
    """Packets that cross a hop: the flow, its place in the flow's order, the hop, and the time at which the packet leaves."""

    flow: np.ndarray
    number: np.ndarray  # of the transmission in its flow
    segment: np.ndarray
    back: np.ndarray  # an acknowledgement
    hop: np.ndarray
    lost: np.ndarray
    t_ns: np.ndarray

    def __len__(self) -> int:
        return len(self.flow)


def write_run(folder: Path, rows: int, *, stations: int = 50, flows: int = 10, seconds: float = 900.0) -> int:
    """Write a run whose air log has about `rows` rows; returns their exact number."""
    if flows * (HOPS + 1) > stations:
        raise ValueError(f"{flows} flows over {HOPS} hops need {flows * (HOPS + 1)} stations, not {stations}")
    for name in ("captures", "traffic", "routing"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    trips = _trips(round(rows / (2 * HOPS * ROWS_OF_A_HOP)), flows, seconds)
    air = _write_air(folder / "air.csv", trips)
    for station in range(1, stations + 1):
        _write_capture(folder / "captures" / f"sta{station}.pcap", trips, station)
    _write_samples(folder / "tcp.csv", trips)
    _write_records(folder, trips, air, stations, flows, seconds)
    return len(air)


def _trips(rounds: int, flows: int, seconds: float) -> Trips:
    """Each transmission of a flow, hop by hop, and its acknowledgement. The transmissions of a flow follow each other evenly."""
    transmission = np.arange(rounds)
    flow, number = transmission % flows, transmission // flows
    every_ns = int(seconds * 1e9) * flows // rounds
    begin_ns = number * every_ns + flow * (every_ns // flows)
    lost = number % LOST == LOST - 1
    segment = number - number // LOST  # the one after a lost segment carries it again
    hop = np.arange(2 * HOPS)
    shape = (rounds, len(hop))

    def spread(values: np.ndarray) -> np.ndarray:
        return np.broadcast_to(values[:, None], shape).ravel()

    hops = np.broadcast_to(hop, shape).ravel()
    hop_ns = min(HOP_NS, every_ns // (2 * HOPS + 1))
    goes = ~spread(lost) | (hops == 0)
    columns = spread(flow), spread(number), spread(segment), hops >= HOPS, hops, spread(lost), spread(begin_ns) + hops * hop_ns
    return Trips(*(column[goes] for column in columns))


def _ends(trips: Trips) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the station that sends and of the one that receives, from 1."""
    first = trips.flow * (HOPS + 1) + 1
    here = np.where(trips.back, first + 2 * HOPS - trips.hop, first + trips.hop)
    return here, np.where(trips.back, here - 1, here + 1)


def _write_air(path: Path, trips: Trips) -> pl.DataFrame:
    """The log, in the order of the rows' ends."""
    here, there = _ends(trips)
    packet = np.arange(1, len(trips) + 1)
    size = np.where(trips.back, _ACK_BYTES, _SEGMENT_BYTES)
    none = np.zeros(len(trips), dtype=np.int64)
    unit = np.full(len(trips), HOP_NS // 100)
    retried = packet % RETRIED == 0

    def rows(after: int, event: str, frame: str, *, sender: bool = True, chosen: np.ndarray, attempt: int | np.ndarray = 1,
             octets: np.ndarray | int = 0, air_ns: int = 0, fate: str = "", power: bool = False) -> pl.DataFrame:  # fmt: skip
        columns = {
            "t_ns": trips.t_ns + after * unit, "station": here if sender else there, "peer": there if sender else here,
            "packet": packet if frame not in ("cts", "ack") else none, "attempt": none + attempt, "bytes": none + octets,
        }  # fmt: skip
        sent = event == "tx"
        return pl.DataFrame(columns).filter(pl.Series(chosen)).with_columns(
            event=pl.lit(event), frame=pl.lit(frame), fate=pl.lit(fate), rate_bps=pl.lit(2_000_000 if sent else 0),
            airtime_ns=pl.lit(air_ns), backoff_slots=pl.lit(7 if frame == "rts" else 0), receivers=pl.lit(0),
            power_dbm=pl.lit(-64.2 if power else None, dtype=pl.Float64),
        )  # fmt: skip

    good = ~trips.lost
    last = np.where(retried, 2, 1)
    parts = [
        rows(2, "enqueue", "data", chosen=good | trips.lost, octets=size, attempt=0),
        rows(10, "tx", "rts", chosen=good & retried, octets=20, air_ns=352_000, fate="collision", power=True),
        rows(30, "tx", "rts", chosen=good, attempt=last, octets=20, air_ns=352_000, fate="delivered", power=True),
        rows(35, "tx", "cts", sender=False, chosen=good, octets=14, air_ns=304_000, fate="delivered", power=True),
        rows(40, "tx", "data", chosen=good, octets=size + 34, air_ns=4_000_000, fate="delivered", power=True),
        rows(81, "tx", "ack", sender=False, chosen=good, octets=14, air_ns=304_000, fate="delivered", power=True),
        rows(85, "deliver", "data", sender=False, chosen=good, octets=size, attempt=0, power=True),
        *(rows(5 * attempt, "tx", "rts", chosen=trips.lost, attempt=attempt, octets=20, air_ns=352_000, fate="hidden", power=True)
          for attempt in range(1, SHORT_RETRIES + 1)),
        rows(50, "drop", "data", chosen=trips.lost, octets=size, attempt=0, fate="retry-short"),
    ]  # fmt: skip
    air = pl.concat(parts).sort(pl.col("t_ns") + pl.col("airtime_ns"), maintain_order=True)
    names = [pl.concat_str(pl.lit("sta"), pl.col(name)).alias(name) for name in ("station", "peer")]
    air = air.with_columns(*names).select(
        "t_ns", "station", "event", "frame", "peer", "packet", "attempt", "bytes", "rate_bps", "airtime_ns", "backoff_slots",
        "fate", "receivers", "power_dbm",
    )  # fmt: skip
    air.write_csv(path, quote_style="never", float_precision=1)
    return air


def _write_capture(path: Path, trips: Trips, station: int) -> None:
    """The frames that the station sent and those that it received."""
    here, there = _ends(trips)
    sent, received = here == station, (there == station) & ~trips.lost
    t_ns = np.concatenate([trips.t_ns[sent], trips.t_ns[received] + HOP_NS // 100 * 90])
    order = np.argsort(t_ns, kind="stable")
    place = np.concatenate([np.flatnonzero(sent), np.flatnonzero(received)])[order]
    at_ns, back, flow = t_ns[order] + EPOCH_NS, trips.back[place], trips.flow[place]
    frames = np.zeros(len(place), dtype=_FRAME)
    first, last = flow * (HOPS + 1) + 1, (flow + 1) * (HOPS + 1)
    start = (ISN + 1 + trips.segment[place] * SEGMENT) % 2**32
    size = np.where(back, _ACK_BYTES, _SEGMENT_BYTES)
    values = {
        "s": at_ns // 10**9, "ns": at_ns % 10**9, "kept": _FRAME.itemsize - 16, "length": size + 14,
        "there": _macs(there[place]), "here": _macs(here[place]), "kind": 0x0800, "version": 0x4500, "ip_bytes": size,
        "identification": trips.number[place] % 0xFFFF + 1, "ttl": 0x4006, "source": _addresses(np.where(back, last, first)),
        "target": _addresses(np.where(back, first, last)), "source_port": np.where(back, PORTS[1], PORTS[0]),
        "target_port": np.where(back, PORTS[0], PORTS[1]), "sequence": np.where(back, 5001, start),
        "ack": np.where(back, (start + SEGMENT) % 2**32, 5001), "flags": 0x5010, "window": 8192,
    }  # fmt: skip
    for name, column in values.items():
        frames[name] = column
    head = np.zeros(1, dtype=_HEAD)
    head["magic"], head["version"], head["snap"], head["link"] = 0xA1B23C4D, (2, 4), 128, 1
    path.write_bytes(head.tobytes() + frames.tobytes())


def _macs(stations: np.ndarray) -> np.ndarray:
    addresses = (mac_address(number).replace(":", "") for number in range(1, stations.max(initial=0) + 1))
    return np.array([[0] * 6, *(list(bytes.fromhex(address)) for address in addresses)])[stations]


def _addresses(stations: np.ndarray) -> np.ndarray:
    numbers = (sum(int(part) << shift for part, shift in zip(ip_address(n).split("."), (24, 16, 8, 0), strict=True))
               for n in range(1, stations.max(initial=0) + 1))  # fmt: skip
    return np.array([0, *numbers])[stations]


def _write_samples(path: Path, trips: Trips) -> None:
    """A sample for each acknowledgement that arrives at its flow's source."""
    arrived = trips.hop == 2 * HOPS - 1
    number, flow = trips.number[arrived], trips.flow[arrived]
    una = (ISN + 1 + (trips.segment[arrived] + 1) * SEGMENT) % 2**32
    stations = flow * (HOPS + 1) + 1
    text = [pl.concat_str(pl.lit("10.0.0."), pl.col(name)).alias(name) for name in ("saddr", "daddr")]
    samples = pl.DataFrame(
        {"t_ns": trips.t_ns[arrived] + HOP_NS + EPOCH_NS, "station": stations, "cookie": flow + 1, "saddr": stations,
         "daddr": stations + HOPS, "snd_nxt": una, "snd_una": una, "snd_cwnd": 2 + number % 7}
    ).sort("t_ns", maintain_order=True)  # fmt: skip
    samples = samples.with_columns(
        pl.concat_str(pl.lit("sta"), pl.col("station")).alias("station"), *text, sport=pl.lit(PORTS[0]), dport=pl.lit(PORTS[1]),
        data_len=pl.lit(0), ssthresh=pl.lit(8), snd_wnd=pl.lit(8192), srtt_us=pl.lit(80_000), rto_us=pl.lit(240_000),
        rcv_wnd=pl.lit(8192), ca_state=pl.lit(0), event=pl.lit(""), detail=pl.lit(""),
    )  # fmt: skip
    order = ("t_ns", "station", "cookie", "saddr", "sport", "daddr", "dport", "data_len", "snd_nxt", "snd_una", "snd_cwnd",
             "ssthresh", "snd_wnd", "srtt_us", "rto_us", "rcv_wnd", "ca_state", "event", "detail")  # fmt: skip
    samples.select(order).write_csv(path, quote_style="never")


def _write_records(folder: Path, trips: Trips, air: pl.DataFrame, stations: int, flows: int, seconds: float) -> None:
    """The JSON files of the run, and events.csv, which is empty."""
    ends = [(flow * (HOPS + 1) + 1, (flow + 1) * (HOPS + 1)) for flow in range(flows)]
    keys = [{"from": f"sta{a}", "to": f"sta{b}", "traffic": "bulk", "start": 0.0} for a, b in ends]
    scenario = {
        "topology": "chain", "nodes": stations, "warmup": 0.0, "duration": seconds, "flows": keys, "tcp": "newreno", "wires": [],
        "radio": "ns2-dsss-2m", "routing": "none",
    }  # fmt: skip
    places = [
        {"name": f"sta{n}", "mac": mac_address(n), "position": [200 * ((n - 1) % (HOPS + 1)), 1000 * ((n - 1) // (HOPS + 1)), 0]}
        for n in range(1, stations + 1)
    ]
    radio = Path(__file__).resolve().parents[2] / "medium" / "radios" / "ns2-dsss-2m.toml"
    contents = {
        "scenario.json": scenario,
        "run.json": {"format": "manet-run/1", "epoch_ns": EPOCH_NS, "traffic_ns": 0, "status": "complete"},
        "medium.json": {"format": "manet-medium/1", "radio": str(radio), "stations": places},
        "verdict.json": {"format": "manet-verdict/1", "verdict": "valid", "reasons": [], "model_ns": int(seconds * 1e9)},
        "counters.json": {"format": "manet-counters/1", "stations": _counters(air, stations)},
    }
    for number, (a, b) in enumerate(ends, start=1):
        connected = {"local_host": ip_address(a), "local_port": PORTS[0], "remote_host": ip_address(b), "remote_port": PORTS[1]}
        received = int(((trips.flow == number - 1) & (trips.hop == HOPS - 1)).sum()) * SEGMENT
        lost = int(((trips.flow == number - 1) & trips.lost).sum())
        contents[f"traffic/flow{number}.json"] = {
            "start": {"connected": [connected], "test_start": {"protocol": "TCP", "blksize": SEGMENT, "duration": seconds}},
            "end": {"sum_sent": {"bytes": received, "seconds": seconds, "retransmits": lost},
                    "sum_received": {"bytes": received, "seconds": seconds}},
            "server_output_json": {"intervals": []},
        }  # fmt: skip
    for name, content in contents.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n")
    (folder / "events.csv").write_text("t_s,at_s,event,station,detail,source\n")


def _counters(air: pl.DataFrame, stations: int) -> dict[str, dict[str, int]]:
    """As the medium counts them."""
    kinds = ("station", "event", "frame", "fate")
    counted = {tuple(row[:4]): row[4] for row in air.group_by(kinds).len().iter_rows()}

    def of(station: str, *kind: str) -> int:
        return sum(count for each, count in counted.items() if each[0] == station and each[1 : len(kind) + 1] == kind)

    names = {"delivered_up": ("deliver",), "enqueued": ("enqueue",), "retry_short": ("drop", "data", "retry-short")}
    names |= {f"tx_{frame}": ("tx", frame) for frame in ("rts", "cts", "data", "ack", "bcast")}
    return {f"sta{n}": {name: of(f"sta{n}", *kind) for name, kind in names.items()} for n in range(1, stations + 1)}
