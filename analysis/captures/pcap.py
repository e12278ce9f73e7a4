"""A station's capture as a table of packets, one row per frame.

Reads classic pcap (libpcap's savefile format 2.4, micro- or nanoseconds, either byte order) with Ethernet frames, as the
capturing programs write them. numpy decodes the common frames by column (analysis/captures/plain_frames.py), dpkt all others
(frames.py). Frames cut at the snap length are fine if the transport header is kept, because lengths come from the IP header:
128 bytes are enough, plus the bytes that a routing protocol puts before it (testbed/stages/capture.py).

If a routing protocol encapsulated a packet (analysis/captures/encapsulation.py), the row has the packet inside with its own end
addresses; `ip_bytes` is the size on the air.

tshark is not used: it needs 0.24 s to start and 22 us per packet. A test compares the two; `make bench` compares their speed.

Not supported: pcapng, IP fragments after the first (an MTU of 1500 bytes makes none here).
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from analysis.captures.plain_frames import plain_frames
from record.errors import CaptureError
from record.files import plain_file

SCHEMA = {
    "t_ns": pl.Int64,  # CLOCK_REALTIME
    "eth_src": pl.String,
    "eth_dst": pl.String,
    "protocol": pl.String,  # tcp udp icmp arp other
    "source": pl.String,
    "destination": pl.String,
    "source_port": pl.Int32,
    "destination_port": pl.Int32,
    "ip_bytes": pl.Int32,  # what the frame carries; 0 if it is not IP
    "payload_bytes": pl.Int32,  # of TCP or UDP
    "sequence": pl.Int64,  # TCP, raw 32 bits
    "acknowledgement": pl.Int64,  # TCP, raw 32 bits; null without the ACK flag
    "flags": pl.Int32,  # TCP
    "identification": pl.Int32,  # of the IPv4 header; TCP and UDP only, null for IPv6
    "stamp": pl.Binary,  # UDP: the first bytes of the payload, which identify a datagram (see STAMP_BYTES)
    "icmp_type": pl.Int32,
    "icmp_code": pl.Int32,
    "quoted": pl.Binary,  # ICMP: what follows its 8 bytes of header, of an error the packet it is about
}

FRAMES_AT_ONCE = 500_000  # decoded together: bounds the memory for the columns of a long capture

# iperf3 opens every datagram with its sending time (8 bytes) and a counter (4 or 8): unique within a flow.
STAMP_BYTES = 12

_FILE_HEADER_BYTES = 24
_RECORD_HEADER_BYTES = 16
_CAPTURED_AT = 8  # in the record's header, after seconds and fraction
_LINKTYPE_ETHERNET = 1
_MAGICS = {  # magic as stored -> (byte order, nanoseconds of one fraction unit)
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}


def read_capture(path: Path, stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
    """All frames of a capture in file order, as SCHEMA says; `stamp` has so many bytes. An incomplete last record is an error,
    not an end."""
    data, unit_ns, records = _records(path)
    parts = (records[at : at + FRAMES_AT_ONCE] for at in range(0, len(records), FRAMES_AT_ONCE))
    tables = [_table(data, unit_ns, part, stamp_bytes) for part in parts]
    return pl.concat(tables) if tables else pl.DataFrame(schema=SCHEMA)


class GrowingCapture:
    """A capture that is still written: the frames that it gains, from where it was first looked at. Not for several threads."""

    def __init__(self, path: Path) -> None:
        self._path, self._order, self._unit_ns, self._offset = path, "", 0, 0

    def gained(self) -> pl.DataFrame:
        """The frames since the last call, as read_capture has them; none at the first one, without a file, and without whole
        records. Raises CaptureError for a file that is no capture."""
        try:
            with plain_file(self._path) as file:
                if not self._order:
                    return self._begin(file)
                file.seek(self._offset)
                data = np.frombuffer(file.read(), np.uint8)
        except FileNotFoundError:
            return pl.DataFrame(schema=SCHEMA)
        offsets = self._advance(data, 0)
        if not offsets:
            return pl.DataFrame(schema=SCHEMA)
        return _table(data, self._unit_ns, _fields(data, self._order, offsets), STAMP_BYTES)

    def _begin(self, file: BinaryIO) -> pl.DataFrame:
        if os.fstat(file.fileno()).st_size >= _FILE_HEADER_BYTES:
            data = np.memmap(file, np.uint8, "r").view(np.ndarray)
            self._order, self._unit_ns = _read_file_header(self._path, data[:_FILE_HEADER_BYTES].tobytes())
            self._advance(data, _FILE_HEADER_BYTES)
        return pl.DataFrame(schema=SCHEMA)

    def _advance(self, data: np.ndarray, begin: int) -> list[int]:
        """The places of the whole records from `begin` on; the next call begins behind them."""
        offsets, end = _walk(data, self._order, begin)
        if end > len(data):
            end = offsets.pop()
        self._offset += end
        return offsets


def _table(data: np.ndarray, unit_ns: int, records: np.ndarray, stamp_bytes: int) -> pl.DataFrame:
    """The frames of some records: the plain ones by column, the others one by one."""
    t_ns = records[:, 0] * 1_000_000_000 + records[:, 1] * unit_ns
    starts, lengths = records[:, 2], records[:, 3]
    plain, rows = plain_frames(data, starts, lengths, stamp_bytes)
    rows = rows.with_columns(t_ns=t_ns[plain])
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in rows.columns]
    rows = rows.with_columns(missing).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    if len(plain) == len(records):
        return rows
    other = np.setdiff1d(np.arange(len(records)), plain, assume_unique=True)
    frames = (data[start : start + length].tobytes() for start, length in zip(starts[other], lengths[other], strict=True))
    both = pl.concat([rows, table_of(zip(t_ns[other].tolist(), frames, strict=True), stamp_bytes)])
    return both[np.argsort(np.concatenate([plain, other]), kind="stable")]


def table_of(frames: Iterable[tuple[int, bytes]], stamp_bytes: int = STAMP_BYTES) -> pl.DataFrame:
    """Ethernet frames with their times, as SCHEMA says."""
    from analysis.captures.frames import dissect

    columns: dict[str, list[object]] = {name: [] for name in SCHEMA}
    appenders = [columns[name].append for name in SCHEMA]
    for t_ns, frame in frames:
        for append, value in zip(appenders, dissect(t_ns, frame, stamp_bytes), strict=True):
            append(value)
    return pl.DataFrame(columns, schema=SCHEMA)


def _records(path: Path) -> tuple[np.ndarray, int, np.ndarray]:
    """The bytes of a file, nanoseconds of a fraction unit, and for each record seconds, fractions, first byte and captured bytes
    of its frame."""
    try:
        with plain_file(path) as file:
            if os.fstat(file.fileno()).st_size < _FILE_HEADER_BYTES:
                _read_file_header(path, file.read())
            data = np.memmap(file, np.uint8, "r").view(np.ndarray)  # slices of a memmap cost ten times as much
    except FileNotFoundError:
        raise CaptureError(f"{path}: no such capture; did the capture start? see log/ of the run") from None
    order, unit_ns = _read_file_header(path, data[:_FILE_HEADER_BYTES].tobytes())
    offsets, offset = _walk(data, order, _FILE_HEADER_BYTES)
    if offset != len(data):
        # past the end: the last record's frame is cut; before it: its header is
        raise _cut_short(path, offsets[-1] if offset > len(data) else offset)
    return data, unit_ns, _fields(data, order, offsets)


def _walk(data: np.ndarray, order: str, offset: int) -> tuple[list[int], int]:
    """The places of the records from `offset` on, and the end of the last one, which may be behind the data's."""
    offsets, end, captured_at, read = [], len(data), _CAPTURED_AT, struct.Struct(order + "I").unpack_from
    with data.data as view:
        while offset + _RECORD_HEADER_BYTES <= end:
            offsets.append(offset)
            offset += _RECORD_HEADER_BYTES + read(view, offset + captured_at)[0]
    return offsets, offset


def _fields(data: np.ndarray, order: str, offsets: list[int]) -> np.ndarray:
    at = np.array(offsets, np.int64)
    fields = data[at[:, None] + np.arange(_CAPTURED_AT + 4)].view(order + "u4").astype(np.int64)
    return np.column_stack([fields[:, 0], fields[:, 1], at + _RECORD_HEADER_BYTES, fields[:, 2]])


def _read_file_header(path: Path, data: bytes) -> tuple[str, int]:
    if len(data) < _FILE_HEADER_BYTES:
        raise CaptureError(f"{path}: {len(data)} bytes are no capture file; its writer was ended before it wrote its header")
    if data[:4] not in _MAGICS:
        raise CaptureError(f"{path}: not a pcap file (magic {data[:4].hex()}); convert it with `editcap -F pcap`")
    order, unit_ns = _MAGICS[data[:4]]
    linktype = struct.unpack_from(order + "I", data, 20)[0] & 0x0FFF_FFFF
    if linktype != _LINKTYPE_ETHERNET:
        raise CaptureError(f"{path}: link type {linktype}, not Ethernet; capture on the station's own interface")
    return order, unit_ns


def _cut_short(path: Path, offset: int) -> CaptureError:
    return CaptureError(
        f"{path}: cut short in the record at byte {offset} (full disk, its writer killed, or still written?); "
        f"`editcap -F pcap {path.name} fixed.pcap` keeps the records before it"
    )
