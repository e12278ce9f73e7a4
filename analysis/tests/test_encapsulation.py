"""Segments inside the headers of routing protocols are found, with their own ends, lengths and sequence numbers."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from analysis.captures.encapsulation import inside_ip
from analysis.captures.pcap import read_capture
from analysis.tests import craft

SEGMENT = craft.tcp(0, 1, 9, (40000, 5201), 4_000_000_000, 77, payload=1388)  # 20 IP + 20 TCP + 1388 = 1428 bytes
STAMP = struct.pack("<QI", 5, 6)
# the longest headers: Ethernet 14, IP 20, DSR 4, source route 4 + 4 * 15, acknowledgement request 4, TCP 60
MAX_BYTES = 14 + 20 + 4 + 4 + 60 + 4 + 60


def read(tmp_path: Path, frame: craft.Frame, snap: int = 200) -> dict:
    path = tmp_path / "sta1.pcap"
    path.write_bytes(craft.capture_bytes([frame], snap=snap))
    return read_capture(path).row(0, named=True)


def the_segment(row: dict) -> bool:
    ends = (row["source"], row["source_port"], row["destination"], row["destination_port"])
    numbers = (row["sequence"], row["acknowledgement"], row["payload_bytes"])
    return (row["protocol"], ends, numbers) == ("tcp", ("10.0.0.1", 40000, "10.0.0.9", 5201), (4_000_000_000, 77, 1388))


@pytest.mark.parametrize("hops", [1, 2, 8, 16])
def test_a_segment_in_a_dsr_source_route_is_found_and_its_route_counts_for_the_air(tmp_path, hops):
    route = craft.dsr_source_route(*range(2, hops + 1))
    row = read(tmp_path, craft.in_dsr(SEGMENT, route))
    assert the_segment(row)
    assert row["ip_bytes"] == 1428 + 4 + 4 + 4 * (hops - 1)  # fixed header, option, an address for each station between


def test_the_longest_route_and_header_fit_the_snap_length_of_dsr_but_not_the_usual_one(tmp_path):
    ack_request = struct.pack("!BBH", 160, 2, 1)
    frame = craft.in_dsr(SEGMENT, craft.dsr_source_route(*range(2, 17)) + ack_request)
    assert MAX_BYTES == 166 <= 200
    assert the_segment(read(tmp_path, frame, snap=MAX_BYTES))
    assert read(tmp_path, frame, snap=125)["protocol"] == "other"  # 14 + 20 + 4 + 64 + 4 + 20 = 126 are needed


def test_options_before_the_route_and_padding_are_skipped_by_the_length(tmp_path):
    options = struct.pack("!BBH", 160, 2, 1) + craft.dsr_source_route(2, 3) + b"\x00\x02\x00\x00"  # ack request, PadN
    assert the_segment(read(tmp_path, craft.in_dsr(SEGMENT, options)))


def test_a_dsr_packet_without_payload_is_no_segment(tmp_path):
    request = craft.Frame(0, SEGMENT.data[:23] + b"\x3b" + SEGMENT.data[24:34], 20)  # next header 59: nothing follows
    row = read(tmp_path, craft.in_dsr(request, struct.pack("!BBH", 1, 6, 1) + craft.ip(9)))
    assert (row["protocol"], row["ip_bytes"], row["payload_bytes"]) == ("other", 32, 0)


@pytest.mark.parametrize(("with_source", "header_bytes"), [(False, 8), (True, 12)])
def test_a_segment_in_the_half_tunnel_has_the_hosts_address_not_the_gateways(tmp_path, with_source, header_bytes):
    row = read(tmp_path, craft.in_minimal(SEGMENT, gateway=4, with_source=with_source))
    assert the_segment(row)
    assert row["ip_bytes"] == 1428 + header_bytes


def test_a_datagram_keeps_its_stamp_in_either(tmp_path):
    datagram = craft.udp(0, 1, 9, (9, 10), STAMP, 500)
    for frame in (craft.in_dsr(datagram, craft.dsr_source_route(2)), craft.in_minimal(datagram, 4)):
        row = read(tmp_path, frame)
        assert (row["protocol"], row["stamp"], row["payload_bytes"]) == ("udp", STAMP, 500)


def test_a_segment_in_batman_adv_is_found(tmp_path):
    row = read(tmp_path, craft.in_batman(SEGMENT, 2, 3))
    assert the_segment(row)
    assert (row["eth_src"], row["eth_dst"]) == ("02:00:00:00:00:02", "02:00:00:00:00:03")
    assert row["ip_bytes"] == 1428 + 10 + 14


@pytest.mark.parametrize("cut", range(0, 90))
def test_a_packet_cut_anywhere_is_a_frame_of_some_kind(tmp_path, cut):
    for frame in (craft.in_dsr(SEGMENT, craft.dsr_source_route(2, 3)), craft.in_minimal(SEGMENT, 4, True)):
        assert read(tmp_path, frame, snap=cut)["protocol"] in ("tcp", "other")


def test_a_flow_state_header_has_no_options_whatever_its_number_is():
    ends = (craft.ip(1), craft.ip(2))
    assert inside_ip(48, b"\x06\x80\x12\x34rest", *ends)[:3] == (6, b"rest", 4)
    assert inside_ip(17, b"\x06\x80\x12\x34rest", *ends) is None


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark, the independent second reader, is not installed (./setup.sh)")
def test_tshark_finds_the_same_segment(tmp_path):
    """In DSR only: it has no dissector for minimal encapsulation."""
    path = tmp_path / "sta1.pcap"
    path.write_bytes(craft.capture_bytes([craft.in_dsr(SEGMENT, craft.dsr_source_route(2, 3))], snap=200))
    argv = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "tcp.srcport", "-e", "tcp.seq_raw", "-e", "_ws.malformed"]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split("\n")
    assert lines[0].split("\t") == ["40000", "4000000000", ""]
