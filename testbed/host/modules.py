"""Modules of this machine's kernel: whether one is available, and loading it.

A loaded module stays loaded, because another program may be using it by then.
"""

import os
import shutil
import subprocess
from pathlib import Path

from testbed.errors import UsageError

LOADED = Path("/sys/module")
DEADLINE_S = 60.0  # from a loaded disk, in an emulated machine


def is_loaded(name: str, loaded: Path = LOADED) -> bool:
    """Whether the module is loaded, or built in with parameters (/sys/module lists both)."""
    return (loaded / name.replace("-", "_")).exists()


def is_available(name: str) -> bool:
    """Whether the module is loaded, built in, or can be loaded (modinfo finds it)."""
    if is_loaded(name):
        return True
    program = _program("modinfo")
    return program is not None and subprocess.run([program, name], capture_output=True, check=False).returncode == 0


def load(name: str, for_what: str, *, options: tuple[str, ...] = (), path: str | None = None, loaded: Path = LOADED) -> None:
    """Load the module unless it is loaded. Raises UsageError, which begins with `for_what` and quotes modprobe."""
    if is_loaded(name, loaded):
        return
    program = _program("modprobe", path)
    if program is None:
        raise UsageError(f"{for_what}: modprobe: not found; apt-get install kmod, or load {name} by hand")
    try:
        command = [program, name, *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"{for_what}: modprobe {name}: no end within {DEADLINE_S:g} s; see dmesg") from None
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or ["failed without a message"])[-1].removeprefix("modprobe: ")
        raise UsageError(f"{for_what}: modprobe {name}: {words}; as root, on a kernel that has it: ./manet vm -- ...")


def _program(name: str, path: str | None = None) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin" if path is None else path)
