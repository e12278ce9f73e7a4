"""Which access point each station belongs to, decided while the network is up, as Mininet-WiFi's association control does.

A station without an access point joins the first one in range; one whose access point is out of range leaves it. With `ssf`
(strongest signal first) it changes to an access point that it receives more than 0.1 dB stronger, with `llf` (least loaded
first) to one with at least three stations fewer than its own. In range: each of the two decodes the other's frames, by the
medium's present powers. The decision is the testbed's; authentication, association and handshake are frames of the stations'
kernels, requested by iw(8) for open networks and by wpa_supplicant(8) for WPA2, and take the time that the medium gives them.
"""

import fcntl
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import RunError
from testbed.host import namespace
from testbed.host.processes import SLOWER, Child
from testbed.stages.access_points import AccessPoint, frequency_mhz
from testbed.stages.control import MediumControl
from testbed.stages.routing import Network
from testbed.stages.site import SOCKETS
from testbed.stages.station import FurtherRadio, Station

EVERY_S = 0.2
STRONGER_DB = 0.1  # Mininet-WiFi's ssf
FEWER = 2  # Mininet-WiFi's llf: load + 2 < own load
RETRY_AFTER_S = 5.0  # after the start of an association that has not succeeded; mac80211 gives up within 2 s
ASSOCIATED_WITHIN_S = 20.0 * SLOWER
STARTED_WITHIN_S = 60.0 * SLOWER
SIOCGIFFLAGS, IFF_RUNNING = 0x8913, 0x40  # <linux/sockios.h>, <linux/if.h>
REMEDY = "its station lost its access point; see its log, and run it again"
CSV_HEADER = "time_s,station,event,access_point"


@dataclass(frozen=True)
class Signal:
    """An access point as a station receives it now, dBm; `in_range`: in both directions."""

    name: str
    power_dbm: float
    in_range: bool


def choose(current: str | None, signals: Sequence[Signal], method: str | None, loads: Mapping[str, int]) -> str | None:
    """The access point that a station should belong to. `signals` are in the order of the access points' declaration, `loads` the
    numbers of their stations. `method`: `ssf`, `llf` or None."""
    near = [signal for signal in signals if signal.in_range]
    own = next((signal for signal in near if signal.name == current), None)
    if not near:
        return None
    if method == "ssf":
        best = max(near, key=lambda signal: signal.power_dbm)
        return best.name if own is None or best.power_dbm > own.power_dbm + STRONGER_DB else own.name
    if own is None:
        return near[0].name
    if method == "llf":
        least = min(near, key=lambda signal: loads.get(signal.name, 0))
        return least.name if loads.get(least.name, 0) + FEWER < loads.get(own.name, 0) else own.name
    return own.name


class ByIw:
    """Open networks: mac80211 scans the channel, authenticates and associates (IEEE Std 802.11-2012 clause 10.3)."""

    def __init__(self, station: Station | FurtherRadio) -> None:
        self.station = station

    def join(self, point: AccessPoint) -> None:
        """Begin to associate with the access point."""
        self._iw("connect", point.ssid, str(frequency_mhz(point.channel)), point.bssid)

    def leave(self) -> None:
        """Deauthenticate, if associated."""
        self._iw("disconnect")

    def _iw(self, *words: str) -> None:
        argv = ["iw", "dev", self.station.radio.name, *words]
        namespace.within(self.station.netns, lambda: subprocess.run(argv, capture_output=True, check=False))


class BySupplicant:
    """WPA2: one wpa_supplicant, with a network for each access point; none is enabled before `join`. `bgscan`: its own roaming
    (wpa_supplicant.conf(5)), with a network for each SSID, enabled at once."""

    def __init__(
        self,
        network: Network,
        station: Station | FurtherRadio,
        points: Sequence[AccessPoint],
        passphrase: str | None,
        bgscan: str | None = None,
    ) -> None:
        self.station, self.points = station, [point.name for point in points]
        self.names = {point.bssid: point.name for point in points}
        folder = SOCKETS / "wpa_supplicant" / station.name
        folder.mkdir(parents=True, exist_ok=True)
        self.control = folder / station.radio.name
        config = network.site.folder("access-points") / f"{station.name}.conf"
        config.write_text(supplicant_config(points, passphrase, folder, bgscan))
        argv: list[str | Path] = ["wpa_supplicant", "-D", "nl80211", "-i", station.radio.name, "-c", config]
        self.child: Child = network.children.start(f"wpa-{station.name}", argv, netns=station.netns, remedy=REMEDY)

    def join(self, point: AccessPoint) -> None:
        """Begin to associate with the access point, which ends the present association."""
        self._ask(f"SELECT_NETWORK {self.points.index(point.name)}")

    def leave(self) -> None:
        """Deauthenticate, if associated."""
        self._ask("DISCONNECT")

    def present(self) -> str | None:
        """The access point to which the station has a link now."""
        status = dict(line.partition("=")[::2] for line in self._ask("STATUS").splitlines())
        return self.names.get(status.get("bssid", "")) if status.get("wpa_state") == "COMPLETED" else None

    def wait(self, deadline: float) -> None:
        """Wait until its control socket exists. Raises RunError after the monotonic instant `deadline`."""
        while not self.control.exists():
            if not self.child.running():
                raise self.child.failure()
            if time.monotonic() > deadline:
                raise RunError(f"{self.child.name}: not ready within {STARTED_WITHIN_S:g} s (see {self.child.log}); {REMEDY}")
            time.sleep(0.02)

    def _ask(self, request: str) -> str:
        """The answer of its control interface; empty if its process has ended, which the run reports."""
        own = self.control.with_name(f"manet-{threading.get_ident()}")
        own.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.settimeout(10.0)
            try:
                end.bind(str(own))
                end.sendto(request.encode(), str(self.control))
                return end.recv(4096).decode(errors="replace")
            except OSError:
                return ""
            finally:
                own.unlink(missing_ok=True)


def supplicant_config(points: Sequence[AccessPoint], passphrase: str | None, folder: Path, bgscan: str | None = None) -> str:
    """The configuration of wpa_supplicant. `passphrase`: the station's own; None: that of each access point. `bgscan`: it roams
    by itself among the access points of an SSID."""
    lines = [f"ctrl_interface={folder}", "ap_scan=1"]
    for point in points if bgscan is None else {point.ssid: point for point in points}.values():
        secret = passphrase or point.passphrase
        security = (
            ["key_mgmt=NONE"]
            if point.passphrase is None
            else ["proto=RSN", "key_mgmt=WPA-PSK", "pairwise=CCMP", f'psk="{secret}"']
        )
        place = [f"bssid={point.bssid}", "disabled=1"] if bgscan is None else [f'bgscan="{bgscan}"']
        channels = {point.channel} if bgscan is None else {other.channel for other in points if other.ssid == point.ssid}
        frequencies = " ".join(str(frequency_mhz(channel)) for channel in sorted(channels))
        fields = [f'ssid="{point.ssid}"', f"scan_freq={frequencies}", *place, *security]
        lines += ["network={", *(f"\t{line}" for line in fields), "}"]
    return "\n".join(lines) + "\n"


@dataclass
class Member:
    """A station and its present access point; `asked_at`: the monotonic instant of the last request, `up` whether it has a link.
    `fixed`: it may have no other access point. `roams`: its wpa_supplicant decides."""

    station: Station | FurtherRadio
    by: ByIw | BySupplicant
    wanted: str | None = None
    asked_at: float = 0.0
    up: bool = False
    fixed: bool = False
    roams: bool = False
    scanned: frozenset[int] = frozenset()  # the channels whose access points it may have; empty: all
    near: bool = False  # whether any access point is in range


@dataclass
class Association:
    """The association control of a network: `step` decides once for all stations."""

    points: Sequence[AccessPoint]
    members: Sequence[Member]
    control: MediumControl
    log: Path
    method: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.log.write_text(f"{CSV_HEADER}\n")

    def step(self) -> None:
        """Compare each station with what its association control wants, and act."""
        signals = self.signals()
        for member in self.members:
            name = member.station.name
            member.near = any(signal.in_range for signal in signals[name])
            if member.roams:
                self._note_roaming(member)
                continue
            self._note_link(member)
            loads: dict[str, int] = {}
            for other in self.members:
                if other.wanted is not None:
                    loads[other.wanted] = loads.get(other.wanted, 0) + 1
            heard = signals[name]
            if member.fixed:
                wanted = next((s.name for s in heard if s.name == member.wanted), member.wanted)
            else:
                wanted = choose(member.wanted, heard, self.method, loads)
            if wanted != member.wanted:
                if wanted is None:
                    member.by.leave()
                    self._row(member, "leave", member.wanted)
                    member.wanted, member.up = None, False
                else:
                    self.join(member, wanted)
            elif wanted is not None and not member.up and time.monotonic() > member.asked_at + RETRY_AFTER_S:
                self.join(member, wanted)

    def join(self, member: Member, name: str) -> None:
        """Begin to associate a station with the access point of this name."""
        if member.wanted is not None and isinstance(member.by, ByIw):
            member.by.leave()
        member.by.join(next(point for point in self.points if point.name == name))
        self._row(member, "join", name)
        member.wanted, member.asked_at, member.up = name, time.monotonic(), False

    def _note_link(self, member: Member) -> None:
        up = member.wanted is not None and has_link(member.station)
        if up != member.up:
            self._row(member, "associated" if up else "lost", member.wanted)
            member.up = up

    def _note_roaming(self, member: Member) -> None:
        assert isinstance(member.by, BySupplicant)
        present = member.by.present()
        if present != member.wanted:
            self._row(member, "lost" if present is None else "associated", present or member.wanted)
        member.wanted, member.up = present, present is not None

    def signals(self) -> dict[str, list[Signal]]:
        """By station, all access points in the order of their declaration."""
        links = {(link["from"], link["to"]): link for link in self.control.ask("links")["links"]}
        signals: dict[str, list[Signal]] = {}
        for member in self.members:
            name = member.station.name
            signals[name] = [
                Signal(
                    point.name,
                    -1e9 if links[point.name, name]["power_dbm"] is None else links[point.name, name]["power_dbm"],
                    links[point.name, name]["range"] and links[name, point.name]["range"],
                )
                for point in self.points
                if not member.scanned or point.channel in member.scanned
            ]
        return signals

    def _row(self, member: Member, event: str, point: str | None) -> None:
        at_s = self.control.ask("status")["model_ns"] / 1e9
        with self.log.open("a") as file:
            file.write(f"{at_s:.3f},{member.station.name},{event},{point}\n")

    def settle(self) -> list[Member]:
        """Step until every station with an access point in range has a link; returns those that have none by then."""
        deadline = time.monotonic() + ASSOCIATED_WITHIN_S
        while True:
            self.step()
            waiting = [m for m in self.members if not m.up and (m.near if m.roams else m.wanted is not None)]
            if not waiting or time.monotonic() > deadline:
                return waiting
            time.sleep(EVERY_S)

    def follow(self) -> None:
        """Step from a thread until `stop`."""
        self._thread = threading.Thread(target=self._follow, name="association", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.step()
            except RunError:  # the medium or a station has ended, which the run itself reports
                return

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()


def has_link(station: Station | FurtherRadio) -> bool:
    """Whether the radio is associated and, with WPA2, authorized: IFF_RUNNING of netdevice(7)."""

    def running() -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            answer = fcntl.ioctl(end, SIOCGIFFLAGS, struct.pack("16sh22x", station.radio.name.encode(), 0))
        return bool(struct.unpack_from("H", answer, 16)[0] & IFF_RUNNING)

    try:
        return namespace.within(station.netns, running)
    except OSError:
        return False


@contextmanager
def association_control(
    network: Network,
    points: Sequence[AccessPoint],
    stations: Sequence[Station | FurtherRadio],
    *,
    method: str | None = None,
    first: Mapping[str, str] | None = None,
    automatic: bool = True,
    passphrases: Mapping[str, str] | None = None,
    roaming: Mapping[str, str] | None = None,
    scanned: Mapping[str, frozenset[int]] | None = None,
) -> Iterator[Association]:
    """Associate the stations and keep deciding until the block ends. `first`: by station, the access point that it begins with;
    `automatic` False: it keeps that one, and a station without one has none. `passphrases`: stations' own.
    `roaming`: by station, `bgscan` of its wpa_supplicant, which decides then. `scanned`: by station, the channels that it scans.
    RunError."""
    first, passphrases, roaming, scanned = first or {}, passphrases or {}, roaming or {}, scanned or {}
    encrypted = any(point.passphrase is not None for point in points)
    with ExitStack() as stages:
        control = MediumControl(network.site.control_socket)
        stages.callback(control.close)
        members = []
        for station in stations:
            bgscan = roaming.get(station.name)
            if not automatic and station.name not in first and bgscan is None:
                continue
            by: ByIw | BySupplicant = ByIw(station)
            if encrypted or bgscan is not None:
                by = BySupplicant(network, station, points, passphrases.get(station.name), bgscan)
                stages.callback(network.children.stop, [by.child])
            channels = scanned.get(station.name, frozenset())
            members.append(Member(station, by, fixed=not automatic, roams=bgscan is not None, scanned=channels))
        deadline = time.monotonic() + STARTED_WITHIN_S
        for member in members:
            if isinstance(member.by, BySupplicant):
                member.by.wait(deadline)
        association = Association(points, members, control, network.site.directory / "associations.csv", method)
        stages.callback(association.stop)
        for member in members:
            if member.station.name in first and not member.roams:
                association.join(member, first[member.station.name])
        yield association
