"""Ask one of our programs, before anything starts, whether it accepts a file."""

import subprocess
from pathlib import Path

from testbed.errors import UsageError


def refusal(program: Path, verb: str, path: Path) -> str | None:
    """The message with which `program verb path` refuses the file, without temporary names; None if it accepts the file."""
    try:
        done = subprocess.run([program, verb, path], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError(f"{program}: not built; run ./setup.sh") from None
    if done.returncode == 0:
        return None
    lines = (done.stderr or done.stdout).strip().splitlines() or ["refused without a word"]
    return lines[-1].removeprefix(f"{program.name}: ").replace(f"{path}: ", "").replace(f"{path.parent}/", "")
