"""A run with `clock = "virtual"`: the whole node set in a guest whose clock counts instructions (docs/virtual-time.md).

`Guests.run` takes the place of testbed.runs.run.run_scenario: the same arguments, the same directory filled. The run itself is
`testbed.guests.virtual_run`, in the guest, which gets the scenario and reports its progress as one JSON object a line. All of its
files are in the guest's memory (run_files.py), so that it repeats bit for bit; a run with programs that cannot be listed
beforehand reads this machine's files and does not. Dates and names of this machine are in run.json alone, which is written here.
A guest has one CPU, QEMU's thread; several run side by side if this machine has CPUs for them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from mmap import mmap
from pathlib import Path
from typing import IO, Any

from record import manifest
from record.run_file import RunFile
from scenarios.identity import input_files
from scenarios.routing import Routing
from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.guests import guest, kernels, run_files
from testbed.guests.initramfs import Files
from testbed.guests.virtual_run import RUN
from testbed.host import mininet_wifi
from testbed.programs import BUILT, ROOT
from testbed.runs import metadata
from testbed.runs.run import RunResult, claimed, prepare
from testbed.runs.verdict import verdict_of

INPUTS = Path("/manet/inputs")  # in a guest with its files in memory: its scenario
OUT = Path("/run/manet-out")  # in the guest: the run's directory as this machine has it
MEMORY = "MANET_GUEST_MEMORY"
MEMORY_MB = 2048  # half of it for what a run captures
KERNEL = "6.12"  # the newest: `rto_min` above 0.2 s needs Linux 6.11
NOT_REPEATED = "the guest reads this machine's files while it works, and runs with the same seed are not identical"
INTERRUPTED = "interrupted; the guest has ended, and what it had captured with it"


class Guests:
    """Runs in guests with one kernel, which the constructor fetches. Safe from several threads at once."""

    def __init__(self, kernel: str | None = None, say: Callable[[str], None] = lambda _text: None) -> None:
        self.memory_mb = memory_mb()
        try:
            guest.require(guest.Machine(self.memory_mb, 1, kvm=False))
        except UsageError as problem:
            raise UsageError(str(problem).replace("--memory ", f"{MEMORY}=")) from None
        self._say, self._said = say, set[str]()
        self._lock = threading.Lock()
        self._common: dict[tuple[str, ...], mmap] = {}
        self._cache = kernels.Cache(say=say)
        self.kernel, self._busybox = self._cache.get(kernels.find(kernel or KERNEL)), self._cache.busybox()

    def run(
        self,
        scenario: Scenario,
        seed: int,
        directory: Path,
        *,
        progress: Callable[[str, float | None], None] = lambda _stage, _fraction: None,
        cancel: threading.Event | None = None,
        **record: object,
    ) -> RunResult:
        """Like run_scenario, except that nothing is kept of an interrupted run: its files were in the guest's memory."""
        directory = directory.resolve()
        with claimed(directory):
            prepare(scenario, seed, directory, record)
            output = _GuestOutput(progress)
            try:
                error = self._boot(scenario, seed, directory, output, cancel)
                ended: dict[str, Any] = output.ended or {"status": "failed", "error": error}
            except guest.Cancelled:
                ended = {"status": "interrupted", "error": INTERRUPTED}
            except RunError as problem:
                ended = {"status": "failed", "error": str(problem)}
            if ended["error"]:
                ended["error"] = ended["error"].replace(str(RUN), str(directory))
            self._conclude(directory, output, ended)
            if output.refused:
                raise UsageError(output.refused)
            return RunResult(ended["status"], verdict_of(directory), directory, ended["error"], ended.get("host_late", False))

    def _boot(
        self, scenario: Scenario, seed: int, directory: Path, output: "_GuestOutput", cancel: threading.Event | None
    ) -> str:
        """Run the guest; return the error to report if the guest has not reported how the run ended."""
        environment = {"PYTHONPATH": str(ROOT), "MANET_GUEST": self.kernel.name, "HOME": "/root"}
        machine = guest.Machine(self.memory_mb, 1, kvm=False, virtual=guest.VirtualClock(seed))
        inside = [sys.executable, "-P", "-m", "testbed.guests.virtual_run", "--seed", str(seed), "--out", str(OUT)]
        unlisted = run_files.missing(scenario)
        if unlisted is None:
            output.files = "memory"
            command = [*inside, "--inputs", str(INPUTS), "--mount", "manet.share0"]
            environment["PATH"] = run_files.search_path(run_files.programs_of(scenario))
            job = guest.Job(command, ROOT, environment, mapped_shares={directory: OUT})
            with self._archive(scenario, directory) as archive:
                status = guest.run_in_memory(self.kernel, job, machine, self._busybox, archive, output.take, cancel)
        else:
            self._say_once(f"{unlisted}: not known beforehand, so {NOT_REPEATED}")
            environment |= {name: os.environ[name] for name in (mininet_wifi.VARIABLE, "HOME") if name in os.environ}
            environment["PATH"] = guest.search_path()
            command = [*inside, "--inputs", str(OUT), *program_files(scenario.routing)]
            job = guest.Job(command, ROOT, environment, mapped_shares={directory: OUT})
            status = guest.run_virtual(self.kernel, job, machine, self._busybox, output.take, cancel)
        lines = output.errors.decode(errors="replace").strip().splitlines() or ["no output"]
        return f"guest {self.kernel.name}: the run ended with status {status} without a report: {lines[-1][:300]}"

    @contextmanager
    def _archive(self, scenario: Scenario, directory: Path) -> Iterator[IO[bytes]]:
        """The files of one run, as an archive that has no name on the disk. What runs have in common is collected once. Raises
        RunError for a file that cannot be read, and on a full disk."""
        programs = run_files.programs_of(scenario)
        inputs = Files()
        inputs.put(INPUTS / "scenario.json", (directory / "scenario.json").read_bytes())
        with ExitStack() as closed:
            try:
                for path in input_files(scenario):
                    inputs.add(path)
                archive = closed.enter_context(tempfile.TemporaryFile(prefix="manet-vm."))
                archive.write(self._files_of_all(programs))
                inputs.write(archive)
            except OSError as problem:
                if problem.filename:
                    text = f"{problem.filename}: {problem.strerror}; a run in virtual time takes it along, so make it readable"
                else:
                    text = (
                        f"{tempfile.gettempdir()}: {problem.strerror}; a run in virtual time needs 120 MB, TMPDIR sets the folder"
                    )
                raise RunError(text) from None
            yield archive

    def _files_of_all(self, programs: tuple[str, ...]) -> mmap:
        with self._lock:
            if programs not in self._common:
                guest.compile_python()
                self._common[programs] = run_files.of_run(self.kernel, programs).archive()
            return self._common[programs]

    def _say_once(self, text: str) -> None:
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                self._say(text)

    def _conclude(self, directory: Path, output: "_GuestOutput", ended: dict[str, Any]) -> None:
        (directory / "log").mkdir(exist_ok=True)
        (directory / "log" / "guest.log").write_bytes(output.errors)
        record = RunFile.open(directory / "run.json")
        clock = output.clock() | {"files": output.files, "qemu": qemu_version(), "host_kernel": metadata.kernel()}
        record.update(**output.record, status=ended["status"], error=ended["error"], ended=metadata.now(), clock=clock)
        record.close()
        manifest.enter(directory, "run.json", "log/guest.log")


class _GuestOutput:
    """The messages of a guest, with the time of each stage by this machine's clock and by the guest's."""

    def __init__(self, progress: Callable[[str, float | None], None]) -> None:
        self.errors = b""
        self.ended: dict[str, Any] | None = None
        self.record: dict[str, Any] = {}
        self.refused: str | None = None
        self.files = "host"
        self._progress = progress
        self._rest = b""
        self._began = time.monotonic()
        self._marks: dict[str, tuple[float, float, float]] = {}  # stage: seconds here, in the guest, of its CPU's work

    def take(self, name: str, piece: bytes) -> None:
        """A piece of the guest's output."""
        if name == "err":
            self.errors += piece
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._handle(json.loads(line))

    def _handle(self, message: dict[str, Any]) -> None:
        match message:
            case {"refused": reason}:
                self.refused = reason
            case {"ended": outcome, "record": record}:
                self.ended, self.record = outcome, record
            case {"stage": stage, "guest_s": guest_s, "busy_s": busy_s, **rest}:
                self._marks.setdefault(stage, (time.monotonic(), guest_s, busy_s))
                self._progress(stage, rest.get("fraction"))

    def clock(self) -> dict[str, object]:
        """`clock` of run.json: the guest's time, its CPU's work and this machine's time, in all and of the traffic."""
        whole_s = round(time.monotonic() - self._began, 3)
        clock: dict[str, object] = {"kind": "virtual", "instruction_ns": guest.INSTRUCTION_NS, "wall_s": whole_s}
        for name, first, last in (("run", "begin", "end"), ("traffic", "traffic", "stop")):
            if first in self._marks and last in self._marks:
                wall_s, guest_s, busy_s = (b - a for a, b in zip(self._marks[first], self._marks[last], strict=True))
                clock[name] = {
                    "guest_s": round(guest_s, 3), "busy_s": round(busy_s, 3), "wall_s": round(wall_s, 3),
                    "instructions_per_s": round(busy_s * 1e9 / guest.INSTRUCTION_NS / wall_s),
                }  # fmt: skip
        return clock


def memory_mb(environment: Mapping[str, str] = os.environ) -> int:
    """Memory of each guest in MB: MANET_GUEST_MEMORY (`4G`), else MEMORY_MB. Raises UsageError."""
    text = environment.get(MEMORY)
    if text is None:
        return MEMORY_MB
    try:
        return guest.megabytes(text)
    except ValueError as problem:
        raise UsageError(f"{MEMORY}: {problem}") from None


def max_guests() -> int:
    """The number of guests for which this machine has memory."""
    return guest.available_mb() // memory_mb()


def program_files(routing: Routing) -> list[str]:
    """Programs that a run starts, with their libraries: the guest reads them before its run begins, so that they are in its
    memory. A described daemon's are those that its description names."""
    programs = [
        str(BUILT.medium),
        str(BUILT.kernel_tcp),
        str(BUILT.capture),
        *_program_paths("iperf3", "tcpdump", "ip", "mnexec", "bash"),
    ]
    if BUILT.daemon(routing.protocol).exists():
        programs.append(str(BUILT.daemon(routing.protocol)))
    if routing.DESCRIPTION is not None:
        programs += _program_paths(*routing.DESCRIPTION.required_programs())
    return [*programs, *run_files.libraries(frozenset(programs)), *sorted(map(str, BUILT.kernel_tcp.parent.glob("*.o")))]


def _program_paths(*names: str) -> list[str]:
    return [path for name in names if (path := shutil.which(name, path=guest.search_path())) is not None]


@cache
def qemu_version() -> str:
    """The first line of QEMU's --version; `unknown` if it prints nothing."""
    done = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or ["unknown"])[0]
