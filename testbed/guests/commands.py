"""Commands of this program in a guest: those of `manet vm`, and those that move there for mac80211's radios, which the machine's
kernel lacks (docs/hwsim.md)."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import UsageError
from testbed.guests import guest, kernels
from testbed.programs import python_path
from testbed.runs import metadata

KERNEL = "6.12"
MACHINE = guest.Machine(cpus=1)  # its clock counts instructions where it is emulated (testbed/guests)
INSIDE = "MANET_GUEST"
PASSED_ON = ("TERM", "LANG", "LC_ALL", "HOME", "CI", "COLUMNS", "MANET_MININET_WIFI")


def argv(words: Sequence[str]) -> list[str]:
    """The command line of `manet WORDS`, without the launcher: this side has checked that everything is built."""
    return [sys.executable, "-P", "-m", "testbed", *words]


def environment(kernel: kernels.Unpacked) -> dict[str, str]:
    """The environment of a command in a guest."""
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    own = {
        "PATH": guest.search_path(),
        "PYTHONPATH": python_path(),
        INSIDE: kernel.name,
        metadata.COMMIT: metadata.commit() or "",
    }
    return passed_on | own


def may_move() -> bool:
    """Whether a command can move into a guest: a guest boots no guests."""
    return INSIDE not in os.environ


def moved(verb: str, directory: Path, words: Sequence[str], *, what: str, why: str) -> int:
    """Execute `manet VERB --out DIRECTORY WORDS` in a guest; its exit status. Results are kept in `directory`; the terminal or
    standard input are the command's. `what` happens there, for the reason `why`. UsageError for what this machine lacks."""

    def say(text: str) -> None:
        print(f"manet {verb}: {text}", file=sys.stderr, flush=True)

    try:
        guest.require(MACHINE)
    except UsageError as problem:
        raise UsageError(f"{why}; a guest has it, but: {problem}") from None
    kernel = kernels.find(KERNEL)
    say(f"{why}: {what} in a guest of Linux {KERNEL} (docs/hwsim.md)")
    cache = kernels.Cache(say=say)
    unpacked, busybox = cache.get(kernel), cache.busybox()
    directory.mkdir(parents=True, exist_ok=True)
    job = guest.Job(argv([verb, "--out", str(directory), *words]), Path.cwd(), environment(unpacked), [directory])
    return guest.run(unpacked, job, MACHINE, cache.folder, busybox)
