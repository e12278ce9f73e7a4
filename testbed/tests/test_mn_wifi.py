"""Mininet-WiFi's API before a network is up: a script becomes a scenario and a movement, or one line of error."""

import inspect
import itertools
import math
import re
import runpy
import socket
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from mininet.log import lg
from mininet.node import Node as MininetNode

from analysis.metrics.radio_range import reach
from scenarios.radios import overridden
from testbed.__main__ import main
from testbed.errors import UsageError
from testbed.mn_wifi import launch, movement, protocols, session, socket_server
from testbed.mn_wifi.link import ITSLink, WirelessLink, adhoc, mesh, wmediumd
from testbed.mn_wifi.movement import Bounds, MobilityModel
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.node import ATTRIBUTES_OF_HOSTS
from testbed.mn_wifi.radio import Radio
from testbed.mn_wifi.session import NeedsGuest
from testbed.mn_wifi.telemetry import telemetry
from testbed.mn_wifi.wmediumdConnector import interference, snr
from testbed.programs import BUILT, ROOT
from testbed.runs.throughput import Throughput, iperf_text
from testbed.stages.station import NamespaceHost


@pytest.fixture(autouse=True)
def in_a_script(tmp_path, monkeypatch):
    """The session of `manet script`, without a network."""
    monkeypatch.setattr(session, "_current_session", [])
    return session.begin(session.Session(Path("mine.py"), tmp_path, seed=1))


def net_of(*positions: str, link: dict | None = None, **options: object) -> Mininet_wifi:
    """A network of stations at these places, all in one ad hoc network."""
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=interference, **options)
    for number, position in enumerate(positions, start=1):
        net.addStation(f"sta{number}", position=position)
    for station in net.stations:
        net.addLink(station, cls=adhoc, **(link or {"ssid": "adhocNet"}))
    return net


def refused(call, *words: str) -> str:
    with pytest.raises(UsageError) as problem:
        call()
    text = str(problem.value)
    assert "\n" not in text
    assert all(word in text for word in words), text
    return text


def test_stations_and_links_become_a_scenario():
    net = net_of("10,10,0", "50,10", link={"ssid": "adhocNet", "mode": "b", "channel": 5})
    net.setPropagationModel(model="logDistance", exp=4)
    scenario = net.scenario()
    assert scenario.station_names() == ["sta1", "sta2"]
    assert [(p.x_m, p.y_m, p.z_m) for p in scenario.positions()] == [(10, 10, 0), (50, 10, 0)]
    assert scenario.radio == "dot11b-11m"
    assert scenario.radio_overrides["frequency_hz"] == 2.432e9  # channel 5
    assert (scenario.propagation.model, scenario.propagation.exponent) == ("log-distance", 4)
    assert scenario.routing.protocol == "none"
    assert scenario.profile == "modern"
    assert scenario.flows == (), "what is sent is the script's own"


def test_a_range_is_the_limit_of_reception():
    for model in ({"model": "log-distance", "exponent": 4.0}, {"model": "free-space"}, {"model": "two-ray"}):
        radio = Radio("g", 5, range_m=80.0)
        made = radio.overrides("dot11g-54m", model)
        profile = tomllib.loads((ROOT / "medium" / "radios" / "dot11g-54m.toml").read_text())
        answer = reach({**profile, **made}, model, 80.0)
        assert answer["received_m"] == pytest.approx(80.0, rel=1e-5)
        assert answer["power_w"][0] / 6.310e-11 == pytest.approx(1, rel=1e-4)  # the profile's threshold, -72 dBm


def test_without_a_range_it_follows_from_power_and_gains_as_there():
    # 14 dBm, 5 dBi twice, -91 dBm, exponent 4: (14 + 10 + 91 - 20 log10(4 pi / 0.1233 m)) / 40 = 1.871
    reach_m = Radio("g", 5).reach_m("dot11g-54m", {"model": "log-distance", "exponent": 4.0})
    assert reach_m == pytest.approx(10 ** ((115 - 20 * math.log10(4 * math.pi / (3e8 / 2.432e9))) / 40), rel=1e-3)


def test_a_profile_that_is_named_keeps_its_own_range(in_a_script):
    assert net_of("0,0", "200,0", scenario={"radio": "ns2-dsss-2m"}).scenario().radio_overrides == {}
    in_a_script.overrides = ("radio=ns2-dsss-2m", "queue=20")
    scenario = net_of("0,0", "200,0").scenario()
    assert (scenario.radio, scenario.radio_overrides, scenario.queue) == ("ns2-dsss-2m", {}, 20)


def test_a_station_may_start_below_zero():
    """Scripts put their origin where they like."""
    placed = net_of("-60,-5,0", "20,0,0").scenario().positions()
    assert [(place.x_m, place.y_m) for place in placed] == [(-60.0, -5.0), (20.0, 0.0)]


def test_one_wire_for_a_host():
    net = net_of("0,0", "50,0")
    host = net.addHost("h1")
    refused(net.scenario, "h1", "addLink(station, h1)")
    net.addLink(host, "sta2", bw=10, delay="5ms", max_queue_size=20)
    wire = net.scenario().wires[0]
    assert (wire.station, wire.host, wire.rate, wire.delay, wire.queue) == ("sta2", "h1", 10e6, 0.005, 20)


def test_unknown_arguments_are_named_with_the_allowed_ones():
    net = net_of("0,0", "50,0")
    refused(lambda: net.addStation("sta3", positon="1,1"), "addStation", '"positon"', 'did you mean "position"?')
    refused(lambda: net.addLink("sta1", cls=adhoc, vIface=1), "addLink", "vIface=1")
    refused(lambda: net.addLink("sta1", cls=adhoc, ifb=1), "addLink", '"ifb"', "channel, mode, proto, ssid, txpower")
    refused(lambda: Mininet_wifi(lnk=1), "Mininet_wifi", '"lnk"', '"link"')
    refused(lambda: net.setMobilityModel(model="RandomWalk", max_vv=1), "setMobilityModel", '"max_v"')
    refused(lambda: net.setPropagationModel(model="friis", exp=3), "exp", "no further arguments")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"passwd": "x"}, ("passwd", "encryption is not modelled")),
        ({"proto_args": "-d 1"}, ("proto_args", "routing")),
        ({"bitrates": "6"}, ("bitrates", "data_rate_bps")),
        ({"error_prob": 0.1}, ("error_prob", "error_rate")),
    ],
)
def test_an_invalid_argument_is_refused_with_the_remedy(given, words):
    net = Mininet_wifi()
    net.addStation("sta1", position="0,0")
    refused(lambda: net.addLink("sta1", cls=adhoc, **given), *words)


def test_calls_of_other_networks_are_refused():
    net = net_of("0,0", "50,0")
    for call in ("addSwitch", "plotEnergyMonitor"):
        refused(lambda call=call: getattr(net, call), call)
    refused(lambda: net.addLink("sta1", cls=mesh), "802.11s", "stations=hwsim", "proto='olsrd'")
    refused(lambda: net.addLink("sta1", "sta2"), "by radio")
    refused(lambda: Mininet_wifi(noise_th=-95), "noise_th", "range")
    refused(lambda: Mininet_wifi(fading_cof=31), "fading_cof", "outside 0 to 30")
    refused(lambda: Mininet_wifi(wmediumd_mode=snr), "snr", "'interference'")
    refused(lambda: net.addStation("sta3", wlans=9), "wlans", "1 to 8")
    net.addStation("sta3", wlans=2, position="0,0")
    refused(net.scenario, "sta3", "wlans=2", "one radio")
    refused(lambda: net.setPropagationModel(model="ITU"), "ITU", "'logDistance'")
    assert Mininet_wifi(link=WirelessLink).stations == []


def test_fading_is_the_mediums_draw_on_each_frame():
    net = Mininet_wifi(fading_cof=3)
    net.addLink(net.addStation("sta1", position="0,0"), cls=adhoc)
    assert net.scenario().fading_db == 3
    assert net_of("0,0", "50,0").scenario().fading_db == 0


def test_a_protocol_of_the_kernel_moves_the_script_into_a_guest_that_has_it(in_a_script, monkeypatch):
    in_a_script.may_move = True
    monkeypatch.setattr("testbed.mn_wifi.net.is_available", lambda _module: False)
    net = Mininet_wifi()
    net.addStation("sta1", position="0,0")
    with pytest.raises(NeedsGuest, match="batman_adv' is the kernel's"):
        net.addLink("sta1", cls=adhoc, proto="batman_adv")
    monkeypatch.setattr("testbed.mn_wifi.net.is_available", lambda _module: True)
    net.addLink("sta1", cls=adhoc, proto="batman_adv")
    assert net.scenario().routing.protocol == "batman-adv"


def test_mesh_is_for_the_kernels_radios(in_a_script):
    in_a_script.overrides = ("stations=hwsim",)
    net = Mininet_wifi()
    for number in (1, 2):
        net.addLink(net.addStation(f"sta{number}", position=f"{number},0"), cls=mesh, ssid="meshNet")
    scenario = net.scenario()
    assert (scenario.stations, scenario.hwsim.mode, scenario.routing.protocol) == ("hwsim", "mesh", "none")
    net.addLink("sta2", cls=adhoc, ssid="meshNet")
    refused(net.scenario, "cls='mesh' of sta1", "one kind")


def test_an_its_link_is_outside_of_a_bss_at_5_9_ghz(in_a_script):
    net = Mininet_wifi()
    for number in (1, 2):
        net.addLink(net.addStation(f"sta{number}", position=f"{50 * number},0"), cls=ITSLink, band=20, proto="olsr")
    scenario = net.scenario()
    assert (scenario.stations, scenario.radio, scenario.routing.protocol) == ("tap", "dot11a-54m", "olsr")
    assert scenario.radio_overrides["frequency_hz"] == 5.905e9  # channel 181: 5 GHz + 181 * 5 MHz (18.3.8.4.2)
    assert net["sta1"].wintfs[0].txpower == 17
    in_a_script.overrides = ("stations=hwsim",)
    assert net.scenario().hwsim.mode == "ocb"
    refused(lambda: net.addLink("sta1", cls=ITSLink), "band=10", "20 MHz")


def test_an_argument_without_effect_is_noted_once(capsys):
    from mininet.log import lg

    lg.handlers[0].setStream(__import__("sys").stdout)
    net = Mininet_wifi()
    for number in (1, 2):
        net.addStation(f"sta{number}", position=f"{number},0", mac=f"00:00:00:00:00:0{number}")
    printed = capsys.readouterr().out
    assert printed.count("*** note: addStation: mac=") == 1


def test_arguments_that_mininet_wifi_passes_over_are_notes(capsys, monkeypatch):
    monkeypatch.setattr(lg.handlers[0], "stream", sys.stdout)
    net = Mininet_wifi(xterms=True, inNamespace=False, switch=None, host=None, build=True, listenPort=None)
    one = net.addStation("sta1", position="0,0", ipv6="2001::1", IP="10.0.0.9", inNamespace=True, floor=2)
    host = net.addHost("h1", position="1,1,0", ip="10.0.0.7/8")
    net.addLink(one, cls=adhoc, flags=3)
    net.addLink(one, host, colour="red")
    net.setMobilityModel(model="RandomWalk", repetitions=3)
    printed = capsys.readouterr().out
    told = re.findall(r"^\*\*\* note: (\w+): (\w+)=.*it has no effect$", printed, re.MULTILINE)
    own = [name for call, name in told if call == "Mininet_wifi"]
    assert own == ["xterms", "inNamespace", "switch", "host", "build", "listenPort"]
    assert [name for call, name in told if call == "addStation"] == ["ipv6", "IP", "inNamespace", "floor"]
    assert [(call, name) for call, name in told[10:]] == [
        ("addHost", "position"),
        ("addLink", "flags"),
        ("addLink", "colour"),
        ("setMobilityModel", "repetitions"),
    ]
    assert one.IP() == "10.0.0.1" and net.scenario().ipv6 is False
    refused(lambda: net.addStation("sta2", inNamespace=False), "inNamespace=False", "past the air", "leave it out")
    refused(lambda: net.addHost("h2", inNamespace=False), "inNamespace=False", "leave it out")
    refused(lambda: net.addStation("sta2", privateDirs=["/var"]), '"privateDirs"')


def test_stations_that_disagree_are_reported():
    net = Mininet_wifi()
    a, b = net.addStation("sta1", position="0,0", channel=1), net.addStation("sta2", position="5,0", channel=6)
    net.addLink(a, cls=adhoc, proto="aodv")
    refused(net.scenario, "sta2", "has no link")
    net.addLink(b, cls=adhoc)
    refused(net.scenario, "channel: 1, 6 of sta1, sta2", "same radio")
    b.params["channel"] = 1
    refused(net.scenario, "proto='aodv' of sta1", "proto=None of sta2")
    net.addLink(b, cls=adhoc, proto="aodv", mode="n")
    refused(net.scenario, "mode", "all stations have the same radio")
    refused(net_of("0,0", "1,0", link={"mode": "ax"}).scenario, "mode='ax'", "'n', 'ac'")
    refused(net_of("0,0", "1,0", link={"channel": 36}).scenario, "channel=36", "1 to 14")


def test_modes_n_and_ac_are_radios_of_802_11n_and_ac():
    low, high, ac = (net_of("0,0", "1,0", link=link).scenario() for link in (
        {"mode": "n", "channel": 1}, {"mode": "n", "channel": 36}, {"mode": "ac"},
    ))  # fmt: skip
    assert (low.radio, high.radio, ac.radio) == ("dot11n-ht20", "dot11n-ht20", "dot11ac-vht80")
    # IEEE Std 802.11-2016, table 19-25: slot, SIFS and signal extension differ by band
    assert [low.radio_overrides[key] for key in ("slot_us", "sifs_us", "signal_extension_us")] == [20, 10, 6]
    assert low.radio_overrides["frequency_hz"] == 2.412e9
    assert all("slot_us" not in scenario.radio_overrides for scenario in (high, ac))
    assert (high.radio_overrides["frequency_hz"], ac.radio_overrides["frequency_hz"]) == (5.18e9, 5.18e9)
    assert all(scenario.rate_control == "minstrel-ht" for scenario in (low, high, ac))
    refused(net_of("0,0", "1,0", link={"mode": "ac", "channel": 1}).scenario, "channel=1", "34 to 196")


def test_a_script_may_choose_rules_and_rate_control_itself():
    net = net_of("0,0", "1,0", link={"mode": "g"}, scenario={"radio_overrides": {"rules": {"timeouts": "full"}}})
    assert net.scenario().radio_overrides["rules"] == {"thresholds": "one", "timeouts": "full"}
    net = net_of("0,0", "1,0", link={"mode": "n"}, scenario={"radio_overrides": {"rate_control": "ideal"}})
    assert net.scenario().radio_keys()["rate_control"] == "ideal"


def reach_of(scenario, **more):
    profile = tomllib.loads((ROOT / "medium" / "radios" / f"{scenario.radio}.toml").read_text())
    return reach({**overridden(profile, scenario.radio_overrides), **more}, scenario.propagation.for_medium())


@pytest.mark.parametrize("mode", ["g", "b", "a", "n", "ac"])
def test_all_frames_of_a_script_end_at_the_range(mode):
    net = net_of("0,0", "40,0", link={"mode": mode})
    for station in net.stations:
        station.params["range"] = 60
    scenario = net.scenario()
    assert reach_of(scenario)["received_m"] == pytest.approx(60, rel=1e-5)
    if mode in "gba":
        assert scenario.radio_overrides["rules"] == {"thresholds": "one"}  # no rate reaches farther
    else:
        assert reach_of(scenario)["sensed_m"] == pytest.approx(60, rel=1e-5)  # no frame is noticed beyond


def test_ranges_powers_and_gains_may_differ_between_stations():
    net = Mininet_wifi()
    for number, radio in enumerate(({}, {"range": 50}, {"txpower": 20}, {"antennaGain": 8}), start=1):
        station = net.addStation(f"sta{number}", position=f"{10 * number},0", **radio)
        net.addLink(station, cls=adhoc, mode="g", channel=5)
    net.setPropagationModel(model="logDistance", exp=4)
    scenario = net.scenario()
    usual = scenario.radio_overrides
    assert [radio.station for radio in scenario.radios] == ["sta2", "sta3", "sta4"]
    short, loud, high = (radio.for_medium() for radio in scenario.radios)
    profile = tomllib.loads((ROOT / "medium" / "radios" / "dot11g-54m.toml").read_text())
    reach_m = reach({**overridden(profile, usual), **short}, scenario.propagation.for_medium())["received_m"]
    assert reach_m == pytest.approx(50, rel=1e-5)
    assert 10 * math.log10(loud["tx_power_w"] / usual["tx_power_w"]) == pytest.approx(6, abs=1e-4)  # 20 dBm, not 14
    assert (high["antenna_gain_db"], high["tx_power_w"]) == (8, pytest.approx(usual["tx_power_w"], rel=1e-4))
    radio = net["sta2"].wintfs[0]
    assert (radio.range, radio.antennaGain, radio.ssid, radio.mode, radio.channel) == (50, 5, "adhocNet", "g", 5)
    assert radio.txpower < net["sta1"].wintfs[0].txpower == 14
    net["sta2"].setTxPower(14)
    assert [radio.station for radio in net.scenario().radios] == ["sta3", "sta4"], "the later call decides"
    assert net["sta2"].wintfs[0].range == net["sta1"].wintfs[0].range


def test_ranges_that_differ_need_a_model_with_power():
    net = net_of("0,0", "50,0", scenario={"propagation": {"model": "disc", "range_m": 60, "sense_m": 90}})
    net.stations[1].setRange(20)
    refused(net.scenario, "'disc' has ranges of its own", "sta2 differs from sta1")


def test_a_stations_own_power_may_change_while_the_network_runs(tmp_path):
    """Against the medium's own figures: at exponent 4, half the range is a sixteenth of the power."""
    net = net_of("0,0", "50,0", link={"mode": "g", "channel": 5})
    net.setPropagationModel(model="logDistance", exp=4)
    asked: list[dict] = []

    class Recorder:
        def ask(self, op: str, **given: object) -> dict:
            asked.append({"op": op, **given})
            return {"model_ns": 5} if op == "status" else {"tx_power_w": 0.1, "antenna_gain_db": 5.0, "antenna_height_m": 1.0}

    usual_w, usual_m = net.scenario().radio_overrides["tx_power_w"], net["sta1"].wintfs[0].range
    net.standing = SimpleNamespace(network=SimpleNamespace(medium=Recorder()), site=SimpleNamespace(directory=tmp_path))
    net["sta1"].setRange(usual_m / 2)
    assert asked[0] == {
        "op": "radio", "station": "sta1", "tx_power_w": pytest.approx(usual_w / 16, rel=1e-3),
        "antenna_gain_db": 5.0, "antenna_height_m": 1.0,
    }  # fmt: skip
    net["sta1"].setAntennaGain(8)  # the power stays: the range grows by 10^(2 * 3 dB / 40)
    assert asked[2]["tx_power_w"] == pytest.approx(usual_w / 16, rel=1e-3) and asked[2]["antenna_gain_db"] == 8
    assert net["sta1"].wintfs[0].range == pytest.approx(usual_m / 2 * 10 ** (6 / 40), rel=1e-2)
    net["sta1"].setTxPower(14)
    assert asked[4]["tx_power_w"] == pytest.approx(usual_w, rel=1e-3)
    rows = (tmp_path / "radios.csv").read_text().splitlines()
    assert rows[0] == "t_ns,station,tx_power_w,antenna_gain_db,antenna_height_m" and len(rows) == 4
    assert rows[1] == "5,sta1,0.1,5.0,1.0"


def test_defaults_that_are_spelled_out_are_notes(capsys, monkeypatch):
    monkeypatch.setattr(lg.handlers[0], "stream", sys.stdout)
    net = Mininet_wifi(noise_th=-91, cca_th="-90", autoAssociation=False, ifb=False, encrypt=None)
    net.addStation("sta1", position="0,0", passwd=None)
    printed = capsys.readouterr().out
    assert printed.count("is Mininet-WiFi's default; it has no effect") == 4
    refused(lambda: Mininet_wifi(ifb=0), "ifb=0")


def test_nodes_and_links_are_listed_as_there():
    net = net_of("0,0", "50,0")
    host, car = net.addHost("h1", ip="10.0.0.7/8"), net.addCar("car1", position="5,5")
    link = net.addLink("sta1", host)
    assert net.aps == net.switches == [] and net.cars == [car] and net.waitConnected()
    assert [str(one) for one in net.links] == ["sta1-wlan0", "sta2-wlan0", "sta1-eth1<->h1-eth0"]
    assert (link.intf1.node, link.intf2.node, net.links[0].node) == (net["sta1"], host, net["sta1"])
    assert net["sta1"].params["wlan"] == [net["sta1"].wintfs[0].name] == ["sta1-wlan0"]
    refused(lambda: net.addHost("h2", ip="somewhere"), "addHost", "'somewhere'", "10.0.0.1/8")


def test_the_end_of_a_wire_has_the_name_and_takes_the_address_of_mininet_s():
    """A station's ports are numbered after its radio, a host's from 0."""
    net = net_of("0,0", "50,0")
    one, host = net.stations[0], net.addHost("h1")
    link = net.addLink(host, one)
    net.addLink(one, net.addHost("h2"))
    assert (link.intf1.name, link.intf2.name, list(one.wire_ends())) == ("sta1-eth1", "h1-eth0", ["sta1-eth1", "sta1-eth2"])
    one.setIP("192.168.9.1/24", intf="sta1-eth1")
    host.setIP("192.168.9.2", 24, intf=link.intf2)
    assert (one.wire_ips, host.wire_ips) == ({"sta1-eth1": "192.168.9.1/24"}, {"h1-eth0": "192.168.9.2/24"})
    refused(lambda: one.setIP("192.168.9.1/24", intf="sta1-eth7"), "'sta1-eth7'", "use sta1-wlan0")


def test_addresses_of_ipv6_before_the_network_is_up_are_set_with_it():
    net = net_of("0,0", "50,0")
    net.stations[0].setIP6("2001::1", prefixLen=64)
    assert net.stations[0].ip6 == ["2001::1/64"] and net.scenario().ipv6


def test_a_radio_without_an_access_point_says_that_it_has_no_rssi():
    radio = net_of("0,0", "50,0").stations[0].wintfs[0]
    assert radio.associatedTo == "adhoc" and not hasattr(radio, "rssi")
    refused(lambda: radio.rssi, "sta1-wlan0.rssi", "recordNodeParams()")
    refused(lambda: radio.consumption, "sta1-wlan0.consumption: is not supported")


def test_recorded_rssi_is_the_medium_s_monitor():
    assert net_of("0,0", "50,0", rec_rssi=True).scenario().monitor
    assert not net_of("0,0", "50,0").scenario().monitor


def test_telemetry_is_what_the_results_have(monkeypatch, capsys):
    monkeypatch.setattr(lg.handlers[0], "stream", sys.stdout)
    net = net_of("0,0", "50,0")
    telemetry(nodes=net.stations, single=True, data_type="position", max_x=200)
    assert net._picture == "map.png" and net._bounds.max_x == 200 and not net.scenario().monitor
    net.telemetry(nodes=net.stations, data_type="rssi")
    net.telemetry(nodes=net.stations, data_type="tx_bytes")
    assert net.scenario().monitor
    printed = capsys.readouterr().out
    assert "single=True: is about a window" in printed and "heard_dbm" in printed and "'tx_bytes': no window; captures" in printed
    refused(lambda: net.telemetry(nodes=net.stations, data_tipe="rssi"), "telemetry", 'did you mean "data_type"?')
    refused(lambda: net.telemetry(nodes=[]), "telemetry: nodes")


def test_a_program_of_the_script_sets_and_gets_over_a_socket():
    net = net_of("0,0", "50,0")
    say = lambda text: socket_server.answer(net, text)  # noqa: E731
    assert say('set.sta1.setPosition("10.5,20,0")') == "command accepted!"
    assert say("get.sta1.position") == "(10.5, 20.0, 0.0)"
    assert say("set.sta2.setRange(30, intf=sta2-wlan0)") == "command accepted!"
    assert say("get.sta2.wintfs[0].range") == "30.0"
    assert "is no radio of it; use sta2-wlan0" in say("set.sta2.setRange(30, intf=sta2-wlan7)")
    assert say("set.sta1.terminate()") == "unrecognized method!"
    assert say("set.sta1.position") == "usage: set.node.method()"
    assert say("get.sta1.__class__") == say("get.sta1.net") == say("get.sta1") == "usage: get.node.attr"
    assert "there is no node 'sta9'" in say("get.sta9.position") and "is not a place" in say("set.sta1.setPosition(x)")
    assert "before the network is up" in say("sta1.ls")


def test_the_server_answers_over_tcp_until_it_is_stopped():
    net = net_of("0,0", "50,0")
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    server = socket_server.SocketServer(net, "127.0.0.1", port)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"get.sta2.name")
        assert client.recv(100) == b"sta2"
    server.stop()
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    refused(lambda: socket_server.SocketServer(net, "192.0.2.1", port), "socketServer", "127.0.0.1")
    refused(lambda: net.socketServer(ip="127.0.0.1"), "socketServer: the network is not up")


def test_a_radio_has_the_name_of_its_station_in_the_kernel(in_a_script):
    assert net_of("0,0", "50,0").scenario().interface == "station-wlan0"
    net = Mininet_wifi()
    net.addLink(net.addStation("tencharact", position="0,0"), cls=adhoc)
    with pytest.raises(UsageError, match="at most 9 characters"):
        net.scenario()


def test_a_station_without_a_place_is_named():
    net = Mininet_wifi()
    net.addStation("sta1", position="0,0")
    net.addStation("sta2")
    for station in net.stations:
        net.addLink(station, cls=adhoc)
    refused(net.scenario, "sta2", "position='x,y,z'")


def test_addresses_that_a_daemon_would_not_know_are_refused():
    net = Mininet_wifi()
    for number in (1, 2):
        station = net.addStation(f"sta{number}", position=f"{number},0", ip=f"10.0.0.{number + 1}/8")
        net.addLink(station, cls=adhoc, proto="aodv")
    refused(net.check_addresses, "sta1", "10.0.0.2/8", "10.0.0.1")


def test_a_call_before_the_network_is_up_is_an_error():
    station = net_of("0,0", "50,0").stations[0]
    refused(lambda: station.cmd("ls"), "sta1.cmd", "net.build()")
    assert not hasattr(station, "cmd")
    assert (station.IP(), station.MAC(), station.params["wlan"]) == ("10.0.0.1", "02:00:00:00:00:01", ["sta1-wlan0"])
    refused(lambda: station.setIP("10.0.0.9/8", intf="sta1-wlan1"), "sta1-wlan0")


def test_protocols_of_others_are_stood_in_for_aloud(tmp_path):
    nothing = {"programs": BUILT, "path": str(tmp_path)}
    assert protocols.protocol("aodv", **nothing)[0] == "aodv"
    name, remark = protocols.protocol("olsrd", **nothing)
    assert name == "olsr" and "olsrd: not found" in remark and "stands in" in remark
    (tmp_path / "olsrd").write_text("#!/bin/sh\n")
    (tmp_path / "olsrd").chmod(0o755)
    assert protocols.protocol("olsrd", **nothing) == ("olsrd", "")
    assert protocols.protocol("babel", **nothing) == ("babeld", "")
    assert protocols.protocol("batman_adv", **nothing) == ("batman-adv", "")
    assert protocols.protocol(None) == ("none", "")
    assert protocols.protocol("olsrd2", **nothing) == ("olsrd2", ""), "the check before the run says what is missing"
    refused(lambda: protocols.protocol("rip"), "rip", "'aodv'")


def test_straight_lines_are_walked_at_one_speed_from_start_to_stop():
    net = net_of("0,0", "50,0")
    one, _ = net.stations
    net.startMobility(time=0, mob_rep=2, reverse=True)
    net.mobility(one, "start", time=1, position="10,0,0")
    net.mobility(one, "stop", time=11, position="60,0,0")
    net.stopMobility(time=12)
    made = net.movement()
    at = {t: made.position("sta1", t)[0] for t in (0, 1, 6, 11, 12, 13, 18, 23, 30)}
    assert at == {0: 10, 1: 10, 6: 35, 11: 60, 12: 60, 13: 60, 18: 35, 23: 10, 30: 10}
    assert net.scenario().positions()[0].x_m == 10  # it stands at its start from the outset


def test_a_path_over_several_places_has_one_speed():
    net = net_of("0,0", "50,0")
    one = net.stations[0]
    one.coord = ["0,0,0", "30,0,0", "30,10,0"]
    net.startMobility(time=0)
    net.mobility(one, "start", time=0)
    net.mobility(one, "stop", time=20)
    net.stopMobility(time=20)
    made = net.movement()
    assert made.position("sta1", 10) == pytest.approx((20, 0, 0))
    assert made.position("sta1", 20) == pytest.approx((30, 10, 0))


def test_a_group_with_a_path_follows_it_and_stays_together():
    """7 m of path in steps of 0.7 m a second: at its end after 10 s. A station goes 1 m a second at random, and 0.5 m home."""
    model = MobilityModel("CRP", pointlist=((10, 10, 0), (13, 10, 0), (13, 14, 0)), g_velocity=0.7, aggregation=0.5, seed=3)
    places = [model.first_position(number, Bounds()) for number in (1, 2)]
    assert all(10 <= x <= 11 and 10 <= y <= 11 for x, y, _z in places) and places[0] != places[1]
    legs = model.legs(1, "sta1", places[0], Bounds())
    assert [leg.start_s for leg in legs[:3]] == [0, 1, 2]
    ends = [places[0], *(leg.to for leg in legs)]
    assert all(math.dist(a, b) <= 0.7 + 1 + 0.5 + 1e-9 for a, b in itertools.pairwise(ends))
    assert all(math.dist(end, (13, 14, 0)) < 10 for end in ends[100:]), "the group is at the end of its path"
    assert legs == model.legs(1, "sta1", places[0], Bounds())
    refused(lambda: MobilityModel("CRP"), "CRP", "pointlist=")


@pytest.mark.parametrize("model", sorted(movement.MODELS_BY_NAME.keys() - {"CRP"}))
def test_models_keep_to_their_area_and_speeds_and_are_seeded(model):
    bounds = Bounds(20, 60, 10, 40, 2, 4)
    draw = [MobilityModel(model, start_s=5, seed=seed).legs(2, "sta2", (30, 20, 0), bounds) for seed in (1, 1, 2)]
    assert draw[0] == draw[1] != draw[2]
    assert all(20 <= leg.to[0] <= 60 and 10 <= leg.to[1] <= 40 for leg in draw[0])
    assert min(leg.start_s for leg in draw[0]) >= 5
    if model in ("RandomWayPoint", "RandomDirection"):
        assert all(2 <= leg.speed_mps <= 4 for leg in draw[0] if math.isfinite(leg.speed_mps) and leg.speed_mps)


def test_two_stations_of_a_model_move_differently():
    legs = [MobilityModel("RandomWalk").legs(number, "sta", (50, 50, 0), Bounds()) for number in (1, 2)]
    assert [leg.to for leg in legs[0]] != [leg.to for leg in legs[1]]


def test_stations_with_a_position_stay_where_they_are_under_a_model():
    net = net_of("0,0", "50,0")
    third = net.addStation("sta3", min_v=1, max_v=2)
    net.addLink(third, cls=adhoc)
    net.setMobilityModel(time=0, model="RandomWayPoint", max_x=100, max_y=100, seed=20)
    assert {leg.station for leg in net.movement().legs} == {"sta3"}
    refused(lambda: net_of("0,0", "1,0").setMobilityModel(time=0), "names no model")


def test_a_replay_is_at_each_place_at_its_time():
    legs = movement.replayed("sta1", [(0, 0, 0), (10, 0, 0), (10, 20, 0)], movement.due("sta1", 3, None, 2.0))
    assert [(leg.start_s, leg.to, leg.speed_mps) for leg in legs] == [
        (0, (0, 0, 0), math.inf), (0, (10, 0, 0), 20), (0.5, (10, 20, 0), 40),
    ]  # fmt: skip
    timed = movement.replayed("sta1", ["0,0", "10,0"], movement.due("sta1", 2, [1, 6], 1))
    assert [(leg.start_s, leg.speed_mps) for leg in timed] == [(1, math.inf), (1, 2)]
    assert movement.replayed("sta1", ["0,0", "9,0"], movement.due("sta1", 2, [1, math.inf], 1))[-1].speed_mps == 0
    refused(lambda: movement.due("sta1", 2, [1], 1), "2 places", "1 in time")


def test_pauses_that_no_model_here_has_are_refused():
    assert MobilityModel("RandomWayPoint", min_wt=0, max_wt=4).pause() == {"pause": 2, "pauses": "uniform"}
    assert MobilityModel("RandomWayPoint", min_wt=3, max_wt=3).pause() == {"pause": 3, "pauses": "fixed"}
    refused(lambda: MobilityModel("RandomWayPoint", min_wt=1, max_wt=5).pause(), "min_wt", "uniform from 0")


def test_before_build_an_early_call_differs_from_an_unsupported_one():
    sta = net_of("0,0", "50,0").stations[0]
    for early in ("cmd", "popen", "pid", "intfs", "sendCmd", "defaultIntf"):
        refused(lambda early=early: getattr(sta, early), f"sta1.{early}", "move the line below net.build()")
    refused(lambda: sta.host, "sta1: the network is not up")  # a property, whose own message counts
    refused(lambda: sta.net.addStation("sta9").position, "sta9.position: has none; add position='x,y,z'")
    refused(lambda: sta.cmdd, "sta1.cmdd", 'is not supported; did you mean "cmd"?')
    refused(lambda: sta.setMode, "sta1.setMode", "is not supported; docs/mininet-wifi.md lists what is")
    assert not hasattr(sta, "nothing_of_the_kind")


def test_attributes_set_by_the_constructor_are_known():
    """By Mininet's source, which nothing here need run for: `self.NAME = ` of Node and of our own class."""
    source = inspect.getsource(MininetNode.__init__) + inspect.getsource(NamespaceHost._start)
    given = {name for line in re.findall(r"((?:self\.\w+,?\s*)+)\)?\s*=", source) for name in re.findall(r"self\.(\w+)", line)}
    own = {"name", "params", "inNamespace", "privateDirs"}
    assert {name for name in given if not name.startswith("_")} - own <= set(ATTRIBUTES_OF_HOSTS)


def test_after_build_a_call_without_effect_is_refused():
    net = net_of("0,0", "50,0")
    net.standing = object()
    calls = {
        "setMobilityModel": lambda: net.setMobilityModel(time=0, model="RandomWalk"),
        "startMobility": lambda: net.startMobility(time=0),
        "mobility": lambda: net.mobility("sta1", "start", time=1, position="1,1,0"),
        "stopMobility": lambda: net.stopMobility(time=9),
        "setPropagationModel": lambda: net.setPropagationModel(model="friis"),
    }
    for name, call in calls.items():
        refused(call, f"{name}: it is too late once the network is up; move the line above net.build()")


def test_iperf_returns_the_pair_that_mininet_does(monkeypatch):
    net = net_of("0,0", "50,0")
    net.standing = SimpleNamespace(network=SimpleNamespace(children=None, net={}, site=SimpleNamespace(scenario=net.scenario())))
    measured = []

    def measure(_children, a, b, udp_rate, seconds):
        measured.append((a, b, seconds))
        return Throughput(941_400.0, 1_004_000.0, udp_rate)

    hosts = {"sta1": "one", "sta2": "two"}
    monkeypatch.setattr("testbed.runs.throughput.measure", measure)
    monkeypatch.setattr("testbed.mn_wifi.node.Node.host", property(lambda node: hosts[node.name]))
    assert net.iperf() == ["941 Kbits/sec", "1.00 Mbits/sec"]
    server, client = net.iperf([net["sta2"], net["sta1"]])
    assert (server.split()[1], client.split()[1]) == ("Kbits/sec", "Mbits/sec")
    net.iperf(net.stations, seconds=3)
    assert net.iperf(l4Type="UDP", udpBw="1.5M", fmt="m") == ["1.5M", "0.94 Mbits/sec", "1.00 Mbits/sec"]
    assert net.iperf(fmt="K") == ["115 KBytes/sec", "123 KBytes/sec"]  # 941400 / 8 / 1024
    del measured[3:]
    refused(lambda: net.iperf(l4Type="SCTP"), "iperf: l4Type='SCTP'", "'TCP', 'UDP'")
    refused(lambda: net.iperf(l4Type="UDP", udpBw="fast"), "iperf: udpBw='fast'", "'10M'")
    refused(lambda: net.iperf(fmt="x"), "iperf: fmt='x'", "'k'")
    assert measured == [("one", "two", 5), ("two", "one", 5), ("one", "two", 3)]
    refused(lambda: net.iperf(seconds="long"), "iperf: seconds='long': is not a number")
    refused(lambda: net.iperf(seconds=2.5), "iperf: seconds=2.5: iperf3 takes whole seconds; write 3")
    refused(lambda: net.iperf(seconds=0), "iperf: seconds=0: is outside 1 to 3600")


@pytest.mark.parametrize(("verdict", "marked"), [("void", " (void: does not count)"), ("valid", ""), (None, "")])
def test_figures_of_a_void_network_are_marked(verdict, marked, monkeypatch, capsys):
    """`None` is what stop() returns in Mininet-WiFi itself."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    for example, found, line in (
        ("hidden_terminals", (200.0, 206.0, 9, verdict), "*** with RTS/CTS: sta1 200 + sta3 206 = 406 kbit/s, 9 frames collided"),
        ("two_pairs", ([900.0, 800.0], verdict), "*** far apart: 900 and 800 kbit/s"),
    ):
        module = runpy.run_path(str(ROOT / "examples" / f"{example}.py"))
        shown: list[str] = []
        scope = module["topology"].__globals__
        monkeypatch.setitem(scope, "measure", lambda *_case, found=found: found)
        monkeypatch.setitem(scope, "info", shown.append)
        module["topology"]([])
        assert shown[-1] == f"{line}{marked}\n"


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (0, "0.00 bits/sec"),
        (999, "999 bits/sec"),
        (9_412, "9.41 Kbits/sec"),
        (94_120, "94.1 Kbits/sec"),
        (9.996e6, "10.0 Mbits/sec"),
    ],
)
def test_a_rate_is_written_as_iperf_writes_it(bps, text):
    assert iperf_text(bps) == text


def test_a_scenario_is_no_script(tmp_path, capsys):
    path = tmp_path / "chain3.toml"
    path.write_text("hops = 3\n")
    assert main(["script", str(path)]) == 2
    printed = capsys.readouterr().err
    assert f"{path}: is a scenario, no script; ./manet run {path} measures it, ./manet cli {path} is a prompt on it\n" in printed


def test_a_script_without_a_network_is_reported():
    made_none = "x.py: the script made no network (it called no net.build()); see examples/adhoc.py"
    assert launch._script_exit(None, Path("x.py"), built=False) == (0, made_none)
    assert launch._script_exit(None, Path("x.py"), built=True) == (0, None)
    assert launch._script_exit(SystemExit(0), Path("x.py"), built=False) == (0, None)  # as --help ends
