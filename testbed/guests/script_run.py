"""`manet script` in a guest, for a script that needs mac80211's radios where the kernel has none (docs/mininet-wifi.md)."""

import os
import select
import stat
import sys
import tempfile
from pathlib import Path

from testbed.errors import UsageError
from testbed.guests import guest, kernels
from testbed.programs import ROOT
from testbed.runs import metadata

KERNEL = "6.12"
MACHINE = guest.Machine(cpus=1)  # its clock counts instructions where it is emulated (testbed/guests)
PASSED_ON = ("TERM", "LANG", "LC_ALL", "HOME", "COLUMNS")
WITH_INPUT = ["sh", "-c", 'input=$1; shift; exec "$@" <"$input"', "script"]
SILENT_S = 2.0


def run_in_guest(directory: Path, seed: int, overrides: tuple[str, ...], script: Path, words: list[str], *, why: str) -> int:
    """Execute the script from its beginning in a guest; its exit status. Results are kept in `directory`. A terminal is the
    script's; other standard input is read to its end first. Raises UsageError for what this machine lacks."""
    try:
        guest.require(MACHINE)
    except UsageError as problem:
        raise UsageError(f"{why}; a guest has it, but: {problem}") from None
    kernel = kernels.find(KERNEL)
    _say(f"{why}: the script begins anew in a guest of Linux {KERNEL} (docs/hwsim.md)")
    cache = kernels.Cache(say=_say)
    unpacked, busybox = cache.get(kernel), cache.busybox()
    settings = [word for one in overrides for word in ("--set", one)]
    command = [sys.executable, "-P", "-m", "testbed", "script", "--out", str(directory), "--seed", str(seed), *settings]
    command += [str(script), *words]
    directory.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"PATH": guest.search_path()}
    python_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment |= {"PYTHONPATH": python_path, "MANET_GUEST": kernel.name, metadata.COMMIT: metadata.commit() or ""}
    if sys.stdin is not None and sys.stdin.isatty():
        job = guest.Job(command, Path.cwd(), environment, [directory])
        return guest.shell(unpacked, job, MACHINE, cache.folder, busybox)
    with tempfile.NamedTemporaryFile(prefix="manet-input.") as given:  # the guest sees this machine's files
        given.write(_standard_input())
        given.flush()
        job = guest.Job([*WITH_INPUT, given.name, *command], Path.cwd(), environment, [directory])
        return guest.run(unpacked, job, MACHINE, cache.folder, busybox)


def _standard_input() -> bytes:
    """All of standard input, if it is a file or a pipe."""
    if sys.stdin is None:
        return b""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        return b""
    if stat.S_ISFIFO(mode) and not select.select([sys.stdin], [], [], SILENT_S)[0]:
        _say("reading standard input to its end, for the guest's prompt")
    return sys.stdin.buffer.read()


def _say(text: str) -> None:
    print(f"manet script: {text}", file=sys.stderr, flush=True)
