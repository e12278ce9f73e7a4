"""Replay of a recorded run's medium: its log of inputs through `manet-medium replay`, in virtual time.

The new air log must equal the recorded one byte for byte: the medium's result does not depend on when the host let it run.
"""

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from record.closed_log import closing_reason
from record.files import plain_file, read_object
from scenarios import profiles
from testbed.errors import RunError, UsageError
from testbed.programs import BUILT, Programs
from testbed.stages.medium import INPUT_LOG

AIR_LOG = "air.csv"


@dataclass(frozen=True)
class Replayed:
    """The comparison of two air logs. `lines` that are equal; `line`: number (from 1) of the first that differs, None if
    none does; `recorded` and `replayed`: that line in each log, None if the log has ended before it."""

    lines: int
    line: int | None = None
    recorded: str | None = None
    replayed: str | None = None


def replay(directory: Path, programs: Programs = BUILT, *, nav: Path | None = None) -> Replayed:
    """Replay the run in `directory`, which is not changed, and compare. `nav`: a file for each change of a station's NAV
    (formats/air.md). Raises UsageError or RunError."""
    inputs, air = directory / INPUT_LOG, directory / AIR_LOG
    if not inputs.exists():
        raise UsageError(
            f"{directory}: has no log of inputs ({INPUT_LOG}); make a run that records one: `manet run`, with input_log = true"
        )
    if not air.exists():
        raise UsageError(f"{air}: missing; the medium never started, so there is nothing to compare with")
    for log in (air, inputs):
        if (why := closing_reason(log)) is not None:
            raise UsageError(f"{log}: is incomplete, it was closed before the run ended: {why}")
    for name in ("medium.json", INPUT_LOG, AIR_LOG, "trace.csv", "links.csv", "radio.toml"):
        if (path := directory / name).exists():
            with plain_file(path):  # the medium itself would follow a link, and wait for a pipe
                pass
    if not programs.medium.exists():
        raise UsageError(f"{programs.medium}: the medium is not built; run ./setup.sh")
    with tempfile.TemporaryDirectory(prefix="manet-replay-") as folder:
        again = Path(folder) / AIR_LOG
        argv: list[str | Path] = [programs.medium, "replay", _config(directory, Path(folder)), inputs, again]
        argv += ["--nav", nav] if nav else []
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            words = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
            raise RunError(words.removeprefix("manet-medium: "))
        return compare(air, again)


def _config(directory: Path, folder: Path) -> Path:
    """The run's medium.json; if its profile is elsewhere here (scenarios.profiles.of_run), a copy in `folder` that names it,
    beside the files of the run that medium.json names."""
    recorded = directory / "medium.json"
    config = read_object(recorded)
    named = str(config.get("radio", ""))
    found = profiles.of_run(directory, named)
    if found == directory / named:
        return recorded
    for name in ("trace.csv", "links.csv"):
        if (directory / name).exists():
            shutil.copy(directory / name, folder)
    moved = folder / recorded.name
    moved.write_text(json.dumps(config | {"radio": str(found)}))
    return moved


def compare(recorded: Path, replayed: Path) -> Replayed:
    """Compare two logs line by line; a last line that is cut off differs from the complete one."""
    count = 0
    with recorded.open("rb") as was, replayed.open("rb") as now:
        for number, (one, other) in enumerate(zip_longest(was, now), start=1):
            if one != other:
                return Replayed(count, number, _text(one), _text(other))
            count = number
    return Replayed(count)


def _text(line: bytes | None) -> str | None:
    return None if line is None else line.decode(errors="replace").rstrip("\n")
