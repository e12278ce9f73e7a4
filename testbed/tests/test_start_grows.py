"""The work of a start and of an end grows as the stations do: calls are counted for 300 and for 1000 of them."""

import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from scenarios.scenario import Scenario
from testbed.host.processes import Processes
from testbed.stages.daemon import daemon_config
from testbed.stages.medium import medium_config
from testbed.stages.site import Site
from testbed.stages.station import Station, stations_up
from testbed.tests.running import calls


def assert_linear(work) -> None:
    work(2)  # what is read once is read now
    few, many = (calls(lambda stations=stations: work(stations)) for stations in (300, 1000))
    assert many < 4 * few


def test_children_are_awaited_and_stopped(tmp_path, monkeypatch):
    """One more child is ready at each look, as in a start: those that are left are not all looked at again."""
    names = itertools.count()

    def work(children):
        processes = Processes(tmp_path)
        popen = SimpleNamespace(pid=os.getpid(), poll=lambda: None, wait=lambda _s: 0, send_signal=lambda _number: None)
        mine = [processes.adopt(f"child{next(names)}", popen, "-") for _ in range(children)]
        slow = iter(mine)
        monkeypatch.setattr("testbed.host.processes.time.sleep", lambda _s: next(slow).log.write_text("ready\n"))
        processes.wait_for_text(mine, "ready\n", within_s=60)
        processes.stop(mine)
        assert not processes.children

    assert_linear(work)


def test_stations_are_declared(monkeypatch):
    for name in ("startShell", "hang_up", "terminate"):
        monkeypatch.setattr(Station, name, lambda _station: None)
    monkeypatch.setattr(Station, "wait_for_shell", lambda _station, _deadline: None)

    def work(stations):
        with stations_up([f"sta{number}" for number in range(1, stations + 1)]) as net:
            assert [station.number for station in net.stations] == list(range(1, stations + 1))

    assert_linear(work)


@pytest.mark.parametrize("ends", [1, 10])
def test_medium_and_daemons_are_configured(rights, tmp_path, ends):
    """With a flow from every `ends`-th station."""

    def work(stations):
        flows = [{"from": f"sta{number}", "to": f"sta{number + 1}"} for number in range(1, stations, ends)]
        walk = {"topology": "random", "area": [9000, 900], "mobility": "random-waypoint", "speed": 5}
        scenario = Scenario.model_validate({"nodes": stations, "routing": "aodv", "flows": flows, **walk})
        site = Site(scenario, 1, tmp_path, Path("/"))
        medium_config(site, dict.fromkeys(scenario.station_names(), "/proc/1/ns/net"))
        for number, name in enumerate(scenario.station_names(), start=1):
            daemon_config(site, name, number, wires=[], mtu=1500, epoch_ns=0)

    assert_linear(work)
