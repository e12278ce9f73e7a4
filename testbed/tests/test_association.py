"""Which access point a station belongs to, and what hostapd and wpa_supplicant are told."""

import pytest

from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.host.requirements import require_access_points
from testbed.stages.access_points import AccessPoint, hostapd_config
from testbed.stages.association import Signal, choose, supplicant_config
from testbed.stages.site import Site

OPEN = AccessPoint("ap1", "net", "02:00:00:00:00:03")
SECRET = AccessPoint("ap2", "net two", "02:00:00:00:00:04", "123456789a", isolated=True)


def near(**powers: float) -> list[Signal]:
    return [Signal(name, power, in_range=True) for name, power in powers.items()]


def test_the_first_access_point_in_range_is_joined_and_kept():
    signals = [Signal("ap1", -90, in_range=False), *near(ap2=-70, ap3=-50)]
    assert choose(None, signals, None, {}) == "ap2"
    assert choose("ap3", signals, None, {}) == "ap3"
    assert choose("ap1", signals, None, {}) == "ap2", "its access point is out of range"
    assert choose("ap1", signals[:1], None, {}) is None


def test_the_strongest_signal_wins_by_more_than_a_tenth_of_a_decibel():
    assert choose(None, near(ap1=-70, ap2=-50), "ssf", {}) == "ap2"
    assert choose("ap1", near(ap1=-50.0, ap2=-49.91), "ssf", {}) == "ap1"
    assert choose("ap1", near(ap1=-50.0, ap2=-49.89), "ssf", {}) == "ap2"


def test_the_least_loaded_is_one_with_three_stations_fewer():
    signals = near(ap1=-50, ap2=-60)
    assert choose("ap1", signals, "llf", {"ap1": 4, "ap2": 2}) == "ap1"
    assert choose("ap1", signals, "llf", {"ap1": 5, "ap2": 2}) == "ap2"
    assert choose(None, signals, "llf", {"ap1": 5}) == "ap1", "a station without one takes the first"


def lines_of(point: AccessPoint, tmp_path, **keys: object) -> dict[str, str]:
    scenario = Scenario.model_validate({"hops": 1, "stations": "hwsim", "hwsim": {"mode": "managed"}, "flows": [], **keys})
    text = hostapd_config(Site(scenario, 1, tmp_path, cgroup=tmp_path), point, "wlan0", bridged=False)
    return dict(line.split("=", 1) for line in text.splitlines())


def test_an_access_point_has_the_rates_of_the_profile(tmp_path):
    """In units of 100 kbit/s; broadcast frames have a basic rate."""
    slow = lines_of(OPEN, tmp_path, radio="ns2-dsss-2m")
    assert (slow["supported_rates"], slow["basic_rates"]) == ("10 20 55 110", "10")
    fast = lines_of(OPEN, tmp_path, radio="dot11g-54m")
    assert (fast["supported_rates"], fast["basic_rates"]) == ("60 90 120 180 240 360 480 540", "60 120 240")
    assert "wpa" not in fast and fast["ssid2"] == '"net"'


def test_wpa2_is_ccmp_with_a_passphrase(tmp_path):
    lines = lines_of(SECRET, tmp_path)
    assert (lines["wpa"], lines["wpa_key_mgmt"], lines["rsn_pairwise"]) == ("2", "WPA-PSK", "CCMP")
    assert (lines["wpa_passphrase"], lines["ap_isolate"]) == ("123456789a", "1")


def test_a_station_has_a_network_for_each_access_point_and_its_own_passphrase_first(tmp_path):
    text = supplicant_config([OPEN, SECRET], None, tmp_path)
    assert text.count("network={") == text.count("disabled=1") == 2
    assert "key_mgmt=NONE" in text and 'psk="123456789a"' in text and 'ssid="net two"' in text
    assert 'psk="another one"' in supplicant_config([SECRET], "another one", tmp_path)


def test_a_station_that_roams_by_itself_has_a_network_for_each_ssid(tmp_path):
    other = AccessPoint("ap3", "net two", "02:00:00:00:00:05", "123456789a")
    text = supplicant_config([SECRET, other], None, tmp_path, "simple:5:-41:10")
    assert text.count("network={") == 1 and 'bgscan="simple:5:-41:10"' in text
    assert "bssid=" not in text and "disabled" not in text


def test_a_missing_program_is_named_with_its_package(tmp_path):
    with pytest.raises(UsageError, match=r"^access points: hostapd: not found; apt-get install hostapd"):
        require_access_points(encrypted=False, path=str(tmp_path))
    for name in ("hostapd", "iw"):
        (tmp_path / name).touch(mode=0o755)
    require_access_points(encrypted=False, path=str(tmp_path))
    with pytest.raises(UsageError, match=r"wpa_supplicant: not found; apt-get install wpasupplicant"):
        require_access_points(encrypted=True, path=str(tmp_path))
