"""The models of EDCA against arithmetic by hand."""

import pytest

from testbed.validate import edca, radio


def test_a_txop_of_voice_by_hand():
    # HT MCS 7: data 228 + SIFS 16 + ACK 28 = 272 us; with SIFS between them 7 are 2000 us, 8 would be 2288 > 2080;
    # AIFS 34 and a mean backoff of 1.5 slots of 9 us
    constants = radio.load("dot11n-ht20")
    voice = edca.categories(constants)["voice"]
    assert edca.single_sender_bps(constants, voice, 1500, rts=False, distance_m=0.0) == pytest.approx(7 * 12000 / 2047.5e-6)


def test_background_waits_longer_by_hand():
    # one exchange: AIFS 16 + 63, 7.5 slots, 272 us
    constants = radio.load("dot11n-ht20")
    background = edca.categories(constants)["background"]
    expected = 12000 / (79 + 67.5 + 272) * 1e6
    assert edca.single_sender_bps(constants, background, 1500, rts=False, distance_m=0.0) == pytest.approx(expected)


def test_shares_by_hand():
    # CW 1 beside CW 0 in one station: a draw of 0 is a tie that the higher wins, after 1 the lower sends, and the higher
    # has 0 left: of the states 0 and 1 the first has two thirds
    assert edca.share_of_second((1, 2), (0, 2), in_one_station=True) == pytest.approx(1 / 3)
    # one slot later with windows of 0: it never sends
    assert edca.share_of_second((0, 2), (0, 3), in_one_station=False) == 0.0


@pytest.mark.parametrize("window", [1, 7, 15])
def test_equals_in_two_stations_share_equally(window):
    assert edca.share_of_second((window, 2), (window, 2), in_one_station=False) == pytest.approx(0.5)
    assert edca.share_of_second((window, 2), (window, 2), in_one_station=True) < 0.5
