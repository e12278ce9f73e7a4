"""iperf3 from 3.16 on counts what its receiver read in whole blocks of 131072 bytes: no measure of a slow flow's seconds."""

from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from analysis.tests.craft import MS, T0_NS, RunFolder, Transfer

BLOCK_BYTES = 131_072
SEGMENT = 1000
GAP_MS = 27  # 1000 bytes each 27 ms: 296.3 kbit/s, as TCP over four hops
SEGMENTS = 555
SECONDS = 15
EPOCH_NS = T0_NS - 2000 * MS


def block_seconds() -> list[int]:
    """The counts of 3.18 in each second: a block in the second in which its last byte came."""
    ends_ms = [(50 + GAP_MS * (block * BLOCK_BYTES // SEGMENT) + 20) for block in range(1, SEGMENTS * SEGMENT // BLOCK_BYTES + 1)]
    return [BLOCK_BYTES * sum(1000 * second <= end < 1000 * (second + 1) for end in ends_ms) for second in range(SECONDS)]


def report_of_3_18() -> dict:
    """A report as `iperf3 --json` of Debian 13 and its server write it, without keys that these tests do not read."""
    ends = {"socket": 5, "local_host": "10.0.0.1", "local_port": 40000, "remote_host": "10.0.0.2", "remote_port": 5201}
    test_start = {
        "protocol": "TCP", "num_streams": 1, "blksize": BLOCK_BYTES, "omit": 0, "duration": SECONDS, "bytes": 0, "blocks": 0,
        "reverse": 0, "tos": 0, "target_bitrate": 0, "bidir": 0, "fqrate": 0, "interval": 1,
    }  # fmt: skip
    start = {
        "connected": [ends], "version": "iperf 3.18", "cookie": "bmkhogc4jkbeibzm2yqmewlrsp6xlxvjqsmj", "tcp_mss_default": 1460,
        "target_bitrate": 0, "fq_rate": 0, "sock_bufsize": 0, "sndbuf_actual": 16384, "rcvbuf_actual": 131072,
        "test_start": test_start, "timestamp": {"timesecs": T0_NS // 10**9},
    }  # fmt: skip
    read = block_seconds()
    intervals = [
        {"sum": {"start": n, "end": n + 1, "seconds": 1, "bytes": count, "bits_per_second": count * 8, "omitted": False}}
        for n, count in enumerate(read)
    ]
    sent = {"start": 0, "end": SECONDS, "seconds": SECONDS, "bytes": SEGMENTS * SEGMENT - 37, "retransmits": 0, "sender": True}
    received = {"start": 0, "end": SECONDS, "seconds": SECONDS, "bytes": sum(read), "sender": True}
    return {
        "start": start,
        "end": {"sum_sent": sent, "sum_received": received},
        "server_output_json": {"start": start, "intervals": intervals},
        "manet": {"tries": 1, "first_try_s": T0_NS / 1e9, "connected": True, "remark": None},
    }


@pytest.fixture
def slow_flow(tmp_path: Path) -> Path:
    """One hop, 15 s; the window is [3 s, 15 s), as that of `manet demo`."""
    transfer = Transfer(1, 2, isn=1000)
    transfer.open(0, 5 * MS)
    for number in range(SEGMENTS):
        at = (50 + GAP_MS * number) * MS
        transfer.segment(at, number * SEGMENT, SEGMENT, 20 * MS)
        transfer.ack(at + 20 * MS, (number + 1) * SEGMENT, 20 * MS)
    folder = RunFolder(2, warmup_s=3.0, duration_s=12.0)
    folder.add_transfer(transfer, report_of_3_18())
    for number, frames in folder.captures.items():
        for frame in frames:
            if frame.data[5] == number:
                folder.deliver(frame, f"sta{frame.data[11]}", f"sta{number}", EPOCH_NS)
    return folder.write(tmp_path / "run", EPOCH_NS, seed=1)


def test_the_goodput_of_a_slow_flow_counts_arrived_bytes_not_full_blocks(slow_flow: Path) -> None:
    assert sum(block_seconds()[3:]) * 8 / 12 == pytest.approx(349_525, abs=1)  # four blocks in 12 s: 18 % too many
    metrics = analyse_run(slow_flow)
    flow = metrics["flows"]["flow1"]
    assert flow["delivered_bps"] == pytest.approx(1000 * 8 / 0.027, rel=0.002)
    assert flow["goodput_bps"] == flow["delivered_bps"]
    assert flow["iperf3_bps"] == 4 * BLOCK_BYTES * 8 / SECONDS  # iperf3's own headline stays its own
    assert [check for check in metrics["checks"] if not check["ok"]] == []


@pytest.mark.parametrize(("received", "agrees"), [(3, False), (4, True), (5, False)])
def test_iperf3_must_agree_with_the_capture_to_a_block(slow_flow: Path, received: int, agrees: bool) -> None:
    report = slow_flow / "traffic" / "flow1.json"
    report.write_text(report.read_text().replace(f'"bytes": {4 * BLOCK_BYTES}', f'"bytes": {received * BLOCK_BYTES}'))
    check = next(check for check in analyse_run(slow_flow)["checks"] if check["name"] == "flow1 iperf3-capture")
    assert check["ok"] == agrees, check["detail"]
