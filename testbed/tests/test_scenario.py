"""Scenarios: the result of a valid one, and every error as the one line that the user sees."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import topologies
from scenarios.definition import load_scenario
from scenarios.movement import MODEL_NAMES
from scenarios.overrides import parse_value
from scenarios.routing import OWN_DAEMONS, PRESETS
from scenarios.scenario import Scenario
from scenarios.sending import SACK_OF_PROFILE
from scenarios.tcp import parse
from testbed.errors import UsageError
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.stages import kernel_tcp
from testbed.stages.kernel_tcp import period_notes, profile, sysctls
from testbed.tests.refusals import message

QUOTED = ", ".join(f'"{name}"' for name in OWN_DAEMONS)
PRESET_NAMES = ", ".join(f'"{name}"' for name in PRESETS)
MODELS = ", ".join(f'"{name}"' for name in MODEL_NAMES)
EXAMPLES = Path(__file__).parents[2] / "formats" / "examples"


def test_the_golden_scenario_is_read_as_the_golden_json():
    scenario = load_scenario(EXAMPLES / "scenario.toml")
    assert scenario.to_json() == (EXAMPLES / "scenario.json").read_text()
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_a_chain_gets_a_bulk_flow_from_end_to_end(load):
    scenario = load("hops = 3")
    assert scenario.station_names() == ["sta1", "sta2", "sta3", "sta4"]
    assert [(f.source, f.target, f.traffic) for f in scenario.flows] == [("sta1", "sta4", "bulk")]
    assert scenario.flow_names() == ["flow1"]
    assert scenario.positions()[3].x_m == 600


def test_nodes_may_replace_hops(load):
    assert load("nodes = 4").positions() == load("hops = 3").positions()


def test_only_dsr_has_the_route_errors_that_elfn_may_follow(load):
    keys = 'hops = 2\nflows = [{from = "sta1", to = "sta3", traffic = "bulk", tcp = "elfn(notice=route-error)"}]'
    error = message(load, f'{keys}\nrouting = "aodv"')
    assert '"elfn(newreno, notice=route-error)" follows DSR\'s Route Errors, which routing = "aodv" has not; take' in error
    assert load(f'{keys}\nrouting = "dsr"').tcp_wants_error_notices
    assert not load(f'{keys.replace("route-error", "icmp")}\nrouting = "dsr"').tcp_wants_error_notices


def test_a_cross_gets_a_flow_along_each_arm(load):
    flows = load('topology = "cross"\nhops = 4').flows
    assert [(f.source, f.target) for f in flows] == [("sta1", "sta5"), ("sta6", "sta9")]


def test_quantities_may_carry_their_unit(load):
    scenario = load('hops = 1\nspacing = "0.2 km"\nduration = "2 min"\nrto_min = "200 ms"')
    assert (scenario.spacing, scenario.duration, scenario.rto_min) == (200, 120, 0.2)


def test_a_whole_number_may_be_written_as_a_float_of_integral_value(load):
    """TOML's integers have no exponent."""
    text = 'hops = 2.0\nqueue = 1e2\nseeds = 3e0\n[routing]\nprotocol = "aodv"\nrreq_retries = 4.0'
    scenario = load(text, "window=1e1")
    values = (scenario.hops, scenario.queue, scenario.seeds, scenario.routing.rreq_retries, scenario.window)
    assert values == (2, 100, 3, 4, 10)
    assert {type(value) for value in values} == {int}
    assert scenario == load(text.replace("2.0", "2").replace("1e2", "100").replace("3e0", "3").replace("4.0", "4"), "window=10")


def test_the_scenario_may_be_in_a_table(load):
    assert load("[scenario]\nhops = 2") == load("hops = 2")


def test_set_replaces_keys_and_reaches_into_tables_and_lists(load):
    text = 'hops = 2\n[[flows]]\nfrom = "sta1"\nto = "sta3"'
    disc = ("propagation.model=disc", "propagation.range_m=160", "propagation.sense_m=300")
    scenario = load(text, "tcp=cubic", "spacing=150 m", "flows.0.to=sta2", *disc)
    assert (scenario.tcp.spelled, scenario.spacing, scenario.flows[0].target) == ("cubic", 150, "sta2")
    assert scenario.propagation.for_medium() == {"model": "disc", "range_m": 160.0, "sense_m": 300.0}


def test_newreno_and_sack_are_the_kernels_reno(load):
    scenarios = [load("hops = 1", f"tcp={tcp}") for tcp in ("newreno", "sack", "cubic")]
    assert [s.tcps()[0].kernel_algorithm for s in scenarios] == ["reno", "reno", "cubic"]
    assert [s.sack_of("sta1") for s in scenarios] == [False, True, None]


TWO_FLOWS = 'hops = 2\n[[flows]]\nfrom = "sta1"\nto = "sta2"\n{}\n[[flows]]\nfrom = "sta3"\nto = "sta2"\n{}'


def test_a_tcp_is_kept_parsed_and_recorded_as_text(load):
    scenario = load(TWO_FLOWS.format("tcp = 'elfn(probe=1000ms)'", ""), "tcp=tahoe")
    assert (scenario.tcp, scenario.tcp_of_flows()["flow1"]) == (parse("tahoe"), parse("elfn(newreno, probe=1s)"))
    recorded = json.loads(scenario.to_json())
    assert (recorded["tcp"], [flow["tcp"] for flow in recorded["flows"]]) == ("tahoe", ["elfn(newreno, probe=1s)", None])
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_a_flow_may_have_a_tcp_of_its_own(load):
    scenario = load(TWO_FLOWS.format("tcp = 'elfn(probe=1s)'", ""), "tcp=tahoe")
    assert {name: tcp.spelled for name, tcp in scenario.tcp_of_flows().items()} == {
        "flow1": "elfn(newreno, probe=1s)",
        "flow2": "tahoe",
    }
    assert [tcp.spelled for tcp in scenario.tcps()] == ["tahoe", "elfn(newreno, probe=1s)"]
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert load("hops = 2", "flows=[{from='sta1',to='sta2',tcp='vegas'}]").tcp_of_flows()["flow1"].spelled == "vegas"


def test_an_invalid_tcp_is_reported_with_its_key(load):
    assert message(load, 'hops = 1\ntcp = "elfn(prob=2s)"') == (
        'x.toml: line 2: key "tcp": "elfn" has no parameter "prob"; did you mean "probe"?'
    )
    assert message(load, TWO_FLOWS.format("", 'tcp = "elfn(probe=2)"')) == (
        'x.toml: line 9: key "flows.1.tcp": probe of elfn: 2 has no unit; write 2s or 2ms (units: s, ms, us, min)'
    )
    assert message(load, "hops = 1", "tcp=[1]") == '--set: key "tcp": the list [1] is of the wrong type; give text in quotes'
    cbr = 'traffic = "cbr"\nrate = 1e5\nbytes = 100\ntcp = "newreno"'
    assert message(load, TWO_FLOWS.format(cbr, "")) == (
        'x.toml: line 8: key "flows.0.tcp": a "cbr" flow has no TCP; remove it, or set traffic = "bulk" or "transfer" or "web"'
    )


BETWEEN = 'hops = 2\nflows = [{{ from = "sta1", to = "sta2", tcp = "{}" }}, {{ from = "{}", to = "sta2", tcp = "{}" }}]'


def test_the_flows_at_a_station_are_those_of_the_scenario_that_is_asked():
    """Their index is made once, and a copy with other flows has its own."""
    flows = [{"from": "sta1", "to": "sta2", "tcp": "vegas"}, {"from": "sta3", "to": "sta1", "tcp": "tahoe"}]
    both = Scenario.model_validate({"hops": 2, "flows": flows})
    assert [number for number, _ in both.tcp_flows_at("sta1")] == [0, 1] and both.tcp_flows_at("sta9") == []
    one = both.model_copy(update={"flows": both.flows[1:]})
    for _ in range(2):
        assert [tcp.spelled for tcp in one.tcps_at("sta1")] == ["tahoe"]
        assert [tcp.spelled for tcp in both.tcps_at("sta1")] == ["vegas", "tahoe"]
    assert both == Scenario.model_validate({"hops": 2, "flows": flows}) and both.to_json() != one.to_json()


def test_flows_between_the_same_stations_must_agree_on_sack(load):
    assert message(load, BETWEEN.format("sack", "sta1", "tahoe")) == (
        'x.toml: line 2: key "flows.1.tcp": flow2 is without SACK, but sta1 and sta2 have it for flow1, and a station has it '
        "for all or none; give them TCPs that agree, or other ends"
    )
    assert "flow1 is without SACK" in message(load, BETWEEN.format("newreno", "sta1", "cubic"), "profile=modern")
    load(BETWEEN.format("newreno", "sta1", "cubic"))  # `period` has it off


@pytest.mark.parametrize(
    ("tcps", "profile", "sack"),
    [
        (("sack", "tahoe"), "period", [True, True, False]),  # a common end: one of two is enough to do without
        (("sack", "cubic"), "modern", [True, True, None]),
        (("tahoe", "cubic"), "modern", [False, True, None]),
        (("cubic", "bbr"), "period", [None, None, None]),
    ],
)
def test_which_stations_offer_sack(load, tcps, profile, sack):
    scenario = load(BETWEEN.format(tcps[0], "sta3", tcps[1]), f"profile={profile}")
    assert [scenario.sack_of(name) for name in ("sta1", "sta2", "sta3")] == sack


def test_atcp_has_ecn_at_both_ends(load):
    scenario = load(BETWEEN.format("atcp", "sta3", "newreno"))
    assert [scenario.ecn_of(name) for name in ("sta1", "sta2", "sta3")] == [True, True, None]
    assert sysctls(scenario, "sta1")["net.ipv4.tcp_ecn"] == 1 and sysctls(scenario, "sta3")["net.ipv4.tcp_ecn"] == 0
    assert "flow2 is without ECN" in message(load, BETWEEN.format("atcp", "sta1", "newreno"))


@pytest.mark.parametrize(
    ("keys", "who"),
    [
        ('routing = "babeld"', 'routing = "babeld"'),
        ('routing = "batman-adv"', 'routing = "batman-adv"'),
        ('routing = "none"\nstations = "hwsim"\nhwsim.mode = "mesh"', "the kernel's mesh"),
    ],
)
def test_tcpap_without_the_length_of_the_path_is_refused(load, keys, who):
    error = message(load, f'hops = 2\ntcp = "tcpap"\n{keys}')
    assert f'"tcpap" paces by the length of the path, which {who} does not tell; write it, as tcpap(hops=4), or take' in error
    load(f'hops = 2\ntcp = "tcpap(hops=2)"\n{keys}')


@pytest.mark.parametrize("routing", ["static", "none", *OWN_DAEMONS])
def test_tcpap_is_accepted_if_the_length_of_the_path_is_known(load, routing):
    load(f'hops = 2\ntcp = "elfn(tcpap)"\nrouting = "{routing}"')


def test_sack_of_each_profile_is_that_of_its_file():
    period, modern = (profile(name).get("sysctl", {}) for name in ("period", "modern"))
    assert {"period": bool(period["net.ipv4.tcp_sack"]), "modern": True} == SACK_OF_PROFILE
    assert "net.ipv4.tcp_sack" not in modern  # Linux's own, which is on


def test_the_daemons_send_notices_if_a_tcp_needs_them(load):
    assert [load("hops = 1", f"tcp={tcp}").tcp_wants_notices for tcp in ("elfn", "tcpf", "tcpbus(sack)")] == [False, True, True]
    assert load(TWO_FLOWS.format("", "tcp = 'tcpf'")).tcp_wants_notices


def test_only_stated_tcp_settings_override_the_profile(load):
    stated = load("hops = 1\nwindow = 8\nrto_min = 0.2\nrto_max = 60\ndelayed_ack = false").tcp_settings()
    assert stated == {
        "algorithm": "newreno", "window_segments": 8, "rto_min_us": 200_000, "rto_max_ms": 60_000, "delayed_ack": False,
    }  # fmt: skip


def test_sizes_have_ranges_and_a_unit(load):
    assert (load("hops = 1").mtu, load("hops = 1").mss) == (1500, None)
    scenario = load('hops = 1\nmtu = "1200 bytes"\nmss = 1000')
    assert (scenario.mtu, scenario.mss, scenario.tcp_settings()["mss"]) == (1200, 1000, 1000)
    assert load("hops = 1\nmtu = 1540").tcp_settings() == {"algorithm": "newreno"}
    for text, wanted in (
        ("mss = 87", 'key "mss": 87 is out of range; give at least 88 bytes'),
        ("mss = 2257", "give at most 2256 bytes"),
        ("mtu = 575", 'key "mtu": 575 is out of range; give at least 576 bytes'),
        ("mtu = 2297", "give at most 2296 bytes"),
        ("mtu = 1000.5", "give a whole number in bytes (size)"),
        ('mss = "1 s"', '"1 s" has the unit "s", but a size is expected; give a number in bytes'),
        ("mtu = 1000\nmss = 1000", "40 bytes of headers, more than mtu = 1000; lower it to 960, or raise mtu"),
        ("mtu = 1279\nipv6 = true", "IPv6 needs an MTU of 1280 (RFC 8200, 5)"),
        ("mtu = 1279\nrouting = 'babeld'", "IPv6 needs an MTU of 1280 (RFC 8200, 5)"),
        ("mtu = 1000\nflows = [{from='sta1',to='sta2',traffic='cbr',rate=1e5,bytes=1001}]", "above mtu = 1000"),
        ("routing = 'dsr'\nmss = 1460", "72 bytes of DSR's options"),
        ("mtu = 1600\ntcp = 'elfn'", "a layer sends copies of at most 1500 bytes; add mss = 1460"),
    ):
        assert wanted in message(load, f"hops = 1\n{text}"), text
    assert load("hops = 1\nmtu = 1572\nrouting = 'dsr'\nmss = 1460").mtu == 1572


@pytest.mark.parametrize(
    ("keys", "note"),
    [
        ("tcp = 'cubic'", 'tcp "cubic" runs under the profile "period": a window of 8 segments, no SACK'),
        ("tcp = 'elfn(bbr)'\nwindow = 32", 'tcp "elfn(bbr)" runs under the profile "period": a window of 32 segments, no SACK'),
        ("tcp = 'cubic'\nprofile = 'modern'", None),
        ("hops = 1", None),
        ("tcp = 'vegas'", None),
        ("tcp = 'kernel-vegas'", None),
        ("flows = [{from='sta1',to='sta2',tcp='dctcp'}]", 'tcp "dctcp" runs under the profile "period"'),
    ],
)
def test_a_modern_algorithm_under_the_papers_profile_is_noted(load, keys, note):
    notes = period_notes([load(keys if "hops" in keys else f"hops = 1\n{keys}")])
    assert [(note in line, "--set profile=modern" in line) for line in notes] == ([(True, True)] if note else [])


def test_a_network_without_flows_is_accepted_with_a_note(load):
    scenario = load("hops = 1\nflows = []")
    assert (scenario.flows, scenario.tcp_of_flows(), scenario.traffic_seconds()) == ((), {}, 35)
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert json.loads(scenario.to_json())["flows"] == []


def test_a_random_layout_is_the_seed_s_and_waypoints_begin_with_the_traffic(load):
    scenario = load('topology = "random"\nnodes = 5\narea = [1500, 300]\nmobility = "random-waypoint"\nspeed = "72 km/h"')
    assert scenario.positions(1) != scenario.positions(2)
    assert [place.name for place in scenario.positions(2)] == scenario.station_names() == [f"sta{i}" for i in range(1, 6)]
    assert (scenario.speed, scenario.pause, scenario.traffic_at) == (20, 0, 10)


def test_a_host_may_have_several_wires_and_is_one_host(load):
    wires = '[{station="sta1",host="h"},{station="sta3",host="h"},{station="sta3",host="i"}]'
    assert load(f"hops = 2\nwires = {wires}").host_names() == ["h", "i"]


def test_the_traffic_lasts_until_the_last_flow_has_been_measured(load):
    text = 'hops = 2\nwarmup = 5\nduration = 30\nflows = [{from="sta1",to="sta3"},{from="sta3",to="sta1",start=12}]'
    assert load(text).traffic_seconds() == 47


HT = 'hops = 2\nradio = "dot11n-ht20"\n'
FLOW = '[[flows]]\nfrom = "sta1"\nto = "sta3"\n'
ERRORS = {
    "unknown key": ("hops = 2\nspacin = 200", 'x.toml: line 2: key "spacin": unknown key; did you mean "spacing"?'),
    "unknown key in a flow": (
        f"hops = 2\n{FLOW}\n{FLOW}ratee = 3",
        'x.toml: line 9: key "flows.1.ratee": unknown key; did you mean "rate"?',
    ),
    "wrong unit": (
        'hops = 2\nspacing = "200 s"',
        'x.toml: line 2: key "spacing": "200 s" has the unit "s", but a distance is expected; '
        "give a number in m, or text with one of m, km, cm",
    ),
    "no unit": (
        'hops = 2\nduration = "30"',
        'x.toml: line 2: key "duration": "30" has no unit, but a time is expected; '
        "give a number in s, or text with one of s, ms, us, min",
    ),
    "negative distance": (
        "hops = 2\nspacing = -200",
        'x.toml: line 2: key "spacing": -200 is out of range; give more than 0 m',
    ),
    "rates of a TAP radio for those of the kernel": (
        'hops = 2\nradio = "dot11g-54m"\nrate_control = "minstrel"\nstations = "hwsim"',
        'x.toml: line 3: key "rate_control": is for TAP radios; those of hwsim have hwsim = { rates = "kernel" }',
    ),
    "an MCS of the wrong type": (
        'hops = 2\nradio = "dot11n-ht20"\nradio_overrides = { mcs = "x" }',
        'x.toml: line 3: key "radio_overrides.mcs": "x" is of the wrong type; give a whole number',
    ),
    "categories that are no table": (
        f"{HT}radio_overrides = {{ access_categories = 3 }}",
        'x.toml: line 3: key "radio_overrides.access_categories": 3 is of the wrong type; '
        "give a table with background, best_effort, video, voice",
    ),
    "a category that is no table": (
        f'{HT}radio_overrides.access_categories = {{ voice = "x" }}',
        'x.toml: line 3: key "radio_overrides.access_categories.voice": "x" is of the wrong type; '
        "give a table with aifsn, cw_min, cw_max, txop_us",
    ),
    "a misspelt category": (
        f"{HT}radio_overrides.access_categories = {{ vioce = {{ aifsn = 3 }} }}",
        'x.toml: line 3: key "radio_overrides.access_categories.vioce": unknown key; did you mean "voice"?',
    ),
    "a part of a category of the wrong type": (
        f'{HT}radio_overrides.access_categories = {{ voice = {{ aifsn = "a" }} }}',
        'x.toml: line 3: key "radio_overrides.access_categories.voice.aifsn": "a" is of the wrong type; '
        "give a whole number in slots",
    ),
    "an aggregation that is none": (
        f'{HT}aggregation = "x"',
        'x.toml: line 3: key "aggregation": "x" is of the wrong type; give true or false, or a whole number in MPDUs, '
        "or a table with max_mpdus, max_bytes, request_after_silence",
    ),
    "an aggregation that is a list": (
        f"{HT}radio_overrides = {{ aggregation = [1] }}",
        'x.toml: line 3: key "radio_overrides.aggregation": [1] is of the wrong type; give true or false, '
        "or a whole number in MPDUs, or a table with max_mpdus, max_bytes, request_after_silence",
    ),
    "a number of MPDUs out of range": (
        f"{HT}aggregation = 65",
        'x.toml: line 3: key "aggregation": 65 is out of range; give at most 64 MPDUs',
    ),
    "an unknown limit of aggregates": (
        f"{HT}aggregation = {{ mpdus = 3 }}",
        'x.toml: line 3: key "aggregation.mpdus": unknown key; did you mean "max_mpdus"?',
    ),
    "rates that are no list": (
        f"{HT}radio_overrides = {{ basic_rates_bps = 3 }}",
        'x.toml: line 3: key "radio_overrides.basic_rates_bps": 3 is of the wrong type; '
        "give a list, each a whole number in bit/s",
    ),
    "an override that is a key of the scenario, too": (
        'hops = 2\nreception = "sinr"\nradio_overrides = { reception = "threshold" }',
        'x.toml: line 3: key "radio_overrides.reception": is there twice; leave it out, as the scenario has reception',
    ),
    "a discipline that no queue has": (
        'hops = 2\nqueue = "red"',
        'x.toml: line 2: key "queue": "red" is not known; use one of "drop-tail", "fq-codel", or a number of packets',
    ),
    "a radio that the kernel's radios have not": (
        'hops = 2\nradio = "dot11ac-vht80"\nstations = "hwsim"',
        'x.toml: line 2: key "radio": "dot11ac-vht80" is for TAP stations; hwsim stations have 802.11b, g, a and n '
        "(docs/hwsim.md)",
    ),
    "aggregates of the kernel's radios": (
        'hops = 2\nradio = "dot11n-ht20"\nstations = "hwsim"',
        'x.toml: line 2: key "radio": "dot11n-ht20" aggregates, and hwsim stations send each frame by itself; '
        "add aggregation = false",
    ),
    "zero stations": ("nodes = 0", 'x.toml: line 1: key "nodes": 0 is out of range; give at least 1'),
    "no positions": (
        'topology = "positions"\npositions = []',
        'x.toml: line 2: key "positions": 0 stations are outside 1 to 2000; give another number of stations',
    ),
    "one station": ("nodes = 1", "x.toml: line 1: a single station has no peer; give at least two stations"),
    "too many stations": ("hops = 5000", 'x.toml: line 1: key "hops": 5000 is out of range; give at most 1999'),
    "a station named twice": (
        'topology = "positions"\npositions = [\n  [0, 0],\n  { name = "sta1", at = [1, 2] },\n]',
        'x.toml: line 2: key "positions": two stations are named "sta1"; give each its own name',
    ),
    "a position out of range": (
        'topology = "positions"\npositions = [[0, 0], [-2e7, 1]]',
        'x.toml: line 2: key "positions.1.at.0": -20000000.0 is out of range; give at least -1e+07 m',
    ),
    "a position that is text": (
        'topology = "positions"\npositions = [\n  [0, 0],\n  [1, "x"],\n]',
        'x.toml: line 4: key "positions.1.at.1": "x" is not a distance; give a number in m, or text with one of m, km, cm',
    ),
    "a station outside the area": (
        "hops = 2\narea = [300, 300]",
        'x.toml: line 2: key "area": sta3 at (400, 0) m is outside 300 x 300 m; enlarge the area or move the station',
    ),
    "text for a number": ('hops = "2"', 'x.toml: line 1: key "hops": "2" is of the wrong type; give a whole number'),
    "a fraction for a whole number": (
        "hops = 2.5",
        'x.toml: line 1: key "hops": 2.5 is of the wrong type; give a whole number',
    ),
    "true for a number": (
        "hops = 2\nduration = true",
        'x.toml: line 2: key "duration": true is of the wrong type; give a number in s (time)',
    ),
    "a number for true": ("hops = 2\nipv6 = 1", 'x.toml: line 2: key "ipv6": 1 is of the wrong type; give true or false'),
    "not finite": (
        "hops = 2\nduration = nan",
        'x.toml: line 2: key "duration": nan is not a finite number; give a time in s',
    ),
    "not among the choices": (
        'hops = 2\nrouting = "olsrr"',
        f'x.toml: line 2: key "routing": "olsrr" is not known; use one of "static", "none", {QUOTED}, '
        f'"aodv-uu", "babeld", "batmand", "bird-babel", "frr-babel", "olsrd", "olsrd2", '
        f'"batman-adv", {PRESET_NAMES} (did you mean "olsr"?)',
    ),
    "what TAP radios have not": (
        'hops = 2\nhwsim = { mode = "mesh" }',
        'x.toml: line 2: key "hwsim": is for stations = "hwsim"; TAP radios have neither mode nor rates of their own',
    ),
    "stations of Mininet-WiFi with TAPs": (
        'hops = 2\nnet = "mininet-wifi"',
        'x.toml: line 2: key "net": stations of Mininet-WiFi have the radios of mac80211_hwsim; add stations = "hwsim"',
    ),
    "stations of Mininet-WiFi in a mesh": (
        'hops = 2\nnet = "mininet-wifi"\nstations = "hwsim"\nhwsim = { mode = "mesh" }',
        'x.toml: line 4: key "hwsim.mode": stations of Mininet-WiFi are in an ad hoc network here, not in "mesh"; '
        "leave it out, or net",
    ),
    "a name that Mininet-WiFi makes too long": (
        'topology = "positions"\npositions = [{ name = "gateway1", at = [0, 0] }, { name = "gateway-10", at = [9, 0] }]\n'
        'net = "mininet-wifi"\nstations = "hwsim"',
        'x.toml: line 2: key "positions": "gateway-10" is too long for Mininet-WiFi, which adds "-wlan0" to it; '
        "use at most 9 characters",
    ),
    "flows of radios that are in no network": (
        'hops = 2\nstations = "hwsim"\nhwsim = { mode = "managed" }',
        'x.toml: line 3: key "hwsim.mode": "managed" radios join no network by themselves, so that no flow arrives; '
        'add flows = [] and configure them at the prompt, or take "ibss", "mesh" or "ocb"',
    ),
    "a queue that hwsim would cut": (
        'hops = 2\nstations = "hwsim"\nqueue = 91',
        'x.toml: line 3: key "queue": 91 is above 90: hwsim throws away what waits beyond 200',
    ),
    "a queue that hwsim cannot have": (
        'hops = 2\nstations = "hwsim"\nqueue_discipline = "fq-codel"',
        'x.toml: line 3: key "queue_discipline": "fq-codel" is for TAP radios, as hwsim throws away what waits beyond 200; '
        'leave it out, or stations = "tap"',
    ),
    "EDCA of radios whose MAC is the kernel's": (
        'hops = 2\nradio = "dot11g-54m"\nstations = "hwsim"\naccess = "edca"',
        'x.toml: line 4: key "access": is for TAP radios, as mac80211 orders its frames itself; '
        'leave it out, or stations = "tap"',
    ),
    "no such access": (
        'hops = 2\naccess = "wmm"',
        'x.toml: line 2: key "access": "wmm" is not known; use one of "dcf", "edca"',
    ),
    "no such queue": (
        'hops = 2\nqueue_discipline = "red"',
        'x.toml: line 2: key "queue_discipline": "red" is not known; use one of "drop-tail", "fq-codel"',
    ),
    "no such radio": (
        'hops = 2\nradio = "ns2"',
        'x.toml: line 2: key "radio": "ns2" is no radio profile of medium/radios; use one of dot11a-54m, dot11ac-vht80, '
        "dot11ah-1m, dot11ah-2m, dot11ax-he20, dot11ax-he80, dot11b-11m, dot11g-54m, dot11n-ht20, dot11n-ht40, hv-dsss-2m, "
        "hv-dsss-2m-alt, mikrotik-hap-lite, ns2-dsss-1m, ns2-dsss-2m, taixin-tx-ah-r900p, toplinkst-top-5m01, toplinkst-top-s5, "
        "or the path of a file of your own",
    ),
    "no such key of the radio": (
        "hops = 2\nradio_overrides = { cw_mim = 15 }",
        'x.toml: line 2: key "radio_overrides.cw_mim": unknown key; did you mean "cw_min"?',
    ),
    "a flow to nobody": (
        'hops = 2\n[[flows]]\nfrom = "sta1"\nto = "sta9"',
        'x.toml: line 4: key "flows.0.to": there is no station "sta9"; the stations are sta1 to sta3',
    ),
    "a flow to itself": (
        'hops = 2\n[[flows]]\nfrom = "sta1"\nto = "sta1"',
        'x.toml: line 4: key "flows.0.to": "sta1" is also "from"; name another station',
    ),
    "cbr without a rate": (
        f'hops = 2\n{FLOW}traffic = "cbr"',
        'x.toml: line 2: key "flows.0": a "cbr" flow needs "rate"; add rate = 100_000',
    ),
    "a key of another topology": (
        "hops = 2\nrows = 3",
        'x.toml: line 2: key "rows": topology "chain" does not use it; remove it',
    ),
    "nodes against hops": (
        "hops = 2\nnodes = 7",
        'x.toml: line 2: key "nodes": 7 nodes contradict 2 hops; remove one of the two keys',
    ),
    "a missing key": ('topology = "grid"\nrows = 3', 'x.toml: line 1: topology "grid" needs "columns"; add it'),
    "a missing key of a table": (
        "# a chain\n\n[scenario]\nspacing = 100",
        'x.toml: line 3: a "chain" needs "hops"; add hops = 5',
    ),
    "a missing key of a flow": (
        'hops = 2\n\n[[flows]]\nfrom = "sta1"',
        'x.toml: line 3: key "flows.0.to": is missing; add it',
    ),
    "a list for a number": (
        "hops = [2, 3]",
        'x.toml: line 1: key "hops": the list [2, 3] is of the wrong type; give a whole number',
    ),
    "a list for one of several names": (
        'hops = 2\nprofile = ["period"]',
        'x.toml: line 2: key "profile": the list ["period"] is of the wrong type; give one of "period", "modern"',
    ),
    "a table for a time": (
        "hops = 2\nduration = { s = 3 }",
        'x.toml: line 2: key "duration": a table is of the wrong type; give a number in s (time)',
    ),
    "a date for a number": (
        "hops = 2002-01-02",
        'x.toml: line 1: key "hops": the date 2002-01-02 is of the wrong type; give a whole number',
    ),
    "a number for a list": (
        "hops = 2\narea = 500",
        'x.toml: line 2: key "area": 500 is of the wrong type; give a list of numbers in m (distance)',
    ),
    "a list for a name or a table": (
        'hops = 2\nrouting = ["aodv"]',
        'x.toml: line 2: key "routing": the list ["aodv"] is of the wrong type; give a name in quotes or a table',
    ),
    "a number for the scenario": (
        "scenario = 5",
        "x.toml: line 1: scenario = 5 is of the wrong type; write a table [scenario]",
    ),
    "a key that stands twice": (
        "hops = 2\nspacing = 100\nhops = 3",
        'x.toml: line 3: key "hops": stands twice, first in line 1; remove one of the two',
    ),
    "a key that stands twice in a table": (
        "# two hops\n[scenario]\nhops = 2\narea = [\n 900,\n 100,\n]\narea = [\n 500,\n 100,\n]",
        'x.toml: line 8: key "area": stands twice, first in line 4; remove one of the two',
    ),
    "a key that stands twice in an inline table": (
        'hops = 2\nrouting = { protocol = "aodv", protocol = "dsr" }',
        'x.toml: line 2: key "routing.protocol": stands twice, first in line 2; remove one of the two',
    ),
    "a table that stands twice": (
        "[scenario]\nhops = 2\n[scenario]\nspacing = 100",
        "x.toml: line 3: the table [scenario] stands twice, first in line 1; make one table of both",
    ),
    "a key that is also a table": (
        'hops = 2\nrouting = "aodv"\n[routing]\nlink = "hello"',
        'x.toml: line 3: key "routing": stands twice, first in line 2; remove one of the two',
    ),
    "an unclosed parenthesis in a TCP": (
        'hops = 2\ntcp = "elfn(newreno, probe=2s"',
        'x.toml: line 2: key "tcp": a parenthesis is not closed in "elfn(newreno, probe=2s"; add ")"',
    ),
    "a base in the table": (
        '[scenario]\nbase = "y.toml"\nhops = 2',
        'x.toml: line 2: key "base": unknown key here; it stands at the top of a file, before all tables',
    ),
    "a base that is misspelt": (
        'bsae = "y.toml"\n[scenario]\nhops = 2',
        'x.toml: line 1: key "bsae": unknown key outside [scenario]; did you mean "base"?',
    ),
    "a propagation key of another model": (
        'hops = 2\npropagation = { model = "two-ray", exponent = 3 }',
        'x.toml: line 2: key "propagation.exponent": the model "two-ray" has no "exponent"; remove it',
    ),
    "an error rate above one": (
        "hops = 2\n[[links]]\nerror_rate = 1.5",
        'x.toml: line 3: key "links.0.error_rate": 1.5 is out of range; give at most 1',
    ),
    "a wire without a gateway": (
        'hops = 2\n[[wires]]\nstation = "sta4"\nhost = "host1"',
        'x.toml: line 3: key "wires.0.station": there is no station "sta4"; the stations are sta1 to sta3',
    ),
    "a wire to a station": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "sta1"',
        'x.toml: line 4: key "wires.0.host": "sta1" is a station already; give the host a name of its own',
    ),
    "two wires between the same": (
        'hops = 2\nwires = [{station="sta3",host="h"},{station="sta3",host="h"}]',
        'x.toml: line 2: key "wires.1.host": "h" has a wire to sta3 already; take one out, or give this host another name',
    ),
    "an event that is none": (
        "hops = 2\nevents = [{at=1}]",
        'x.toml: line 2: key "events.0": has no kind of event; add one of power, link, move, cut, wire, daemon, command',
    ),
    "an event that is two": (
        'hops = 2\n[[events]]\nat = 1\npower = "sta1"\non = true\nmove = "sta1"\nto = [1, 2]',
        'x.toml: line 6: key "events.0.move": says both "power" and "move"; make two events of it',
    ),
    "a daemon's event without daemons": (
        'hops = 2\nevents = [{at=1, daemon="kill", station="sta1"}]',
        'x.toml: line 2: key "events.0.daemon": routing "static" has no daemon; choose a protocol with a daemon',
    ),
    "a daemon's event of batman-adv": (
        'hops = 2\nrouting = "batman-adv"\nevents = [{at=1, daemon="kill", station="sta1"}]',
        'x.toml: line 3: key "events.0.daemon": routing "batman-adv" has no daemon; choose a protocol with a daemon',
    ),
    "a daemon that is started twice": (
        'hops = 2\nrouting = "aodv"\nevents = [{at=1, daemon="start", station="sta1"}]',
        'x.toml: line 3: key "events.0.daemon": the daemon of sta1 runs at 1 s; write "restart", or stop it before',
    ),
    "a daemon that is killed twice": (
        'hops = 2\nrouting = "aodv"\n[[events]]\nat = 2\ndaemon = "kill"\nstation = "sta1"\n'
        '[[events]]\nat = 1\ndaemon = "stop"\nstation = "sta1"',
        'x.toml: line 5: key "events.0.daemon": the daemon of sta1 does not run at 2 s; write "start"',
    ),
    "a daemon's event without a station": (
        'hops = 2\nrouting = "aodv"\nevents = [{at=1, daemon="kill"}]',
        'x.toml: line 3: key "events.0": a "daemon" event needs "station"; add it',
    ),
    "a daemon's event that is none": (
        'hops = 2\nrouting = "aodv"\nevents = [{at=1, daemon="kil", station="sta1"}]',
        'x.toml: line 3: key "events.0.daemon": "kil" is not known; use one of "start", "stop", "restart", "kill" '
        '(did you mean "kill"?)',
    ),
    "a daemon's event of a host": (
        'hops = 2\nrouting = "aodv"\nwires = [{station="sta3",host="h"}]\nevents = [{at=1, daemon="kill", station="h"}]',
        'x.toml: line 4: key "events.0.station": "h" is a wired host, which has no radio; name a station',
    ),
    "a command without a station": (
        'hops = 2\nevents = [{at=1, command=["true"]}]',
        'x.toml: line 2: key "events.0": a "command" event needs "station"; add it',
    ),
    "a command as one text": (
        'hops = 2\nevents = [{at=1, command="iperf3 -s", name="s"}]',
        'x.toml: line 2: key "events.0.command": "iperf3 -s" is not known; give the words of a command as a list, or one of '
        '"stop", "kill", "restart"',
    ),
    "a command without a program": (
        'hops = 2\nevents = [{at=1, command=["{sta1}"], station="sta1"}]',
        'x.toml: line 2: key "events.0.command": its first word must be the name or path of a program; write it there',
    ),
    "a command with an unknown field": (
        'hops = 2\nevents = [{at=1, command=["ping", "{sta9}"], station="sta1"}]',
        'x.toml: line 2: key "events.0.command": {sta9} stands for the address of a station, and there is none of that name; '
        "write {{ and }} for braces of the word itself",
    ),
    "a command with braces": (
        'hops = 2\nevents = [{at=1, command=["echo", "{}"], station="sta1"}]',
        'x.toml: line 2: key "events.0.command": "{}" has a field without a station\'s name; '
        "write {{ and }} for braces of the word itself",
    ),
    "a name of no command": (
        'hops = 2\nevents = [{at=1, command="kill", name="x"}]',
        'x.toml: line 2: key "events.0.name": no event before starts a command "x"',
    ),
    "a command that is killed before its start": (
        'hops = 2\n[[events]]\nat = 1\ncommand = "kill"\nname = "x"\n'
        '[[events]]\nat = 2\nstation = "sta1"\ncommand = ["true"]\nname = "x"',
        'x.toml: line 5: key "events.0.name": no event before starts a command "x"',
    ),
    "two commands of one name": (
        'hops = 2\n[[events]]\nat = 1\nstation = "sta1"\ncommand = ["true"]\nname = "x"\n'
        '[[events]]\nat = 2\nstation = "sta1"\ncommand = ["true"]\nname = "x"',
        'x.toml: line 11: key "events.1.name": "x" is the name of an earlier command; give another',
    ),
    "a command with a path for a name": (
        'hops = 2\nevents = [{at=1, command=["true"], station="sta1", name="../x"}]',
        'x.toml: line 2: key "events.0.name": "../x" is no name of a command; use at most 32 of a-z, 0-9 and "-"',
    ),
    "an event without what it needs": (
        'hops = 2\nevents = [{at=1, power="sta1"}]',
        'x.toml: line 2: key "events.0": a "power" event needs "on"; add it',
    ),
    "an event with another's key": (
        'hops = 2\nevents = [{at=1, power="sta1", on=false, speed=3}]',
        'x.toml: line 2: key "events.0.speed": a "power" event has no "speed"; remove it',
    ),
    "an event after the end": (
        'hops = 2\nwarmup = 5\nduration = 10\nevents = [{at=16, power="sta1", on=false}]',
        'x.toml: line 4: key "events.0.at": 16 s is after the end of the traffic at 15 s; give an earlier time',
    ),
    "a move out of the area": (
        'hops = 2\narea = [900, 300]\nevents = [{at=1, move="sta1", to=[90, 301]}]',
        'x.toml: line 3: key "events.0.to": sta1 would go to (90, 301) m, outside the area of 900 x 300 m; correct the place, '
        "or give a larger area",
    ),
    "an event of nobody": (
        'hops = 2\nevents = [{at=1, link=["sta1","sta9"], error_rate=1}]',
        'x.toml: line 2: key "events.0.link.1": there is no station "sta9"; name one of the scenario\'s',
    ),
    "an event of a wired host": (
        'hops = 2\nwires = [{station="sta3",host="h"}]\nevents = [{at=1, power="h", on=false}]',
        'x.toml: line 3: key "events.0.power": "h" is a wired host, which has no radio; name a station',
    ),
    "a move to a station": (
        'hops = 2\nevents = [{at=1, move="sta1", to="sta2"}]',
        'x.toml: line 2: key "events.0.to": a "move" goes to a place; give to = [x, y], in metres',
    ),
    "a move to a number": (
        'hops = 2\nevents = [{at=1, move="sta1", to=5}]',
        'x.toml: line 2: key "events.0.to": 5 is of the wrong type; give text in quotes or a list of numbers in m (distance)',
    ),
    "a move to a list with text": (
        'hops = 2\nevents = [{at=1, move="sta1", to=[1, "x"]}]',
        'x.toml: line 2: key "events.0.to.1": "x" is not a distance; give a number in m, or text with one of m, km, cm',
    ),
    "a move out of the world": (
        'hops = 2\nevents = [{at=1, move="sta1", to=[-2e7, 0]}]',
        'x.toml: line 2: key "events.0.to.0": -20000000.0 is out of range; give at least -1e+07 m',
    ),
    "a cut of the way to a place": (
        'hops = 2\nevents = [{at=1, cut="next-hop", from="sta1", to=[1, 2]}]',
        'x.toml: line 2: key "events.0.to": a "cut" is of the path to a station or host; give its name',
    ),
    "a random layout without an area": (
        'topology = "random"\nnodes = 5',
        'x.toml: line 1: topology "random" needs "area"; add area = [1500, 300]',
    ),
    "random waypoint without a speed": (
        'hops = 2\nmobility = "random-waypoint"\narea = [500, 500]',
        'x.toml: line 1: mobility "random-waypoint" needs "speed"; add speed = 10',
    ),
    "a pause without a model": (
        "hops = 2\npause = 3",
        'x.toml: line 2: key "pause": mobility "static" has no pause of its own; remove it',
    ),
    "a host's name with a dot": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "www.x"',
        'x.toml: line 4: key "wires.0.host": "www.x" is no host name; use at most 10 of a-z, 0-9 and "-", '
        "beginning with a letter",
    ),
    "a wire too slow": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "h"\nrate = 100',
        'x.toml: line 5: key "wires.0.rate": 100 is out of range; give at least 1000 bit/s',
    ),
    "a negative delay": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "h"\ndelay = -1',
        'x.toml: line 5: key "wires.0.delay": -1 is out of range; give at least 0 s',
    ),
    "a wire without a queue": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "h"\nqueue = 0',
        'x.toml: line 5: key "wires.0.queue": 0 is out of range; give at least 1',
    ),
    "an unknown key of a wire": (
        'hops = 2\n[[wires]]\nstation = "sta3"\nhost = "h"\nlatency = 1',
        'x.toml: line 5: key "wires.0.latency": unknown key; the keys here are station, host, rate, delay, queue, nat',
    ),
    "a flow to neither station nor host": (
        'hops = 2\nwires = [{station="sta3",host="h"}]\nflows = [{from="sta1",to="x"}]',
        'x.toml: line 3: key "flows.0.to": there is no station "x"; the stations are sta1 to sta3, the hosts h',
    ),
    "a radio link of a host": (
        'hops = 2\nwires = [{station="sta3",host="h"}]\nlinks = [{from="h",error_rate=0.1}]',
        'x.toml: line 3: key "links.0.from": "h" is a wired host, which has no radio; name a station',
    ),
    "not TOML": ("hops = 2\nspacing =\n", "x.toml: line 2: not TOML: Invalid value; see https://toml.io for the syntax"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_names_file_line_key_and_remedy(load, case):
    text, wanted = ERRORS[case]
    assert message(load, text) == wanted


def test_an_error_in_set_names_set(load):
    assert message(load, "hops = 2", "hops=x") == '--set: key "hops": "x" is of the wrong type; give a whole number'
    assert message(load, "hops = 2", "hops") == "--set hops: is not key=value; write for example --set hops=3"
    assert message(load, "hops = 2", "foo=1").startswith('--set: key "foo": unknown key; the keys here are topology, hops')


def test_set_into_implicit_flows_names_the_default(load):
    wanted = (
        '--set flows.0.to=sta2: the scenario has no key "flows"; by default there is one, sta1 to the last station '
        '(of a cross: one along each arm); write --set \'flows=[{from="sta1", to="sta2"}]\''
    )
    assert message(load, "hops = 2", "flows.0.to=sta2") == wanted
    assert (
        message(load, "hops = 2", "events.0.at=1") == '--set events.0.at=1: the scenario has no key "events"; give the whole list'
    )
    load("hops = 2", 'flows=[{from="sta1", to="sta2"}]')


def test_errors_in_the_file_and_in_set_name_a_flow_equally(load):
    errors = [
        message(load, 'hops = 2\nflows = [{from = "sta1", to = "zzz"}]'),
        message(load, "hops = 2", 'flows=[{from="sta1", to="zzz"}]'),
    ]
    assert all('key "flows.0.to": there is no station "zzz"' in text for text in errors)


@pytest.mark.parametrize("key", ["hops", "nodes"])
def test_an_error_of_a_layout_names_the_count_that_the_scenario_gives(monkeypatch, load, key):
    def refused(*_: object) -> None:
        raise topologies.LayoutError("no such chain; give another")

    monkeypatch.setattr(topologies, "chain", refused)
    assert message(load, f"{key} = 2") == f'x.toml: line 1: key "{key}": no such chain; give another'


def test_an_error_in_set_counts_from_0_as_set_does(load):
    flows = 'hops = 2\nflows = [{from="sta1",to="sta2"},{from="sta2",to="sta3"}]'
    wanted = '--set: key "flows.1.to": there is no station "zzz"; the stations are sta1 to sta3'
    assert message(load, flows, "flows.1.to=zzz") == wanted


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no\.toml: cannot be read \(No such file or directory\); give the path of a TOML"):
        load_scenario(tmp_path / "no.toml")


def test_a_missing_trace_is_named_before_anything_starts(load, tmp_path):
    assert message(load, 'hops = 2\nmobility = "walk.csv"') == (
        f'x.toml: line 2: key "mobility": there is no trace file {tmp_path}/walk.csv; '
        f"use {MODELS} or the path of a movement file, relative to this file"
    )


def test_a_trace_that_ends_early_is_refused_with_its_line(load, tmp_path):
    (tmp_path / "walk.csv").write_text("# manet-trace/1\n# end_s: 20\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,0,0,0,0\n")
    assert message(load, 'hops = 2\nmobility = "walk.csv"\nwarmup = 5\nduration = 30') == (
        f"{tmp_path}/walk.csv: line 2: the trace ends at 20 s and the run lasts 35 s; shorten the run or make a longer trace"
    )
    good = load('hops = 2\nmobility = "walk.csv"\nwarmup = 5\nduration = 15')
    assert good.mobility.file == str(tmp_path / "walk.csv")


def test_a_trace_with_a_foreign_station_is_refused_with_its_line(load, tmp_path):
    (tmp_path / "walk.csv").write_text("# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta9,0,0,0,0\n")
    assert message(load, 'hops = 2\nmobility = "walk.csv"') == (
        f'{tmp_path}/walk.csv: line 3: unknown station "sta9"; the scenario does not have it'
    )


def test_a_bad_line_of_a_trace_is_refused_with_its_line(load, tmp_path):
    (tmp_path / "walk.csv").write_text("# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n0,sta1,0,0,0,0\n5,sta1,9,0\n")
    assert message(load, 'hops = 2\nmobility = "walk.csv"') == (
        f'{tmp_path}/walk.csv: line 4: 4 fields; a row is "time_s,station,x_m,y_m,z_m,speed_mps"'
    )


def test_a_wire_has_a_fast_links_defaults_and_flows_may_name_its_host(load):
    scenario = load('hops = 1\n[[wires]]\nstation = "sta2"\nhost = "host1"\n[[flows]]\nfrom = "host1"\nto = "sta1"')
    assert (scenario.wires[0].rate, scenario.wires[0].delay, scenario.wires[0].queue) == (100e6, 0.002, 50)
    assert (scenario.station_names(), scenario.host_names()) == (["sta1", "sta2"], ["host1"])
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert load('hops = 1\n[[wires]]\nstation = "sta2"\nhost = "h"\ndelay = "5 ms"\nrate = "1 Mbit/s"').wires[0].rate == 1e6


@given(
    st.fixed_dictionaries(
        {"hops": st.integers(1, 30)},
        optional={
            "spacing": st.floats(1, 1000),
            "window": st.integers(1, 1000),
            "tcp": st.sampled_from(["newreno", "sack", "cubic", "elfn(vegas(alpha=2), probe=1.5s)"]),
            "links": st.lists(st.fixed_dictionaries({"error_rate": st.floats(0, 1)}), max_size=3),
            "delayed_ack": st.booleans(),
            "arp": st.sampled_from(["real", "static"]),
        },
    )
)
def test_json_reads_back_as_the_same_scenario(raw):
    scenario = Scenario.model_validate(raw)
    assert Scenario.from_json(scenario.to_json()) == scenario
    assert json.loads(scenario.to_json())["hops"] == raw["hops"]


@given(st.text(max_size=60))
@example("9223372036854775808")  # one more than the 64 bits of TOML
@example("9223372036854775808 # \n")
@example("[" * 5000)
def test_every_value_of_set_is_read_or_refused_in_one_line(text):
    try:
        parse_value(text)
    except UsageError as refused:
        assert str(refused).startswith("--set: ") and str(refused).isprintable()


def test_a_minimum_rto_above_the_limit_of_a_socket_is_a_sysctl():
    small, large = Scenario(hops=1, rto_min=0.2), Scenario(hops=1, rto_min=1)
    assert kernel_tcp.effective_settings(small)["rto_min_us"] == 200_000
    assert kernel_tcp.sysctls(small).get(kernel_tcp.RTO_MIN_SYSCTL) == profile("period")["sysctl"].get(kernel_tcp.RTO_MIN_SYSCTL)
    assert "rto_min_us" not in kernel_tcp.effective_settings(large)
    assert kernel_tcp.sysctls(large)[kernel_tcp.RTO_MIN_SYSCTL] == 1_000_000


def test_the_unit_of_a_bound_is_that_of_the_key_not_of_its_name(load):
    """`at` is a place of a station and a time of an event."""
    text = 'hops = 1\nevents = [{ at = -1, power = "sta1", on = false }]\n'
    assert message(load, text) == 'x.toml: line 2: key "events.0.at": -1 is out of range; give at least 0 s'
    text = 'topology = "random"\nnodes = 2\narea = [500, 500]\nmobility = { model = "gauss-markov", speed = 1, interval = 0 }\n'
    assert message(load, text).endswith('key "mobility.interval": 0 is out of range; give at least 0.01 s')


def test_lists_and_tables_of_a_radio_may_be_replaced(load):
    overrides = "{ basic_rates_bps = [6e6, 12e6, 24e6], access_categories = { voice = { aifsn = 3 } } }"
    scenario = load(f'{HT}access = "edca"\naggregation = {{ max_mpdus = 8 }}\nradio_overrides = {overrides}')
    replaced = {"basic_rates_bps": [6e6, 12e6, 24e6], "access_categories": {"voice": {"aifsn": 3}}}
    assert (scenario.radio_overrides, scenario.aggregation) == (replaced, {"max_mpdus": 8})
    assert Scenario.from_json(scenario.to_json()) == scenario
    preflight.check_medium(scenario, 1, BUILT)


def test_the_mcs_and_the_rules_of_a_radio_may_be_replaced(load):
    overrides = '{ mcs = 3, energy_detect_w = 6.31e-12, rules = { timeouts = "full" } }'
    scenario = load(f'hops = 2\nradio = "dot11n-ht20"\nradio_overrides = {overrides}')
    assert scenario.radio_overrides == {"mcs": 3, "energy_detect_w": 6.31e-12, "rules": {"timeouts": "full"}}
