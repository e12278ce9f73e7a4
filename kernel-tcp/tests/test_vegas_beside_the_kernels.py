"""Our Vegas beside the kernel's tcp_vegas, each at a bottleneck of its own of the same rate, delay and queue, at the same time.

Kernels that have tcp_vegas (Debian's) as a module or built in; `manet test --guests` brings two of them. The two cut and
divide differently (algorithms/vegas.bpf.c): with a queue of q segments and P on the path our own weighs q, the kernel's the whole
part of q (P + q) / P. Windows are whole segments, so that the two may come to rest one segment apart: with P = 10 that was 14
beside 13 in six trials of six. P is 25 here, where a segment is 3.5 %, and beta 4, which both come to from above, a window of 32
holding down what slow start overshoots. The bottleneck is slow so that an emulated machine, or a busy one, keeps up with it.
"""

from __future__ import annotations

import csv
import shutil
import statistics
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MSS, Lab, stations

pytestmark = [pytest.mark.root, pytest.mark.slow]

RATE_BPS, ONE_WAY_MS = 500e3, 288.0  # 24 ms a segment, 25 of them in the 600 ms of the empty path
SEGMENTS = 1200  # 29 s: 42 round trips; the first ten reach the final window
WINDOW = 32
AGREE = 0.05
MODULE = Path("/sys/module/tcp_vegas/parameters")


@pytest.fixture
def parameters(features) -> dict[str, int]:
    """alpha, beta and gamma of the kernel's module."""
    if not features["struct_ops"]:
        pytest.skip("this kernel takes no congestion control from BPF; ./manet test --guests boots kernels that do")
    if shutil.which("modprobe", path="/usr/sbin:/sbin"):
        subprocess.run(["/usr/sbin/modprobe", "-q", "tcp_vegas"], check=False)
    if not MODULE.is_dir():
        pytest.skip("this kernel has no tcp_vegas (CONFIG_TCP_CONG_VEGAS); ./manet test --guests boots kernels that have it")
    return {name: int((MODULE / name).read_text()) for name in ("alpha", "beta", "gamma")}


def steady(file: Path) -> dict[str, float]:
    """Mean cwnd (segments) and throughput (bit/s) over the second half of the acknowledged data."""
    with file.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["station"] == "a" and row["dport"] == "5201" and not row["event"]]
    rows = rows[len(rows) // 2 : -30]  # at the end the program has nothing more to send
    acked = (int(rows[-1]["snd_una"]) - int(rows[0]["snd_una"])) & 0xFFFFFFFF
    seconds = (int(rows[-1]["t_ns"]) - int(rows[0]["t_ns"])) / 1e9
    return {"cwnd": statistics.mean(int(row["snd_cwnd"]) for row in rows), "throughput": acked * 8 / seconds}


def send_side_by_side(labs: list[Lab]) -> None:
    servers = [lab.serve() for lab in labs]
    clients = [lab.send(SEGMENTS * MSS) for lab in labs]
    for server in servers:
        out, err = server.communicate(timeout=4 * DEADLINE_S)
        assert out.split()[-1] == str(SEGMENTS * MSS), err
    for client in clients:
        client.wait(DEADLINE_S)


def trial(folder: Path, cgroup_root: Path, parameters: dict[str, int]) -> dict[str, dict[str, float]]:
    settings = {
        "ours": {"algorithm": "vegas", "parameters": parameters, "window_segments": WINDOW, "delayed_ack": False},
        "kernel": {"algorithm": "kernel-vegas", "window_segments": WINDOW, "delayed_ack": False},
    }
    relay = ["--rate-bps", str(RATE_BPS), "--delay-ms", str(ONE_WAY_MS)]
    with ExitStack() as stack:
        labs = []
        for name, setting in settings.items():
            (folder / name).mkdir(parents=True)
            labs.append(stack.enter_context(stations(folder / name, cgroup_root, relay, quickack=True)))
            stack.enter_context(labs[-1].manet_tcp("tcp.csv", both=setting))
        send_side_by_side(labs)
    return {name: steady(folder / name / "tcp.csv") for name in settings}


def test_throughput_and_window_are_those_of_the_kernels_vegas(host, tmp_path, cgroup_root, parameters):
    seen = trial(tmp_path, cgroup_root, parameters)
    summary = ", ".join(f"{name} {row['cwnd']:.2f} segments {row['throughput'] / 1000:.0f} kbit/s" for name, row in seen.items())
    print(summary)
    if any(abs(seen["ours"][what] / seen["kernel"][what] - 1) > AGREE for what in ("cwnd", "throughput")):
        host.void(summary)
