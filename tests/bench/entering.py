"""How soon a command runs at a station of a run under way, and how soon tshark shows a segment of a capture that grows.

Three kinds of run of two stations: one of `manet run`, one that the page of `manet view` starts, and a mesh of a Python test. The
command is `true`, by `manet exec` and by `manet shell` from a pipe, from its start to its end. A segment's delay is that of
tshark's line, behind `manet wireshark`, after the packet's stamp in the capture; segments of the first SETTLE_S seconds, in which
tshark reads what there was, do not count.
"""

import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from manet_testbed import Mesh
from testbed.errors import RunError
from testbed.programs import ROOT
from testbed.runs.under_way import sockets_of, under_way
from testbed.stages.actions import SOCKET
from testbed.view.tests.serving import view
from tests.bench import Table
from tests.bench.runs import bench_folder, python_of

SCENARIO = 'topology = "chain"\nhops = 1\nwarmup = 0\nduration = 600\n'
COMMANDS = 5
SEGMENTS = 200
SETTLE_S = 3.0
WITHIN_S = 60.0


def measure() -> Table:
    columns = ["run of", "exec s", "shell s", *(f"{what} s, {of}" for what in ("sta2", "air") for of in ("median", "largest"))]
    table = Table("Into a run under way", columns, "a segment in tshark within a second")
    if shutil.which("tshark") is None:
        table.rows.append(["tshark is absent", *["-"] * (len(columns) - 1)])
        return table
    kinds: dict[str, Callable[[Path], Iterator[Path]]] = {"manet run": _run, "manet view": _view, "a mesh": _mesh}
    for name, started in kinds.items():
        with bench_folder() as folder, contextmanager(started)(folder) as directory:
            table.rows.append([name, *_times(directory), *_delays(directory, "sta2"), *_delays(directory, "air")])
    return table


def _times(directory: Path) -> Iterator[float]:
    """Seconds of a command and of a shell with one, the median of COMMANDS each."""
    calls = {("exec", "sta2", "--", "true"): "", ("shell", "sta2"): "true\n"}
    for (verb, *words), typed in calls.items():
        times = []
        for _ in range(COMMANDS):
            began = time.monotonic()
            argv = [sys.executable, "-P", "-m", "testbed", verb, str(directory), *words]
            subprocess.run(argv, input=typed, text=True, cwd=ROOT, check=True)
            times.append(time.monotonic() - began)
        yield statistics.median(times)


def _delays(directory: Path, what: str) -> tuple[float, float]:
    """The median and the largest delay of segments of a capture."""
    follower = python_of(ROOT, "-m", "testbed", "wireshark", directory, what, stdout=subprocess.PIPE)
    words = ["tshark", "-l", "-n", "-r", "-", "-Y", "tcp.len > 0", "-T", "fields", "-e", "frame.time_epoch"]
    shown = subprocess.Popen(words, stdin=follower.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    begin_s, delays = time.time() + SETTLE_S, []
    try:
        assert shown.stdout
        for line in shown.stdout:
            sent_s = float(line)
            if sent_s >= begin_s:
                delays.append(time.time() - sent_s)
            if len(delays) == SEGMENTS:
                return statistics.median(delays), max(delays)
    finally:
        for process in (follower, shown):
            process.kill()
            process.wait()
    raise RunError(f"{directory}: tshark ended after {len(delays)} segments of {what}")


def _run(folder: Path) -> Iterator[Path]:
    (folder / "run.toml").write_text(SCENARIO)
    process = python_of(ROOT, "-m", "testbed", "run", folder / "run.toml", "--out", folder / "out", stderr=subprocess.DEVNULL)
    try:
        yield _up(folder / "out" / "all" / "seed-1")
    finally:
        process.terminate()
        process.wait()


def _view(folder: Path) -> Iterator[Path]:
    (folder / "run.toml").write_text(SCENARIO)
    with view(folder / "run.toml", "--control", "--out", str(folder / "out")) as served:
        token = {"Authorization": f"Bearer {served.token}"}
        urllib.request.urlopen(urllib.request.Request(f"{served.base}/api/control", b'{"op": "start"}', token)).close()
        yield _up(folder / "out" / "all" / "seed-1")


def _mesh(folder: Path) -> Iterator[Path]:
    with Mesh.chain(2, directory=folder / "mesh") as mesh:
        mesh["sta2"].popen(["iperf3", "--server"])
        mesh["sta1"].popen(["sh", "-c", "sleep 1; exec iperf3 --client 10.0.0.2 --time 600"])
        yield folder / "mesh"


def _up(directory: Path) -> Path:
    """The directory once commands can be run at its stations. Raises RunError after WITHIN_S."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if (state := under_way(directory)) is not None and sockets_of(state, SOCKET) is not None:
            return directory
        time.sleep(0.05)
    raise RunError(f"{directory}: not under way within {WITHIN_S:g} s")
