"""Network settings of many namespaces at once, each by one batch of ip(8).

The batches are kept in `log/`, so that the changes to a station's tables can be read and repeated by hand.
"""

import re
import subprocess
from pathlib import Path

from testbed.errors import RunError
from testbed.host import namespace
from testbed.stages.station import NamespaceHost

_LOOPBACK = re.compile(r"^1: lo: .*\n(?: .*\n)*", re.MULTILINE)


def batches(commands: dict[NamespaceHost, list[str]], what: str, log_folder: Path) -> None:
    """Run each station's lines (without the leading `ip`) in its namespace, all stations in parallel. RunError if one fails."""
    running = []
    for station, lines in commands.items():
        if lines:
            batch = log_folder / f"{what}-{station.name}.ip"
            batch.write_text("".join(f"{line}\n" for line in lines))
            running.append((station, batch, namespace.within(station.netns, lambda batch=batch: _start(batch))))
    problems = []
    for station, batch, process in running:
        _, errors = process.communicate()
        if process.returncode != 0:
            first = errors.decode(errors="replace").strip().splitlines()[:1]
            problems.append(
                f"{what} of {station.name}: ip -batch {batch}: {first[0] if first else 'failed'}; see the file's lines"
            )
    if problems:
        raise RunError(problems[0])


def try_batch(station: NamespaceHost, lines: list[str]) -> None:
    """Run the lines and ignore failures: their objects may have changed meanwhile."""
    if not lines:
        return
    argv, text = ["ip", "-force", "-batch", "-"], "".join(f"{line}\n" for line in lines)
    namespace.within(station.netns, lambda: subprocess.run(argv, input=text, capture_output=True, text=True, check=False))


def ask(station: NamespaceHost, *words: str) -> str:
    """The output of `ip <words>` in a station."""
    return ask_within(station.netns, "ip", "-color=never", *words)


def ask_several(station: NamespaceHost, *commands: str) -> list[str]:
    """The output of each `ip <command>` in a station, of one process for all."""
    # a line of its own between two outputs; every namespace has this device, and no route or neighbour begins so
    separator = "link show lo"
    argv, text = ["ip", "-color=never", "-force", "-batch", "-"], f"\n{separator}\n".join(commands) + "\n"
    process = namespace.within(
        station.netns, lambda: subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    )
    return _LOOPBACK.split(process.stdout)


def ask_within(netns: Path, *argv: str) -> str:
    """The standard output of a program in a network namespace; its exit status is ignored."""
    process = namespace.within(netns, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
    return process.stdout


def _start(batch: Path) -> subprocess.Popen:
    return subprocess.Popen(
        ["ip", "-batch", str(batch)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
