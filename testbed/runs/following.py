"""A capture of a run under way as one stream, for programs that read one from a pipe (`wireshark -k -i -`, `tshark -r -`)."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from record.found_runs import find_run
from testbed.errors import UsageError
from testbed.runs.under_way import under_way

AIR = "air"
LOOK_S = 0.05  # the capturing program writes fifty times a second
BYTES_AT_ONCE = 1 << 18


def capture_of(directory: Path | None, node: str) -> tuple[Path, Callable[[], bool]]:
    """The capture of a station or host, or with AIR that of the air, and whether it may still grow: of the run in `directory`, or
    of the only one under way. Raises UsageError."""
    if directory is not None and under_way(directory) is None:
        directory = find_run(directory)
    state = under_way(directory)
    folder = Path(state.directory) if state is not None else directory
    assert folder is not None
    path = folder / "air.pcapng" if node == AIR else folder / "captures" / f"{node}.pcap"
    if not path.is_file():
        names = sorted(file.stem for file in (folder / "captures").glob("*.pcap") if "." not in file.stem)
        raise UsageError(f'{path}: no capture of "{node}"; there are {", ".join([*names, AIR])}')
    return path, lambda: state is not None and under_way(folder) is not None


def follow(path: Path, grows: Callable[[], bool], output: IO[bytes]) -> None:
    """Copy a file to `output` while it grows, and to its end."""
    with path.open("rb") as file:
        while True:
            last = not grows()  # asked before the read: what is written until then is copied
            while data := file.read(BYTES_AT_ONCE):
                output.write(data)
                output.flush()
            if last:
                return
            time.sleep(LOOK_S)
