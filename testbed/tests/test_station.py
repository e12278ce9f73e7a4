"""Stations: many at once, each a Mininet host."""

import os
from pathlib import Path

import pytest

from testbed.errors import RunError
from testbed.host import namespace
from testbed.scenarios.scenario import Scenario
from testbed.stages.station import StationNet, host_sysctls, stations_up

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")]


@pytest.fixture
def net():
    with stations_up(["sta1", "sta2", "sta3"]) as network:
        yield network


def test_a_station_is_a_mininet_host_with_predictable_names(net: StationNet) -> None:
    assert [station.name for station in net.hosts] == ["sta1", "sta2", "sta3"]
    assert (net["sta2"].IP(), net["sta2"].MAC()) == ("10.0.0.2", "02:00:00:00:00:02")
    assert net["sta3"].cmd("echo hello").strip() == "hello"
    assert net["sta1"].defaultIntf().name == "wlan0"


def test_each_station_has_a_namespace_of_its_own(net: StationNet) -> None:
    spaces = {str(station.netns.readlink()) for station in net.stations} | {str(Path("/proc/self/ns/net").readlink())}
    assert len(spaces) == 4


def test_sysctls_of_one_station_are_not_those_of_another(net: StationNet) -> None:
    scenario = Scenario.model_validate({"hops": 2})
    first, second = net.stations[:2]
    namespace.within(first.netns, lambda: namespace.write_sysctls(host_sysctls(scenario)))
    names = ["net.ipv4.ip_forward", "net.ipv4.ip_default_ttl", "net.ipv6.conf.all.disable_ipv6"]
    values = [namespace.within(s.netns, lambda: namespace.read_sysctls(names)) for s in (first, second)]
    assert values[0]["net.ipv4.ip_forward"] == "1"
    assert values[0]["net.ipv4.ip_default_ttl"] == "255"
    assert values[0].get("net.ipv6.conf.all.disable_ipv6", "1") == "1"
    assert values[1]["net.ipv4.ip_default_ttl"] == "64"


def test_acting_in_a_namespace_does_not_move_this_process(net: StationNet) -> None:
    here = Path("/proc/self/ns/net").readlink()
    there = namespace.within(net.stations[0].netns, lambda: Path("/proc/thread-self/ns/net").readlink())
    assert there == net.stations[0].netns.readlink() != here
    assert Path("/proc/thread-self/ns/net").readlink() == here


def test_a_namespace_that_is_gone_is_an_error_with_the_reason() -> None:
    with pytest.raises(RunError, match="has ended"):
        namespace.within("/proc/0/ns/net", lambda: None)


def test_mininet_does_not_raise_limits_of_the_whole_system() -> None:
    names = ["net.core.wmem_max", "kernel.pty.max", "net.ipv4.neigh.default.gc_thresh3", "net.ipv4.tcp_rmem"]
    before = namespace.read_sysctls(names)
    with stations_up(["sta1"]):
        pass
    assert namespace.read_sysctls(names) == before


def test_shells_are_gone_after_the_block_even_if_it_fails() -> None:
    pids = []
    with pytest.raises(ZeroDivisionError), stations_up(["sta1", "sta2"]) as network:
        pids += [station.pid for station in network.stations]
        raise ZeroDivisionError
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_fifty_stations_take_little_processor_time() -> None:
    """Processor time, since a busy host makes the time on the clock anything; `make bench` has that (0.4 s on two cores)."""
    before = processor_s()
    with stations_up([f"sta{number}" for number in range(1, 51)]) as network:
        assert len(network.stations) == 50
    assert processor_s() - before < 3


def processor_s() -> float:
    """Of this process and of the children that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
