"""`routing` of a scenario: a name or a table, each protocol's options, and their agreement with the daemons'."""

import json
import subprocess

import pytest

from scenarios.routing import OWN_DAEMONS, PRESETS, PROTOCOLS
from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.programs import BUILT, ROOT
from testbed.runs.preflight import check_routing
from testbed.tests.refusals import message

WIRED = 'flows = [{ from = "sta1", to = "h1" }]\n[[wires]]\nstation = "sta3"\nhost = "h1"'
QUOTED = ", ".join(f'"{name}"' for name in OWN_DAEMONS)
PRESET_NAMES = ", ".join(f'"{name}"' for name in PRESETS)
MOVING = {"nodes": 50, "topology": "random", "area": [1500, 300], "mobility": "random-waypoint", "speed": 5}


def test_a_name_is_short_for_a_table_and_set_reaches_into_either(load):
    by_name = load('hops = 2\nrouting = "aodv"', "routing.link=hello")
    assert by_name == load('hops = 2\nrouting = { protocol = "aodv", link = "hello" }')
    assert by_name == load("hops = 2", "routing=aodv", "routing.link=hello")
    assert by_name == load('hops = 2\n[routing]\nprotocol = "aodv"', "routing.link=hello")


def test_advs_two_variants_differ_in_the_wait_of_udp(load):
    thirty, one = [load(f'hops = 2\nrouting = "adv-30-{udp}"').routing for udp in (30, 1)]
    assert [(routing.protocol, routing.buffer_tcp) for routing in (thirty, one)] == [("adv", 30), ("adv", 30)]
    assert (thirty.buffer_udp, one.buffer_udp) == (30, 1)


def test_a_name_for_ns2s_constants_is_a_table_that_set_reaches_into(load):
    aodv = load('hops = 2\nrouting = "aodv-ns2"').routing
    assert (aodv.net_diameter, aodv.path_discovery_time) == (12, 6)
    changed = load("hops = 2", "routing=dsr-ns2", "routing.request_period=4").routing
    assert (changed.learn_from_data, changed.request_period) == (False, 4)


def test_dsr_takes_an_address_resolution_also_with_ns2s_constants(load):
    assert load('hops = 2\nrouting = "dsr"').routing.arp == "none"
    assert load("hops = 2", "routing=dsr-ns2", "routing.arp=silent").routing.options()["arp"] == "silent"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_writes_all_its_defaults_and_reads_them_back(load, name):
    scenario = load(f'hops = 2\nrouting = "{name}"')
    written = json.loads(scenario.to_json())["routing"]
    assert Scenario.from_json(scenario.to_json()) == scenario
    if name in ("static", "none"):
        assert written == name  # as before there were others: results of then are the same scenario
    else:
        assert set(written) == set(PROTOCOLS[name].model_fields) and None not in written.values()


@pytest.mark.parametrize("name", OWN_DAEMONS)
def test_the_options_of_our_daemons_are_those_the_daemon_prints(name):
    daemon = BUILT.daemon(name)
    if not daemon.exists():
        pytest.skip(f"{daemon} is not built: its options are NOT compared; run ./setup.sh")
    daemon_options = json.loads(subprocess.run([daemon, "options"], capture_output=True, check=True).stdout)
    scenario_options = Scenario.model_validate({"hops": 1, "routing": name}).routing.options()
    assert set(scenario_options) == set(daemon_options)
    derived = {key for key, value in daemon_options.items() if value is None}  # by the daemon from others, as here
    assert {key: value for key, value in scenario_options.items() if key not in derived} == {
        key: value for key, value in daemon_options.items() if key not in derived
    }
    assert name == "aodv" or not derived


@pytest.mark.parametrize(
    ("options", "active_s", "mine_s", "flags"),
    [
        # MY_ROUTE_TIMEOUT: twice the active one, but at least 2 * PATH_DISCOVERY_TIME = 2 * 2 * 2 * 0.04 * 35 = 11.2 s
        ({}, 10.0, 20.0, (1, True, True, True)),
        ({"link": "hello"}, 3.0, 11.2, (1, True, True, True)),
        ({"link": "hello", "style": "uu"}, 3.0, 6.0, (2, False, False, False)),
        ({"style": "uu", "gratuitous": True, "ttl_start": 4}, 10.0, 20.0, (4, True, False, False)),
        ({"active_route_timeout": "30 s", "my_route_timeout": 7}, 30.0, 7.0, (1, True, True, True)),
    ],
)
def test_aodvs_constants_follow_from_link_and_style(options, active_s, mine_s, flags):
    routing = Scenario.model_validate({"hops": 1, "routing": {"protocol": "aodv", **options}}).routing
    assert (routing.active_route_timeout, routing.my_route_timeout, routing.next_hop_wait) == (active_s, mine_s, 0.05)
    assert (routing.ttl_start, routing.gratuitous, routing.local_repair, routing.hello_while_active) == flags


@pytest.mark.parametrize(
    ("scenario", "settle_s"),
    [
        ({"hops": 1, "routing": "dsdv"}, 46),  # 30 and 16 a hop
        ({"hops": 6, "routing": "dsdv"}, 126),
        ({"hops": 200, "routing": "dsdv"}, 600),  # the most
        ({"hops": 6, "routing": {"protocol": "dsdv", "settle": 5}}, 5),
        ({**MOVING, "routing": "dsdv"}, 60),  # a path may come later in any case
    ],
)
def test_routes_are_waited_for_as_long_as_the_stations_may_need(scenario, settle_s):
    assert Scenario.model_validate(scenario).routing.settle == settle_s


def test_movement_begins_after_the_wait_for_routes():
    assert Scenario.model_validate(MOVING).traffic_at == 10
    assert Scenario.model_validate({**MOVING, "routing": {"protocol": "olsr", "settle": 20}}).traffic_at == 30


def test_aodv_adds_a_tunnel_header_unless_it_uses_default_routes():
    assert Scenario.model_validate({"hops": 1, "routing": "aodv"}).routing.headers_bytes == 12
    by_default_route = {"protocol": "aodv", "internet": "default-route"}
    assert Scenario.model_validate({"hops": 1, "routing": by_default_route}).routing.headers_bytes == 0


def test_dsr_adds_its_longest_route_to_every_header():
    # 4 fixed, 4 of the option, 4 an address, 4 of an acknowledgement request (RFC 4728, 6)
    assert Scenario.model_validate({"hops": 1, "routing": "dsr"}).routing.headers_bytes == 4 + 4 + 4 * 15 + 4
    assert Scenario.model_validate({"hops": 1, "routing": "static"}).routing.headers_bytes == 0


def test_a_networks_text_is_the_daemons_pair():
    routing = Scenario.model_validate({"hops": 1, "routing": {"protocol": "olsr", "hna": ["172.16.0.0/12"]}}).routing
    assert routing.options()["hna"] == [["172.16.0.0", 12]]


ERRORS = {
    "unknown protocol": (
        'hops = 2\nrouting = "aodw"',
        f'x.toml: line 2: key "routing": "aodw" is not known; use one of "static", "none", {QUOTED}, '
        f'"aodv-uu", "babeld", "batmand", "bird-babel", "frr-babel", "olsrd", "olsrd2", '
        f'"batman-adv", {PRESET_NAMES} (did you mean "aodv"?)',
    ),
    "unknown name of a table": (
        'hops = 2\nrouting = "aodv-ns3"',
        f'x.toml: line 2: key "routing": "aodv-ns3" is not known; use one of "static", "none", {QUOTED}, '
        f'"aodv-uu", "babeld", "batmand", "bird-babel", "frr-babel", "olsrd", "olsrd2", '
        f'"batman-adv", {PRESET_NAMES} (did you mean "aodv-ns2"?)',
    ),
    "a table's name for a protocol": (
        'hops = 2\nrouting = { protocol = "aodv-ns2", link = "hello" }',
        'x.toml: line 2: key "routing": "aodv-ns2" stands for a whole table; write routing = "aodv-ns2"',
    ),
    "no protocol": (
        'hops = 2\nrouting = { link = "hello" }',
        f'x.toml: line 2: key "routing": names no protocol; add protocol = one of static, none, {", ".join(OWN_DAEMONS)}, '
        "aodv-uu, babeld, batmand, bird-babel, frr-babel, olsrd, olsrd2, batman-adv",
    ),
    "misspelt option": (
        'hops = 2\n[routing]\nprotocol = "aodv"\nlocal_repare = true',
        'x.toml: line 4: key "routing.local_repare": unknown key; did you mean "local_repair"?',
    ),
    "an option of another protocol": (
        'hops = 2\nrouting = { protocol = "batmand", link = "hello" }',
        'x.toml: line 2: key "routing.link": unknown key; the keys here are protocol, originator_interval, settle',
    ),
    "an option of what has none": (
        'hops = 2\nrouting = { protocol = "static", link = "hello" }',
        'x.toml: line 2: key "routing.link": routing "static" has no options',
    ),
    "address resolution of what sends through the kernel": (
        'hops = 2\nrouting = { protocol = "aodv", arp = "cmu" }',
        'x.toml: line 2: key "routing.arp": routing "aodv" writes no frames, so the kernel resolves its addresses; '
        'remove it, or take "dsr"',
    ),
    "address resolution of what has no daemon": (
        'hops = 2\nrouting = { protocol = "static", arp = "cmu" }',
        'x.toml: line 2: key "routing.arp": routing "static" writes no frames, so the kernel resolves its addresses; '
        'remove it, or take "dsr"',
    ),
    "unknown address resolution": (
        'hops = 2\nrouting = { protocol = "dsr", arp = "real" }',
        'x.toml: line 2: key "routing.arp": "real" is not known; use one of "none", "cmu", "silent"',
    ),
    "wrong unit": (
        'hops = 2\nrouting = { protocol = "olsr", tc_interval = "5 m" }',
        'x.toml: line 2: key "routing.tc_interval": "5 m" has the unit "m", but a time is expected; '
        "give a number in s, or text with one of s, ms, us, min",
    ),
    "out of range": (
        'hops = 2\nrouting = { protocol = "dsdv", period = 0 }',
        'x.toml: line 2: key "routing.period": 0 is out of range; give at least 0.01 s',
    ),
    "forgotten before it is told anew": (
        'hops = 2\nrouting = { protocol = "olsr", hello_interval = 6 }',
        'x.toml: line 2: key "routing.neighbour_hold": 6 s is not longer than hello_interval = 6 s; '
        "RFC 3626 has three times as long",
    ),
    "jitter takes most of an interval": (
        'hops = 2\nrouting = { protocol = "olsr", tc_interval = 0.9 }',
        'x.toml: line 2: key "routing.tc_interval": 0.9 s is less than twice the jitter, jitter x hello_interval = 0.5 s',
    ),
    "no network": (
        'hops = 2\nrouting = { protocol = "olsr", hna = ["10.0.0.1/8"] }',
        'x.toml: line 2: key "routing.hna.0": "10.0.0.1/8" is no network (10.0.0.1/8 has host bits set); '
        'write for example "192.168.1.0/30"',
    ),
    "gateways switched off": (
        f'hops = 2\nrouting = {{ protocol = "dsdv", gateway = false }}\n{WIRED}',
        'x.toml: line 2: key "routing.gateway": no station reaches h1 over the air; leave it out, or end flow1 at the gateway',
    ),
    "gateways to different hosts": (
        f'hops = 2\nrouting = "dsdv"\n{WIRED}\n[[wires]]\nstation = "sta1"\nhost = "h2"',
        'x.toml: line 6: key "wires.0.host": sta1 has no wire to it, and "dsdv" sends to every host over the nearest gateway; '
        'add a wire from sta1 to "h1", or take "static" or "olsr"',
    ),
}


def test_a_protocol_without_gateways_is_refused_for_a_flow_to_a_wired_host(load, monkeypatch):
    monkeypatch.setattr(PROTOCOLS["dsr"], "TO_WIRES", False)
    wanted = 'key "flows.0": "dsr" routes over the air to stations only, not to h1; take "static", "aodv"'
    assert wanted in message(load, f'hops = 2\nrouting = "dsr"\n{WIRED}')


def test_gateways_to_the_same_hosts_and_flows_that_end_at_the_gateway_are_accepted(load):
    load(f'hops = 2\nrouting = "dsdv"\n{WIRED}\n[[wires]]\nstation = "sta1"\nhost = "h1"')
    load(f'hops = 2\nrouting = {{ protocol = "dsdv", gateway = false }}\n{WIRED.replace("sta1", "sta3")}')


@pytest.mark.parametrize("case", ERRORS)
def test_a_wrong_option_is_one_line_with_the_remedy(load, case):
    text, wanted = ERRORS[case]
    assert message(load, text) == wanted


def test_an_option_without_its_protocol_is_refused_with_its_place(load):
    wanted = '--set: key "routing": names no protocol; add protocol = one of static, none, aodv'
    assert message(load, "hops = 2", "routing.link=hello").startswith(wanted)


def test_routing_may_be_an_axis_or_a_variant(tmp_path):
    from testbed.campaigns.experiment import load

    path = tmp_path / "e.toml"
    path.write_text(
        'question = "?"\n[scenario]\nhops = 2\nrouting = "dsr"\n[axes]\n"routing.cache_replies" = [true, false]\n'
        '[[variants]]\nname = "dsr"\n[[variants]]\nname = "ack"\nset = { routing = { protocol = "dsr", link = "ack" } }\n'
    )
    cells = load(path).cells
    assert [(cell.name, cell.scenario.routing.link, cell.scenario.routing.cache_replies) for cell in cells] == [
        ("dsr-routing.cache_repliestrue", "feedback", True), ("dsr-routing.cache_repliesfalse", "feedback", False),
        ("ack-routing.cache_repliestrue", "ack", True), ("ack-routing.cache_repliesfalse", "ack", False),
    ]  # fmt: skip


def test_the_contract_names_every_option_of_our_daemons():
    contract = (ROOT / "formats" / "routing.md").read_text()
    for name in OWN_DAEMONS:
        options = Scenario.model_validate({"hops": 1, "routing": name}).routing.options()
        assert [key for key in options if f"`{key}`" not in contract] == []


def test_options_that_only_the_daemon_can_check_are_refused_before_anything_starts():
    scenario = Scenario.model_validate({"hops": 1, "routing": "dsr"})
    check_routing(scenario, 1, BUILT)
    wrong = scenario.routing.model_copy(update={"max_hops": 0})  # past the checks of here
    with pytest.raises(UsageError, match=r'^scenario: key "routing": dsr: max_hops is 0; give 1 to 60$'):
        check_routing(scenario.model_copy(update={"routing": wrong}), 1, BUILT)


def test_options_that_the_daemon_refuses_are_named_once_with_a_remedy():
    routing = {"protocol": "tora", "low_priority_min": 0.5, "low_priority_max": 0.2}
    scenario = Scenario.model_validate({"hops": 1, "routing": routing})
    refusal = r'^scenario: key "routing.low_priority_min": 0.5 s is more than low_priority_max = 0.2 s; correct it$'
    with pytest.raises(UsageError, match=refusal):
        check_routing(scenario, 1, BUILT)
