"""Access points in Mininet-WiFi's API before a network is up: what a script declares, and when it moves into a guest."""

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.mn_wifi import session
from testbed.mn_wifi.access_point import sends_back
from testbed.mn_wifi.infrastructure import of_radio
from testbed.mn_wifi.link import adhoc, mesh
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.wmediumdConnector import error_prob
from testbed.tests.test_mn_wifi import refused


@pytest.fixture(autouse=True)
def in_a_script(tmp_path, monkeypatch):
    """The session of `manet script --set stations=hwsim`, without a network."""
    monkeypatch.setattr(session, "_current_session", [])
    return session.begin(session.Session(Path("mine.py"), tmp_path, seed=1, overrides=("stations=hwsim",)))


@pytest.fixture
def without_hwsim(in_a_script, monkeypatch):
    """A machine whose kernel lacks mac80211_hwsim, and a user who chose no radios."""

    def absent(_stations: str) -> None:
        raise UsageError("no module")

    monkeypatch.setattr(session, "require_radios", absent)
    in_a_script.overrides = ()
    return in_a_script


def net_of(**point: object) -> Mininet_wifi:
    """An access point, declared first, and two stations that are linked to it."""
    net = Mininet_wifi()
    ap1 = net.addAccessPoint("ap1", **{"ssid": "new-ssid", "mode": "g", "channel": "5", "position": "50,50,0", **point})
    for number in (1, 2):
        net.addLink(net.addStation(f"sta{number}", position=f"{30 * number},60,0"), ap1)
    return net


def test_an_access_point_is_a_radio_after_the_stations():
    net = net_of()
    scenario = net.scenario()
    assert scenario.station_names() == ["sta1", "sta2", "ap1"]
    assert (scenario.stations, scenario.hwsim.mode, scenario.routing.protocol) == ("hwsim", "managed", "none")
    assert scenario.radio_overrides["frequency_hz"] == 2.432e9  # channel 5
    assert (net["ap1"].MAC(), net["ap1"].IP(), net["sta2"].IP()) == ("02:00:00:00:00:03", "", "10.0.0.2")
    assert net["ap1"].params["wlan"] == ["ap1-wlan1"]
    assert [str(node) for node in net.aps] == ["ap1"] and [str(node) for node in net.stations] == ["sta1", "sta2"]
    assert net.infrastructure.first == {"sta1": "ap1", "sta2": "ap1"}
    # the profile is of an ad hoc network, whose slot of 802.11g has 20 us
    assert {"network": "infrastructure", "slot_us": 9}.items() <= scenario.radio_overrides.items()


def test_cables_join_access_points_and_hosts():
    net = net_of()
    net.addAccessPoint("ap2", ssid="other", position="90,50,0")
    h1, h2 = net.addHost("h1", ip="10.0.0.100/8"), net.addHost("h2")
    net.addLink("ap1", "ap2")
    net.addLink("ap1", h1)
    net.addLink(h2, "ap2")
    net.scenario()
    assert [(cable.a, cable.b) for cable in net.cables] == [("ap1", "ap2"), ("ap1", "h1"), ("h2", "ap2")]
    assert [str(link) for link in net.links] == ["ap1-eth1<->ap2-eth1", "ap1-eth2<->h1-eth0", "h2-eth0<->ap2-eth2"]
    assert net["ap1"].connections() == [("ap1-wlan1", "wifi"), ("ap1-eth1", "ap2-eth1"), ("ap1-eth2", "h1-eth0")]
    assert net["ap1"].intfNames() == ["ap1-wlan1", "ap1-eth1", "ap1-eth2"] and net["sta1"].connections() == [
        ("sta1-wlan0", "wifi")
    ]
    h1.setIP("192.168.7.1/24", intf="h1-eth0")
    assert h1.wire_ips == {"h1-eth0": "192.168.7.1/24"}
    refused(lambda: h1.setIP("192.168.7.1/24", intf="h1-eth1"), "intf='h1-eth1'", "use h1-eth0")
    addresses = [net.infrastructure.host_address(host) for host in (h1, h2)]
    assert addresses == ["10.0.0.100/8", "10.0.0.6/8"], "after two stations and two access points"
    refused(lambda: net.addLink("ap1", "ap2", bw=10), "bw", "without rate or delay")


def test_the_method_of_association_is_named_in_any_of_its_calls():
    assert Mininet_wifi(ac_method="ssf").infrastructure.method == "ssf"
    net = Mininet_wifi(autoAssociation=False)
    assert (net.infrastructure.method, net.infrastructure.automatic) == (None, False)
    net.startMobility(time=0, ac_method="llf")
    assert net.infrastructure.method == "llf"
    refused(lambda: Mininet_wifi(ac_method="best"), "ac_method", "'ssf', 'llf'")


def test_a_threshold_for_roaming_is_shifted_as_that_of_reception():
    net = net_of()
    sta3 = net.addStation("sta3", position="10,10,0", bgscan_threshold=-60, s_inverval=5, l_interval=10, bgscan_module="simple")
    # the profile's reception ends at -72 dBm, Mininet-WiFi's at -91
    assert net.infrastructure.bgscan(sta3) == "simple:5:-41:10"
    assert net.infrastructure.bgscan(net["sta1"]) is None


def frequencies(net: Mininet_wifi) -> dict[str, int]:
    """Of each radio, by its name in the medium."""
    return {entry.name or entry.station: entry.freq_mhz for entry in net.scenario().radios}


def test_each_network_has_its_channel():
    net = net_of()
    net.addAccessPoint("ap2", ssid="other", channel="11", position="90,50,0")
    net.addLink(net.addStation("sta3", position="10,10,0"), "ap2")
    assert frequencies(net) == {"sta1": 2432, "sta2": 2432, "sta3": 2462, "ap1": 2432, "ap2": 2462}
    assert [net[name].wintfs[0].channel for name in ("sta1", "sta3", "ap2")] == [5, 11, 11]
    assert net["ap2"].wintfs[0].freq == 2.462


def test_channels_without_a_frequency_in_the_kernel_are_taken_alone():
    assert set(frequencies(net_of(mode="a", channel="36")).values()) == {2412}
    net = net_of(mode="a", channel="36")
    net.addAccessPoint("ap2", ssid="other", mode="a", channel="40", position="90,50,0")
    refused(net.scenario, "36, 40", "from 1 to 11")


def test_a_station_has_several_radios():
    net = net_of()
    sta3 = net.addStation("sta3", wlans=2, position="10,10,0")
    net.addLink("ap1", sta3)
    net.addLink(sta3, intf="sta3-wlan1", cls=adhoc, ssid="adhocNet")
    assert sta3.params["wlan"] == ["sta3-wlan0", "sta3-wlan1"] and [radio.id for radio in sta3.wintfs.values()] == [0, 1]
    # the access point is number 4, further radios follow
    assert [radio.mac for radio in sta3.wintfs.values()] == ["02:00:00:00:00:03", "02:00:00:00:00:05"]
    assert frequencies(net)["sta3-wlan1"] == 2412, "an ad hoc network is on channel 1 unless it says so"
    assert net.infrastructure.first["sta3"] == "ap1"
    refused(lambda: net.addLink("ap1", sta3), "another radio")
    sta3.setIP("192.168.10.1/24", intf="sta3-wlan1")
    assert (sta3.IP(), sta3.IP(intf="sta3-wlan1")) == ("10.0.0.3", "192.168.10.1")
    refused(lambda: sta3.setIP("10.0.0.9/8", intf="sta3-wlan2"), "sta3-wlan2", "use sta3-wlan0, sta3-wlan1")


def test_each_radio_of_a_station_scans_its_channels_with_its_passphrase():
    net = net_of(encrypt="wpa2", passwd="123456789a")
    sta3 = net.addStation("sta3", wlans=2, passwd="123456789a,abcdefghij", encrypt="wpa2,wpa2", scan_freq="2412,2437 2462")
    assert [of_radio(radio)["passwd"] for radio in sta3.wintfs.values()] == ["123456789a", "abcdefghij"]
    assert [net.infrastructure.scanned(radio) for radio in sta3.wintfs.values()] == [{1}, {6, 11}]
    assert net.infrastructure.scanned(net["sta1"].wintfs[0]) == set(), "all"
    sta4 = net.addStation("sta4", wlans=3, scan_freq="2412,2437")
    refused(lambda: net.infrastructure.scanned(sta4.wintfs[0]), "scan_freq='2412,2437'", "one for each of its radios")
    sta5 = net.addStation("sta5", scan_freq="2410")
    refused(lambda: net.infrastructure.scanned(sta5.wintfs[0]), "scan_freq='2410'", "'2412'")


def test_an_access_point_with_a_radio_in_a_mesh_is_a_bridge_of_both():
    net = Mininet_wifi()
    ap1 = net.addAccessPoint("ap1", wlans=2, ssid="ssid1", position="10,10,0")
    net.addLink(ap1, intf="ap1-wlan2", cls=mesh, ssid="mesh-ssid", channel=5)
    assert [radio.radio for radio in net.infrastructure.masters()] == ["ap1"]
    assert net.infrastructure.bridges() == ["ap1"]
    assert frequencies(net) == {"ap1": 2412, "ap1-wlan2": 2432}


def test_each_radio_of_an_access_point_has_its_network():
    net = Mininet_wifi()
    net.addAccessPoint("ap1", wlans=2, ssid="ssid1,ssid2", position="10,10,0")
    names = [(radio.name, radio.ssid) for radio in net.infrastructure.masters()]
    assert names == [("ap1-wlan1", "ssid1"), ("ap1-wlan2", "ssid2")]


def test_an_access_point_whose_radio_is_in_a_mesh_is_a_node_of_it():
    net = Mininet_wifi()
    for number in (1, 2):
        ap = net.addAccessPoint(f"ap{number}", ip=f"192.168.0.{number}/24", position=f"10,{10 * number},0")
        net.addLink(ap, intf=f"ap{number}-wlan1", cls=mesh, ssid="mesh-ssid", channel=5)
    assert net.infrastructure.masters() == [] and net.infrastructure.bridges() == []
    assert set(frequencies(net).values()) == {2432}
    assert net["ap1"].IP() == "192.168.0.1"


def test_a_station_in_master_mode_is_an_access_point_with_an_address():
    net = Mininet_wifi()
    for number in (1, 2):
        net.addStation(f"ap{number}", ip=f"192.168.{number}.10/24", position=f"{40 * number},60,0")
        net[f"ap{number}"].setMasterMode(intf=f"ap{number}-wlan0", ssid=f"ssid{number}", channel=5 * number - 4, mode="n2")
    net.addStation("sta1", ip="192.168.1.1/24", position="30,60,0")
    net.addLink("ap1", "ap2")
    assert [(cable.a, cable.b) for cable in net.cables] == [("ap1", "ap2")]
    assert [radio.radio for radio in net.infrastructure.masters()] == ["ap1", "ap2"] and net.infrastructure.bridges() == []
    assert frequencies(net) == {"ap1": 2412, "ap2": 2437, "sta1": 2412}
    assert any(note.startswith("ap1.setMasterMode: mode='n2'") for note in net.notes)


def test_nodes_without_positions_stand_side_by_side():
    net = Mininet_wifi()
    ap1 = net.addAccessPoint("ap1", ssid="simple")
    net.addLink(net.addStation("sta1"), ap1)
    assert [(place.x_m, place.y_m) for place in net.scenario().positions()] == [(1, 0), (2, 0)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"passwd": "123456789a"}, ("passwd without encrypt", "encrypt='wpa2'")),
        ({"encrypt": "wpa2"}, ("without a passphrase", "passwd=")),
        ({"encrypt": "wpa2", "passwd": "short"}, ("8 to 63 ASCII characters",)),
        ({"encrypt": "wep", "passwd": "123456789a"}, ("encrypt='wep'", "'wpa2'")),
        ({"ssid": "a,b"}, ("ssid='a,b'", "one network")),
        ({"wlans": 3, "ssid": "a,b"}, ("ssid='a,b'", "one name for each of its radios")),
        ({"vssids": ["a,b"]}, ("vssids", "one network")),
        ({"model": "AIR9"}, ("model='AIR9'", "'DI524'")),
        ({"ieee80211r": "yes"}, ("ieee80211r", "802.11r")),
    ],
)
def test_what_an_access_point_lacks_is_refused_with_the_remedy(given, words):
    refused(lambda: net_of(**given), *words)


def test_beside_access_points_stations_may_be_in_an_ad_hoc_network():
    net = net_of()
    net.addLink(net.addStation("sta3", position="10,10,0"), cls=adhoc, ssid="adhocNet")
    assert net.scenario().hwsim.mode == "managed"
    net.addLink("sta3", cls=adhoc, ssid="adhocNet", proto="olsrd")
    refused(net.scenario, "proto='olsrd'", "sta3 is beside access points")
    net.addLink("sta3", cls=adhoc, ssid="adhocNet")
    net.addLink("sta1", cls=adhoc, ssid="adhocNet")
    refused(net.scenario, "sta1", "it has ap1 already")
    refused(lambda: net.addLink("sta2", "ap1"), "sta2 has ap1 already")


def test_a_station_is_encrypted_only_with_an_access_point():
    net = Mininet_wifi()
    net.addLink(net.addStation("sta1", position="0,0,0", encrypt="wpa2", passwd="123456789a"), cls=adhoc)
    refused(net.scenario, "encryption is not modelled")


def test_a_script_moves_into_a_guest_when_it_asks_for_what_taps_lack(without_hwsim):
    without_hwsim.may_move = True
    with pytest.raises(session.NeedsGuest, match="ap1 is an access point"):
        Mininet_wifi().addAccessPoint("ap1", ssid="new-ssid")
    net = Mininet_wifi()
    net.addStation("sta1", position="0,0,0")
    with pytest.raises(session.NeedsGuest, match=r"802\.11s"):
        net.addLink("sta1", cls=mesh, ssid="meshNet")


def test_a_script_moves_into_a_guest_for_the_radios_that_the_command_line_asks_for(without_hwsim):
    without_hwsim.may_move, without_hwsim.overrides = True, ("stations=hwsim",)
    net = Mininet_wifi()
    for number in (1, 2):
        net.addLink(net.addStation(f"sta{number}", position=f"{number},0,0"), cls=adhoc, ssid="adhocNet")
    with pytest.raises(session.NeedsGuest, match="no module"):
        net.build()


def test_a_script_that_chose_taps_or_built_a_network_does_not_move(without_hwsim):
    without_hwsim.may_move = True
    refused(lambda: Mininet_wifi(scenario={"stations": "tap"}).addAccessPoint("ap1"), "addAccessPoint", "stations=tap")
    without_hwsim.built.append(Path("network1"))
    refused(lambda: Mininet_wifi().addAccessPoint("ap1"), "addAccessPoint")
    without_hwsim.built.clear()
    without_hwsim.overrides = ("stations=tap",)
    refused(lambda: Mininet_wifi().addAccessPoint("ap1"), "addAccessPoint")


def test_a_kernel_with_hwsim_needs_no_guest(without_hwsim, monkeypatch):
    monkeypatch.setattr(session, "require_radios", lambda _stations: None)
    Mininet_wifi().addAccessPoint("ap1", ssid="new-ssid")
    assert without_hwsim.overrides == ("stations=hwsim",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('ovs-ofctl add-flow ap1 "priority=0,arp,in_port=1,actions=output:in_port,normal"', True),
        ('ovs-ofctl add-flow ap1 "priority=10,actions=in_port,normal"', True),
        ("ovs-ofctl add-flow ap1 priority=0,actions=normal", False),
        ("ovs-ofctl add-flow ap1 in_port=2,actions=in_port,normal", False),
        ("ovs-ofctl add-flow ap1 tcp,tp_dst=80,actions=in_port,normal", False),
        ("ovs-ofctl add-flow ap2 actions=in_port,normal", False),
        ("ovs-ofctl del-flows ap1", False),
        ("ovs-ofctl add-flow ap1 'actions=in_port", False),
    ],
)
def test_the_one_rule_that_a_bridge_has_sends_back_to_the_radio(line, expected):
    assert sends_back(line, "ap1") is expected


def test_the_rule_has_no_effect_where_stations_reach_each_other_anyway():
    net = net_of()
    assert net["ap1"].cmd("ovs-ofctl add-flow ap1 actions=in_port,normal") == ""
    assert any("without the rule" in note for note in net.notes)


def test_commands_for_a_switch_are_refused():
    refused(lambda: net_of()["ap1"].cmd("ovs-ofctl add-flow ap1 priority=0,actions=normal"), "ovs-ofctl", "without OpenFlow")


def test_error_probabilities_are_those_of_the_declared_links_and_no_others():
    net = Mininet_wifi(wmediumd_mode=error_prob)
    net.addAccessPoint("ap1", ssid="new-ssid", position="15,30,0")
    for number in (1, 2):
        net.addStation(f"sta{number}", position=f"{number},0,0")
    net.addLink("sta1", "ap1", error_prob=0.02)
    rates = {(link.source, link.target): link.error_rate for link in net.scenario().links}
    assert rates == {("*", "*"): 1.0, ("sta1", "ap1"): 0.02, ("ap1", "sta1"): 0.02}
    assert {link.frames for link in net.scenario().links} == {"all"}
    refused(lambda: net.addLink("sta2", "ap1", error_prob=2), "error_prob=2", "outside 0 to 1")
    other = net_of()
    other.addStation("sta3", position="0,0,0")
    refused(lambda: other.addLink("sta3", "ap1", error_prob=0.1), "wmediumd_mode=error_prob", "error_rate")


def test_a_nat_is_a_host_at_an_access_points_cable():
    net = net_of()
    net.addNAT(linkTo="ap1").configDefault()
    assert "nat0" in net and [str(cable.b) for cable in net.cables] == ["nat0"]
    assert any("no network outside" in note for note in net.notes)
    refused(lambda: net.addNAT("nat1", linkTo="sta1"), "linkTo='sta1'", "no access point")


def test_sets_of_interfaces_have_no_effect_and_a_note():
    net = net_of()
    net.setInitialMediums(
        (("sta1", "ap1"),),
    )
    net.get("sta1").setMediumId(3)
    net.get("sta1").getNameToWintf("sta1-wlan0").setMediumId(3)
    assert sum("there is one air" in note for note in net.notes) == 1


def test_a_station_without_a_place_stands_beside_the_access_point_that_it_is_linked_to():
    net = Mininet_wifi()
    ap1 = net.addAccessPoint("ap1", ssid="new-ssid", position="50,50,0")
    net.addLink(net.addStation("sta1"), ap1)
    assert [place.x_m for place in net.scenario().positions() if place.name == "sta1"] == [51.0]
    net.addStation("sta2")
    refused(net.scenario, "sta2", "has no position")


def test_a_radio_of_a_mesh_has_its_name_and_the_kernel_its_channel():
    net = Mininet_wifi()
    for number in (1, 2):
        sta = net.addStation(f"sta{number}", position=f"{10 * number},0")
        net.addLink(sta, cls=mesh, ssid="meshNet", intf=f"sta{number}-wlan0", channel=5)
    assert [radio.name for radio in net.radios()] == ["sta1-mp0", "sta2-mp0"]
    assert net["sta1"].connections() == [("sta1-mp0", "wifiMesh")] and net["sta1"].MAC("sta1-mp0") == net["sta1"].MAC(
        "sta1-wlan0"
    )
    assert [radio.freq_mhz for radio in net.scenario().radios] == [2432, 2432]  # 2407 + 5 x 5
    other = Mininet_wifi()
    other.addLink(other.addStation("sta1", position="0,0"), cls=mesh)
    other.addLink("sta1", cls=adhoc)
    assert other["sta1"].wintfs[0].name == "sta1-wlan0" and not other.scenario().radios
