"""The keys `ipv6` and `ip`: defaults, and refusals in one line with the remedy."""

import json
from pathlib import Path

import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.routing import OWN_DAEMONS, PROTOCOLS, routing_of_ipv6
from scenarios.scenario import Scenario


def load(folder: Path, *lines: str) -> Scenario:
    (folder / "s.toml").write_text("".join(f"{line}\n" for line in ("hops = 2", *lines)))
    return load_scenario(folder / "s.toml")


def refusal(folder: Path, *lines: str) -> str:
    with pytest.raises(UsageError) as problem:
        load(folder, *lines)
    text = str(problem.value)
    assert "\n" not in text
    return text.split("/")[-1]


def test_flows_go_over_ipv6_if_the_stations_have_it_unless_they_say_otherwise(tmp_path):
    flows = 'flows = [{ from = "sta1", to = "sta3" }, { from = "sta1", to = "sta3", ip = 4 }]'
    scenario = load(tmp_path, "ipv6 = true", flows)
    assert [scenario.ip_of(flow) for flow in scenario.flows] == [6, 4]
    assert [flow["ip"] for flow in json.loads(scenario.to_json())["flows"]] == [6, 4]
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert [load(tmp_path).ip_of(flow) for flow in load(tmp_path).flows] == [4]
    assert "ip" not in json.loads(load(tmp_path).to_json())["flows"][0]  # scenario.json of IPv4 is as it was


def test_our_own_daemons_route_ipv4_alone_and_who_routes_ipv6_is_known():
    assert set(routing_of_ipv6()) == {"static", "none", "babeld", "bird-babel", "frr-babel", "olsrd2", "batman-adv"}
    assert not [name for name in OWN_DAEMONS if PROTOCOLS[name].ROUTES_IPV6]


@pytest.mark.parametrize("name", [*OWN_DAEMONS, "olsrd", "batmand", "aodv-uu"])
def test_a_daemon_of_ipv4_says_so_in_one_line(tmp_path, name):
    text = refusal(tmp_path, f'routing = "{name}"', "ipv6 = true")
    start = f's.toml: line 3: key "ipv6": routing "{name}" routes IPv4 only; take static, none, babeld, bird-babel, frr-babel, '
    assert text.startswith(f"{start}olsrd2, batman-adv, or leave ipv6 out")


OWN = 'about = "mine"\ncommand = ["true"]\n'


def test_a_description_says_whether_its_daemon_routes_ipv6(tmp_path):
    (tmp_path / "mine.toml").write_text(OWN)
    text = refusal(tmp_path, 'routing = "mine"', "ipv6 = true")
    assert '"mine" routes IPv4 only' in text and "(a daemon that routes IPv6 has ipv6 = true in its description)" in text
    (tmp_path / "mine.toml").write_text(f"{OWN}ipv6 = true\n")
    assert load(tmp_path, 'routing = "mine"', "ipv6 = true").routing.ROUTES_IPV4
    (tmp_path / "mine.toml").write_text(f'{OWN}ipv6 = "only"\n')
    assert refusal(tmp_path, 'routing = "mine"') == 's.toml: line 2: key "routing": "mine" routes IPv6 only; add ipv6 = true'
    flow = 'flows = [{ from = "sta1", to = "sta3", ip = 4 }]'
    text = refusal(tmp_path, 'routing = "mine"', "ipv6 = true", flow)
    assert text.startswith('s.toml: line 4: key "flows.0.ip": "mine" routes IPv6 only; leave it out')
    (tmp_path / "mine.toml").write_text(f'{OWN}ipv6 = "both"\n')
    assert 'key "ipv6"' in refusal(tmp_path, 'routing = "mine"')


FLOW = '{{ from = "sta1", to = "sta3", {} }}'


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("flows = [" + FLOW.format("ip = 6") + "]",), 'line 2: key "flows.0.ip": the stations have no IPv6 addresses; add ipv6'),
        (("flows = [" + FLOW.format("ip = 5") + "]",), 'key "flows.0.ip"'),
        (
            ("ipv6 = true", 'tcp = "elfn"'),
            'line 3: key "tcp": "elfn(newreno)" acts on packets and notices of IPv4 only, and flow1 goes over IPv6; take a TCP',
        ),
        (
            ("ipv6 = true", "flows = [" + FLOW.format('tcp = "reno-f"') + "]"),
            'line 3: key "flows.0.tcp": "reno-f(reno)" acts on packets',
        ),
        (
            ("ipv6 = true", "mss = 1460"),
            'key "mss": 1460 bytes go with 60 bytes of headers, more than mtu = 1500; lower it',
        ),
        (
            ("ipv6 = true", "flows = [" + FLOW.format('traffic = "cbr", rate = 1000, bytes = 48') + "]"),
            'key "flows.0.bytes": 48 bytes are too few for a packet of IPv6, whose header is 20 bytes longer; give 49 or more',
        ),
        (
            ("ipv6 = true", "flows = [" + FLOW.format('traffic = "vbr", preset = "video-53k", min = 59') + "]"),
            'key "flows.0.min": 59 bytes are too few for a packet of IPv6, whose header is 20 bytes longer; give 60 or more',
        ),
    ],
)
def test_what_knows_ipv4_alone_or_has_no_room_is_refused(tmp_path, lines, text):
    assert text in refusal(tmp_path, *lines)


def test_what_is_refused_over_ipv6_is_taken_over_ipv4_beside_it(tmp_path):
    flows = FLOW.format("ip = 4") + ", " + FLOW.format('ip = 4, traffic = "cbr", rate = 1000, bytes = 48')
    scenario = load(tmp_path, "ipv6 = true", 'tcp = "elfn"', "mss = 1460", f"flows = [{flows}]")
    assert [scenario.ip_of(flow) for flow in scenario.flows] == [4, 4]


def test_sizes_in_a_file_have_room_for_the_headers_of_ipv6(tmp_path):
    (tmp_path / "sizes").write_text("40\n")
    flow = FLOW.format('traffic = "vbr", sizes = "sizes", interval = 0.1')
    assert "give whole bytes, 60 to 1500" in refusal(tmp_path, "ipv6 = true", f"flows = [{flow}]")
    assert load(tmp_path, f"flows = [{flow}]").flows[0].ip is None
