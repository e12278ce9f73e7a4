"""Network settings of many namespaces at once, each by one batch of ip(8).

The batches are kept in `log/`, so that the changes to a station's tables can be read and repeated by hand. A batch that has
nothing but a few of the usual settings, routes and neighbours (`DIRECT`) needs no process: this one makes the requests of ip(8)
itself.
"""

import re
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from testbed.errors import RunError
from testbed.host import namespace, rtnetlink
from testbed.stages.station import NamespaceHost

DIRECT: dict[re.Pattern[str], Callable[..., None]] = {
    re.compile(r"link set (\S+) up"): rtnetlink.set_up,
    re.compile(r"link set (\S+) mtu (\d+)"): rtnetlink.set_mtu,
    re.compile(r"link set (\S+) gso_max_segs (\d+)"): rtnetlink.set_gso_max_segs,
    re.compile(r"address add ([0-9.]+)/(\d+) dev (\S+) noprefixroute"): rtnetlink.add_address,
    re.compile(r"address add ([0-9a-f:]+)/(\d+) dev (\S+) noprefixroute nodad"): rtnetlink.add_address,
    re.compile(
        r"route replace (broadcast|multicast) ([0-9.]+)/(\d+) dev (\S+) table local scope link"
    ): rtnetlink.replace_group_route,
    re.compile(r"route add ([0-9.]+)/(\d+) dev (\S+) scope link(?: quickack (\d))?"): rtnetlink.add_link_route,
    re.compile(r"route add ([0-9.]+)/(\d+) via ([0-9.]+) dev (\S+) onlink(?: quickack (\d))?"): rtnetlink.add_route,
    re.compile(r"neighbour replace ([0-9a-f.:]+) lladdr (\S+) dev (\S+) nud permanent"): rtnetlink.replace_neighbour,
    re.compile(r"route replace (unreachable) ([0-9.]+)/(\d+) table local"): rtnetlink.refuse_group,
}
MANY = 100  # from so many lines on, a process of ip(8) takes less time than requests from here
END_INDEX, END_NAME = 2**31 - 1, "end-of-table"
_LINK = re.compile(r"^(?:Deleted )?\d+: .*\n(?: .*\n)*", re.MULTILINE)
_END_OF_TABLE = re.compile(rf"^{END_INDEX}: {END_NAME}: .*\n(?: .*\n)*", re.MULTILINE)


def batches(commands: dict[NamespaceHost, list[str]], what: str, log_folder: Path) -> None:
    """Run each station's lines (without the leading `ip`) in its namespace, all stations in parallel. RunError if one fails."""
    running = []
    problems = []
    for station, lines in commands.items():
        if not lines:
            continue
        batch = log_folder / f"{what}-{station.name}.ip"
        batch.write_text("".join(f"{line}\n" for line in lines))
        direct = lines if len(lines) < MANY else []
        requests = [request for line in direct if (request := _request_of(line)) is not None]
        if len(requests) < len(lines):
            running.append((station, batch, namespace.within(station.netns, partial(_start, batch))))
            continue
        try:
            namespace.within(station.netns, partial(_make_all, requests))
        except OSError as problem:
            problems.append(_failure(what, station, batch, str(problem.strerror)))
    for station, batch, process in running:
        _, errors = process.communicate()
        if process.returncode != 0:
            first = errors.decode(errors="replace").strip().splitlines()[:1]
            problems.append(_failure(what, station, batch, first[0] if first else "failed"))
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


def tables(stations: Sequence[NamespaceHost]) -> list[tuple[str, str]]:
    """For each station the output of `ip route show table all` and of `ip neighbour show`, printed by one process for all."""
    messages = b"".join(namespace.within_each([(station.netns, _table_messages) for station in stations]))
    argv = ["ip", "-color=never", "monitor", "file", "/proc/self/fd/0"]
    process = subprocess.run(argv, input=messages, capture_output=True, check=False)
    *texts, rest = _END_OF_TABLE.split(process.stdout.decode())
    if rest or len(texts) != 2 * len(stations):
        errors = process.stderr.decode(errors="replace").strip().splitlines()[:1]
        raise RunError(f"{' '.join(argv)}: {errors[0] if errors else 'output cut short'}; install iproute2 5.0 or newer")
    shown = [_LINK.sub("", text) for text in texts]
    return list(zip(shown[::2], shown[1::2], strict=True))


def _table_messages() -> bytes:
    """The caller's routes and neighbours. The names of its devices, by which ip(8) prints their indices, stand before and are
    deleted afterwards: an index keeps its first name. The line of a device without use ends each table; no route or neighbour
    begins so."""
    end = rtnetlink.link(END_INDEX, END_NAME)
    devices = socket.if_nameindex()
    names = b"".join(rtnetlink.link(*device) for device in devices)
    gone = b"".join(rtnetlink.link(*device, deleted=True) for device in devices)
    return names + rtnetlink.routes() + end + rtnetlink.neighbours() + gone + end


def ask_within(netns: Path, *argv: str) -> str:
    """The standard output of a program in a network namespace; its exit status is ignored."""
    process = namespace.within(netns, lambda: subprocess.run(argv, capture_output=True, text=True, check=False))
    return process.stdout


def _request_of(line: str) -> Callable[[], None] | None:
    """The request of a line, if it is one of `DIRECT`."""
    for pattern, request in DIRECT.items():
        if match := pattern.fullmatch(line):
            return partial(request, *match.groups())
    return None


def _make_all(requests: Sequence[Callable[[], None]]) -> None:
    for request in requests:
        request()


def _failure(what: str, station: NamespaceHost, batch: Path, words: str) -> str:
    return f"{what} of {station.name}: ip -batch {batch}: {words}; see the file's lines"


def _start(batch: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["ip", "-batch", str(batch)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
