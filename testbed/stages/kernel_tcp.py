"""The stage that sets and samples kernel TCP: writes tcp-settings.json (formats/tcp.md), runs `manet-tcp`.

A profile (kernel-tcp/profiles/<name>.toml) gives sysctls for every station's namespace and defaults for the settings
that a `sockops` program applies per connection; what the scenario states itself comes before the profile.
"""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.errors import UsageError
from testbed.host import namespace
from testbed.host.processes import Child, Processes
from testbed.programs import ROOT
from testbed.scenarios.scenario import Scenario
from testbed.stages.site import Site
from testbed.stages.station import StationNet

PROFILES = ROOT / "kernel-tcp" / "profiles"
READY_DEADLINE_S = 20.0


def profile(name: str) -> dict:
    path = PROFILES / f"{name}.toml"
    try:
        return tomllib.loads(path.read_text())
    except OSError:
        known = ", ".join(sorted(file.stem for file in PROFILES.glob("*.toml")))
        raise UsageError(f'profile "{name}" is not known; use one of {known}') from None


def effective_settings(scenario: Scenario) -> dict:
    """Per-connection settings: the profile's, overridden by the scenario's. What neither names is the kernel's own."""
    return {**profile(scenario.profile).get("socket", {}), **scenario.tcp_settings()}


def sysctls(scenario: Scenario) -> dict[str, object]:
    """The namespace's TCP sysctls under this scenario."""
    values: dict[str, object] = dict(profile(scenario.profile).get("sysctl", {}))
    if scenario.sack is not None:
        values["net.ipv4.tcp_sack"] = int(scenario.sack)
    return values


def ack_metric(scenario: Scenario) -> str:
    """The route metric that makes a receiver acknowledge each packet at once, where the scenario asks for no delayed ACK."""
    return " quickack 1" if effective_settings(scenario).get("delayed_ack") is False else ""


@contextmanager
def kernel_tcp_running(site: Site, net: StationNet, children: Processes) -> Iterator[Child]:
    """From the programs being attached to the samples being complete on disk."""
    settings = {
        "format": "manet-tcp-settings/1",
        "cgroup": str(site.cgroup),
        "samples": "tcp.csv",
        "stations": [
            {"name": host.name, "netns": str(host.netns), "settings": effective_settings(site.scenario)} for host in net.hosts
        ],
    }
    path = site.directory / "tcp-settings.json"
    path.write_text(json.dumps(settings, indent=1) + "\n")
    child = children.start(
        "kernel-tcp",
        [site.programs.kernel_tcp, "run", path],
        remedy="without it connections have the kernel's own settings; `manet doctor` says what this kernel can do",
    )
    children.wait_for_text([child], "ready\n", within_s=READY_DEADLINE_S)
    try:
        yield child
    finally:
        children.stop([child])


def set_sysctls(net: StationNet, values: dict[str, object]) -> None:
    """In every station and wired host; made with the namespace and gone with it, so nothing has to be restored.

    A sysctl that this kernel lacks is left out: what it would switch off is not there either, or is not per namespace
    (run.json says what each station really has).
    """
    for host in net.hosts:
        namespace.within(host.netns, lambda: namespace.write_sysctls(values, absent_is_error=False))


def read_sysctls(net: StationNet, names: list[str]) -> dict[str, dict[str, str]]:
    """What the kernel says now, by station."""
    return {s.name: namespace.within(s.netns, lambda: namespace.read_sysctls(names)) for s in net.hosts}
