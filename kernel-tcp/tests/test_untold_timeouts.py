"""A congestion control that is not told of a timeout behaves as one that is.

Under load the kernel now and then leaves out set_state(TCP_CA_Loss) of a congestion control in BPF (1 timeout in 200
on 6.18, cause unknown); algorithms/window.bpf.h makes up for it when the first segment after the timeout leaves. Here
the algorithm is built without its set_state() at all, and registered beside the real one under a name of its own; for
`hold`, the windows of a connection in stand-by, which is the loader's own, the whole of manet-tcp is built again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tcplab
from losses import Script, trial
from outage_run import PERIOD, layer, layered, order
from test_timelines import SCRIPTS, SEGMENTS, TRIALS, expected
from timeline import Disturbed, render

pytestmark = [pytest.mark.root, pytest.mark.slow]

KERNEL_TCP = Path(__file__).resolve().parents[1]
ALGORITHMS = ["tahoe", "reno"]
# In the first burst a retransmission is lost, and again in the second: two timeouts, each the first in a row.
TWICE = {"twice": Script(5201, ("14:1", "14:2", "75:1", "75:2"))}
BURSTS = [43, 37, 5]


def replace(source: str, pattern: str, text: str) -> str:
    source, changes = re.subn(pattern, text, source)
    assert changes == 1, pattern
    return source


def untold(path: Path) -> str:
    """The program without its set_state()."""
    source = replace(path.read_text(), r'SEC\("struct_ops"\)(?=\nvoid BPF_PROG\(\w+_set_state)', 'SEC("?struct_ops")')
    return replace(source, r"\n\t\.set_state = [^\n]*", "")


def compile_bpf(source: Path, program: Path) -> None:
    flags = subprocess.run(
        ["make", "-s", "--eval", "flags: ; @echo $(BPF_CFLAGS)", "flags"],
        cwd=KERNEL_TCP, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    argv = ["clang", *flags, "-Ialgorithms", "-c", str(source), "-o", str(program)]
    done = subprocess.run(argv, cwd=KERNEL_TCP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def registered(folder: Path, algorithm: str) -> Iterator[str]:
    """The name under which the kernel has the untold version, while the `with` lasts."""
    name = f"{algorithm}.deaf"
    source, program = folder / "deaf.bpf.c", folder / "deaf.bpf.o"
    text = untold(KERNEL_TCP / "algorithms" / f"{algorithm}.bpf.c")
    source.write_text(replace(text, rf'\.name = "{algorithm}"', f'.name = "{name}"'))
    compile_bpf(source, program)
    done = subprocess.run(["bpftool", "struct_ops", "register", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    number = re.search(r"id (\d+)", done.stdout + done.stderr)[1]
    try:
        yield name
    finally:
        subprocess.run(["bpftool", "struct_ops", "unregister", "id", number], check=True, capture_output=True)


@pytest.fixture(params=ALGORITHMS)
def deaf(request, tmp_path, cgroup_root) -> Iterator[tuple[str, str]]:
    """(algorithm, name of its untold version)."""
    if not shutil.which("clang"):
        pytest.skip("needs clang: the untold version is built here")
    with registered(tmp_path, request.param) as name:
        yield request.param, name


def test_an_untold_timeout_in_recovery_is_made_up_for(deaf, tmp_path, cgroup_root):
    algorithm, name = deaf
    wanted = {script: expected(algorithm)[script]["rows"] for script in SCRIPTS}
    for _ in range(TRIALS):
        seen = trial(tmp_path, cgroup_root, name, SCRIPTS, [SEGMENTS])
        if seen == wanted:
            return
    pytest.fail("\n".join(f"{script}:\n{_text(rows)}" for script, rows in seen.items() if rows != wanted[script]), pytrace=False)


def test_a_second_untold_timeout_is_made_up_for_as_the_first(deaf, tmp_path, cgroup_root):
    for _ in range(TRIALS):
        told, seen = (trial(tmp_path, cgroup_root, name, TWICE, BURSTS, tcp_slow_start_after_idle=0)["twice"] for name in deaf)
        if told == seen and not isinstance(told, Disturbed):
            assert [row.sends for row in told if row.event == "rto"] == [("14!",), ("75!",)], render(told)
            return
    pytest.fail(f"told:\n{_text(told)}\nuntold:\n{_text(seen)}", pytrace=False)


def manet_tcp_with_untold_hold(folder: Path) -> Path:
    """The loader, built from a copy of its sources; what was built of the others is copied, with its times."""
    copy, build = folder / "kernel-tcp", folder / "build"
    shutil.copytree(KERNEL_TCP, copy, ignore=shutil.ignore_patterns("tests"))
    shutil.copytree(tcplab.MANET_TCP.parent, build)
    (copy / "layers" / "hold.bpf.c").write_text(untold(KERNEL_TCP / "layers" / "hold.bpf.c"))
    done = subprocess.run(["make", "-s", f"BUILD={build}"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return build / "manet-tcp"


def test_a_timeout_untold_in_stand_by_leaves_the_windows(slow_lab, tmp_path, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("needs clang: the untold version is built here")
    monkeypatch.setattr(tcplab, "MANET_TCP", manet_tcp_with_untold_hold(tmp_path))
    elfn = layered(layer("elfn", probe_us=500000))
    kept = ("cwnd", "ssthresh", "backoff")
    with slow_lab.manet_tcp(a=elfn, b=PERIOD):
        server = slow_lab.serve()
        client = slow_lab.send(400 * tcplab.MSS)
        slow_lab.ready_line(client, "connected")
        tcplab.wait_for(lambda: slow_lab.a.sockets()[0].get("cwnd") == "8", "the whole window")
        (before,) = slow_lab.a.sockets()
        order(slow_lab, "broken")
        time.sleep(2)  # three timeouts and more, if nothing kept them
        (during,) = slow_lab.a.sockets("state connected")
        order(slow_lab, "light")
        assert server.communicate(timeout=tcplab.DEADLINE_S)[0].split()[-1] == str(400 * tcplab.MSS)
    assert " hold." in during["words"], "no timeout came in stand-by"
    assert {key: during.get(key) for key in kept} == {key: before.get(key) for key in kept}


def _text(rows) -> str:
    return str(rows) if isinstance(rows, Disturbed) else render(rows)
