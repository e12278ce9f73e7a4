"""A congestion control whose operations are skipped behaves as one whose operations all run.

A kernel may skip the operations of a BPF congestion control for the length of an interrupt (docs/timelines.md, at the
end); ssthresh() then "returns" what was on the stack. The algorithms catch up with the next operation that runs. Here an
algorithm is built without set_state() (`without_set_state`), or also without cwnd_event() and with an ssthresh() that
returns a number seen in such a run (`without_operations`), and registered under a name of its own beside the complete one.
`hold`, the windows of a connection in stand-by, is part of the loader: for it the whole of manet-tcp is built again.
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
ON_THE_STACK = 1466998376  # seen as the ssthresh of a connection
WINDOW = 64  # losses.SETTINGS


def replace(source: str, pattern: str, text: str) -> str:
    source, changes = re.subn(pattern, text, source)
    assert changes == 1, pattern
    return source


def without_set_state(path: Path) -> str:
    """The program without its set_state()."""
    source = replace(path.read_text(), r'SEC\("struct_ops"\)(?=\nvoid BPF_PROG\(\w+_set_state)', 'SEC("?struct_ops")')
    return replace(source, r"\n\t\.set_state = [^\n]*", "")


def without_operations(path: Path) -> str:
    """The program without set_state() and cwnd_event(), with an ssthresh() that does not run."""
    source = re.sub(r'SEC\("struct_ops"\)(?=\nvoid BPF_PROG\(\w+_cwnd_event)', 'SEC("?struct_ops")', without_set_state(path))
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
def registered(folder: Path, algorithm: str, without: Callable[[Path], str] = without_set_state) -> Iterator[str]:
    """The name of the registered version `without`, which lasts as long as the `with`."""
    name = f"{algorithm}.d{os.getpid() & 0xFFFFF:x}"  # unique among the tests that run on this kernel
    source, program = folder / "reduced.bpf.c", folder / "reduced.bpf.o"
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
def pair(request, tmp_path, cgroup_root) -> Iterator[tuple[str, str]]:
    """(algorithm, name of its version without set_state())."""
    if not shutil.which("clang"):
        pytest.skip("needs clang (./setup.sh): the version without set_state() is built here")
    with registered(tmp_path, request.param) as name:
        yield request.param, name


def test_missed_timeout_in_recovery_is_caught_up(host, pair, tmp_path, cgroup_root):
    algorithm, name = pair
    wanted = {script: expected(algorithm)[script]["rows"] for script in SCRIPTS}
    seen = trial(tmp_path, cgroup_root, name, SCRIPTS, [SEGMENTS])
    if seen != wanted:
        host.void("\n".join(f"{script}:\n{_text(rows)}" for script, rows in seen.items() if rows != wanted[script]))


def test_second_missed_timeout_is_caught_up_as_the_first(host, pair, tmp_path, cgroup_root):
    complete, seen = (trial(tmp_path, cgroup_root, name, TWICE, BURSTS, tcp_slow_start_after_idle=0)["twice"] for name in pair)
    if complete != seen or isinstance(complete, Disturbed):
        host.void(f"complete:\n{_text(complete)}\nwithout set_state():\n{_text(seen)}")
    assert [row.sends for row in complete if row.event == "rto"] == [("14!",), ("75!",)], render(complete)


def _after_acks(rows):
    """Without the windows after a timeout: these are the kernel's until the next ACK."""
    return [changed(row, cwnd=None, ssthresh=None) if row.event == "rto" else row for row in rows]


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang (./setup.sh): the version without operations is built here")
@pytest.mark.parametrize("algorithm", ["tahoe", "reno", "tcpap", "atcp"])
def test_skipped_operations_are_caught_up_with_the_next_ack(host, algorithm, tmp_path, cgroup_root):
    with registered(tmp_path, algorithm, without_operations) as name:
        complete, seen = (trial(tmp_path, cgroup_root, of, SCRIPTS, [SEGMENTS]) for of in (algorithm, name))
    wrong = [
        script
        for script in SCRIPTS
        if Disturbed in map(type, (complete[script], seen[script])) or _after_acks(complete[script]) != _after_acks(seen[script])
    ]
    if wrong:
        host.void("\n".join(f"{s}, complete:\n{_text(complete[s])}\nwithout operations:\n{_text(seen[s])}" for s in wrong))


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang (./setup.sh): the version without operations is built here")
def test_skipped_threshold_of_vegas_is_sound_with_the_next_ack(host, tmp_path, cgroup_root):
    """Its windows depend on round trip times, so that no two trials are alike."""
    with registered(tmp_path, "vegas", without_operations) as name:
        trials = trial(tmp_path, cgroup_root, name, SCRIPTS, [SEGMENTS])
    seen = [rows for rows in trials.values() if not isinstance(rows, Disturbed)]
    if not any(row.ssthresh == ON_THE_STACK for rows in seen for row in rows):
        host.void("no script skipped a threshold")
    for rows in seen:
        unsound = [row.cwnd > WINDOW or row.ssthresh > WINDOW for row in rows if row.cwnd is not None and row.event != "rto"]
        assert not any(one and next_ for one, next_ in itertools.pairwise(unsound)), _text(rows)


def manet_tcp_with(folder: Path, part: str, text: str) -> Path:
    """The loader, built from a copy of its sources with `text` for `part`; the other objects are copied."""
    copy, build = folder / "kernel-tcp", folder / "build"
    shutil.copytree(KERNEL_TCP, copy, ignore=shutil.ignore_patterns("tests"))
    shutil.copytree(tcplab.MANET_TCP.parent, build)
    (copy / part).write_text(text)
    done = subprocess.run(["make", "-s", f"BUILD={build}"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return build / "manet-tcp"


def test_timeout_missed_in_stand_by_leaves_the_windows(slow_lab, tmp_path, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("needs clang (./setup.sh): the version without set_state() is built here")
    hold = "layers/hold.bpf.c"
    monkeypatch.setattr(tcplab, "MANET_TCP", manet_tcp_with(tmp_path, hold, without_set_state(KERNEL_TCP / hold)))
    elfn = layered(layer("elfn", probe_us=500000))
    kept = ("cwnd", "ssthresh", "backoff")
    with slow_lab.manet_tcp(a=elfn, b=PERIOD):
        server = slow_lab.serve()
        client = slow_lab.send(400 * tcplab.MSS)
        slow_lab.ready_line(client, "connected")
        tcplab.wait_for(lambda: slow_lab.a.sockets()[0].get("cwnd") == "8", "the whole window")
        (before,) = slow_lab.a.sockets()
        order(slow_lab, "broken")
        time.sleep(2)  # three timeouts and more, if nothing prevented them
        (during,) = slow_lab.a.sockets("state connected")
        order(slow_lab, "light")
        assert server.communicate(timeout=tcplab.DEADLINE_S)[0].split()[-1] == str(400 * tcplab.MSS)
    assert " hold." in during["words"], "no timeout came in stand-by"
    assert {key: during.get(key) for key in kept} == {key: before.get(key) for key in kept}


def test_threshold_skipped_before_a_stand_by_is_not_restored_after_it(slow_lab, tmp_path, monkeypatch):
    if not shutil.which("clang"):
        pytest.skip("needs clang (./setup.sh): the version without operations is built here")
    reno = "algorithms/reno.bpf.c"
    monkeypatch.setattr(tcplab, "MANET_TCP", manet_tcp_with(tmp_path, reno, without_operations(KERNEL_TCP / reno)))
    elfn = layered(layer("elfn", probe_us=500000), algorithm="reno")

    def windows() -> tuple[str, str | None]:
        (socket,) = slow_lab.a.sockets("state connected")
        return socket["cwnd"], socket.get("ssthresh")  # ss omits a threshold over 65535

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
