"""The GPS receivers of stations: sentences to any number of readers, and a scenario that asks for them."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.gps import Gps
from testbed.errors import RunError
from testbed.stages import gps
from testbed.stages.gps import MAX_READERS, Receiver

DEADLINE_S = 20


class Moving:
    """A medium whose station moves 10 m to the east at each question; `ends` is the number of the question that fails."""

    def __init__(self, ends: int = 10**6) -> None:
        self.asked, self._ends = 0, ends

    def ask(self, _op: str) -> dict[str, Any]:
        self.asked += 1
        if self.asked >= self._ends:
            raise RunError("the medium has gone")
        return {"positions": {"sta1": [10.0 * self.asked, 0.0, 2.5]}}


@pytest.fixture
def receiver() -> Iterator[tuple[Moving, int]]:
    """The medium and the port of a receiver with ten fixes a second."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    medium, over = Moving(), threading.Event()
    given = (Gps(origin=(60.0, 10.0), rate=10.0), {"sta1": Receiver(listener)}, cast(Any, medium), over)
    thread = threading.Thread(target=gps._serve, args=given)
    port = listener.getsockname()[1]
    thread.start()
    yield medium, port
    over.set()
    thread.join()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)


def test_each_reader_gets_every_sentence(receiver: tuple[Moving, int]) -> None:
    _, port = receiver
    with connected(port) as one, connected(port) as other:
        for reader in (one, other):
            lines = [line.split(",") for _, line in zip(range(6), reader.makefile("r", newline="\r\n"), strict=False)]
            assert [line[0] for line in lines] == ["$GPGGA", "$GPRMC"] * 3
            east = [float(line[5]) for line in lines if line[0] == "$GPRMC"]
            # 10 m at 60 degrees north: 10 / (111194.93 x 0.5) degrees = 0.010792 minutes
            assert east[1] - east[0] == pytest.approx(0.010792, abs=2e-5)
            assert lines[-1][8] == "90.0" and lines[2][9] == "2.5"


def test_nobody_is_asked_while_nobody_reads(receiver: tuple[Moving, int]) -> None:
    medium, port = receiver
    assert medium.asked == 0
    with connected(port) as reader:
        assert reader.recv(100).startswith(b"$GPGGA")
    assert medium.asked >= 1


def test_what_a_reader_sends_is_not_looked_at_and_too_many_are_closed(receiver: tuple[Moving, int]) -> None:
    _, port = receiver
    readers = [connected(port) for _ in range(MAX_READERS)]
    for reader in readers:
        reader.sendall(b"?WATCH={}\r\n\x1b[0m" * 1000)
        assert reader.recv(6) == b"$GPGGA"
    with connected(port) as further:
        assert further.recv(1) == b""
    for reader in readers:
        reader.close()


def test_a_medium_that_goes_ends_the_receivers() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    given = (Gps(rate=10.0), {"sta1": Receiver(listener)}, cast(Any, Moving(ends=2)), threading.Event())
    thread = threading.Thread(target=gps._serve, args=given)
    thread.start()
    with connected(listener.getsockname()[1]) as reader:
        while reader.recv(4096):
            pass
    thread.join(DEADLINE_S)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("gps = { origin = [86, 0] }", 'key "gps.origin'),
        ("gps = { origin = [1] }", 'key "gps.origin'),
        ("gps = { rate = 0 }", 'key "gps.rate"'),
        ("gps = { rate = 11 }", 'key "gps.rate"'),
        ("gps = { port = 1 }", 'key "gps.port"'),
        ('topology = "unplaced"\nnodes = 2\ngps = {}\npropagation = { model = "matrix", matrix = [] }', 'key "gps": tells'),
    ],
)
def test_a_wrong_key_is_one_line(tmp_path: Path, keys: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(("" if "topology" in keys else "hops = 1\n") + keys + "\n")
    with pytest.raises(UsageError) as refused:
        load_scenario(tmp_path / "x.toml")
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_the_defaults_are_at_the_equator_once_a_second(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("hops = 1\ngps = {}\n")
    scenario = load_scenario(tmp_path / "x.toml")
    assert json.loads(scenario.to_json())["gps"] == {"origin": [0.0, 0.0], "rate": 1.0}
