"""The arguments of each call of the script API: accepted, accepted with a note, and refused with a remedy."""

import re
from collections.abc import Mapping
from ipaddress import IPv4Interface
from typing import Any

from scenarios import owned
from scenarios.radios import SETTINGS
from testbed.errors import UsageError
from testbed.mn_wifi import link
from testbed.mn_wifi.arguments import Arguments, choice, number
from testbed.mn_wifi.radio import OF_ACCESS_POINTS, PROFILES

NO_MESH = (
    "addLink: cls=mesh: IEEE 802.11s is mac80211's own, and TAP radios are not: take radios of mac80211_hwsim, "
    "./manet script --set stations=hwsim; or a mesh of routed hops: cls=adhoc, proto='olsrd'"
)
NO_ENCRYPTION = "encryption is not modelled, and would cost air time; leave it out"
NO_ACCESS_POINTS = (
    "addAccessPoint: association is mac80211's own, and TAP radios are not: without stations=tap the script runs on radios of "
    "mac80211_hwsim, in a guest (./setup.sh --guests); or use stations and addLink(sta, cls=adhoc, ...)"
)
NO_CONTROLLER = "access points are learning bridges without OpenFlow; it has no effect"
ONE_MEDIUM = "there is one air; which networks contend follows from their distance; it has no effect"
NO_SHAPING = "a radio's throughput follows from its frames; leave it out"
NO_ROOT_NAMESPACE = (
    "a node in the machine's own namespace would reach the others past the air; leave it out: nodes and the script share files, "
    "and with them Unix sockets"
)
ONE_RADIO = "without access points a station has one radio; add another station"
MODES = {"interference": None, "error_prob": None}
COMMON = {
    "cls": "all stations are in one network, of one kind",
    "proto": "all stations of a network run one routing protocol",
    "ssid": "all stations are in one ad hoc network",
}
# name of the argument, of Radio's field, the limits
RADIO: tuple[tuple[str, str, owned.Node], ...] = (
    ("range", "range_m", SETTINGS["range"]),
    ("txpower", "tx_power_dbm", SETTINGS["txpower"]),
    ("antennaGain", "gain_db", SETTINGS["gain"]),
    ("antennaHeight", "height_m", SETTINGS["height"]),
    ("channel", "channel", {"type": "integer", "minimum": 1, "maximum": 200}),
)
LIMITS = {name: limits for name, _key, limits in RADIO}


class NotACall(UsageError, AttributeError):
    """A call of Mininet-WiFi that is not supported."""


NET = Arguments(
    "Mininet_wifi",
    frozenset({"link", "wmediumd_mode", "mode", "channel", "ssid", "plot", "autoStaticArp", "ipBase", "scenario", "rec_rssi"})
    | {"fading_cof"}
    | {"ac_method", "autoAssociation", "allAutoAssociation"},
    noted={
        "controller": "an ad hoc network has no controller; it has no effect",
        "accessPoint": "access points are of this testbed's own class; it has no effect",
        "station": "stations are of this testbed's own class; it has no effect",
        **dict.fromkeys(("car", "host", "intf"), "nodes and interfaces are of this testbed's own classes; it has no effect"),
        **dict.fromkeys(("switch", "listenPort", "inNamespace"), "there are no switches here; it has no effect"),
        "xterms": "a run opens no windows; `sta1 COMMAND` at the prompt is a command on a station; it has no effect",
        "build": "without topo nothing is built before net.build(); it has no effect",
        **dict.fromkeys(("container", "ssh_user"), "nodes are namespaces of this machine; it has no effect"),
        **dict.fromkeys(("sensor", "apsensor", "wmediumd_802154_mode"), "there is no IEEE 802.15.4 here; it has no effect"),
        "autoSetMacs": "MAC addresses always follow the stations' numbers, 02:00:00:00:00:01 up",
        "waitConnected": "there are no switches to wait for; it has no effect",
        "disable_tcp_checksum": "the medium does not change checksums; it has no effect",
        "cleanup": "a run leaves nothing behind to be cleaned up; it has no effect",
        "config4addr": "addLink(ap1, ap2, cls=_4address) makes links of four addresses; it has no effect",
        "freq": "the frequency is the channel's; it has no effect",
        "band": "the band is the channel's; it has no effect",
    },
    refused={
        "noise_th": "is wmediumd's; here reception ends at the range: give the stations a range",
        "cca_th": "is wmediumd's; carrier sense is the profile's: scenario={'radio_overrides': {'carrier_sense_threshold_w': W}}",
        "ifb": NO_SHAPING,
        "topo": "declare the network by addStation and addLink",
        **dict.fromkeys(("client_isolation", "encrypt", "passwd"), "give it to each addAccessPoint"),
        "ieee80211w": "protected management frames are not supported; leave it out",
        "configWiFiDirect": "Wi-Fi Direct is not modelled; use cls=adhoc",
        "docker": "nodes are namespaces of this machine; leave it out",
        "roads": "there are no roads here; use setMobilityModel, or scenario={'mobility': 'manhattan', ...}",
        "autoSetPositions": "give each station its position='x,y,z'",
        "plot3d": "the picture is of two dimensions; use plotGraph()",
        "autoPinCpus": "nodes are not bound to processors; leave it out",
    },
    defaults={
        "autoPinCpus": False, "noise_th": -91, "cca_th": -90, "ifb": False, "client_isolation": False,
        "configWiFiDirect": False, "docker": False, "encrypt": "", "roads": 0, "autoSetPositions": False, "plot3d": False,
    },
)  # fmt: skip
STATION = Arguments(
    "addStation",
    frozenset({"position", "ip", "ip6", "range", "txpower", "antennaGain", "antennaHeight", "mode", "channel", "speed"})
    | {"min_x", "max_x", "min_y", "max_y", "min_v", "max_v", "passwd", "encrypt", "wlans", "scan_freq"}
    | {"bgscan_threshold", "bgscan_module", "s_inverval", "l_interval", "config", "wpasup_globals"},
    noted={
        "mac": "a station's MAC address is 02:00:00:00:00:NN, its number; it has no effect",
        "min_z": "movement is at one height; it has no effect",
        "max_z": "movement is at one height; it has no effect",
        "ssid": "is addLink's; it has no effect",
        "active_scan": "a station scans when the association control asks for it; it has no effect",
        "freq_list": "scan_freq decides about the channels; it has no effect",
        "wpasup_flags": "wpa_supplicant's output is in log/ of the results; it has no effect",
        "color": "the picture has its own colours; it has no effect",
        **dict.fromkeys(("IP", "IPv6", "ipv6"), "the addresses are ip and ip6, in Mininet-WiFi too; it has no effect"),
    },
    refused={
        "inNamespace": NO_ROOT_NAMESPACE,
        "wpss": NO_ENCRYPTION,
        "bw": NO_SHAPING, "cpu": "shares of the CPU are not set here; leave it out", "cores": "leave it out",
        "model": "hardware models are not supported; give range, or txpower and antennaGain",
    },
    defaults={"encrypt": "", "passwd": "", "wpss": "", "inNamespace": True},
    takes_all=True,
)  # fmt: skip
HOST = Arguments(
    "addHost",
    frozenset({"ip"}),
    noted={
        "mac": "the MAC address of a wire's end is 02:00:00:01:<wire>:02; it has no effect",
        "position": "a host has no radio; it has no effect",
        **dict.fromkeys(("IP", "IPv6", "ipv6"), "the address is ip, in Mininet too; it has no effect"),
    },
    refused={
        "cls": "a host is of this testbed's own class; leave cls out",
        "inNamespace": NO_ROOT_NAMESPACE,
    },
    defaults={"inNamespace": True},
    takes_all=True,
)
ADHOC = Arguments(
    "addLink",
    frozenset({"ssid", "mode", "channel", "proto", "txpower"}),
    noted={
        "ht_cap": "the width of the channel is the profile's of mode",
        "ibss": "there is one ad hoc network on the air and no scanning; it has no effect",
        "ap_scan": "there is one ad hoc network on the air and no scanning; it has no effect",
        "band": "the band is the channel's; it has no effect",
    },
    refused={
        "passwd": NO_ENCRYPTION,
        "proto_args": "words for a daemon's command line; give options as scenario={'routing': {'protocol': 'olsr', ...}}",
        "bitrates": "the rate is the profile's; scenario={'radio': 'ns2-dsss-2m'} or {'radio_overrides': {'data_rate_bps': 6e6}}",
        "bw": NO_SHAPING, "delay": NO_SHAPING, "latency": NO_SHAPING,
        "loss": "scenario={'links': [{'from': 'sta1', 'to': 'sta2', 'error_rate': 0.1}]} is the error rate of a radio link",
        "error_prob": "scenario={'links': [{'from': 'sta1', 'to': 'sta2', 'error_rate': 0.1}]} is the error rate of a radio link",
        "vIface": ONE_RADIO,
    },
    defaults={"passwd": "", "bw": 0, "loss": 0, "error_prob": 0, "delay": 0, "latency": 0, "bitrates": ""},
    takes_all=True,
)  # fmt: skip
ITS = Arguments(
    "addLink",
    frozenset({"channel", "band", "proto", "txpower"}),
    refused={"proto_args": ADHOC.refused["proto_args"]},
    takes_all=True,
)
ITS_CHANNEL, ITS_TX_POWER_DBM, ITS_BAND_MHZ = 181, 17, 10  # Mininet-WiFi's
WIRE = Arguments(
    "addLink",
    frozenset({"bw", "delay", "max_queue_size"}),
    noted={name: "a wire has one end at each node; it has no effect" for name in ("port1", "port2", "intfName1", "intfName2")},
    refused={
        "loss": "a wire drops only what exceeds its queue; leave it out",
        "jitter": "a wire has no jitter; leave it out",
        "use_htb": "a wire has its own rate and queue; leave it out",
    },
    defaults={"loss": 0, "jitter": 0, "use_htb": False},
    takes_all=True,
)
MODEL = Arguments(
    "setMobilityModel",
    frozenset({"model", "time", "seed", "min_x", "max_x", "min_y", "max_y", "min_v", "max_v", "min_wt", "max_wt"})
    | {"velocity_mean", "alpha", "variance", "ac_method", "pointlist", "g_velocity", "aggregation"},
    noted={name: "movement is at one height; it has no effect" for name in ("min_z", "max_z")},
    refused={
        **dict.fromkeys(("epoch", "aggregation_epoch", "velocity"), "is of a model that is not supported; leave it out"),
        "n_groups": "scenario={'mobility': {'model': 'group', 'groups': 2}, 'speed': 1, 'area': [100, 100]} is a model of groups",
    },
    defaults={"n_groups": 1},
    takes_all=True,
)
START = Arguments("startMobility", frozenset({"time", "mob_rep", "reverse", "ac_method"}), takes_all=True)
MOBILITY = Arguments("mobility", frozenset({"time", "position"}), takes_all=True)
SERVER = Arguments("socketServer", frozenset({"ip", "port"}))
STOP = Arguments("stopMobility", frozenset({"time"}), takes_all=True)
PLOT = Arguments(
    "plotGraph",
    frozenset({"max_x", "max_y", "min_x", "min_y"}),
    noted={name: "the picture is of two dimensions; it has no effect" for name in ("min_z", "max_z")},
    takes_all=True,
)
IPERF = Arguments(
    "iperf",
    frozenset({"seconds", "l4Type", "udpBw", "fmt"}),
    noted={"port": "iperf3 has a port of its own here; it has no effect"},
)
NO_CALLS = {
    "addSwitch": "there are no switches here; a host is joined to a station by addLink(sta, host)",
    "addSensor": "IEEE 802.15.4 is not supported; use addStation",
    "addAPSensor": "IEEE 802.15.4 is not supported; use addStation",
    "addModem": "is not supported; use addStation",
    "addAircraft": "is not supported; use addStation with position='x,y,z' and net.mobility",
    "addSatellite": "is not supported; use addStation with position='x,y,z' and net.mobility",
    "useExternalProgram": "is not supported; for a movement file: scenario={'mobility': 'FILE'}",
    "plotEnergyMonitor": "energy is not modelled; remove the line",
    "setModule": "there is no kernel module for these radios; remove the line",
    "auto_association": "association is controlled from build() on; leave it out",
    "staticArp": "ask for it before: Mininet_wifi(autoStaticArp=True)",
}


def net_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of Mininet_wifi() with their defaults. Raises UsageError."""
    if given.get("link", link.wmediumd) not in (link.wmediumd, link.WirelessLink):
        raise UsageError(f"Mininet_wifi: link={given['link']!r}: use link=wmediumd; a wire is addLink(sta, host)")
    mode = given.get("wmediumd_mode", "interference")
    choice("Mininet_wifi", "wmediumd_mode", mode, MODES, "has no positions, and this medium goes by them")
    if given.get("ipBase", "10.0.0.0/8") != "10.0.0.0/8":
        raise UsageError(f"Mininet_wifi: ipBase={given['ipBase']!r}: stations are 10.0.0.1/8 up; give each its ip instead")
    scenario = given.get("scenario", {})
    if not isinstance(scenario, dict):
        raise UsageError(f"Mininet_wifi: scenario={scenario!r}: give a dict of a scenario's keys (formats/scenario.md)")
    return {
        "mode": given.get("mode", "g"),
        "channel": given.get("channel"),
        "static_arp": bool(given.get("autoStaticArp", False)),
        "scenario": scenario,
        "rec_rssi": bool(given.get("rec_rssi", False)),
        "ssid": given.get("ssid", "adhocNet"),
        "error_prob": mode == "error_prob",
        "fading_db": number("Mininet_wifi", "fading_cof", given.get("fading_cof", 0), *owned.bounds("medium", "fading_db")),
    }


def its(given: Mapping[str, Any], notes: set[str]) -> dict[str, Any]:
    """The options of addLink(cls=ITSLink), as those of an ad hoc link. Raises UsageError."""
    options = {"channel": ITS_CHANNEL, "txpower": ITS_TX_POWER_DBM, "band": ITS_BAND_MHZ, **ITS.check(given, notes)}
    why = "has symbols of twice the length, which no profile here has; use all radios at 20 MHz"
    choice("addLink", "band", options.pop("band"), {20: None, "20": None}, why)
    return {**options, "mode": "a"}


def address(call: str, text: object) -> None:
    """Raise UsageError for a text that is no IPv4 address, with or without a prefix length."""
    try:
        IPv4Interface(str(text))
    except ValueError:
        raise UsageError(f"{call}: ip={text!r}: is no IPv4 address; write '10.0.0.1/8'") from None


def rate(call: str, name: str, text: object) -> str:
    """A rate as iperf takes it, in bit/s with K, M or G. Raises UsageError."""
    if not re.fullmatch(r"[1-9][0-9]*(\.[0-9]+)?[KMGkmg]?", str(text)):
        raise UsageError(f"{call}: {name}={text!r}: is no rate; write '500K' or '10M' (bit/s)")
    return str(text)


def mode(modes: set[Any], infrastructure: bool = False) -> str:
    """The mode of all stations, a key of PROFILES. Raises UsageError if they differ."""
    if len(modes) > 1:
        raise UsageError(f"mode: {', '.join(sorted(map(repr, modes)))}: all stations have the same radio; give one mode")
    found = next(iter(modes), "g")
    known = OF_ACCESS_POINTS if infrastructure else tuple(PROFILES)
    if found not in known:
        text = "not with access points" if found in PROFILES else "not modelled"
        raise UsageError(f"mode={found!r}: {text}; use one of {', '.join(map(repr, known))}")
    return str(found)


def wire(station: str, host: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the scenario's `wires`. Units as in TCLink: bw in Mbit/s, delay as text with a unit, or in us. Raises
    UsageError."""
    found: dict[str, Any] = {"station": station, "host": host}
    if "bw" in given:
        bounds = owned.bounds("medium", "wires.rate_bps", per=1e6)
        found["rate"] = number("addLink", "bw", given["bw"], *bounds) * 1e6
    if "delay" in given:
        delay = given["delay"]
        bounds = owned.bounds("medium", "wires.delay_us")
        found["delay"] = delay if isinstance(delay, str) else number("addLink", "delay", delay, *bounds) / 1e6
    if "max_queue_size" in given:
        bounds = owned.bounds("medium", "wires.queue_packets")
        found["queue"] = int(number("addLink", "max_queue_size", given["max_queue_size"], *bounds))
    return found
