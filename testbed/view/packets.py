"""A packet of air.pcapng by its number: its bytes, its comment, and its fields as tshark dissects them.

The blocks of the file (draft-ietf-opsawg-pcapng, section 3.1) have their lengths at both ends, so a scan needs no dissection; the
offset of each thousandth packet is kept, per file.
"""

import shutil
import struct
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from analysis.captures import pcapng
from record.files import plain_file

EVERY = 1000
DISSECTION_WITHIN_S = 10


def packet_of(path: Path, number: int) -> dict[str, Any] | None:
    """Packet `number`, from 1, as `{"file", "packet", "comment", "hex", "fields"}`; None without the file or the packet."""
    try:
        head, offsets = _index(str(path), path.stat().st_size)
        block = _block(path, offsets, number)
    except OSError:
        return None
    if block is None:
        return None
    body = block[8:-4]
    captured = struct.unpack_from("<I", body, 12)[0]
    return {
        "file": path.name, "packet": number, "comment": pcapng.comment(body[20 + pcapng.padded(captured) :]),
        "hex": body[20 : 20 + captured].hex(), "fields": _fields(head + block),
    }  # fmt: skip


@lru_cache(maxsize=8)
def _index(path: str, _size: int) -> tuple[bytes, list[int]]:
    """The header before the first packet, and the offset of every EVERYth packet."""
    offsets: list[int] = []
    head, count, offset = b"", 0, 0
    with plain_file(Path(path)) as file:
        data = memoryview(file.read())
    unpack = struct.Struct("<II").unpack_from
    while offset + 12 <= len(data):
        kind, length = unpack(data, offset)
        if length < 12:
            break
        if kind == pcapng.ENHANCED_PACKET:
            if not offsets:
                head = bytes(data[:offset])
            if count % EVERY == 0:
                offsets.append(offset)
            count += 1
        offset += length
    return head, offsets


def _block(path: Path, offsets: list[int], number: int) -> bytes | None:
    place, rest = divmod(number - 1, EVERY)
    if number < 1 or place >= len(offsets):
        return None
    with plain_file(path) as file:
        file.seek(offsets[place])
        while True:
            start = file.read(8)
            if len(start) < 8:
                return None
            kind, length = struct.unpack("<II", start)
            block = start + file.read(length - 8)
            if kind == pcapng.ENHANCED_PACKET:
                if rest == 0:
                    return block
                rest -= 1


def _fields(capture: bytes) -> list[str]:
    """The lines of `tshark -V`; none without tshark."""
    program = shutil.which("tshark")
    if program is None:
        return []
    with tempfile.NamedTemporaryFile(prefix="manet-view-", suffix=".pcapng") as file:
        file.write(capture)
        file.flush()
        try:
            done = subprocess.run(
                [program, "-n", "-V", "-r", file.name], capture_output=True, text=True, check=False, timeout=DISSECTION_WITHIN_S
            )
        except subprocess.TimeoutExpired:
            return []
    return done.stdout.splitlines()[:400]
