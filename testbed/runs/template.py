"""The template of runs: a process that has imported all that a run needs, and forks the keeper of each run.

The imports of a run take 0.5 s of CPU, a fork takes 8 ms. `manet` has threads when its runs start, which fork(2) would cut off,
so it requests a keeper for each run through a socket. The template itself is a fork of `manet` from before it has threads
(`fork_early`), since `manet` needs most of these imports, too; in another program it is a process of its own, started with the
first run. It has one thread and the name NAME, ignores the terminal's signals, and ends with `manet`, whose end of the socket
then closes. `manet` waits for it, so that the CPU time of all runs is in that of `manet` (getrusage(2)). It is not in a run's
namespaces or cgroup. A keeper does what `unshare` does for a run with a terminal (testbed/runs/isolation.py).

Departure from subprocess: `manet` is not the parent of the keeper. It waits by pidfd_open(2), and does not learn the exit status.
"""

import atexit
import contextlib
import errno
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import NoReturn

from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.host.namespace import unshare_run
from testbed.host.state import enter_user_namespace
from testbed.programs import ROOT
from testbed.runs import init

NAME = "python-run"  # of its processes, as ps(1) shows them: their command line may be that of `manet`
MODULES = ("testbed.runs.run", "testbed.runs.live_network", "testbed.stages.added_flows")  # they import the others
REPLY_BYTES = 64
MAX_DESCRIPTORS = 16  # in a request
REQUESTS = 3  # its socket in a fork
MAX_FILES = 1 << 20  # above all descriptors of `manet`


class Keeper:
    """A keeper that the template has forked."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid, self._pidfd = pid, pidfd

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; subprocess.TimeoutExpired after `timeout` seconds."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(None if timeout is None else 1000 * timeout):
            raise subprocess.TimeoutExpired("keeper", timeout or 0.0)

    def kill(self) -> None:
        """End it at once, and the run with it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._pidfd)


class Forked:
    """The template as a fork of this process."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self) -> None:
        """Wait for its end."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class Template:
    """The handle of `manet` on its template."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | Forked | None = None

    def fork_early(self) -> None:
        """Start the template as a fork of this process, if that is possible (`_may_fork`); else the first run starts it."""
        if self._process is not None or not _may_fork():
            return
        _import_all()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {*BLOCKED, signal.SIGTERM})
        pid = os.fork()
        if pid == 0:
            try:
                _leave_manet(theirs.detach(), before | BLOCKED)
                main()
            except BaseException:  # must not go on as `manet`
                traceback.print_exc()
            finally:
                os._exit(1)
        self._socket, self._process = ours, Forked(pid)
        atexit.register(self._end)
        theirs.close()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def fork(self, arguments: list[str], log: int, passed: list[int]) -> Keeper:
        """The keeper of a run with these arguments of testbed.runs.init. It has the descriptors `passed`, with the same
        numbers, and writes to `log`. Safe from any thread."""
        request = {"arguments": arguments, "passed": passed, "environment": dict(os.environ), "folder": _folder()}
        with self._lock, os.fdopen(os.memfd_create("request"), "wb") as file:  # an environment can exceed a message
            file.write(json.dumps(request).encode())
            file.flush()
            descriptors = [file.fileno(), log, *passed]
            keeper = self._request(descriptors) or self._request(descriptors)  # by another template, if this one was killed
        if keeper is None:
            raise RunError("the process that forks the runs (testbed.runs.template) ends by itself; see the lines above")
        return keeper

    def warm(self) -> None:
        """Start the template before its first run. Safe from any thread."""
        with self._lock:
            self._socket = self._socket or self._started()

    def _request(self, descriptors: list[int]) -> Keeper | None:
        """The reply of the template, which is started if there is none; None if it has ended."""
        self._socket = self._socket or self._started()
        assert self._process is not None
        reply: bytes = b""
        pidfds: list[int] = []
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self._socket, [b"fork"], descriptors)
            reply, pidfds, _flags, _address = socket.recv_fds(self._socket, REPLY_BYTES, 1)
        if not reply:
            self._socket.close()
            self._socket = None
            self._process.wait()
            return None
        if not pidfds:
            os.kill(int(reply), signal.SIGKILL)
            raise RunError(
                f"too many open files ({os.strerror(errno.EMFILE)}): raise the limit with ulimit -n, or use fewer --jobs"
            )
        return Keeper(int(reply), pidfds[0])

    def _started(self) -> socket.socket:
        """Start the template; returns this end of its socket."""
        if self._process is None:
            atexit.register(self._end)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # -P: only the project itself may shadow installed modules
                [sys.executable, "-P", "-m", "testbed.runs.template", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        return ours

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)  # the end for a copy in another process, too
            self._socket.close()
        if self._process is not None:
            self._process.wait()


def _folder() -> str:
    """The current folder; the root of the file system if it has been removed."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _may_fork() -> bool:
    """Whether this is `manet` itself, with the template's path of modules and a single thread."""
    program = sys.modules["__main__"].__spec__
    is_manet = (
        program is not None
        and program.name == "testbed.__main__"
        and set(os.environ.get("PYTHONPATH", "").split(os.pathsep)) == {str(ROOT)}
    )
    return is_manet and sum(1 for _ in Path("/proc/self/task").iterdir()) == 1


TEMPLATE = Template()


# --- in the template --------------------------------------------------------------------------------------------------

BLOCKED = {signal.SIGINT, signal.SIGHUP}  # until init.main unblocks them


def _leave_manet(requests: int, mask: set[int]) -> None:
    """Of a fork of `manet`: become as a process that was started, with this mask of signals and the descriptor `requests`."""
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGTERM, signal.SIG_DFL),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, usual)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(null, stream)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    _renumber((requests,), [REQUESTS])
    os.closerange(REQUESTS + 1, MAX_FILES)
    sys.argv = ["testbed.runs.template", str(REQUESTS)]


def _import_all() -> None:
    for module in MODULES:
        importlib.import_module(module)
    Scenario.model_rebuild()  # its checks, which each run would build (keys/models.py)


def main() -> NoReturn:
    """Fork a keeper for each request, until `manet` ends. The template and the processes of each run, which are its forks, end
    here, without the end of Python: it frees each object by itself, in pages that they share, and `manet` waits for it."""
    status = _serve()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # a full disk below log/run.log
            stream.flush()
    os._exit(status)


def _serve() -> int:
    """Returns in the template and in the processes of each run."""
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED)
    enter_user_namespace()  # of a program that is not `manet`, which may have threads
    Path("/proc/self/comm").write_text(NAME)
    _import_all()
    gc.freeze()  # a collection in a run would copy the pages of all modules
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        while True:
            descriptors: list[int] = []
            with contextlib.suppress(ConnectionResetError):  # `manet` has ended without reading a reply
                _message, descriptors, _flags, _address = socket.recv_fds(requests, REPLY_BYTES, MAX_DESCRIPTORS)
            _reap()
            if not descriptors:
                return 0
            keeper = os.fork()
            if keeper == 0:
                break
            pidfd = os.pidfd_open(keeper)
            with contextlib.suppress(OSError):  # `manet` has ended
                socket.send_fds(requests, [str(keeper).encode()], [pidfd])
            for descriptor in (pidfd, *descriptors):
                os.close(descriptor)
    return _keep(*descriptors)


def _reap() -> None:
    """Reap the keepers that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(request_file: int, log: int, *passed: int) -> int:
    """The keeper: fork the run's pid 1 into new namespaces, wait for it, and return its exit status."""
    os.lseek(request_file, 0, os.SEEK_SET)
    with os.fdopen(request_file, "rb") as file:
        request = json.load(file)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"], PYTHONPATH=str(ROOT))
    _renumber(passed, request["passed"])
    pid_1 = unshare_run()
    if pid_1 == 0:
        return init.main(request["arguments"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as unshare(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid_1, 0)[1])
    return 128 - status if status < 0 else status


def _renumber(held: tuple[int, ...], numbers: list[int]) -> None:
    """Give the descriptors `held` these numbers; close all others except the standard streams."""
    above = max((*held, *numbers)) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in held]
    os.closerange(3, above)
    for descriptor, number in zip(moved, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


if __name__ == "__main__":
    main()
