"""The capture of held packets, as the daemons write it (formats/examples/routing.held.pcapng) and as it may be broken."""

import struct
from pathlib import Path

import pytest

from analysis.captures.held_packets import GIVEN_UP, HELD, SENT_ON, read_held
from analysis.captures.pcap import table_of
from record.errors import CaptureError

EXAMPLE = Path(__file__).parents[2] / "formats" / "examples" / "routing.held.pcapng"
SECOND_NS = 1_000_000_000


def test_each_held_packet_is_recorded_on_arrival_and_departure():
    seen = list(read_held(EXAMPLE))
    epoch_ns = 1_700_000_000 * SECOND_NS
    assert [(one.passage, (one.t_ns - epoch_ns) / SECOND_NS) for one in seen] == [
        (HELD, 1.0), (HELD, 2.0), (GIVEN_UP, 2.2), (SENT_ON, 2.42),
    ]  # fmt: skip
    rows = table_of((one.t_ns, bytes(12) + b"\x08\x00" + one.packet) for one in seen)
    assert rows["identification"].to_list() == [1, 2, 1, 2]
    assert rows.select("source_port", "destination_port", "sequence", "payload_bytes", "ip_bytes").row(0) == (
        5001,
        80,
        258,
        1000,
        1040,
    )


def test_an_unfinished_last_block_is_skipped_and_a_missing_file_is_empty(tmp_path):
    (tmp_path / "cut").write_bytes(EXAMPLE.read_bytes()[:-30])
    assert len(list(read_held(tmp_path / "cut"))) == 3
    assert list(read_held(tmp_path / "none")) == []


def test_another_file_is_refused_by_name(tmp_path):
    for data in (struct.pack(">III", 0x0A0D0D0A, 28, 0x1A2B3C4D) + bytes(16), b"\xd4\xc3\xb2\xa1" + bytes(20)):
        (tmp_path / "sta1.held.pcapng").write_bytes(data)
        with pytest.raises(CaptureError, match=r"sta1\.held\.pcapng: no little-endian pcapng block at byte 0"):
            list(read_held(tmp_path / "sta1.held.pcapng"))
