"""The stage that sets and samples kernel TCP: writes tcp-settings.json (formats/tcp.md), runs `manet-tcp`.

A profile (kernel-tcp/profiles/<name>.toml) gives sysctls for every station's namespace and defaults for the settings
that a `sockops` program applies per connection; the scenario's own values override the profile. Connections
of a flow with its own TCP are identified by the flow's port (testbed/stages/traffic.py).

Without root there is no eBPF: the settings are metrics of routes and sysctls (testbed/stages/route_tcp.py), and `manet-tcp
sample` reads the connections' state at an interval. `by_routes` decides, once a process.
"""

import json
import platform
import re
import signal
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from scenarios.flows import FIRST_PORT
from scenarios.routing import OWN_DAEMONS
from scenarios.scenario import Scenario
from scenarios.sending import TCP_HEADERS
from scenarios.tcp import KERNEL, Tcp
from scenarios.tcp_names import table
from testbed.errors import KeyRefused, UsageError
from testbed.host import namespace, privileges
from testbed.host.algorithms import missing_algorithm
from testbed.host.processes import POLL_S, Child, Processes
from testbed.programs import ROOT
from testbed.stages import route_tcp
from testbed.stages.route_tcp import RTO_MAX, Metrics, WithoutRoot, metrics_of
from testbed.stages.site import Site
from testbed.stages.station import NamespaceHost, Station, StationNet, WiredLink
from testbed.stages.status import status_socket
from topologies.addresses import INTERFACE

PROFILES = ROOT / "kernel-tcp" / "profiles"
SETTINGS = "tcp-settings.json"
READY_DEADLINE_S = 20.0
TIMESTAMP_BYTES = 12  # of each segment with the option, padded (RFC 7323, appendix A)
OWN_CONNECTIONS = 1024  # places in the table of a station
SUDO = "run it with sudo"
ANSWERED = re.compile(r"^(taken|refused)$", re.MULTILINE)  # of `manet-tcp` after SIGHUP
# TCP_RTO_MIN, <net/tcp.h>: TCP_BPF_RTO_MIN takes no more (net/core/filter.c); a larger bound is a sysctl of the namespace.
RTO_MIN_BY_SOCKET_US = 200_000
RTO_MIN_SYSCTL = "net.ipv4.tcp_rto_min_us"  # Linux 6.11
PROC_SYS = Path("/proc/sys")
RTO_MIN_FILE = PROC_SYS / RTO_MIN_SYSCTL.replace(".", "/")


@cache
def profile(name: str) -> dict[str, Any]:
    """The tables of kernel-tcp/profiles/<name>.toml, read once; UsageError for an unknown name."""
    path = PROFILES / f"{name}.toml"
    try:
        return tomllib.loads(path.read_text())
    except OSError:
        names = ", ".join(sorted(file.stem for file in PROFILES.glob("*.toml")))
        raise UsageError(f'profile "{name}" is not known; use one of {names}') from None


def effective_settings(scenario: Scenario, tcp: Tcp | None = None) -> dict[str, Any]:
    """Settings of connections with `tcp` (default: the scenario's): the profile's, overridden by the scenario's;
    all others are the kernel's defaults. A minimum RTO too large for a socket's option is in `sysctls`."""
    settings = {**profile(scenario.profile).get("socket", {}), **scenario.tcp_settings(tcp)}
    if (settings.get("rto_min_us") or 0) > RTO_MIN_BY_SOCKET_US:
        del settings["rto_min_us"]
    return settings


def sysctls(scenario: Scenario, station: str | None = None) -> dict[str, object]:
    """The TCP sysctls of the namespace of a station or host; None: those common to all. The scenario's own win."""
    values: dict[str, object] = dict(profile(scenario.profile).get("sysctl", {}))
    if scenario.rto_min is not None and scenario.rto_min * 1e6 > RTO_MIN_BY_SOCKET_US:
        values[RTO_MIN_SYSCTL] = round(scenario.rto_min * 1e6)
    for name, value in {"sack": scenario.sack_of(station), "ecn": scenario.ecn_of(station)}.items() if station else ():
        if value is not None:
            values[f"net.ipv4.tcp_{name}"] = int(value)
    return values | _own_sysctls(scenario)


def _own_sysctls(scenario: Scenario) -> dict[str, object]:
    return {name: int(value) if isinstance(value, bool) else value for name, value in scenario.sysctls.items()}


def period_notes(scenarios: Iterable[Scenario]) -> list[str]:
    """A line for each algorithm of today's kernel that a scenario runs under the profile `period`, with its window and without
    SACK. Algorithms of the papers' years, also the kernel's versions of them, get none."""
    notes = []
    for scenario in scenarios:
        for tcp in scenario.tcps() if scenario.profile == "period" else []:
            if tcp.of_table is None and not tcp.name.startswith(KERNEL):
                window = effective_settings(scenario, tcp)["window_segments"]
                text = f'tcp "{tcp.spelled}" runs under the profile "period": a window of {window} segments, no SACK; '
                notes.append(text + "for Linux as shipped add --set profile=modern")
    return list(dict.fromkeys(notes))


def require_rto_min(scenario: Scenario) -> None:
    """UsageError if the scenario's `rto_min` exceeds the maximum of this kernel."""
    rto_min_us = int(str(sysctls(scenario).get(RTO_MIN_SYSCTL, 0)))
    if rto_min_us > RTO_MIN_BY_SOCKET_US and not RTO_MIN_FILE.exists():
        raise UsageError(
            f"rto_min = {rto_min_us / 1e6:g}: this kernel takes at most 0.2 s (no sysctl {RTO_MIN_SYSCTL}, Linux 6.11); lower it"
        )


def require_sysctls(scenario: Scenario) -> None:
    """UsageError for the first of the scenario's `sysctls` that this kernel lacks."""
    for name in scenario.sysctls:
        if not (PROC_SYS / name.replace(".", "/")).is_file():
            raise UsageError(f"sysctls: this kernel ({platform.release()}) has no {name}; correct it, or use another kernel")


def by_routes() -> bool:
    """Whether metrics of routes set the TCP of the stations, instead of eBPF."""
    return privileges.rootless()


def route_metrics(scenario: Scenario, station: str) -> Metrics:
    """The metrics of all routes of a station or host: with eBPF only that which disables delayed ACKs, which eBPF cannot."""
    if not by_routes():
        return Metrics(quickack=1 if effective_settings(scenario).get("delayed_ack") is False else None)
    tcp = tcp_of_station(scenario, station)
    return metrics_of(_full_settings(scenario, tcp), _segment_bytes(scenario), tcp.kernel_algorithm)


def ack_metric(scenario: Scenario, station: str) -> str:
    """The metrics of all routes of a station or host, for `ip route`, each word after a space."""
    return route_metrics(scenario, station).words()


def tcp_of_station(scenario: Scenario, station: str) -> Tcp:
    """The TCP of all connections of a station or host without eBPF: that of the flows that end there, else the scenario's."""
    return next(iter(scenario.tcps_at(station)), scenario.tcp)


def _full_settings(scenario: Scenario, tcp: Tcp) -> dict[str, Any]:
    """As `effective_settings`, with a minimum RTO of any size."""
    return {**profile(scenario.profile).get("socket", {}), **scenario.tcp_settings(tcp)}


def _segment_bytes(scenario: Scenario) -> int:
    """The data of a full segment over IPv4."""
    timestamps = str(sysctls(scenario).get("net.ipv4.tcp_timestamps", 1)) != "0"
    return (scenario.mss or scenario.mtu - TCP_HEADERS) - (TIMESTAMP_BYTES if timestamps else 0)


def require_one_tcp(scenario: Scenario, place: str) -> None:
    """KeyRefused for the first flow whose TCP needs eBPF, or differs from that of another flow at one of its ends."""
    for index, flow in enumerate(scenario.flows):
        tcp = scenario.tcp_of(flow)
        path: tuple[str | int, ...] = ("flows", index, "tcp") if flow.tcp else ("tcp",)
        for end in (flow.source, flow.target):
            if flow.has_tcp and tcp_of_station(scenario, end) != tcp:
                text = f"{end} has a flow with another TCP, and without root a station has one TCP; {SUDO}, or take other ends"
                raise KeyRefused(place, scenario, path, text)


def without_root(scenario: Scenario) -> WithoutRoot | None:
    """What a run without root does not have; None for a run of root."""
    if not by_routes():
        return None
    settings, missing = _full_settings(scenario, scenario.tcp), []
    if settings.get("rto_initial_ms") is not None:
        missing.append("rto_initial")
    if settings.get("rto_max_ms") is not None and not (PROC_SYS / RTO_MAX.replace(".", "/")).exists():
        missing.append("rto_max")
    return WithoutRoot(missing)


def without_root_notes(scenarios: Iterable[Scenario]) -> list[str]:
    """A line about runs that are made without root in real time; empty if there are none."""
    judged = [judged for each in scenarios if each.clock == "real" and (judged := without_root(each)) is not None]
    if not judged:
        return []
    missing = " and ".join(sorted({name for each in judged for name in each.not_set}))
    lacking = f", without the profile's {missing}" if missing else ""
    return [f"without root: metrics of routes set TCP{lacking}, and the medium has no real-time priority (docs/rootless.md)"]


def station_entry(
    scenario: Scenario, host: NamespaceHost, hops: Mapping[str, int] | None = None, wires: Sequence[WiredLink] = ()
) -> dict[str, Any]:
    """A station's or host's element of `stations` in tcp-settings.json. `status` is set at the ends of flows whose TCP may
    query the routing daemon (a layer, or one of our own algorithms); `hops`, known for routes that never change, if a TCP needs
    them. `wires`: all of the network."""
    entry: dict[str, Any] = {"name": host.name, "netns": str(host.netns), "settings": effective_settings(scenario)}
    if by_routes():
        return entry | {"settings": effective_settings(scenario, tcp_of_station(scenario, host.name))}
    ending = scenario.tcp_flows_at(host.name)
    ports = {str(FIRST_PORT + i): effective_settings(scenario, scenario.tcp_of(flow)) for i, flow in ending if flow.tcp}
    has_daemon = scenario.routing.protocol in OWN_DAEMONS and host.name not in scenario.host_names()
    # without flows in the scenario, or with one of any program, any station may be the end of a connection
    ends_are_known = bool(scenario.flows) and all(flow.kind.transport for flow in scenario.flows)
    used = [scenario.tcp_of(flow) for _, flow in ending] if ends_are_known else scenario.tcps()
    if has_daemon and any(tcp.wants_struct_ops for tcp in used):
        entry["status"] = str(status_socket(host.name))
    if any(tcp.asks_for_hops for tcp in scenario.tcps()):
        over_wires = _paths_over_wires(host, wires) if scenario.routing.protocol in OWN_DAEMONS else {}
        entry |= over_wires | ({"hops": dict(hops)} if hops else {})
    return entry | ({"ports": ports} if ports else {})


def _paths_over_wires(host: NamespaceHost, wires: Sequence[WiredLink]) -> dict[str, Any]:
    """The entry's keys for paths that the daemons report up to the gateways only."""
    own = [wire for wire in wires if wire.host is host]
    if own:  # a host on several wires prefers the first
        gateway = own[0].gateway
        return {"gateway_status": str(status_socket(gateway.name)), "hops": {gateway.IP(): 1}}
    gateways: dict[str, list[str]] = {}
    for wire in wires:
        gateways[wire.host.IP()] = [other.gateway.IP() for other in wires if other.host is wire.host]
    near = {wire.host.IP(): 1 for wire in wires if wire.gateway is host}
    beyond = {address: listed for address, listed in gateways.items() if address not in near}
    return ({"hops": near} if near else {}) | ({"gateways": beyond} if beyond else {})


@contextmanager
def kernel_tcp_running(
    site: Site, net: StationNet, children: Processes, hops: Mapping[str, Mapping[str, int]]
) -> Iterator[Child]:
    """Run `manet-tcp`: its programs are attached on entry, its samples complete on disk on exit. `hops`: path lengths of routes
    that never change, by station and destination."""
    settings = {
        "format": "manet-tcp-settings/1",
        **({} if site.cgroup is None else {"cgroup": str(site.cgroup)}),
        "samples": "tcp.csv",
        "stations": [station_entry(site.scenario, host, hops.get(host.name), net.wires) for host in net.hosts],
    }
    site.write(SETTINGS, json.dumps(settings, indent=1) + "\n")
    child = children.start(
        "kernel-tcp",
        [site.programs.kernel_tcp, "sample" if by_routes() else "run", site.directory / SETTINGS],
        remedy="without it connections have the kernel's own settings; `manet doctor` says what this kernel can do",
    )
    children.wait_for_text([child], "ready\n", within_s=READY_DEADLINE_S, stations=len(net.hosts))
    try:
        yield child
    finally:
        children.stop([child])
    children.require_whole([child])


def take_flow(before: Site, now: Site, net: StationNet, child: Child) -> None:
    """Have `manet-tcp` take the TCP of the last flow of `now`, whose scenario is that of `before` and this flow. UsageError if
    that is possible only at the start of a run."""
    flow, was = now.scenario.flows[-1], before.scenario
    if by_routes():
        _require_tcp_of_stations(before.scenario, now.scenario)
        return
    tcp, ends = now.scenario.tcp_of(flow), [net[flow.source], net[flow.target]]
    for name in (host.name for host in net.hosts):
        if sysctls(now.scenario, name) != sysctls(was, name):
            raise UsageError(f"tcp: {tcp.spelled} needs other sysctls (SACK, ECN) than the run has; take another")
    entries = {host.name: station_entry(now.scenario, host, wires=net.wires) for host in ends}
    for host in ends if tcp.layers or tcp.asks_for_hops else []:
        entry_before = {**station_entry(was, host, wires=net.wires), "ports": None}
        if flow.tcp is not None or entry_before != {**entries[host.name], "ports": None}:
            text = f"tcp: {tcp.spelled} follows the path from the start of the run on; take a TCP without layers and pacing"
            raise UsageError(f"{text}, or the ends and the TCP of a flow of the scenario")
    if flow.tcp is None:
        return
    if tcp.kernel_algorithm is not None and (missing := missing_algorithm(tcp.kernel_algorithm, list(table()))):
        raise UsageError(f"tcp: {missing}")
    text = (before.directory / SETTINGS).read_text()
    settings = json.loads(text)
    for station in settings["stations"]:
        if station["name"] in entries:
            station["ports"] = entries[station["name"]]["ports"]
    before.write(SETTINGS, json.dumps(settings, indent=1) + "\n")
    if (refusal := _reread(child)) is not None:
        before.write(SETTINGS, text)
        raise UsageError(f"tcp: {refusal}")


def _require_tcp_of_stations(before: Scenario, now: Scenario) -> None:
    """UsageError if the last flow of `now` has another TCP than a station at its ends has already."""
    flow = now.flows[-1]
    for end in (flow.source, flow.target):
        if flow.has_tcp and (tcp_of_station(before, end) != now.tcp_of(flow)):
            has = tcp_of_station(before, end).spelled
            raise UsageError(f"tcp: {now.tcp_of(flow).spelled}: without root {end} has one TCP, {has}; take that one, or {SUDO}")


def leave_flow(site: Site, child: Child) -> None:
    """Have `manet-tcp` forget the TCP of the last flow of `site`, which `take_flow` had it take, and which did not start."""
    if site.scenario.flows[-1].tcp is None or by_routes():
        return
    port = str(FIRST_PORT + len(site.scenario.flows) - 1)
    settings = json.loads((site.directory / SETTINGS).read_text())
    for station in settings["stations"]:
        station.get("ports", {}).pop(port, None)
    site.write(SETTINGS, json.dumps(settings, indent=1) + "\n")
    _reread(child)


def _reread(child: Child) -> str | None:
    """Have `manet-tcp` read its settings again; returns its message if it refuses the added ones."""
    answered = len(re.findall(ANSWERED, child.printed()))
    child.popen.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + READY_DEADLINE_S
    while len(answers := re.findall(ANSWERED, child.printed())) == answered:
        if not child.running() or time.monotonic() > deadline:
            return "manet-tcp did not answer; see log/kernel-tcp.log"
        time.sleep(POLL_S)
    if answers[-1] == "taken":
        return None
    lines = [line for line in child.printed().splitlines() if line not in ("taken", "refused", "ready")]
    return lines[-1].removeprefix("manet-tcp: ") if lines else "refused"


def set_sysctls(scenario: Scenario, net: StationNet, values: dict[str, object]) -> None:
    """The TCP sysctls, and `values`, in every station and wired host; they end with the namespace, so nothing is
    restored.

    A sysctl that this kernel lacks is skipped: the feature is absent too, or is not per namespace (run.json lists each
    station's actual values). One of the scenario's own `sysctls` is an error then.
    """
    own = _own_sysctls(scenario)

    def of_host(name: str) -> dict[str, object]:
        return {**values, **sysctls(scenario, name), **(_sysctls_by_routes(scenario, name) if by_routes() else {})}

    def write(of_host: dict[str, object]) -> None:
        namespace.write_sysctls(of_host, absent_is_error=False)
        namespace.write_sysctls(own)

    namespace.within_each([(host.netns, partial(write, of_host(host.name))) for host in net.hosts])


def _sysctls_by_routes(scenario: Scenario, station: str) -> dict[str, object]:
    settings = _full_settings(scenario, tcp_of_station(scenario, station))
    return route_tcp.sysctls_of(settings, _segment_bytes(scenario)) | _own_sysctls(scenario)


def prepare_namespaces() -> None:
    """Without eBPF, give the network namespaces that this process makes from now on small tables of connections of their own
    (Linux 6.1), which `manet-tcp sample` walks through."""
    if by_routes():
        namespace.write_sysctls({"net.ipv4.tcp_child_ehash_entries": OWN_CONNECTIONS}, absent_is_error=False)


def prepare_windows(scenario: Scenario, net: StationNet) -> None:
    """Without eBPF, let the kernel know the windows of the stations, before any radio exists. Raises RunError."""
    if by_routes():
        windows = {host.name: route_metrics(scenario, host.name).cwnd for host in net.hosts}
        route_tcp.make_windows_known(net, windows, scenario)


def read_sysctls(net: StationNet, names: list[str]) -> dict[str, dict[str, str]]:
    """The current values of these sysctls, by station; those of `wlan0` are those of the station's radio, whatever its name."""

    def read(host: NamespaceHost) -> dict[str, str]:
        radio = host.radio.name if isinstance(host, Station) else INTERFACE
        named = {name.replace(f".{INTERFACE}.", f".{radio}."): name for name in names}
        return {named[name]: value for name, value in namespace.read_sysctls(list(named)).items()}

    values = namespace.within_each([(host.netns, partial(read, host)) for host in net.hosts])
    return {host.name: of_host for host, of_host in zip(net.hosts, values, strict=True)}
