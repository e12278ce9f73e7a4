"""Each process of a run, killed, ended and stopped, at each stage: no wrong number is `valid`, no failed check exits with 0.

A cell runs `./manet run` on a chain of two hops and sends one signal. The run may fail, be `suspect` or `void`, or it may be
`valid`: then its throughput is that of the undisturbed run, and everything was measured. Cells that were wrong once, and cheap
ones, are in each `./manet test`; the rest is nightly (docs/verdict.md).
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from testbed.host.cgroup import members
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, state_of, wait_until

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]
KEYS = {"hops": 2, "routing": "aodv", "warmup": 0, "duration": 9, "seeds": 3}
STOPPED_S = 4.0
DEADLINE_S = 150.0
# Of two undisturbed runs over two hops the throughputs differ by less than 2 %; a stop of 4 s costs more than a fifth.
TOLERANCE = 0.06
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)


def by_word(word: str, program: str = "") -> Callable[[Path], list[int]]:
    """The processes of a run's control group that have a word in their command line, which begins with `program`."""

    def find(directory: Path) -> list[int]:
        state = state_of(directory)
        lines = {pid: command_line(pid) for pid in (members(Path(state.cgroup)) if state else [])}
        return [pid for pid, line in lines.items() if word in line and line.startswith(program)]

    return find


def command_line(pid: int) -> str:
    """The words of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def run_itself(directory: Path) -> list[int]:
    """The process that brings the run's stages up: the parent of its medium."""
    return [parent_of(pid) for pid in by_word("medium.json")(directory)]


def init(directory: Path) -> list[int]:
    """The first process of the run's pid namespace."""
    return [parent_of(pid) for pid in run_itself(directory)]


def keeper(directory: Path) -> list[int]:
    """The process that holds the run's namespaces."""
    state = state_of(directory)
    return [state.keeper.pid] if state and state.keeper else []


def template(directory: Path) -> list[int]:
    """The process that forked the keeper."""
    return [parent_of(pid) for pid in keeper(directory)]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


PROCESSES: dict[str, Callable[[Path], list[int]]] = {
    "medium": by_word("medium.json"),
    "daemon": by_word("sta2.config.json"),
    "manet-tcp": by_word("tcp-settings.json"),
    "capture": by_word("--snap-bytes"),
    "tcpdump": by_word("sta1.pcap"),
    "client": by_word("--connect-timeout", "iperf3"),
    "client's parent": by_word("iperf_client"),
    "server": by_word("--server", "iperf3"),
    "server's parent": by_word("iperf_server"),
    "run": run_itself,
    "init": init,
    "keeper": keeper,
    "template": template,
}
OF_TRAFFIC = ("client", "client's parent")
KEYS_OF = {"tcpdump": {"capture_program": "tcpdump"}}
# manet's own part: reading the captures of three runs is left to processes of their own
MEASURING = "measuring"
STAGES = ("start-up", "traffic", "stop")
CHEAP = {
    ("client", signal.SIGSTOP, "traffic"), ("daemon", signal.SIGSTOP, "traffic"), ("run", signal.SIGSTOP, "traffic"),
    ("medium", signal.SIGSTOP, "traffic"), ("capture", signal.SIGTERM, "traffic"), ("capture", signal.SIGTERM, "stop"),
    ("capture", signal.SIGKILL, "traffic"), ("capture", signal.SIGSTOP, "traffic"), ("tcpdump", signal.SIGTERM, "traffic"),
}  # fmt: skip
CELLS = [
    (process, number, stage)
    for process in PROCESSES
    for number in SIGNALS
    for stage in STAGES
    if process not in OF_TRAFFIC or stage == "traffic"
]


@dataclass
class Trial:
    """`./manet run` under way: its events, as `--progress json` gives them."""

    out: Path
    keys: dict[str, object]
    events: list[dict] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = [word for key, value in self.keys.items() for word in ("--set", f"{key}={value}")]
        argv = [str(ROOT / "manet"), "run", "chain5", *settings, "--out", str(self.out), "--progress", "json"]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("{"):
                self.events.append(json.loads(line))

    def until(self, stage: str) -> None:
        """Wait for a stage: of the run, or `measuring`."""

        def reached() -> bool:
            traffic = [e for e in self.events if e.get("stage") == "traffic" and (e["fraction"] or 0) >= 0.15]
            later = [e for e in self.events if e.get("stage") == "stop" or (e["event"] == "note" and "measuring" in e["text"])]
            needed = {"start-up": True, "traffic": traffic, "stop": later, MEASURING: later}[stage]
            return bool(needed) or self.process.poll() is not None

        wait_until(reached, f"stage {stage}", DEADLINE_S)

    def finish(self) -> int:
        """The exit status, after the end."""
        try:
            self.output = self.process.communicate(timeout=DEADLINE_S)[0] if not self._thread.is_alive() else self._rest()
        finally:
            if self.process.poll() is None:
                self.process.kill()
        return self.process.returncode

    def _rest(self) -> str:
        assert self.process.stdout is not None
        self._thread.join(DEADLINE_S)
        return self.process.stdout.read() if self.process.wait(DEADLINE_S) is not None else ""


def kbps(out: Path) -> float | None:
    """The throughput that the table shows."""
    import polars

    table = out / "table.csv"
    if not table.exists():
        return None
    values = polars.read_csv(table)["acked_kbps"].drop_nulls().to_list()
    return float(values[0]) if values else None


def verdict(out: Path) -> str | None:
    """The verdict of the run's record; None without one."""
    try:
        return json.loads((out / "all" / "seed-1" / "verdict.json").read_text())["verdict"]
    except OSError:
        return None


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Throughput without a fault. Of the scope `session`, so that the cells may run in several processes."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    trial = Trial(out, {**KEYS, "seeds": 1})
    assert trial.finish() == 0, trial.lines
    value = kbps(out)
    assert value is not None
    return value


def parameters() -> list:
    return [
        pytest.param(*cell, id=f"{cell[0]}-{cell[1].name}-{cell[2]}", marks=[] if cell in CHEAP else pytest.mark.nightly)
        for cell in CELLS
    ]


@pytest.mark.parametrize(("process", "number", "stage"), parameters())
def test_a_disturbed_process_gives_no_wrong_valid_number(
    tmp_path: Path, undisturbed: float, process: str, number: signal.Signals, stage: str
) -> None:
    out = tmp_path / "run"
    directory = out / "all" / "seed-1"
    trial = Trial(out, {**KEYS, **KEYS_OF.get(process, {}), "seeds": 1})
    trial.until(stage)
    found: list[int] = []

    def appeared() -> bool:
        found[:] = PROCESSES[process](directory)
        return bool(found) or trial.process.poll() is not None

    wait_until(appeared, process, DEADLINE_S)
    sent = send(found[0], number) if found else False
    status = trial.finish()
    text = "".join(trial.lines) + trial.output
    value, judged = kbps(out), verdict(out)
    assert "Traceback" not in text, text
    assert nothing_left(directory)
    if status == 0 and judged == "valid":
        assert value == pytest.approx(undisturbed, rel=TOLERANCE), f"valid, but {value} kbit/s for {undisturbed}: {text}"
        assert "agree" in text, text
    if sent and number == signal.SIGKILL and stage == "traffic" and process not in ("template",):
        assert status != 0 or judged != "valid", text


def send(pid: int, number: signal.Signals) -> bool:
    """Send the signal, and after STOPPED_S the continuation of a stop; whether the process was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    if number == signal.SIGSTOP:
        time.sleep(STOPPED_S)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return True
    return True


@pytest.mark.nightly
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_disturbed_measuring_process_gives_no_wrong_valid_number(
    tmp_path: Path, undisturbed: float, number: signal.Signals
) -> None:
    """Three runs are measured by processes of their own (testbed/campaigns/measuring.py)."""
    out = tmp_path / "run"
    trial = Trial(out, KEYS)
    trial.until(MEASURING)
    found: list[int] = []

    def appeared() -> bool:
        found[:] = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit()
            and "testbed.campaigns.measuring" in command_line(int(entry.name))
            and parent_or_none(int(entry.name)) == trial.process.pid
        ]
        return bool(found) or trial.process.poll() is not None

    wait_until(appeared, "the measuring process", DEADLINE_S)
    if found:
        send(found[0], number)
    status = trial.finish()
    text = "".join(trial.lines) + trial.output
    assert "Traceback" not in text, text
    if status == 0:
        assert kbps(out) == pytest.approx(undisturbed, rel=TOLERANCE), text
        assert "agree" in text, text


def parent_or_none(pid: int) -> int | None:
    try:
        return parent_of(pid)
    except OSError:
        return None
