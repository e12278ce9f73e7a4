"""Reading captures: fields, clocks, byte orders, and invalid files."""

import shutil
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest

from analysis.captures.pcap import SCHEMA, GrowingCapture, read_capture
from analysis.tests import craft
from analysis.tests.craft import MS, T0_NS
from record.errors import CaptureError

FIXTURE = Path(__file__).parent / "fixtures" / "two-flows" / "captures"
ONE_SEGMENT = craft.tcp(7 * MS, 1, 2, (40000, 5201), 4_000_000_000, 5, payload=1460)


def _written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "sta1.pcap"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("nanoseconds", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_snapped_segment_keeps_its_length_in_every_pcap_dialect(tmp_path, nanoseconds, order):
    row = read_capture(_written(tmp_path, craft.capture_bytes([ONE_SEGMENT], nanoseconds, order))).row(0, named=True)
    assert row["t_ns"] == T0_NS + 7 * MS
    assert (row["source"], row["source_port"]) == ("10.0.0.1", 40000)
    assert (row["destination"], row["destination_port"]) == ("10.0.0.2", 5201)
    assert (row["sequence"], row["acknowledgement"]) == (4_000_000_000, 5)
    assert row["ip_bytes"] == 1500  # 20 IP + 20 TCP + 1460, though only 128 - 14 bytes of it were kept
    assert row["payload_bytes"] == 1460
    assert (row["eth_src"], row["eth_dst"]) == ("02:00:00:00:00:01", "02:00:00:00:00:02")


def test_a_datagram_gives_its_stamp_and_arp_counts_as_a_frame(tmp_path):
    stamp = struct.pack("<QI", 1, 2)
    frames = [craft.udp(0, 3, 2, (9, 10), stamp, 500), craft.arp(MS, 3, 2)]
    table = read_capture(_written(tmp_path, craft.capture_bytes(frames)))
    assert table["protocol"].to_list() == ["udp", "arp"]
    assert table["stamp"].to_list() == [stamp, None]
    assert table["payload_bytes"].to_list() == [500, 0]


def test_nonsense_is_kept_as_a_frame(tmp_path):
    frames = [craft.Frame(0, b"\x01\x02", 0), craft.Frame(1, craft.mac(1) * 2 + b"\x08\x00" + b"\x45", 0)]
    assert read_capture(_written(tmp_path, craft.capture_bytes(frames)))["protocol"].to_list() == ["other", "other"]


def test_an_empty_capture_is_an_empty_table(tmp_path):
    table = read_capture(_written(tmp_path, craft.capture_bytes([])))
    assert len(table) == 0
    assert table.schema == pl.Schema(SCHEMA)


def test_a_growing_capture_gives_each_whole_frame_once(tmp_path):
    frames = [craft.udp(at * MS, 3, 2, (9, 10), struct.pack("<QI", at, at), 500) for at in range(6)]
    whole = craft.capture_bytes(frames)
    record = (len(whole) - 24) // 6
    growing, path = GrowingCapture(tmp_path / "sta1.pcap"), tmp_path / "sta1.pcap"
    assert len(growing.gained()) == 0, "no file yet"
    seen = []
    for end in (0, 10, 24 + record + 7, 24 + 3 * record + 20, 24 + 3 * record + 20, len(whole)):
        path.write_bytes(whole[:end])
        seen.append(growing.gained())
    assert [len(part) for part in seen] == [0, 0, 0, 2, 0, 3], "the first whole record was there before the first look"
    assert pl.concat(seen).equals(read_capture(path)[1:])


@pytest.mark.parametrize("cut", [1, 50, 128, 129, 143])  # within the last record: 16 bytes of header, 128 kept
def test_a_truncated_capture_is_an_error_that_names_file_and_place(tmp_path, cut):
    content = craft.capture_bytes([ONE_SEGMENT, ONE_SEGMENT])
    path = _written(tmp_path, content[:-cut])
    # 24 bytes of file header and the first record of 16 + 128 bytes: the second begins at 168
    with pytest.raises(CaptureError, match=rf"{path}: cut short in the record at byte 168 .*editcap"):
        read_capture(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes are no capture file"),
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "not a pcap file .*editcap"),  # pcapng
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 113), "link type 113, not Ethernet"),  # Linux cooked
    ],
)
def test_a_foreign_file_is_an_error_that_names_it(tmp_path, content, words):
    path = _written(tmp_path, content)
    with pytest.raises(CaptureError, match=f"{path}: {words}"):
        read_capture(path)


def test_a_missing_capture_is_an_error_that_names_it(tmp_path):
    with pytest.raises(CaptureError, match=r"sta9\.pcap: no such capture"):
        read_capture(tmp_path / "sta9.pcap")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark, the independent second reader, is not installed (./setup.sh)")
@pytest.mark.parametrize("station", ["sta1", "sta2", "sta3"])
def test_tshark_reads_the_same(station):
    path = FIXTURE / f"{station}.pcap"
    fields = ["ip.src", "ip.dst", "ip.len", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "udp.srcport", "udp.length"]
    argv = ["tshark", "-n", "-r", str(path), "-T", "fields", *[word for field in fields for word in ("-e", field)]]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    packets = read_capture(path)
    assert len(lines) == len(packets) > 100
    for line, row in zip(lines, packets.iter_rows(named=True), strict=True):
        expected = [row["source"], row["destination"], row["ip_bytes"]]
        if row["protocol"] == "tcp":
            expected += [row["source_port"], row["sequence"], row["acknowledgement"] or 0, row["payload_bytes"], "", ""]
        else:
            expected += ["", "", "", "", row["source_port"], row["payload_bytes"] + 8]
        assert line.split("\t") == [str(value) for value in expected]
