"""The access points of a script: addAccessPoint, their cables and hosts, and the association of stations.

hostapd makes them (testbed/stages/access_points.py); the association control is as Mininet-WiFi's (stages/association.py).
Both need radios of mac80211_hwsim: net.py moves the script into a guest where the machine's kernel has none.
"""

from typing import Any

from mininet.log import output

from testbed.errors import UsageError
from testbed.host.requirements import require_access_points
from testbed.mn_wifi import link as links
from testbed.mn_wifi.access_point import AccessPoint
from testbed.mn_wifi.arguments import Arguments, choice, note, number
from testbed.mn_wifi.node import Bss, Host, Node, NotHere, ScriptNetwork, Station, WirelessInterface, WireLink
from testbed.mn_wifi.radio import OF_ACCESS_POINTS
from testbed.mn_wifi.session import Standing
from testbed.stages import access_points as stage
from testbed.stages import four_address
from testbed.stages.association import ASSOCIATED_WITHIN_S, Association, association_control
from testbed.stages.four_address import FourAddressLink
from testbed.stages.joining import KINDS, join
from topologies.addresses import PREFIX_BITS, ip_address

METHODS = {"ssf": None, "llf": None}
HARDWARE = {"DI524": None, "TLWR740N": None, "WRT120N": None}  # all have 54 Mbit/s in mode g, 11 in b, and nothing else
ENCRYPTIONS: dict[object, object] = {None: False, "": False, "wpa2": True}
NO_CHANNELS = "several channels are those from 1 to 11 of mode g or b here; give all radios one channel, or choose among those"
CABLE = "a cable of an access point is a veth pair, without rate or delay; leave it out"
NO_OPENFLOW = "access points are learning bridges here, without OpenFlow; it has no effect"
ONE_NETWORK = "a radio has one network; add another radio (wlans), or another access point"
NO_RSSI_DBM = -60.0  # of a radio before it has an access point (mn_wifi/link.py, 2.7)
MIN_PASSPHRASE, MAX_PASSPHRASE, MAX_SSID_BYTES = 8, 63, 32  # IEEE Std 802.11-2012, annex M.4.1; clause 8.4.2.2

ACCESS_POINT = Arguments(
    "addAccessPoint",
    frozenset({"ssid", "mode", "channel", "position", "passwd", "encrypt", "client_isolation", "model", "wlans", "ip"})
    | {"range", "txpower", "antennaGain", "antennaHeight"},
    noted={
        "mac": "an access point's MAC address is 02:00:00:00:00:NN, its number after the stations; it has no effect",
        "cls": "an access point is of this testbed's own class; it has no effect",
        "failMode": NO_OPENFLOW, "datapath": NO_OPENFLOW, "protocols": NO_OPENFLOW, "dpid": NO_OPENFLOW,
        "listenPort": NO_OPENFLOW, "inNamespace": "every node has a namespace of its own; it has no effect",
        "ht_cap": "access points have no radio of 802.11n or later here; the radio is what mode says",
        "band": "the band is the channel's; it has no effect",
        "color": "the picture has its own colours; it has no effect",
    },
    refused={
        "vssids": ONE_NETWORK, "nvif": ONE_NETWORK,
        "ieee80211r": "fast transition (802.11r) is not supported; leave it out",
        "mobility_domain": "fast transition (802.11r) is not supported; leave it out",
        "authmode": "only WPA2 with a passphrase is supported: encrypt='wpa2', passwd='...'",
        "wps_state": "only WPA2 with a passphrase is supported: encrypt='wpa2', passwd='...'",
        "ieee80211w": "protected management frames are not supported; leave it out",
        "config": "lines for hostapd's file are not supported; the arguments here are its settings",
    },
    defaults={"ieee80211w": ""},
    takes_all=True,
)  # fmt: skip
MASTER = Arguments("setMasterMode", frozenset({"ssid", "mode", "channel", "passwd", "encrypt", "client_isolation"}))
ASSOCIATION = Arguments(
    "addLink",
    frozenset({"error_prob"}),
    refused={
        "loss": "scenario={'links': [{'from': 'sta1', 'to': 'ap1', 'error_rate': 0.1}]} is the error rate of a radio link",
        **{name: "a radio's throughput follows from its frames; leave it out" for name in ("bw", "delay", "latency", "bitrates")},
    },
    takes_all=True,
)  # fmt: skip
FOUR_ADDRESS = Arguments(
    "addLink", frozenset(), noted={name: "a link is of the first radio of each; it has no effect" for name in ("port1", "port2")}
)
CABLE_ARGUMENTS = Arguments(
    "addLink",
    frozenset(),
    noted={name: "a cable has one end at each node; it has no effect" for name in ("port1", "port2", "intfName1", "intfName2")},
    refused=dict.fromkeys(("bw", "delay", "max_queue_size", "loss", "jitter", "use_htb"), CABLE),
)


ERROR_RATE = "scenario={'links': [{'from': 'sta1', 'to': 'ap1', 'error_rate': 0.1}]} is the error rate of a radio link"


class Controller:
    """net.addController: an OpenFlow controller that there is no switch for; `start` and `stop` do nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """No effect."""

    def stop(self) -> None:
        """No effect."""


class Infrastructure:
    """The access points that a script declares and, from build() on, the running ones."""

    def __init__(self, net: ScriptNetwork) -> None:
        self.net = net
        self.four_address: list[tuple[WirelessInterface, WirelessInterface]] = []  # access point, its client
        self.first: dict[str, str] = {}
        self.error_probs: dict[tuple[str, str], float] = {}
        self.method: str | None = None
        self.automatic = True
        self.association: Association | None = None  # from build() on

    # --- declaring ------------------------------------------------------------------------------------------------

    def add(self, name: str, given: dict[str, Any]) -> AccessPoint:
        """Declare an access point. Raises UsageError."""
        params = ACCESS_POINT.check(given, self.net.notes)
        if "model" in params:
            call = f"addAccessPoint({name})"
            choice(call, "model", params["model"], HARDWARE, "is not a hardware model of Mininet-WiFi's")
            note(f"{call}: model={params['model']!r}: its rate is that of mode; it has no effect", self.net.notes)
        point = AccessPoint(self.net, name, params)
        ssids = point.ssid.split(",") if len(point.wintfs) > 1 and "," in point.ssid else [point.ssid] * len(point.wintfs)
        if len(ssids) != len(point.wintfs):
            raise UsageError(f"addAccessPoint({name}): ssid={point.ssid!r}: is not one name for each of its radios; give as many")
        for radio, ssid in zip(point.wintfs.values(), ssids, strict=True):
            radio.bss = bss(f"addAccessPoint({name})", {**params, "ssid": ssid})
        self.net.aps.append(point)
        return point

    def make_master(self, radio: WirelessInterface, given: dict[str, Any]) -> None:
        """Make a station's radio an access point. Raises UsageError."""
        call = f"{radio.node}.setMasterMode"
        params = MASTER.check(given, self.net.notes)
        if str(params.get("mode", "g")) not in OF_ACCESS_POINTS:
            note(f"{call}: mode={params['mode']!r}: not with access points; the radio is that of mode 'g'", self.net.notes)
        radio.bss = bss(call, params)

    def control_by(self, call: str, options: dict[str, Any]) -> None:
        """Take `ac_method` and `autoAssociation` from the arguments of a call. Raises UsageError."""
        if options.get("ac_method"):
            choice(call, "ac_method", options["ac_method"], METHODS)
            self.method = str(options["ac_method"])
        if options.get("autoAssociation") is False or options.get("allAutoAssociation") is False:
            self.automatic = False

    @property
    def used(self) -> bool:
        """Whether there is any access point."""
        return bool(self.net.aps) or any(radio.bss for station in self.net.stations for radio in station.wintfs.values())

    def takes(self, a: Node, b: Node | None) -> bool:
        """Whether a link of these two is an association or a cable."""
        return _is_point(a) or (b is not None and _is_point(b))

    def link(self, a: Node, b: Node | None, cls: object, given: dict[str, Any]) -> WirelessInterface | WireLink | None:
        """addLink(sta, ap): a radio of the station begins with this access point; addLink(ap, ap), addLink(ap, host): a cable."""
        if cls is links._4address and b is not None:
            self._link_of_four_addresses(a, b, given)
            return None
        if b is None or (cls is not None and getattr(cls, "__name__", "") not in ("TCLink", "Link")):
            kind = getattr(cls, "__name__", cls)
            raise UsageError(f"addLink({a}): cls={kind}: is no link of an access point; use cls=mesh, or addLink(sta, ap)")
        point, other = (a, b) if _is_point(a) else (b, a)
        if isinstance(other, Station) and not _is_point(other):
            return self._begin_with(other, point, given)
        CABLE_ARGUMENTS.check(given, self.net.notes)
        self.net.cables.append(stage.Cable(a.name, b.name))
        return WireLink(len(self.net.cables) - 1, a, b, cable=True)

    def _link_of_four_addresses(self, point: Node, client: Node, given: dict[str, Any]) -> None:
        FOUR_ADDRESS.check(given, self.net.notes)
        ends = [node.wintfs[0] for node in (point, client) if isinstance(node, AccessPoint) and node.wintfs[0].bss is not None]
        if len(ends) != 2:
            raise UsageError(f"addLink({point}, {client}): cls=_4address: joins two access points; use addLink(sta, ap)")
        if any(end.bss is not None and end.bss.passphrase for end in ends[:1]):
            raise UsageError(f"addLink({point}, {client}): cls=_4address: {point} is encrypted; leave it open")
        self.four_address.append((ends[0], ends[1]))

    def _begin_with(self, station: Station, point: Node, given: dict[str, Any]) -> WirelessInterface:
        options = ASSOCIATION.check(given, self.net.notes)
        free = [radio for radio in station.wintfs.values() if radio.radio not in {*self.first, *self.net.adhoc}]
        if not free:
            known = ", ".join(self.first.get(radio.radio, "a network") for radio in station.wintfs.values())
            raise UsageError(f"addLink({station}, {point}): {station} has {known} already; give it another radio (wlans)")
        assert isinstance(point, Station)
        self.first[free[0].radio] = next(radio.radio for radio in point.wintfs.values() if radio.bss)
        if "error_prob" in options:
            self._set_error_prob(station, point, options["error_prob"])
        return free[0]

    def _set_error_prob(self, station: Node, point: Node, value: object) -> None:
        probability = number("addLink", "error_prob", value, 0, 1)
        if not self.net.options["error_prob"]:
            raise UsageError(
                f"addLink({station}, {point}): error_prob={probability:g}: is of wmediumd_mode=error_prob; {ERROR_RATE}"
            )
        self.error_probs[station.name, point.name] = probability

    # --- as a scenario --------------------------------------------------------------------------------------------

    def linked(self, station: Node) -> Station | None:
        """The access point, with a position of its own, that the script links to the station's first radio."""
        first = self.first.get(station.name)
        points = (point for point in self.net.aps if point.declared_position is not None)
        return next((point for point in points if any(radio.radio == first for radio in point.wintfs.values())), None)

    def error_rates(self) -> list[dict[str, Any]]:
        """The scenario's `links` of wmediumd_mode=error_prob: each frame of a link is lost with its probability, in both
        directions; pairs without a link receive nothing of each other, as by wmediumd's default."""
        ends = {**self.error_probs, **{(b, a): p for (a, b), p in self.error_probs.items()}}
        links = [{"from": a, "to": b, "error_rate": p, "frames": "all"} for (a, b), p in ends.items()]
        return [{"from": "*", "to": "*", "error_rate": 1.0, "frames": "all"}, *links]

    def hosts(self) -> list[Host]:
        """The hosts at cables of access points."""
        ends = {end for cable in self.net.cables for end in (cable.a, cable.b)}
        return [host for host in self.net.wired if host.name in ends]

    def host_address(self, host: Host) -> str:
        """The script's address of such a host, or one after those of stations and access points; with the prefix length."""
        order = len(self.net.stations) + len(self.net.aps) + 1 + self.hosts().index(host)
        address = str(host.params.get("ip") or ip_address(order))
        return address if "/" in address else f"{address}/{PREFIX_BITS}"

    def mode(self) -> str:
        """The mode of all radios: the access points', which stations follow. Raises UsageError if they differ."""
        modes = {str(point.params.get("mode", self.net.options["mode"])) for point in self.net.aps}
        if len(modes) > 1:
            text = f"{', '.join(sorted(map(repr, modes)))}: all radios are of the same kind here; give all access points one mode"
            raise UsageError(f"mode: {text}")
        return next(iter(modes), str(self.net.options["mode"]))

    def masters(self) -> list[WirelessInterface]:
        """The radios that are access points."""
        return [radio for radio in self.net.radios() if radio.bss is not None]

    def channel_of(self, radio: WirelessInterface) -> int:
        """The channel of a radio: its own network's; of a station its first access point's, else the first declared one's."""
        default = self.net.options["channel"] or (36 if self.mode() == "a" else 1)
        if radio.bss is not None:
            wanted = radio.bss.channel or default
        elif radio.radio in self.net.adhoc:
            wanted = self.net.adhoc[radio.radio].get("channel", default)
        else:
            of = {master.radio: master for master in self.masters()}
            master = of.get(self.first.get(radio.radio, "")) or next(iter(of.values()), None)
            wanted = default if master is None else self.channel_of(master)
        return int(number(f"addLink({radio})", "channel", wanted, 1, 200))

    def channel(self) -> int:
        """The channel whose frequency the propagation has: the first access point's."""
        radios = self.masters() or self.net.radios()
        return self.channel_of(radios[0])

    def channel_on_air(self, radio: WirelessInterface) -> int:
        """The channel of a radio's frames: its own from 1 to 11 of 2.4 GHz; 1 if all radios share one that is not among them.
        Raises UsageError."""
        channel = self.channel_of(radio)
        if self.net.common_mode() != "a" and channel in stage.CHANNELS:
            return channel
        others = {self.channel_of(other) for other in self.net.radios()}
        if len(others) > 1:
            raise UsageError(f"channel: {', '.join(map(str, sorted(others)))}: {NO_CHANNELS}")
        return stage.CHANNELS[0]

    def frequency_mhz(self, radio: WirelessInterface) -> int:
        """The frequency of a radio's frames in the kernel, MHz."""
        return stage.frequency_mhz(self.channel_on_air(radio))

    def bridges(self) -> list[str]:
        """The access points that join radios and cables, or send back what an isolated radio receives."""
        ends = {end for cable in self.net.cables for end in (cable.a, cable.b)}
        ends |= {radio.node.name for link in self.four_address for radio in link}
        return [p.name for p in self.net.aps if p.name in ends or len(p.wintfs) > 1 or p.params.get("client_isolation")]

    def check(self) -> None:
        """Raise UsageError for what does not go together: beside access points stations may be in one ad hoc network or mesh,
        without a routing daemon, for that would run in all stations. A link of four addresses is of one channel."""
        for point, client in self.four_address:
            if self.channel_of(point) != self.channel_of(client):
                text = f"{point} has channel {self.channel_of(point)}, {client} {self.channel_of(client)}; give both one channel"
                raise UsageError(f"addLink({point.node}, {client.node}): cls=_4address: {text}")
        for station, options in self.net.adhoc.items():
            if options["cls"] not in KINDS:
                text = f"{station} is beside access points, with which it shares the channel; use cls=adhoc"
                raise UsageError(f"addLink: cls={options['cls']}: {text}")
            if "proto" in options:
                text = f"{station} is beside access points, where no routing protocol runs; leave proto out"
                raise UsageError(f"addLink: proto={options['proto']!r}: {text}")
            if station in self.first:
                raise UsageError(f"addLink({station}): it has {self.first[station]} already; give it another radio (wlans)")

    def bgscan(self, station: Station) -> str | None:
        """wpa_supplicant's own roaming of a station, `simple:SHORT:THRESHOLD:LONG` in s and dBm; None: no `bgscan_threshold`. The
        threshold is shifted as that of reception is, for the profile's power is (docs/mininet-wifi.md). Raises UsageError."""
        if "bgscan_threshold" not in station.params:
            return None
        call = f"addStation({station.name})"
        choice(call, "bgscan_module", station.params.get("bgscan_module", "simple"), {"simple": None}, "is not supported")
        threshold = number(call, "bgscan_threshold", station.params["bgscan_threshold"], -200, 0)
        short = number(call, "s_inverval", station.params.get("s_inverval", 0), 0, 3600)  # sic, in Mininet-WiFi
        long = number(call, "l_interval", station.params.get("l_interval", 0), 0, 3600)
        here = threshold + self.net.shift_db()
        note(
            f"{call}: bgscan_threshold={threshold:g}: is {here:.0f} dBm here, where reception ends at another power",
            self.net.notes,
        )
        return f"simple:{short:.0f}:{here:.0f}:{long:.0f}"

    def scanned(self, radio: WirelessInterface) -> frozenset[int]:
        """The channels of a radio's `scan_freq`, in MHz, separated by blanks; empty: all. Raises UsageError."""
        call, text = f"addStation({radio.node})", str(of_radio(radio).get("scan_freq", ""))
        known = {str(stage.frequency_mhz(channel)): channel for channel in stage.CHANNELS}
        for word in text.split():
            choice(call, "scan_freq", word, known, "is not the frequency of a channel from 1 to 11")
        return frozenset(known[word] for word in text.split())

    def require(self) -> None:
        """Raise UsageError for a program that the access points need and this machine lacks."""
        if self.used:
            roams = any("bgscan_threshold" in station.params for station in self.net.stations)
            require_access_points(
                encrypted=roams or any(radio.bss and radio.bss.passphrase is not None for radio in self.masters())
            )

    # --- running --------------------------------------------------------------------------------------------------

    def up(self, standing: Standing) -> None:
        """Bring the access points up and associate the stations. Raises UsageError or RunError."""
        network = standing.network
        net, hosts = network.net, [stage.CabledHost(host.name, self.host_address(host)) for host in self.hosts()]
        points = [self._point(radio) for radio in self.masters()]
        stage.forget_addresses(network.site, [net[point.name] for point in self.net.aps])
        standing.stages.enter_context(stage.access_points_up(network, points, self.net.cables, hosts, self.bridges()))
        if self.net.adhoc:
            self._join(standing)
        by_name = {point.name: point for point in points}
        links_up = [FourAddressLink(by_name[a.radio], by_name[b.radio]) for a, b in self.four_address]
        four_address.connect(network, links_up)
        for point in self.net.aps:
            point.take_address()
        members = [r for r in self.net.radios() if r.bss is None and r.node not in self.net.aps and r.radio not in self.net.adhoc]
        own = {r.radio: passphrase(f"addStation({r.node})", of_radio(r)) for r in members}
        association = standing.stages.enter_context(
            association_control(
                network, points, [net.radio(radio.radio) for radio in members], method=self.method,
                first=self.first, automatic=self.automatic, passphrases={name: p for name, p in own.items() if p is not None},
                roaming={r.radio: text for r in members if (text := self.bgscan(r.node)) is not None},
                scanned={r.radio: self.scanned(r) for r in members},
            )
        )  # fmt: skip
        for member in association.settle():
            name = member.wanted or "any access point"
            text = f"is not associated with {name} after {ASSOCIATED_WITHIN_S:g} s; is the passphrase the same?"
            output(f"*** {member.station.name}: {text}\n")
        association.follow()
        self.association = association

    def _point(self, radio: WirelessInterface) -> stage.AccessPoint:
        assert radio.bss is not None
        bss = radio.bss
        joined, channel = any(point is radio for point, _client in self.four_address), self.channel_on_air(radio)
        return stage.AccessPoint(radio.radio, bss.ssid, radio.mac, bss.passphrase, bss.isolated, channel, joined)

    def _join(self, standing: Standing) -> None:
        """Join radios to the ad hoc network or mesh; those of bridges become part of these."""
        network = standing.network
        kind, name = self.net.common_option("cls"), str(self.net.common_option("ssid", "adhocNet"))
        joined = [radio for radio in self.net.radios() if radio.radio in self.net.adhoc]
        join(network, [network.net.radio(radio.radio) for radio in joined], kind, name, self.channel_on_air(joined[0]))
        bridged = [radio.radio for radio in joined if radio.node.name in self.bridges()]
        stage.bridge_radios(network.site, [network.net.radio(name) for name in bridged])

    def associated(self, radio: WirelessInterface) -> WirelessInterface | str | None:
        """The radio of the access point that a radio has, None without one; of a radio in another network its kind."""
        if radio.radio in self.net.adhoc:
            return str(self.net.adhoc[radio.radio]["cls"]).removesuffix("Link")
        wanted = self._wanted().get(radio.radio)
        return next((master for master in self.masters() if master.radio == wanted), None)

    def rssi(self, radio: WirelessInterface) -> float:
        """The power at which a radio receives its access point, on Mininet-WiFi's scale, dBm. Raises NotHere for a radio that
        has no access point by its kind."""
        point = self.associated(radio)
        if isinstance(point, str) or radio.bss is not None:
            raise NotHere(f"{radio}.rssi: is of a radio with an access point; net.recordNodeParams() has the powers of all links")
        if self.association is None:
            return NO_RSSI_DBM
        if point is None:
            return 0.0
        links = self.net.running.network.medium.ask("links")["links"]
        power_dbm = next((link["power_dbm"] for link in links if (link["from"], link["to"]) == (point.radio, radio.radio)), None)
        return 0.0 if power_dbm is None else round(power_dbm - self.net.shift_db(), 2)

    def point_of(self, station: Station) -> Station:
        """The access point of a station, or the nearest one while it has none."""
        present = self._wanted().get(station.name)
        return min(self.net.aps, key=lambda point: (point.name != present, station.get_distance_to(point)))

    def _wanted(self) -> dict[str, str | None]:
        """The access point that the association control gives each radio; empty before build()."""
        return {} if self.association is None else {member.station.name: member.wanted for member in self.association.members}


def of_radio(radio: WirelessInterface) -> dict[str, Any]:
    """The station's arguments that state a value for each radio, separated by commas, for this one. Raises UsageError."""
    of_name = {}
    for name in ("passwd", "encrypt", "scan_freq"):
        value = radio.node.params.get(name)
        parts = str(value or "").split(",") if len(radio.node.wintfs) > 1 else [str(value or "")]
        if len(parts) not in (1, len(radio.node.wintfs)):
            raise UsageError(
                f"addStation({radio.node}): {name}={value!r}: is not one for each of its radios; give one, or as many"
            )
        of_name[name] = parts[radio.id if len(parts) > 1 else 0]
    return of_name


def _is_point(node: Node) -> bool:
    """Whether a node is an access point, or a station with a radio that is one."""
    return isinstance(node, AccessPoint) or (isinstance(node, Station) and any(radio.bss for radio in node.wintfs.values()))


def bss(call: str, params: dict[str, Any]) -> Bss:
    """The network of an access point's radio, by the arguments of addAccessPoint or setMasterMode. Raises UsageError."""
    ssid = str(params["ssid"])
    if not 0 < len(ssid.encode()) <= MAX_SSID_BYTES or not ssid.isprintable() or '"' in ssid or "," in ssid:
        text = f"is no name of one network; give 1 to {MAX_SSID_BYTES} printable bytes without a comma or quote"
        raise UsageError(f"{call}: ssid={ssid!r}: {text}")
    secret = passphrase(call, params)
    if params.get("encrypt") and secret is None:
        raise UsageError(f"{call}: encrypt={params['encrypt']!r} without a passphrase; add passwd='...'")
    return Bss(ssid, secret, bool(params.get("client_isolation")), params.get("channel"))


def passphrase(call: str, params: dict[str, Any]) -> str | None:
    """The passphrase of `passwd` and `encrypt`; None: no encryption. Raises UsageError."""
    encrypted = choice(call, "encrypt", params.get("encrypt"), ENCRYPTIONS, "is not supported")
    secret = params.get("passwd") or None  # '' is Mininet-WiFi's default
    if secret is not None and not encrypted:
        raise UsageError(f"{call}: passwd without encrypt; add encrypt='wpa2'")
    if secret is None:
        return None
    text = str(secret)
    if not (MIN_PASSPHRASE <= len(text) <= MAX_PASSPHRASE and text.isascii() and text.isprintable()) or '"' in text:
        raise UsageError(f"{call}: passwd={text!r}: a WPA2 passphrase has {MIN_PASSPHRASE} to {MAX_PASSPHRASE} ASCII characters")
    return text
