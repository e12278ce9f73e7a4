"""Replays of recorded bandwidth, conditions and signal, before a network is up."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.mn_wifi import session
from testbed.mn_wifi.net import Mininet_wifi
from testbed.mn_wifi.replaying import ReplayingBandwidth, ReplayingNetworkConditions, ReplayingRSSI, recorded
from testbed.mn_wifi.shaping import Condition
from testbed.tests.test_mn_wifi import refused


@pytest.fixture(autouse=True)
def in_a_script(tmp_path, monkeypatch):
    """The session of `manet script --set stations=hwsim`, without a network."""
    monkeypatch.setattr(session, "_current_session", [])
    return session.begin(session.Session(Path("mine.py"), tmp_path, seed=1, overrides=("stations=hwsim",)))


def net_of() -> Mininet_wifi:
    """An access point and two stations."""
    net = Mininet_wifi()
    net.addAccessPoint("ap1", ssid="new-ssid", mode="g", channel="1", position="50,50,0")
    for number in (1, 2):
        net.addStation(f"sta{number}", position=f"{10 * number},50,0")
    return net


def test_a_condition_is_netems_rate_loss_and_delay():
    assert Condition(0, None, 36.0).netem() == ["rate", "36.0000mbit"]
    assert Condition(0, None, 1.5, 10, 20).netem() == ["rate", "1.5000mbit", "loss", "10%", "delay", "20ms"]
    assert Condition(0, None, 0.0).netem() == [], "0 is no limit, as netem has it"


def test_records_are_lists_of_one_length_and_numbers():
    net = net_of()
    refused(lambda: ReplayingBandwidth(net), "net.build() before")
    net.standing = SimpleNamespace()
    refused(lambda: ReplayingBandwidth(net), "no station has a record", "sta.throughput")
    sta1 = net["sta1"]
    sta1.time, sta1.bw, sta1.loss, sta1.latency = [0, 1], [5, 6], [0, 0], [1]
    refused(lambda: ReplayingNetworkConditions(net), "sta1", "one length")
    sta1.latency = [1, -1]
    refused(lambda: ReplayingNetworkConditions(net), "sta1.latency=-1", "outside 0")
    sta1.latency = [1, 2]
    assert recorded("here", net, "bw", "loss", "latency") == [(sta1, 0, 5, 0, 1), (sta1, 1, 6, 0, 2)]


def test_a_signal_is_replayed_at_the_distance_of_the_networks_own_model():
    """14 dBm and two gains of 5 dBi; 40.1 dB in the first metre at 2.412 GHz, (4 pi f/c)^2; then 30 dB per decade (exp=3):
    -50 dBm is 33.9 dB, or a factor of 10^(33.9/30) = 13.5, below the power at 1 m."""
    net = net_of()
    assert net.distance_of(net["ap1"], net["sta1"], -50) == pytest.approx(13.5, abs=0.05)
    other = net_of()
    other["sta1"].params["antennaGain"] = 8  # 3 dB more: 10^(3/30) = 1.26 times as far
    assert other.distance_of(other["ap1"], other["sta1"], -50) == pytest.approx(13.5 * 1.26, abs=0.1)
    refused(lambda: ReplayingRSSI(net, ppm="none"), "ppm='none'", "'friis'")
