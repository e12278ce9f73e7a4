"""The stage that runs the medium: writes medium.json, trace.csv, links.csv and radio.toml (formats/medium.md, trace.md,
links.md, radio.md), starts the daemon."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios import profiles
from scenarios.profiles import RADIO_FILE
from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.host.processes import Child, Processes
from testbed.stages.control import MediumControl
from testbed.stages.measured import write_links
from testbed.stages.movement import write_trace
from testbed.stages.site import Site
from topologies.addresses import GATEWAY_END, HOST_END, mac_address, radio_interface, wire_mac

if TYPE_CHECKING:  # Mininet is imported only in the run's own process
    from testbed.stages.station import StationNet

READY_DEADLINE_S = 30.0
INPUT_LOG = "inputs.jsonl"  # in the run's directory
ABOVE_2_4_GHZ_HZ = 3e9
CHANNEL_36_MHZ = 5180  # where an hwsim radio may begin a network (medium/src/wire/hwsim.rs)


def planned_config(scenario: Scenario, seed: int) -> dict[str, Any]:
    """The content of medium.json of a run that has no folder and no namespaces, for checks, simulations and maps."""
    return medium_config(Site(scenario, seed, Path("/"), cgroup=Path("/")), {})


def medium_config(site: Site, netns: dict[str, str]) -> dict[str, Any]:
    """The content of medium.json. `netns`: the network namespace of each node, by name (empty: for `check` only)."""
    scenario = site.scenario
    radios = {radio.station: radio.for_medium() for radio in scenario.radios if radio.name is None}
    channel = _channel(scenario)
    return {
        "format": "manet-medium/1",
        "seed": site.seed,
        "radio": str(profiles.path_of(scenario.radio)),
        "radio_overrides": scenario.radio_keys(),
        "propagation": scenario.propagation.for_medium(),
        "interference": scenario.interference,
        **scenario.of_medium(),
        **scenario.channel_keys(),
        "queue": scenario.queue_keys(),
        "stations": [
            {
                "name": placed.name,
                "mac": mac_address(number),
                "position": [placed.x_m, placed.y_m, placed.z_m],
                **channel,
                **radios.get(placed.name, {}),
                **({"netns": netns[placed.name], "ifname": radio_interface(placed.name, scenario.interface)} if netns else {}),
            }
            for number, placed in enumerate(scenario.positions(site.seed), start=1)
        ]
        + further_radios_config(site, netns),
        **({"jammers": [jammer.for_medium() for jammer in scenario.jammers]} if scenario.jammers else {}),
        **({"hwsim": hwsim_config(scenario)} if scenario.stations == "hwsim" else {}),
        "links": [link.model_dump(by_alias=True, mode="json") for link in scenario.links],
        "trace": "trace.csv",
        "wires": wires_config(scenario, netns),
        "outputs": {
            "air_log": "air.csv",
            "air_pcapng": "air.pcapng",
            **({"monitor": "monitor.pcapng"} if scenario.monitor else {}),
            "counters": "counters.json",
            "rates": "rates.json",
            "verdict": "verdict.json",
            "lateness": "lateness.csv",
            **({"radio_time": "radio-time.csv"} if scenario.energy else {}),
            "moved": "moved.csv",
        },
        "control_socket": str(site.control_socket),
        "feedback_dir": str(site.feedback_folder),
        "duration_s": None,
    }


def further_radios_config(site: Site, netns: dict[str, str]) -> list[dict[str, Any]]:
    """The entries of `stations` for radios beyond the first of their station."""
    places = {placed.name: [placed.x_m, placed.y_m, placed.z_m] for placed in site.scenario.positions(site.seed)}
    return [
        {
            "name": radio.name,
            "node": radio.station,
            "mac": mac_address(number),
            "position": places[radio.station],
            **radio.for_medium(),
            **({"netns": netns[radio.station], "ifname": radio.name} if netns else {}),
        }
        for number, radio in site.scenario.further_radios().items()
    ]


def _channel(scenario: Scenario) -> dict[str, int]:
    """The keys of a station whose mac80211 joins a network in the band of the profile, if that is another one than 2.4 GHz."""
    if scenario.stations != "hwsim" or scenario.net != "manet" or scenario.hwsim.mode not in ("ibss", "mesh"):
        return {}
    profile = tomllib.loads(profiles.path_of(scenario.radio).read_text())
    frequency_hz = scenario.radio_keys().get("frequency_hz", profile["frequency_hz"])
    return {"freq_mhz": CHANNEL_36_MHZ} if frequency_hz > ABOVE_2_4_GHZ_HZ else {}


def hwsim_config(scenario: Scenario) -> dict[str, Any]:
    """The key `hwsim` of the medium's configuration (formats/medium.md)."""
    return {**scenario.hwsim.model_dump(), "radios": "made" if scenario.net == "manet" else "found"}


def wires_config(scenario: Scenario, netns: dict[str, str]) -> list[dict[str, Any]]:
    """The key `wires` of medium.json; `a` is the gateway's end, `b` the host's."""

    def end(wire: int, name: str, side: int, interface: str) -> dict[str, Any]:
        place = {"netns": netns[name]} if netns else {}
        return {"name": name, "ifname": interface, "mac": wire_mac(wire, side), **place}

    return [
        {
            "a": end(number, ends.station, GATEWAY_END, ends.interface),
            "b": end(number, ends.host, HOST_END, ends.host_interface),
            "rate_bps": round(wire.rate),
            "delay_us": round(wire.delay * 1e6),
            "queue_packets": wire.queue,
        }
        for number, (wire, ends) in enumerate(zip(scenario.wires, scenario.wire_ends(), strict=True), start=1)
    ]


def _copy_profile(site: Site) -> None:
    """Copy the radio's profile into the run's folder: the run can be replayed elsewhere, and after the profile has changed."""
    profile = profiles.path_of(site.scenario.radio)
    try:
        (site.directory / RADIO_FILE).write_bytes(profile.read_bytes())
    except OSError as problem:
        raise RunError(f"{profile}: {problem.strerror}; the scenario names this radio profile, put it back") from None


class Medium:
    """The running daemon: its process and its control socket."""

    def __init__(self, child: Child, control: MediumControl) -> None:
        self.child, self.control = child, control

    def ask(self, op: str, **arguments: object) -> dict[str, Any]:
        """One request to the medium (formats/sockets.md); RunError if it refuses."""
        return self.control.ask(op, **arguments)

    def links(self) -> list[tuple[str, str]]:
        """Directed pairs of stations in each other's reception range now."""
        return [(link["from"], link["to"]) for link in self.ask("links")["links"] if link["range"]]


@contextmanager
def medium_running(site: Site, net: "StationNet", children: Processes) -> Iterator[Medium]:
    """Run the daemon: every radio is up on entry, every output complete on exit. RunError if the daemon failed."""
    write_trace(site)
    write_links(site)
    site.feedback_folder.mkdir(exist_ok=True)
    netns = {host.name: str(host.netns) for host in net.hosts}
    config = site.directory / "medium.json"
    _copy_profile(site)
    config.write_text(json.dumps(medium_config(site, netns) | {"radio": RADIO_FILE}, indent=1) + "\n")
    radios = "the radios went with it" if site.scenario.net == "manet" else "the radios have the kernel's own medium now"
    inputs: list[str | Path] = ["--input-log", site.directory / INPUT_LOG] if site.scenario.input_log else []
    child = children.start(
        "medium",
        [site.programs.medium, "run", *inputs, "--log-limit", str(site.scenario.log_limit), config],
        remedy=f"{radios} and the run is void; see log/medium.log and run it again",
        many_files=True,
    )
    children.wait_for_text([child], "ready\n", within_s=READY_DEADLINE_S, stations=len(net.hosts))
    control = MediumControl(site.control_socket, len(net.hosts))
    try:
        yield Medium(child, control)
    finally:
        control.close()
        children.stop([child], stations=len(net.hosts))
    children.require_whole([child])
