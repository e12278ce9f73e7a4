"""One guest: boots a kernel of the cache over this machine's files, runs one command in it, passes on its output and status.

virtme-ng (in .build/guests) prepares the initramfs and QEMU's arguments. QEMU is started here and not by virtme-run, so that its
ports are pipes of this process, and it dies with this process in every case (PR_SET_PDEATHSIG). init.sh documents the ports.

A command has the terminal if standard input, output and error of this process are one: the guest's console is connected to it
then. Otherwise the command reads this process's standard input, as from a pipe, and has two separate outputs.

/dev/kvm is used if it works. A host may have the device and yet fail with it (a nested one that emulates too little): such a
guest is ended and started again in software emulation (TCG), and the cache remembers it until the next boot. An emulated
guest with one CPU has its own clock (COUNTED_CLOCK); the clock of one in virtual time is independent of the host's
(VirtualClock).
"""

import compileall
import contextlib
import io
import os
import platform
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from testbed.errors import RunError, UsageError
from testbed.guests.initramfs import Files
from testbed.guests.kernels import Unpacked
from testbed.programs import ROOT

VIRTME_RUN = ROOT / ".build" / "guests" / "bin" / "virtme-run"
INIT = Path(__file__).with_name("init.sh")
KVM = Path("/dev/kvm")
PACKAGES = ("analysis", "mobility", "record", "scenarios", "keys", "traffic", "testbed", "topologies")
MIN_MEMORY_MB = 512  # with less, Debian's kernel and a Python do not fit
BOOT_DEADLINE_S = 600.0  # emulated: 8 s on an idle core, over 180 s for two guests at a load of 15
VIRTUAL_BOOT_DEADLINE_S = 3600.0  # the run's results do not depend on the host's load; nor must its start
KVM_DEADLINE_S = 30.0  # 3 s is usual
# An emulated CPU's time advances by 1 ns an instruction while it computes, and with the host's clock while it waits: by its own
# timers it is as fast as a host, however long that takes. With several CPUs QEMU would run them in turn.
COUNTED_CLOCK = ("-icount", "shift=0,sleep=on")
IN_MEMORY = Path("/manet")  # in a guest whose files are in memory: init.sh, busybox, the job
SHOW_CONSOLE = "MANET_VM_CONSOLE" in os.environ  # for debugging: print the guest kernel's console
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = ("out", "err", "status", "console")
KVM_FAILED = (b"KVM internal error", b"failed to initialize kvm", b"Could not access KVM kernel module")


Output = Callable[[str, bytes], None]  # "out" or "err", and a piece of it
Input = Literal["nothing", "stream", "terminal"]  # that the job reads


def search_path(folders: Iterable[str] | None = None) -> str:
    """PATH in a guest: these folders, by default those of the caller's PATH, whose programs the guest has at the same places;
    then Debian's. Relative ones are left out, since the guest's daemons work in folders of their own."""
    searched = os.get_exec_path() if folders is None else folders
    return ":".join(dict.fromkeys([*(folder for folder in searched if folder.startswith("/")), *PATH.split(":")]))


@dataclass
class Job:
    """The command of a guest: `command` in `folder`. Its output files are lost, except in the folders `shares` and in those of
    `mapped_shares`, which the guest sees at another path (host's folder: guest's path)."""

    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    shares: Sequence[Path] = ()
    mapped_shares: Mapping[Path, Path] = field(default_factory=dict)

    def exports(self) -> list[tuple[Path, Path]]:
        """(Folder of the host, its path in the guest) of each writable folder."""
        return [*((share, share) for share in self.shares), *self.mapped_shares.items()]

    def script(self, interactive: bool, time_s: float | None = None) -> str:
        """The shell functions that init.sh reads. `interactive`: the command gets the console as its terminal, with the size of
        ours. `time_s`: the guest's date; None leaves its own."""
        session = ["setsid", "-c"] if interactive else ["setsid"]  # -c: the terminal is the session's
        environment = [f"{key}={value}" for key, value in ({"PATH": PATH} | dict(self.environment)).items()]
        words = [*session, "env", "-i", *environment, *self.command]
        places = [place for _folder, place in self.exports()]
        shares = [f"    mount_share {number} {shlex.quote(str(place))}" for number, place in enumerate(places)]
        lines = ["job_shares() {", "    :", *shares, "}", "job() {", f"    cd {shlex.quote(str(self.folder))} || return 126"]
        if interactive:
            columns, rows = shutil.get_terminal_size()
            lines.append(f"    stty columns {columns} rows {rows}")
        date = "" if time_s is None else f"{time_s:.0f}"
        return "\n".join([*lines, f"    exec {shlex.join(words)}", "}", f"job_time={date}", ""])


@dataclass(frozen=True)
class VirtualClock:
    """A clock that depends on the guest alone: it advances by INSTRUCTION_NS an instruction, and jumps to the next timer when the
    whole guest waits. The host's speed does not matter. `seed`: of the random numbers that QEMU gives the guest."""

    seed: int = 1

    def qemu(self) -> list[str]:
        """QEMU's arguments for this clock."""
        return ["-icount", f"shift={INSTRUCTION_SHIFT},sleep=off", "-rtc", "clock=vm", "-seed", str(self.seed)]

    def qemu_in_memory(self) -> list[str]:
        """QEMU's arguments for a guest with its files in memory, on which neither date nor the host's scheduler has an
        influence."""
        return [
            "-icount", f"shift={INSTRUCTION_SHIFT},sleep=off,{ONE_AT_A_TIME}",
            "-rtc", f"base={GUEST_DATE},clock=vm", "-seed", str(self.seed),
        ]  # fmt: skip


# The thread of QEMU's main loop moves the clock while the CPU halts. If that happens between the CPU's halt and the count of its
# last instructions, the clock goes too far by these (icount_start_warp_timer, QEMU 7.2): once in thousands of halts, on a loaded
# host. The lock of record mode keeps the two threads apart. The recording itself is not needed.
ONE_AT_A_TIME = "rr=record,rrfile=/dev/null"
INSTRUCTION_SHIFT = 0
INSTRUCTION_NS = 1 << INSTRUCTION_SHIFT
# Kernel arguments in virtual time: always the clock that is cheapest to read; the same addresses in each guest.
GUEST_DATE = "2000-01-01T00:00:00"  # obviously not the date of the run
VIRTUAL_KERNEL = ("clocksource=tsc", "tsc=reliable", "nokaslr", "norandmaps")


@dataclass(frozen=True)
class Machine:
    """`memory_mb` and `cpus` of a guest; `kvm` None: if it works. `virtual` needs one CPU and no KVM."""

    memory_mb: int = 2048
    cpus: int = 2
    kvm: bool | None = None
    virtual: VirtualClock | None = None


class Cancelled(Exception):
    """The guest was ended because the caller cancelled it."""


def run(kernel: Unpacked, job: Job, machine: Machine, cache: Path, busybox: Path, *, timeout_s: float | None = None) -> int:
    """Boot, run the job, and return its exit status; it has our terminal, or our standard input, stdout and stderr.

    Raises RunError if the guest does not boot or crashes, UsageError for what this machine lacks. `timeout_s`: of the job.
    """
    require(machine)
    job_input = own_input()
    mark = cache / "kvm-fails"
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    kvm = machine.kvm
    if kvm is None:
        kvm = os.access(KVM, os.R_OK | os.W_OK) and not (mark.exists() and mark.read_text() == boot_id)
    with (
        _qemu_argv(kernel, job, machine, kvm, busybox, job_input == "terminal") as argv,
        _Guest(kernel, argv, kvm, job_input) as guest,
    ):
        try:
            return guest.run(timeout_s)
        except KvmFailed:
            if machine.kvm:
                raise RunError(f"{KVM}: there, but a guest does not come up with it; leave out --kvm") from None
    print(f"manet vm: {KVM} does not work here, software emulation instead", file=sys.stderr)
    mark.write_text(boot_id)
    return run(kernel, job, Machine(machine.memory_mb, machine.cpus, kvm=False), cache, busybox, timeout_s=timeout_s)


def run_virtual(
    kernel: Unpacked, job: Job, machine: Machine, busybox: Path, output: Output, cancel: threading.Event | None = None
) -> int:
    """`run` in virtual time, the job's output to `output`; Cancelled as soon as `cancel` is set."""
    assert machine.virtual is not None and machine.cpus == 1 and machine.kvm is False
    require(machine)
    with _qemu_argv(kernel, job, machine, False, busybox, False) as argv:
        return _run_virtual(kernel, argv, output, cancel)


def run_in_memory(
    kernel: Unpacked,
    job: Job,
    machine: Machine,
    busybox: Path,
    archive: IO[bytes],
    output: Output,
    cancel: threading.Event | None = None,
) -> int:
    """`run_virtual` with the files of `archive` (an initramfs, completed here) in place of this machine's. The job mounts the
    folders of `job` itself when it has done its work: the tags are manet.share0, ..."""
    assert machine.virtual is not None and machine.cpus == 1 and machine.kvm is False
    require(machine)
    files = Files()
    files.put(IN_MEMORY / "busybox", busybox.read_bytes(), 0o755)
    files.put(IN_MEMORY / INIT.name, INIT.read_bytes(), 0o755)
    files.put(IN_MEMORY / "job", job.script(interactive=False).encode())
    files.write(archive)
    archive.flush()
    argv = _in_memory_argv(kernel, job, machine, archive.fileno())
    return _run_virtual(kernel, argv, output, cancel, (archive.fileno(),))


def _run_virtual(
    kernel: Unpacked, argv: list[str], output: Output, cancel: threading.Event | None, files: Sequence[int] = ()
) -> int:
    with _Guest(kernel, argv, False, files=files) as guest:
        guest.output, guest.cancel, guest.boot_deadline_s = output, cancel or guest.cancel, VIRTUAL_BOOT_DEADLINE_S
        return guest.run(None)


def own_input() -> Input:
    """The input that this process can pass to a job."""
    if sys.stdin is None:
        return "nothing"
    if not sys.stdin.isatty():
        return "stream"
    try:
        if os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
            return "nothing"  # in the background: who reads the terminal is stopped
    except OSError:  # the terminal of another session
        return "nothing"
    return "terminal" if all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)) else "stream"


class KvmFailed(Exception):
    """/dev/kvm exists and does not work."""


def require(
    machine: Machine, *, path: str | None = None, virtme_run: Path = VIRTME_RUN, meminfo: Path = Path("/proc/meminfo"),
    architecture: str = platform.machine(),
) -> None:  # fmt: skip
    """Raise UsageError for the first thing that this machine lacks. The paths and the architecture replace its own in tests."""
    if architecture != "x86_64":  # a guest runs this machine's programs
        raise UsageError(f"guests (manet vm, virtual time): are amd64 machines, and this is {architecture}; use an amd64 machine")
    if shutil.which("qemu-system-x86_64", path=path) is None:
        raise UsageError("qemu-system-x86_64: not found; ./setup.sh --guests installs QEMU")
    if not virtme_run.exists():
        raise UsageError(f"{virtme_run}: virtme-ng is not installed; ./setup.sh --guests installs it")
    if machine.memory_mb < MIN_MEMORY_MB:
        raise UsageError(f"--memory {machine.memory_mb}M: too little, a guest needs at least {MIN_MEMORY_MB}M")
    if available_mb(meminfo) < machine.memory_mb:
        raise UsageError(
            f"--memory {machine.memory_mb}M: this machine has only {available_mb(meminfo)}M available; ask for less "
            f"(at least {MIN_MEMORY_MB}M) or end something"
        )
    if machine.kvm and not os.access(KVM, os.R_OK | os.W_OK):
        raise UsageError(f"--kvm: {KVM} is missing or not accessible; leave it out (software emulation, slower)")


def megabytes(text: str) -> int:
    """Megabytes of a text such as `2048`, `2048M` or `2G`. Raises ValueError."""
    match = re.fullmatch(r"(\d+)([MG]?)", text.upper())
    if match is None or not int(match.group(1)):
        raise ValueError(f'"{text}" is not a size such as 1024M or 2G')
    return int(match.group(1)) * (1024 if match.group(2) == "G" else 1)


def available_mb(meminfo: Path = Path("/proc/meminfo")) -> int:
    """MemAvailable of meminfo, in MB; sys.maxsize if the file does not say."""
    available = re.search(r"^MemAvailable: +(\d+) kB", meminfo.read_text(), re.MULTILINE)
    return int(available.group(1)) // 1024 if available else sys.maxsize


@contextlib.contextmanager
def _qemu_argv(kernel: Unpacked, job: Job, machine: Machine, kvm: bool, busybox: Path, interactive: bool) -> Iterator[list[str]]:
    """QEMU's command line. Its temporary files (initramfs, job) exist until the block ends."""
    compile_python()
    with tempfile.TemporaryDirectory(prefix="manet-vm.") as folder:
        initramfs = Path(folder) / "initramfs"
        command = [
            str(VIRTME_RUN), "--dry-run", "--show-command", "--kimg", str(kernel.image), "--mods", "auto",
            "--memory", f"{machine.memory_mb}M", "--cpus", str(machine.cpus), "--busybox", str(busybox), "--force-initramfs",
            "--save-initramfs", str(initramfs), "--force-9p", "--disable-microvm", "--script-sh", "true",
            *([] if kvm else ["--disable-kvm"]),
        ]  # fmt: skip
        search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        prepared = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PATH": search}
        )
        lines = [line for line in prepared.stdout.splitlines() if "qemu-system" in line]
        if prepared.returncode or not lines or not initramfs.exists():
            message = (prepared.stderr.strip() or prepared.stdout.strip() or "no output").splitlines()[-1]
            raise RunError(f"virtme-run: prepared no guest: {message[:300]}; ./setup.sh --guests fixes it")
        script = Path(folder) / "job"  # the guest sees it, as it sees all files
        script.write_text(job.script(interactive, time.time()))
        argv = _with_own_init(shlex.split(lines[-1]), kernel, job, script, busybox, interactive)
        if machine.virtual is not None:
            yield [*_without_ioeventfd(argv), *machine.virtual.qemu()]
        else:
            yield argv if kvm or machine.cpus > 1 else [*argv, *COUNTED_CLOCK]


def _in_memory_argv(kernel: Unpacked, job: Job, machine: Machine, archive: int) -> list[str]:
    """QEMU's command line for a guest with its files in memory, from the descriptor `archive`. It has no device that the host
    could delay: the ports are written at once, and the file system of the results is not read before the job ends."""
    assert machine.virtual is not None
    console = ("console=ttyS0",) if SHOW_CONSOLE else ("console=ttyS0", "quiet", "loglevel=1")
    own = ("manet.mode=memory", f"manet.job={IN_MEMORY}/job", f"rdinit={IN_MEMORY}/busybox")
    init = f"{IN_MEMORY}/{INIT.name}"
    append = [*console, "panic=-1", *own, "--", "sh", init, f"{IN_MEMORY}/busybox", init, "memory"]
    argv = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35,accel=tcg",
        "-cpu", "max", "-smp", "1", "-m", f"{machine.memory_mb}M", "-kernel", str(kernel.image), "-initrd", f"/dev/fd/{archive}",
        "-append", " ".join(append), "-device", "virtio-serial-pci,max_ports=8",
    ]  # fmt: skip
    for number, (share, _place) in enumerate(job.exports()):
        argv += _share_argv(f"manet.share{number}", share, readonly=False)
    return [*_without_ioeventfd(argv), *machine.virtual.qemu_in_memory()]


def compile_python() -> None:
    """Compile our Python before the guest starts. A guest cannot keep its .pyc files, and compiling everything again in each
    of its processes takes an emulated CPU longer than the set-up of a run. A checkout that is not writable is left as it is."""
    for package in PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=2)


def _with_own_init(argv: list[str], kernel: Unpacked, job: Job, script: Path, busybox: Path, interactive: bool) -> list[str]:
    """virtme-ng's QEMU arguments with our init and our ports in place of its own."""
    for path in (kernel.folder, script, busybox, INIT):
        if len(str(path).split()) != 1:
            raise UsageError(f"{path}: a path with a space, which a kernel's command line cannot carry; move it")
    changed: list[str] = []
    words = iter(argv)
    for word in words:
        if word in ("-chardev", "-serial"):
            next(words)
        elif word == "-device":
            value = next(words)
            changed += [] if value.startswith(("virtserialport", "virtio-serial")) else [word, value]
        elif word == "-append":
            dropped = ("virtme.exec=", "init=", "earlyprintk=", *(("quiet", "loglevel=") if SHOW_CONSOLE else ()))
            parts = [part for part in next(words).split(" ") if not part.startswith(dropped)]
            mode = "shell" if interactive else "run"
            own = [f"manet.modules={kernel.folder}", f"manet.mode={mode}", f"manet.job={script}", f"init={busybox}"]
            # After -- come init's own arguments.
            changed += [word, " ".join([*parts, *own, "--", "sh", str(INIT), str(busybox), str(INIT)])]
        else:
            changed.append(word)
    changed += ["-device", "virtio-serial-pci,max_ports=8", "-device", "virtio-rng-pci"]
    changed += _share_argv("manet.rootfs", Path("/"), readonly=True)
    for number, (share, _place) in enumerate(job.exports()):
        changed += _share_argv(f"manet.share{number}", share, readonly=False)
    return changed


def _without_ioeventfd(argv: list[str]) -> list[str]:
    """The arguments for virtual time: devices take requests at once, not when another thread of QEMU gets the host's CPU."""
    changed = []
    for before, word in zip(["", *argv], argv, strict=False):
        if before == "-device" and word.startswith(("virtio-serial-pci", "virtio-9p-pci", "virtio-rng-pci")):
            word += ",ioeventfd=off"
        elif before == "-append":
            word = " ".join([*VIRTUAL_KERNEL, word])
        changed.append(word)
    return changed


def _share_argv(tag: str, folder: Path, *, readonly: bool) -> list[str]:
    path = str(folder).replace(",", ",,")  # QEMU's way to quote a comma
    option = f"local,id={tag},path={path},security_model=none,readonly={'on' if readonly else 'off'},multidevs=remap"
    return ["-fsdev", option, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


class _Guest:
    """QEMU and the pipes to its ports. Leaving the `with` block kills it."""

    def __init__(
        self, kernel: Unpacked, argv: list[str], kvm: bool, job_input: Input = "nothing", files: Sequence[int] = ()
    ) -> None:
        """`files`: descriptors that QEMU gets, too."""
        self.kernel = kernel
        self.files = files
        self.argv = argv
        self.kvm = kvm
        self.boot_deadline_s = KVM_DEADLINE_S if kvm else BOOT_DEADLINE_S
        self.job_input = job_input
        self.console = b""  # its end, for the message if the guest crashes
        self.status = b""  # read from the status port
        self.output: Output = _write_through
        self.cancel = threading.Event()

    def __enter__(self) -> "_Guest":
        self.terminal = termios.tcgetattr(sys.stdin) if self.job_input == "terminal" else None
        self.keys: socket.socket | None = None
        feed: socket.socket | None = None
        if self.job_input != "nothing":
            self.keys, feed = socket.socketpair()
        pipes = {name: os.pipe() for name in PORTS if not (name == "console" and self.job_input == "terminal")}
        write_ends = {name: write for name, (_read, write) in pipes.items()}
        self.ends: dict[str, io.RawIOBase] = {name: os.fdopen(read, "rb", buffering=0) for name, (read, _write) in pipes.items()}
        if self.job_input == "terminal" and self.keys is not None:
            self.ends["console"] = self.keys.makefile("rb", buffering=0)
        argv = ["setpriv", "--pdeathsig", "KILL", *self.argv, *self._ports(write_ends, feed)]
        try:
            self.qemu = subprocess.Popen(
                argv, pass_fds=(*write_ends.values(), *self.files, *([feed.fileno()] if feed else [])), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=write_ends.get("console"), stderr=write_ends.get("console"),
            )  # fmt: skip
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in write_ends.values():
                os.close(descriptor)
            if feed is not None:
                feed.close()
        return self

    def _ports(self, write_ends: dict[str, int], feed: socket.socket | None) -> list[str]:
        """Chardevs for the pipes, and for the socket to the console or to the port of standard input."""
        argv = []
        for name, descriptor in write_ends.items():
            argv += ["-chardev", f"file,id={name},path=/dev/fd/{descriptor}"]
        ports = [name for name in write_ends if name != "console"]
        if feed is not None:
            name = "console" if self.job_input == "terminal" else "in"
            argv += ["-chardev", f"socket,id={name},fd={feed.fileno()}"]
            ports += [name] if name == "in" else []
        argv += ["-serial", "chardev:console"]
        for name in ports:
            argv += ["-device", f"virtserialport,chardev={name},name=manet.{name}"]
        return argv

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.qemu.pid, signal.SIGKILL)
        self.qemu.wait()
        self._close()

    def _close(self) -> None:
        if self.keys is not None:
            with contextlib.suppress(OSError):
                self.keys.shutdown(socket.SHUT_RDWR)  # ends a thread that waits to write
            self.keys.close()
        for end in self.ends.values():
            end.close()
        if self.terminal is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self.terminal)

    def _begin_input(self) -> None:
        """From now on our standard input is the job's. Until then Ctrl-C ends this process, and nothing is read: a guest without
        KVM may take this one's place."""
        if self.terminal is not None:
            tty.setraw(sys.stdin, termios.TCSADRAIN)
        if self.keys is not None:
            threading.Thread(target=self._copy_input, args=(self.keys,), name="input", daemon=True).start()

    def _copy_input(self, keys: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the guest has ended, or our input cannot be read
            while piece := os.read(sys.stdin.fileno(), 65536):
                keys.sendall(piece)
        with contextlib.suppress(OSError):
            keys.shutdown(socket.SHUT_WR)

    def run(self, timeout_s: float | None) -> int:
        """Wait for the job's exit status. Raises KvmFailed or RunError if there is none, Cancelled."""
        deadline = time.monotonic() + self.boot_deadline_s
        ready = False
        with selectors.DefaultSelector() as selector:
            for name, end in self.ends.items():
                selector.register(end, selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _events in selector.select(max(0.0, min(0.5, deadline - time.monotonic()))):
                    self._read_port(key, selector)
                if self.cancel.is_set():
                    raise Cancelled
                if status := re.search(rb"^status (\d+)$", self.status, re.MULTILINE):
                    self.qemu.kill()  # what is left in the pipes is read below
                    self._read_rest(selector)
                    return int(status.group(1))
                if not ready and self.status.startswith(b"ready"):
                    ready = True
                    self._begin_input()
                    deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
                elif not ready and any(message in self.console for message in KVM_FAILED):
                    raise KvmFailed
                if time.monotonic() > deadline:
                    raise self._timeout_error(ready, timeout_s)
                if self.qemu.poll() is not None:
                    self._read_rest(selector)
                    if self.kvm and not ready:
                        raise KvmFailed  # if the host lacks some register of the CPU, QEMU ends with a message of its own
                    raise self._crash_error(ready)
        raise self._crash_error(ready)

    def _read_port(self, key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
        name: str = key.data
        try:
            piece = os.read(key.fd, 65536)
        except ConnectionResetError:  # QEMU has ended and had not read all of our input
            piece = b""
        if not piece:
            selector.unregister(key.fileobj)
        elif name == "console":
            self.console = (self.console + piece)[-8000:]
            if self.job_input == "terminal":
                self.output("out", piece)
            elif SHOW_CONSOLE:
                os.write(2, piece)
        elif name == "status":
            self.status += piece
        else:
            self.output(name, piece)

    def _read_rest(self, selector: selectors.BaseSelector) -> None:
        self.qemu.wait()
        while selector.get_map():
            for key, _events in selector.select(1.0):
                self._read_port(key, selector)

    def _timeout_error(self, ready: bool, timeout_s: float | None) -> Exception:
        if ready:
            return RunError(f"guest {self.kernel.name}: the command did not end within {timeout_s:g} s, ended with its guest")
        if self.kvm:
            return KvmFailed()
        return RunError(
            f"guest {self.kernel.name}: not up within {self.boot_deadline_s:g} s; it printed: {self._console_excerpt()}"
        )

    def _crash_error(self, ready: bool) -> Exception:
        if not ready and any(message in self.console for message in KVM_FAILED):
            return KvmFailed()
        when = "while the command ran" if ready else "before it was up"
        remedy = "; give it more --memory" if b"ut of memory" in self.console else ""
        return RunError(f"guest {self.kernel.name}: it crashed {when}: {self._console_excerpt()}{remedy}")

    def _console_excerpt(self) -> str:
        text = self.console.decode(errors="replace")
        lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"panic|ut of memory|BUG|Oops|qemu-system|init\.sh", line)]
        return " / ".join(telling[-2:] or lines[-2:]) or "no output; was QEMU killed? run it again"


def _write_through(name: str, piece: bytes) -> None:
    """Pass the job's output on to our stdout or stderr at once."""
    stream = sys.stdout if name == "out" else sys.stderr
    stream.flush()
    stream.buffer.write(piece)
    stream.buffer.flush()
