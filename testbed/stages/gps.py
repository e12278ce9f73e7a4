"""The GPS receivers of the stations (the key `gps` of a scenario): sentences of NMEA 0183 on a TCP port of their loopback.

The port is 10110, IANA's for NMEA 0183 over TCP, which gpsd reads (`gpsd tcp://127.0.0.1:10110`) as does any program that can
connect. A TCP port needs no device in the station's file system, has any number of readers, and none of them can make another one
wait: a pseudo-terminal has one owner who may change its settings, a pipe gives each sentence to one reader alone.

One thread of the run serves all stations. It asks the medium for the positions `rate` times a second; nothing is sent over the
air. A reader that does not read is disconnected. Nothing that a reader sends is looked at.
"""

import math
import selectors
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from mobility import nmea
from mobility.plane import Plane
from scenarios.gps import Gps
from testbed.errors import ManetError
from testbed.host import namespace
from testbed.stages.medium import Medium
from testbed.stages.station import StationNet

PORT = 10110  # IANA, service nmea-0183
MAX_READERS = 16  # of a station
Place = tuple[float, float, float]


class Receiver:
    """The receiver of one station: its listening socket and its readers."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener, self.readers = listener, list[socket.socket]()
        self._before: tuple[float, Place] | None = None  # a monotonic instant, and the place then

    def accept(self) -> socket.socket | None:
        """The next reader; None if it has gone, or there are too many."""
        with suppress(OSError):
            reader = self.listener.accept()[0]
            if len(self.readers) < MAX_READERS:
                reader.setblocking(False)
                self.readers.append(reader)
                return reader
            reader.close()
        return None

    def sentences(self, now_s: float, at: datetime, place: Place, plane: Plane) -> bytes:
        """GGA and RMC for a place (m) at the monotonic instant `now_s`; the speed is the mean since the last one."""
        then_s, before = self._before or (now_s, place)
        self._before = (now_s, place)
        east, north = place[0] - before[0], place[1] - before[1]
        speed_mps = math.hypot(east, north) / (now_s - then_s) if now_s > then_s else 0.0
        latitude, longitude = plane.degrees(place[0], place[1])
        course_deg = math.degrees(math.atan2(east, north)) if speed_mps else 0.0
        return (nmea.gga(at, latitude, longitude, place[2]) + nmea.rmc(at, latitude, longitude, speed_mps, course_deg)).encode()

    def send(self, text: bytes) -> list[socket.socket]:
        """Send the sentences to all readers; returns those that have gone or do not read, which are closed."""
        gone = []
        for reader in self.readers:
            try:
                whole = reader.send(text) == len(text)
            except OSError:
                whole = False
            if not whole:
                gone.append(reader)
        for reader in gone:
            self.readers.remove(reader)
        return gone

    def close(self) -> None:
        """Close all sockets."""
        for one in (*self.readers, self.listener):
            one.close()


@contextmanager
def gps_running(gps: Gps | None, net: StationNet, medium: Medium) -> Iterator[None]:
    """Serve the receivers of all stations until the block ends; without the key there is none. RunError for a port in use."""
    if gps is None:
        yield
        return
    receivers = {host.name: Receiver(namespace.within(host.netns, _listen)) for host in net.stations}
    over = threading.Event()
    thread = threading.Thread(target=_serve, args=(gps, receivers, medium, over), name="gps", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", PORT), backlog=MAX_READERS)
    listener.setblocking(False)
    return listener


def _serve(gps: Gps, receivers: Mapping[str, Receiver], medium: Medium, over: threading.Event) -> None:
    latitude, longitude = gps.origin
    plane, every_s = Plane(latitude, longitude, latitude), 1 / gps.rate
    next_s = time.monotonic()
    with selectors.DefaultSelector() as selector:
        for receiver in receivers.values():
            selector.register(receiver.listener, selectors.EVENT_READ, receiver)
        try:
            while not over.is_set():
                for key, _ in selector.select(min(0.1, max(0.0, next_s - time.monotonic()))):
                    _attend(selector, key)
                if time.monotonic() >= next_s:
                    next_s = max(next_s + every_s, time.monotonic())
                    _send(receivers, medium, plane, selector)
        except ManetError:  # the medium has gone: the run says so itself
            pass
        finally:
            for receiver in receivers.values():
                receiver.close()


def _attend(selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """Accept a reader, or notice that one has gone."""
    receiver: Receiver = key.data
    one = key.fileobj
    assert isinstance(one, socket.socket)
    if one is receiver.listener:
        if (reader := receiver.accept()) is not None:
            selector.register(reader, selectors.EVENT_READ, receiver)
        return
    try:
        is_open = bool(one.recv(4096))
    except BlockingIOError:
        is_open = True
    except OSError:
        is_open = False
    if not is_open:
        receiver.readers.remove(one)
        selector.unregister(one)
        one.close()


def _send(receivers: Mapping[str, Receiver], medium: Medium, plane: Plane, selector: selectors.BaseSelector) -> None:
    if not any(receiver.readers for receiver in receivers.values()):
        return
    positions = medium.ask("positions")["positions"]
    now_s, at = time.monotonic(), datetime.now(UTC)
    for name, receiver in receivers.items():
        x, y, z = positions[name]
        for gone in receiver.send(receiver.sentences(now_s, at, (x, y, z), plane)):
            selector.unregister(gone)
            gone.close()
