"""How fast a capture of 1 GB becomes a table of flows, beside tshark on the same file in the same run.

The file is synthetic: FLOWS TCP connections, two full segments and an acknowledgement in turn, which is what a bulk flow
leaves at its sender. tshark dissects more than is asked of it; it is what one would use otherwise.
"""

import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from testbed.errors import RunError
from tests.bench import Table
from tests.bench.runs import bench_folder

FILE_BYTES = 1_000_000_000
FLOWS = 20
SEGMENT = 1448  # bytes of payload
_NUMBERS_AT = 14 + 20 + 4  # of sequence and acknowledgement numbers in a frame
FIELDS = ("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "ip.len", "tcp.seq_raw", "tcp.ack_raw")
OURS = """
import sys
from pathlib import Path
import polars as pl
from analysis.captures.pcap import read_capture
packets = read_capture(Path(sys.argv[1])).filter(pl.col("protocol") == "tcp")
flow = ["source", "source_port", "destination", "destination_port"]
flows = packets.group_by(flow).agg(
    pl.len(), pl.sum("ip_bytes"), pl.sum("payload_bytes"), pl.min("t_ns").alias("begin"), pl.max("t_ns").alias("end"),
    (pl.struct("sequence", "payload_bytes").is_duplicated() & (pl.col("payload_bytes") > 0)).sum().alias("repeated"))
print(len(packets), len(flows))
"""


def measure() -> Table:
    table = Table(
        f"A capture of {FILE_BYTES / 1e9:g} GB to tables",
        ["program", "wall s", "CPU s", "us/frame", "ratio of CPU"],
        "several times as fast as tshark",
    )
    with bench_folder() as folder:
        path = folder / "large.pcap"
        frames = write_capture(path, FILE_BYTES)
        wall_s, ours_s, printed = _timed([sys.executable, "-P", "-c", OURS, path])
        if printed.split() != [str(frames), str(2 * FLOWS)]:
            raise RunError(f"the analysis of {frames} frames in {2 * FLOWS} directions printed {printed}")
        table.rows.append(["analysis, table per flow", wall_s, ours_s, ours_s / frames * 1e6, 1.0])
        if shutil.which("tshark") is None:
            table.rows.append(["tshark", "absent", "-", "-", "-"])
            return table
        fields = ["-T", "fields", *(word for field in FIELDS for word in ("-e", field))]
        for name, words in {"tshark -T fields": fields, "tshark -q -z conv,tcp": ["-q", "-z", "conv,tcp"]}.items():
            wall_s, cpu_s, _ = _timed(["tshark", "-n", "-r", path, *words], keep=False)
            table.rows.append([name, wall_s, cpu_s, cpu_s / frames * 1e6, cpu_s / ours_s])
    return table


def write_capture(path: Path, size: int) -> int:
    """Write a pcap file of about `size` bytes; returns the number of its frames."""
    ends = [(_frame(flow, 40_000 + flow, 5201, SEGMENT), _frame(flow + FLOWS, 5201, 40_000 + flow, 0)) for flow in range(FLOWS)]
    frames, sent = 0, 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        while file.tell() < size:
            # numbers wrap at 2^32, as TCP's do
            first, second, end = ((sent + part * SEGMENT) % 2**32 for part in range(3))
            for segment, acknowledgement in ends:
                for frame, numbers in ((segment, (first, 1)), (segment, (second, 1)), (acknowledgement, (1, end))):
                    struct.pack_into(">II", frame, _NUMBERS_AT, *numbers)
                    head = struct.pack("<IIII", frames // 1_000_000, frames % 1_000_000 * 1000, len(frame), len(frame))
                    file.write(head + frame)
                    frames += 1
            sent += 2 * SEGMENT
    return frames


def _frame(sender: int, source_port: int, destination_port: int, payload: int) -> bytearray:
    one, other = sender % FLOWS, sender % FLOWS + 100
    source, destination = (one, other) if sender < FLOWS else (other, one)
    tcp = struct.pack(">HHIIBBHHI", source_port, destination_port, 0, 0, 0x80, 0x10, 500, 0, 0) + bytes(8) + bytes(payload)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0x4000, 64, 6, 0, bytes([10, 0, 0, source]),
                     bytes([10, 0, 0, destination]))  # fmt: skip
    return bytearray(bytes([2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 8, 0]) + ip + tcp)


def _timed(argv: list[str | Path], keep: bool = True) -> tuple[float, float, str]:
    """Wall time and CPU time of a program in seconds, and its output. Raises RunError."""
    before, began = os.times(), time.monotonic()
    output = subprocess.PIPE if keep else subprocess.DEVNULL
    done = subprocess.run(argv, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    wall_s, after = time.monotonic() - began, os.times()
    if done.returncode != 0:
        raise RunError(f"{argv[0]}: {done.stderr.strip()[-300:]}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return wall_s, cpu_s, done.stdout or ""
