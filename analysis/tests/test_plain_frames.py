"""Frames decoded by column are the frames that dpkt decodes one by one."""

import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.captures.pcap import read_capture, table_of

TCP, UDP, DSR, MINIMAL, ICMP = 6, 17, 48, 55, 1


def _bytes(low: int, high: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=low, max_size=high)


@st.composite
def _transport(draw) -> tuple[int, bytes]:
    protocol = draw(st.sampled_from([TCP, TCP, UDP, UDP, ICMP, 99]))
    if protocol == TCP:
        offset = draw(st.sampled_from([5, 5, 8, 15, 0, 4]))
        header = draw(_bytes(12, 12)) + bytes([offset << 4]) + draw(_bytes(7, 7))
        return protocol, header + draw(_bytes(0, 60))
    return protocol, draw(_bytes(0, 70))


@st.composite
def _frame(draw) -> bytes:
    protocol, body = draw(_transport())
    wrapping = draw(st.sampled_from([None, None, DSR, MINIMAL]))
    if wrapping == DSR:
        options = draw(_bytes(0, 12))
        stated = draw(st.sampled_from([len(options), len(options), 300]))
        body = struct.pack(">BBH", protocol, draw(st.sampled_from([0, 0, 0x80])), stated) + options + body
    elif wrapping == MINIMAL:
        body = struct.pack(">BB", protocol, draw(st.sampled_from([0, 0x80]))) + draw(_bytes(10, 10)) + body
    version = draw(st.sampled_from([0x45, 0x45, 0x45, 0x46, 0x44, 0x65]))
    length = draw(st.sampled_from([20 + len(body), 20 + len(body), 20 + len(body) + 900, 0, 30]))
    fragment = draw(st.sampled_from([0, 0, 0x4000, 0x2000, 1]))
    addresses = draw(st.sampled_from([bytes([10, 0, 0, 1, 10, 0, 0, 2]), bytes([10, 0, 0, 2, 10, 0, 1, 44])]))
    ip = struct.pack(">BBHHHBBH", version, 0, length, draw(st.integers(0, 65535)), fragment, 64, wrapping or protocol, 0)
    ethertype = draw(st.sampled_from([0x0800, 0x0800, 0x0800, 0x0806, 0x86DD, 0x8100, 0x4305, 100]))
    stations = draw(st.sampled_from([bytes(range(12)), b"\xff" * 6 + bytes(6), b"\x01\x00\x0c\x00\x00" + bytes(7)]))
    frame = stations + struct.pack(">H", ethertype) + ip + addresses + body
    return frame[: draw(st.sampled_from([len(frame), len(frame), 128, 40, 54]))] + draw(st.sampled_from([b"", b"", bytes(6)]))


@st.composite
def _ipv6_frame(draw) -> bytes:
    protocol, body = draw(_transport())
    if draw(st.sampled_from([False, False, True])):  # hop-by-hop options (RFC 8200, 4.3) before it
        body, protocol = bytes([protocol, 0]) + draw(_bytes(6, 6)) + body, 0
    length = draw(st.sampled_from([len(body), len(body), len(body) + 900, 0, 10]))
    version = draw(st.sampled_from([0x60, 0x60, 0x6C, 0x45]))
    header = struct.pack(">BBHHBB", version, *draw(_bytes(1, 1)), 7, length, protocol, 255)
    addresses = draw(st.sampled_from([bytes.fromhex("fd6d616e6574") + bytes(9) + b"\1", bytes.fromhex("fe80") + bytes(14)]))
    frame = b"\x33" * 12 + struct.pack(">H", 0x86DD) + header + addresses + draw(_bytes(16, 16)) + body
    return frame[: draw(st.sampled_from([len(frame), len(frame), 128, 60, 74]))] + draw(st.sampled_from([b"", b"", bytes(6)]))


@settings(max_examples=3 * settings().max_examples)
@given(frames=st.lists(_frame() | _ipv6_frame(), max_size=12), order=st.sampled_from("<>"))
def test_columns_hold_what_dpkt_decodes(tmp_path_factory, frames, order):
    path = tmp_path_factory.getbasetemp() / "plain.pcap"
    header = struct.pack(f"{order}IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    records = [struct.pack(f"{order}IIII", 5, at, len(frame), len(frame)) + frame for at, frame in enumerate(frames)]
    path.write_bytes(header + b"".join(records))
    one_by_one = table_of((5_000_000_000 + at, frame) for at, frame in enumerate(frames))
    assert read_capture(path).rows() == one_by_one.rows()


@given(content=st.binary(max_size=200), cut=st.integers(0, 30))
def test_any_bytes_are_a_table_or_an_error_that_names_the_file(tmp_path_factory, content, cut):
    from record.errors import CaptureError

    path = tmp_path_factory.getbasetemp() / "any.pcap"
    file = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + content
    path.write_bytes(file[: len(file) - cut] if cut else file)
    try:
        assert read_capture(path).width > 0
    except CaptureError as problem:
        assert str(path) in str(problem)
