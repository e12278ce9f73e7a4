"""A congestion control whose operations are not run behaves as one that is told of everything.

A kernel may leave out the operations of a congestion control in BPF for the length of an interrupt (docs/timelines.md,
at its end); what ssthresh() "returns" then is what was on the stack. Algorithms make up for it with the next operation
that is run. Here an algorithm is built without set_state() (`untold`), or also without cwnd_event() and with an
ssthresh() that returns a number seen in such a run (`left_out`), and registered beside the real one under a name of its
own; for `hold`, the windows of a connection in stand-by, which is the loader's own, the whole of manet-tcp is built again.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace as changed
from pathlib import Path

import pytest
import tcplab
from losses import Script, trial
from outage_run import PERIOD, layer, layered, order
from test_timelines import SCRIPTS, SEGMENTS, expected
from timeline import Disturbed, render

pytestmark = [pytest.mark.root, pytest.mark.slow]

KERNEL_TCP = Path(__file__).resolve().parents[1]
ALGORITHMS = ["tahoe", "reno"]
# In the first burst a retransmission is lost, and again in the second: two timeouts, each the first in a row.
TWICE = {"twice": Script(5201, ("14:1", "14:2", "75:1", "75:2"))}
BURSTS = [43, 37, 5]
ON_THE_STACK = 1466998376  # what a connection had for ssthresh
WINDOW = 64  # losses.SETTINGS


def replace(source: str, pattern: str, text: str) -> str:
    source, changes = re.subn(pattern, text, source)
    assert changes == 1, pattern
    return source


def untold(path: Path) -> str:
    """The program without its set_state()."""
    source = replace(path.read_text(), r'SEC\("struct_ops"\)(?=\nvoid BPF_PROG\(\w+_set_state)', 'SEC("?struct_ops")')
    return replace(source, r"\n\t\.set_state = [^\n]*", "")


def left_out(path: Path) -> str:
    """The program without set_state() and cwnd_event(), its ssthresh() not run."""
    source = re.sub(r'SEC\("struct_ops"\)(?=\nvoid BPF_PROG\(\w+_cwnd_event)', 'SEC("?struct_ops")', untold(path))
    source = re.sub(r"\n\t\.cwnd_event = [^\n]*", "", source)
    return replace(source, r"(?<=_ssthresh, struct sock \*sk\)\n)\{[^}]*\}", f"{{\n\treturn {ON_THE_STACK};\n}}")


def compile_bpf(source: Path, program: Path) -> None:
    flags = subprocess.run(
        ["make", "-s", "--eval", "flags: ; @echo $(BPF_CFLAGS)", "flags"],
        cwd=KERNEL_TCP, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    argv = ["clang", *flags, "-Ialgorithms", "-c", str(source), "-o", str(program)]
    done = subprocess.run(argv, cwd=KERNEL_TCP, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def registered(folder: Path, algorithm: str, without: Callable[[Path], str] = untold) -> Iterator[str]:
    """The name under which the kernel has the version `without`, while the `with` lasts."""
    name = f"{algorithm}.d{os.getpid() & 0xFFFFF:x}"  # of all tests that run now, on this kernel
    source, program = folder / "deaf.bpf.c", folder / "deaf.bpf.o"
    text = without(KERNEL_TCP / "algorithms" / f"{algorithm}.bpf.c")
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


def test_an_untold_timeout_in_recovery_is_made_up_for(host, deaf, tmp_path, cgroup_root):
    algorithm, name = deaf
    wanted = {script: expected(algorithm)[script]["rows"] for script in SCRIPTS}
    seen = trial(tmp_path, cgroup_root, name, SCRIPTS, [SEGMENTS])
    if seen != wanted:
        host.void("\n".join(f"{script}:\n{_text(rows)}" for script, rows in seen.items() if rows != wanted[script]))


def test_a_second_untold_timeout_is_made_up_for_as_the_first(host, deaf, tmp_path, cgroup_root):
    told, seen = (trial(tmp_path, cgroup_root, name, TWICE, BURSTS, tcp_slow_start_after_idle=0)["twice"] for name in deaf)
    if told != seen or isinstance(told, Disturbed):
        host.void(f"told:\n{_text(told)}\nuntold:\n{_text(seen)}")
    assert [row.sends for row in told if row.event == "rto"] == [("14!",), ("75!",)], render(told)


def _after_acks(rows):
    """Without what a timer left: there the kernel's own numbers stand until the next ACK."""
    return [changed(row, cwnd=None, ssthresh=None) if row.event == "rto" else row for row in rows]


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang: the version without operations is built here")
@pytest.mark.parametrize("algorithm", ["tahoe", "reno", "tcpap", "atcp"])
def test_operations_left_out_are_made_up_for_with_the_next_ack(host, algorithm, tmp_path, cgroup_root):
    with registered(tmp_path, algorithm, left_out) as name:
        told, seen = (trial(tmp_path, cgroup_root, of, SCRIPTS, [SEGMENTS]) for of in (algorithm, name))
    wrong = [
        script
        for script in SCRIPTS
        if Disturbed in map(type, (told[script], seen[script])) or _after_acks(told[script]) != _after_acks(seen[script])
    ]
    if wrong:
        host.void("\n".join(f"{s}, told:\n{_text(told[s])}\nleft out:\n{_text(seen[s])}" for s in wrong))


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang: the version without operations is built here")
def test_a_threshold_of_vegas_that_was_left_out_is_sound_with_the_next_ack(host, tmp_path, cgroup_root):
    """Its windows depend on round trip times, so that no two trials are alike."""
    with registered(tmp_path, "vegas", left_out) as name:
        trials = trial(tmp_path, cgroup_root, name, SCRIPTS, [SEGMENTS])
    seen = [rows for rows in trials.values() if not isinstance(rows, Disturbed)]
    if not any(row.ssthresh == ON_THE_STACK for rows in seen for row in rows):
        host.void("in no script was a threshold left out")
    for rows in seen:
        unsound = [row.cwnd > WINDOW or row.ssthresh > WINDOW for row in rows if row.cwnd is not None and row.event != "rto"]
        assert not any(one and next_ for one, next_ in itertools.pairwise(unsound)), _text(rows)


def manet_tcp_with(folder: Path, part: str, text: str) -> Path:
    """The loader, built from a copy of its sources with `text` for `part`; what was built of the others is copied."""
    copy, build = folder / "kernel-tcp", folder / "build"
    shutil.copytree(KERNEL_TCP, copy, ignore=shutil.ignore_patterns("tests"))
    shutil.copytree(tcplab.MANET_TCP.parent, build)
    (copy / part).write_text(text)
    done = subprocess.run(["make", "-s", f"BUILD={build}"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return build / "manet-tcp"


def test_a_timeout_untold_in_stand_by_leaves_the_windows(slow_lab, tmp_path, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("needs clang: the untold version is built here")
    hold = "layers/hold.bpf.c"
    monkeypatch.setattr(tcplab, "MANET_TCP", manet_tcp_with(tmp_path, hold, untold(KERNEL_TCP / hold)))
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


def test_a_threshold_left_out_before_a_stand_by_is_not_given_back_after_it(slow_lab, tmp_path, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("needs clang: the version without operations is built here")
    reno = "algorithms/reno.bpf.c"
    monkeypatch.setattr(tcplab, "MANET_TCP", manet_tcp_with(tmp_path, reno, left_out(KERNEL_TCP / reno)))
    elfn = layered(layer("elfn", probe_us=500000), algorithm="reno")

    def windows() -> tuple[str, str | None]:
        (socket,) = slow_lab.a.sockets("state connected")
        return socket["cwnd"], socket.get("ssthresh")  # ss shows none that is over 65535

    with slow_lab.manet_tcp(a=elfn, b=PERIOD):
        server = slow_lab.serve()
        client = slow_lab.send(400 * tcplab.MSS)
        slow_lab.ready_line(client, "connected")
        tcplab.wait_for(lambda: slow_lab.a.sockets()[0].get("cwnd") == "8", "the whole window")
        order(slow_lab, "dark")
        tcplab.wait_for(lambda: windows() == ("1", None), "a timeout")
        order(slow_lab, "broken")
        tcplab.wait_for(lambda: " hold." in slow_lab.a.sockets("state connected")[0]["words"], "a timeout in stand-by")
        order(slow_lab, "light")
        tcplab.wait_for(lambda: windows()[1] == "4", "half of the window of 8")
        assert server.communicate(timeout=tcplab.DEADLINE_S)[0].split()[-1] == str(400 * tcplab.MSS)


def _text(rows) -> str:
    return str(rows) if isinstance(rows, Disturbed) else render(rows)
