"""The kernel's tables as a status: lines of ip(8)."""

import pytest

from testbed.stages.kernel_status import recorded, route_of, section, status_of


@pytest.mark.parametrize(
    ("line", "route"),
    [
        ("10.0.0.3 via 10.0.0.2 dev wlan0 proto bird metric 32 onlink", ("10.0.0.3", 32, "10.0.0.2", "bird", 32)),
        ("10.0.0.2 dev wlan0 scope link", ("10.0.0.2", 32, None, "boot", 0)),
        ("default via 10.0.0.2 dev wlan0 proto babel onlink", ("0.0.0.0", 0, "10.0.0.2", "babel", 0)),
        ("192.168.1.0/30 via inet6 fe80::1 dev wlan0 proto babel", ("192.168.1.0", 30, "fe80::1", "babel", 0)),
        ("unreachable 10.0.0.4 proto babel metric 4294967295 onlink", ("10.0.0.4", 32, None, "unreachable", 4294967295)),
        ("fd00::3 via fe80::1 dev wlan0 proto bird metric 32 pref medium", ("fd00::3", 128, "fe80::1", "bird", 32)),
        ("default via fe80::1 dev wlan0 metric 1024", ("::", 0, "fe80::1", "boot", 1024)),
    ],
)
def test_a_route_of_the_kernel(line: str, route: tuple) -> None:
    found = route_of(line)
    assert found is not None and found["hops"] is None
    assert tuple(found[key] for key in ("destination", "prefix", "via", "state", "metric")) == route


def test_a_route_in_a_table_of_a_daemon_s_own() -> None:
    found = route_of("10.0.0.3 via 10.0.0.2 dev wlan0 table 66 proto static src 10.0.0.1 onlink")
    assert found is not None
    assert (found["destination"], found["via"], found["table"]) == ("10.0.0.3", "10.0.0.2", "66")
    plain = route_of("10.0.0.3 via 10.0.0.2 dev wlan0")
    assert plain is not None and "table" not in plain


@pytest.mark.parametrize(
    "line",
    [
        "",
        "local 10.0.0.1 dev wlan0 table local proto kernel scope host src 10.0.0.1",
        "broadcast 127.255.255.255 dev lo table local proto kernel scope link src 127.0.0.1",
        "fe80::/64 dev wlan0 proto kernel metric 256 pref medium",
        "broadcast 255.255.255.255 dev wlan0 table local scope link",
        "multicast 224.0.0.0/4 dev wlan0 table local scope link",
        "unreachable 224.0.0.0/4 table local",
        "multicast ff00::/8 dev wlan0 table local proto kernel metric 256 pref medium",
    ],
)
def test_a_line_that_leads_to_no_station(line: str) -> None:
    assert route_of(line) is None


def test_a_station_s_status_and_the_sections_of_its_files() -> None:
    content = (
        "# at the start of the traffic\n# neighbours\n# at the end of the traffic\n10.0.0.2 dev wlan0 scope link\n"
        "# neighbours\n10.0.0.2 dev wlan0 lladdr 02:00:00:00:00:02 REACHABLE\n10.0.0.9 dev wlan0 FAILED\n"
    )
    tables = recorded(content, "end")
    assert tables is not None
    status = status_of("mine", "10.0.0.1", *tables, "up\n")
    assert [route["destination"] for route in status["routes"]] == ["10.0.0.2"]
    assert status["neighbours"] == [
        {"address": "10.0.0.2", "state": "reachable"},
        {"address": "10.0.0.9", "state": "failed"},
    ]
    assert (status["text"], section("# at the start of the traffic\nx\n", "end"), recorded("", "start")) == ("up\n", None, None)
