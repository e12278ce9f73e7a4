"""Files of a run under way, as views and metrics follow them: they are read on from where the last reading ended."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from record.files import plain_file

MAX_CHUNK_BYTES = 1 << 20  # read at once; of a file that grows faster only the last rows count
FIRST_BYTES = 1 << 16  # of a file that is long already, the part in which sockets are looked for
SEQUENCES = 1 << 32  # RFC 9293, 3.4: sequence numbers wrap
COLUMNS = ("station", "cookie", "sport", "daddr", "dport", "t_ns", "snd_cwnd", "srtt_us", "rto_us", "snd_una")


class TcpTail:
    """The newest sample of each sending socket in tcp.csv (formats/tcp.md); a file that does not exist yet has none.

    `acked_bytes`: by station and destination port, what has been acknowledged since this object first saw each connection. Not
    for several threads.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self._places: list[int] = []  # of COLUMNS in a row
        self._found: dict[str, dict[str, Any]] = {}
        self._acked: dict[bytes, int] = {}  # by cookie, the last sequence number
        self.acked_bytes: Counter[tuple[str, int]] = Counter()

    def latest(self) -> dict[str, dict[str, Any]]:
        """By `station:port>port`: cwnd (segments), RTT and RTO (ms), bytes acknowledged (a sequence number)."""
        with suppress(OSError):  # not there yet
            self._read()
        return self._found

    def _begin(self) -> None:
        """Read the head, once it is there, and go to the end of the file."""
        with plain_file(self._path) as file:
            head = file.readline().decode().strip().split(",")
        if all(name in head for name in COLUMNS):
            self._places = [head.index(name) for name in COLUMNS]
            self._offset = max(0, self._path.stat().st_size - FIRST_BYTES)

    def _read(self) -> None:
        if not self._places:
            self._begin()
        begin = max(self._offset, self._path.stat().st_size - MAX_CHUNK_BYTES)
        with plain_file(self._path) as file:
            file.seek(begin)
            text = file.read(MAX_CHUNK_BYTES)
        whole, newline, _ = text.rpartition(b"\n")
        self._offset = begin + len(whole) + len(newline)
        if self._places:
            self._take(whole.split(b"\n"))

    def _take(self, lines: list[bytes]) -> None:
        cookie, window, una, width = self._places[1], self._places[6], self._places[-1], max(self._places)
        first: dict[bytes, bytes] = {}
        last: dict[bytes, list[bytes]] = {}
        for line in lines:
            fields = line.split(b",")
            if len(fields) > width and fields[window].isdigit():  # not the head, a torn line, or an event without a socket
                first.setdefault(fields[cookie], fields[una] or b"0")  # samples without eBPF have none
                last[fields[cookie]] = fields
        for socket, fields in last.items():
            try:
                self._note(socket, int(first[socket]), [fields[place].decode() for place in self._places])
            except ValueError:  # the torn first line of a part
                continue

    def _note(self, cookie: bytes, first_una: int, words: list[str]) -> None:
        station, _, sport, daddr, dport, t_ns, cwnd, rtt_us, rto_us, una = words
        acked = int(una or 0)
        self._found[f"{station}:{sport}>{dport}"] = {
            "station": station, "sport": int(sport), "dport": int(dport), "daddr": daddr, "t_ns": str(int(t_ns)),
            "cwnd": int(cwnd), "rtt_ms": int(rtt_us or 0) / 1e3, "rto_ms": int(rto_us or 0) / 1e3, "acked": acked,
        }  # fmt: skip
        self.acked_bytes[station, int(dport)] += (acked - self._acked.get(cookie, first_una)) % SEQUENCES
        self._acked[cookie] = acked


class Lines:
    """The number of rows of a file that grows; 0 without it."""

    def __init__(self, path: Path) -> None:
        self._path, self._size, self._lines = path, 0, 0

    def count(self) -> int:
        """The rows until now, without the head."""
        with suppress(OSError):
            if self._path.stat().st_size != self._size:
                with plain_file(self._path) as file:
                    file.seek(self._size)
                    text = file.read()
                self._size, self._lines = self._size + len(text), self._lines + text.count(b"\n")
        return max(0, self._lines - 1)
