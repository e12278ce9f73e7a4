"""Durations and the closed form against arithmetic by hand."""

from dataclasses import replace

import pytest

from testbed.errors import UsageError
from testbed.validate import closed_form, radio


def test_wavelan_exchange_by_hand():
    # 192 + 1534 * 4 = 6328, + 10 + 304 + 50 = 6692; + 15 slots of 20 = 6992 us: 1716 kbit/s (ns-2 measures 1716)
    constants = radio.load("ns2-dsss-2m")
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(6692)
    assert closed_form.mean_backoff_us(constants) == pytest.approx(300)
    assert closed_form.single_sender_bps(constants, 1500, rts=False) == pytest.approx(12000 / 6992e-6)


def test_rts_adds_676_us_on_wavelan():
    # 352 + 10 + 304 + 10
    constants = radio.load("ns2-dsss-2m")
    with_rts = closed_form.success_us(constants, 1500, rts=True)
    assert with_rts - closed_form.success_us(constants, 1500, rts=False) == pytest.approx(676)


def test_802_11a_exchange_by_hand():
    # data 1536 bytes: (16 + 12288 + 6) / 216 -> 57 symbols: 248 us; ACK (16 + 112 + 6) / 96 -> 2: 28 us;
    # 248 + 16 + 28 + 34 = 326; backoff 7.5 * 9 = 67.5 us
    constants = radio.load("dot11a-54m")
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(326)
    assert closed_form.single_sender_bps(constants, 1500, rts=False) == pytest.approx(12000 / 393.5e-6)


def test_802_11a_at_18_mbps_is_acknowledged_at_12():
    # data 1536 bytes: (16 + 12288 + 6) / 72 -> 171 symbols: 704 us; ACK (16 + 112 + 6) / 48 -> 3: 32 us, not 28 at 24 Mbit/s;
    # with RTS (16 + 160 + 6) / 96 -> 2: 28 us and CTS 28 us, both at 24 Mbit/s
    constants = replace(radio.load("dot11a-54m"), data_rate_bps=18_000_000)
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(704 + 16 + 32 + 34)
    assert closed_form.success_us(constants, 1500, rts=True) == pytest.approx(704 + 16 + 32 + 34 + 28 + 16 + 28 + 16)


def test_802_11g_pays_six_us_of_signal_extension_a_frame_and_saves_them_in_sifs():
    # data 254, SIFS 10, ACK 34, DIFS 50 with the ad hoc slot of 20 us
    constants = radio.load("dot11g-54m")
    assert closed_form.airtime_us(constants, 14, 24_000_000) == 34
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(348)


def test_802_11n_exchange_by_hand():
    # 1538 bytes: (16 + 12304 + 6) / 260 -> 48 symbols: 36 + 192 us; SIFS 16, ACK 28, AIFS 43: 315; backoff 67.5 us
    constants = radio.load("dot11n-ht20")
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(228 + 16 + 28 + 43)
    assert closed_form.single_sender_bps(constants, 1500, rts=False) == pytest.approx(12000 / 382.5e-6)
    # MCS 15: two streams, 520 bits a symbol -> 24; short guard: 24 symbols of 3.6 us end with the 22nd of 4 us
    two = replace(constants, mcs=15, guard_interval="short")
    assert closed_form.data_airtime_us(two, 1500) == 40 + 88
    # MCS 0 is acknowledged at 6 Mbit/s: 44 us
    assert closed_form.success_us(replace(constants, mcs=0), 1500, rts=False) == pytest.approx(1936 + 16 + 44 + 43)


def test_802_11ac_exchange_by_hand():
    # 1542 bytes with the delimiter: (16 + 12336 + 6) / 1170 -> 11 symbols; 20 + 8 + 4 + 4 + 4 us before
    assert closed_form.data_airtime_us(radio.load("dot11ac-vht80"), 1500) == 40 + 44


def test_802_11ax_exchange_by_hand():
    # 1542 bytes with the delimiter: (16 + 12336 + 6) / 1170 -> 11 symbols of 13.6 us; 20 + 4 + 8 + 4 + 7.2 us before
    constants = radio.load("dot11ax-he20")
    assert closed_form.data_airtime_us(constants, 1500) == pytest.approx(43.2 + 149.6)
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(43.2 + 149.6 + 16 + 28 + 43)
    # 80 MHz, MCS 11, two streams: 16333 bits (980 * 10 * 2 * 5 / 6 rounded down) hold 12352 in a symbol; two 4x HE-LTFs of 16 us
    two = replace(radio.load("dot11ax-he80"), mcs=11, streams=2, guard_interval="quadruple")
    assert closed_form.data_airtime_us(two, 1500) == pytest.approx(36 + 32 + 16)


def test_802_11ah_exchange_by_hand():
    # 1538 bytes: (8 + 12304 + 6) / 260 -> 48 symbols: 240 + 1920 us; ACK (8 + 112 + 6) / 78 -> 2 symbols: 320; SIFS 160, AIFS 316
    constants = radio.load("dot11ah-2m")
    assert closed_form.success_us(constants, 1500, rts=False) == pytest.approx(2160 + 160 + 320 + 316)
    # 1 MHz, MCS 10: 6 bits a symbol -> 2053 symbols; the ACK at MCS 10, too, as all basic rates are faster: 126 / 6 = 21
    repeated = replace(radio.load("dot11ah-1m"), mcs=10)
    assert closed_form.success_us(repeated, 1500, rts=False) == pytest.approx(560 + 2053 * 40 + 160 + 560 + 840 + 316)


def test_802_11b_exchange_by_hand():
    # data 192 + 1536 * 8 / 11 = 1117.09, in whole microseconds 1310; ACK 192 + 56 = 248;
    # 1310 + 10 + 248 + 50 + 15.5 * 20 = 1928 us
    constants = radio.load("dot11b-11m")
    assert closed_form.single_sender_bps(constants, 1500, rts=False) == pytest.approx(12000 / 1928e-6)


def test_eifs_leaves_room_for_an_ack_at_the_lowest_rate():
    assert closed_form.eifs_us(radio.load("ns2-dsss-2m")) == 364  # 10 + 50 + 304
    assert closed_form.eifs_us(radio.load("dot11a-54m")) == 94  # 16 + 34 + 44: 134 bits in 6 symbols at 6 Mbit/s


def test_windows_double_as_the_profile_draws_them():
    assert radio.load("ns2-dsss-2m").windows == [31, 63, 127, 255, 511, 1023]
    assert radio.load("dot11a-54m").windows == [16, 32, 64, 128, 256, 512, 1024]


def test_an_unknown_profile_is_named_with_those_there_are():
    with pytest.raises(UsageError, match=r"dot11a-55m\.toml: not found; profiles are dot11a-54m, "):
        radio.load("dot11a-55m")
