"""Writes analysis/tests/fixtures/: `python -m analysis.tests.make_fixtures [FOLDER]`.

`two-flows`: stations sta1, sta2, sta3; flow1 is a TCP transfer sta1 -> sta2, flow2 datagrams sta3 -> sta2; window [1 s, 5 s)
after each flow's start. Everything in it is on a grid, so that test_metrics.py can derive each expected number by hand.
A test holds the stored files against what this program writes.
"""

import struct
import sys
from pathlib import Path

from analysis.tests.craft import MS, T0_NS, Frame, RunFolder, Transfer, iperf_report, udp

FOLDER = Path(__file__).parent / "fixtures"
EPOCH_NS = T0_NS - 2000 * MS
SEGMENT = 1000
TRIP_NS = 20 * MS


def crafted_transfer() -> Transfer:
    """60 segments of 1000 bytes, one every 100 ms from 50 ms on; each arrives after 20 ms, its ACK after 40 ms.

    Segment 20 is lost and sent again at 2390 ms, on the third duplicate ACK. The ACK of segment 30 takes 80 ms for its way
    back, that of segment 49 60 ms. Sequence numbers wrap within segment 2.
    """
    transfer = Transfer(1, 2, isn=2**32 - 3000 + 499)
    transfer.open(0, TRIP_NS // 4)
    for number in range(60):
        at = (50 + 100 * number) * MS
        transfer.segment(at, number * SEGMENT, SEGMENT, None if number == 20 else TRIP_NS)
        if number == 20:
            continue
        end = 20 if 20 < number <= 23 else number + 1
        back_ns = {30: 80 * MS, 49: 60 * MS}.get(number, TRIP_NS)
        transfer.ack(at + TRIP_NS, end * SEGMENT, back_ns)
    transfer.segment(2390 * MS, 20 * SEGMENT, SEGMENT, TRIP_NS)
    transfer.ack(2410 * MS, 24 * SEGMENT, TRIP_NS)
    transfer.close(6200 * MS, 60 * SEGMENT, TRIP_NS)
    return transfer


def crafted_datagrams() -> tuple[list[Frame], list[Frame], dict]:
    """120 datagrams of 500 bytes from 500 ms on, one every 50 ms; every tenth is lost, number k takes 10 + k mod 5 ms."""
    left, arrived = [], []
    for number in range(120):
        at = (500 + 50 * number) * MS
        stamp = struct.pack("<QI", T0_NS + at, number)
        left.append(udp(at, 3, 2, (50000, 5202), stamp, 500))
        if number % 10 != 9:
            arrived.append(udp(at + (10 + number % 5) * MS, 3, 2, (50000, 5202), stamp, 500))
    ends = {"local_host": "10.0.0.3", "local_port": 50000, "remote_host": "10.0.0.2", "remote_port": 5202}
    report = {
        "format": "manet-cbr/1",
        "start": {"connected": [ends], "test_start": {"protocol": "UDP", "blksize": 500, "duration": 6.0}},
        "end": {"sum_sent": {"bytes": 60000}, "sum_received": {"bytes": 500 * len(arrived), "seconds": 6.0}},
    }
    return left, arrived, report


def two_flows() -> RunFolder:
    folder = RunFolder(3, warmup_s=1.0, duration_s=4.0)
    transfer = crafted_transfer()
    report = iperf_report(transfer, 60 * SEGMENT - 37, 6.0, retransmits=1, intervals=[10 * SEGMENT] * 6)
    folder.add_transfer(transfer, report)
    left, arrived, datagram_report = crafted_datagrams()
    folder.add_datagrams(3, 2, left, arrived, datagram_report)
    names = {1: "sta1", 2: "sta2", 3: "sta3"}
    for number, frames in folder.captures.items():
        for frame in frames:
            receiver, sender = frame.data[5], frame.data[11]
            if receiver == number:
                folder.deliver(frame, names[sender], names[receiver], EPOCH_NS)
    folder.lose(2050 * MS, "sta1", "sta2", SEGMENT + 40, EPOCH_NS)
    return folder


TCP_SAMPLES_HEADER = (
    "t_ns,station,cookie,saddr,sport,daddr,dport,data_len,snd_nxt,snd_una,snd_cwnd,ssthresh,snd_wnd,srtt_us,rto_us,"
    "rcv_wnd,ca_state,event,detail\n"
)


def tcp_samples() -> str:
    """Window growing from 2 to 8, halved at 2390 ms: what flow1's sender could have shown."""
    rows = []
    for number in range(60):
        at = T0_NS + (90 + 100 * number) * MS
        window = min(8, 2 + number // 3) if number < 24 else 4 + min(4, (number - 24) // 4)
        threshold = 0x7FFFFFFF if number < 24 else 4
        rows.append(f"{at},sta1,7,10.0.0.1,40000,10.0.0.2,5201,0,0,0,{window},{threshold},8192,40000,240000,8192,0,,\n")
    rows.append(f"{T0_NS + 95 * MS},sta1,6,10.0.0.1,39999,10.0.0.2,5201,4,0,0,10,2147483647,8192,40000,240000,8192,0,,\n")
    return TCP_SAMPLES_HEADER + "".join(rows)


def main(folder: Path) -> None:
    run_dir = two_flows().write(
        folder / "two-flows", EPOCH_NS, experiment="crafted", cell="hops2", variant="", axes={"hops": 2}, seed=1
    )
    (run_dir / "tcp.csv").write_text(tcp_samples())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
