"""Bianchi's model against the numbers of the paper and of ns-3's reference."""

from math import exp, sqrt

import pytest

from testbed.validate.bianchi import Backoff, Slots, chain, saturation, transmission_probability

# Bianchi 2000, table II (FHSS, 1 Mbit/s): payload 8184, MAC header 272, PHY header 128, ACK 112 + 128, RTS 160 + 128,
# CTS 112 + 128 bits; propagation 1, slot 50, SIFS 28, DIFS 128 us.
HEADER, PAYLOAD, ACK, RTS, CTS = 272 + 128, 8184, 112 + 128, 160 + 128, 112 + 128
BASIC = Slots(empty=50, success=HEADER + PAYLOAD + 28 + 1 + ACK + 128 + 1, collision=HEADER + PAYLOAD + 128 + 1, payload=PAYLOAD)
RTS_CTS = Slots(
    empty=50,
    success=RTS + 28 + 1 + CTS + 28 + 1 + HEADER + PAYLOAD + 28 + 1 + ACK + 128 + 1,
    collision=RTS + 128 + 1,
    payload=PAYLOAD,
)


def doubling(window, stages):
    """Bianchi's W and m: W, 2W, ... 2^m W, retried for ever."""
    return Backoff([window << stage for stage in range(stages + 1)])


def test_slot_durations_are_those_of_the_papers_table_three():
    assert (BASIC.success, BASIC.collision) == (8982, 8713)
    assert (RTS_CTS.success, RTS_CTS.collision) == (9568, 417)


@pytest.mark.parametrize("collision", [0.0, 0.01, 0.2, 0.35, 0.6, 0.9])
@pytest.mark.parametrize(("window", "stages"), [(32, 3), (32, 5), (128, 3), (16, 6)])
def test_chain_is_the_papers_equation_seven(collision, window, stages):
    p = collision
    published = 2 * (1 - 2 * p) / ((1 - 2 * p) * (window + 1) + p * window * (1 - (2 * p) ** stages))
    assert chain(p, doubling(window, stages)) == pytest.approx(published, rel=1e-9)


def test_without_doubling_tau_is_two_over_window_plus_one_for_any_number_of_stations():
    # the paper's equation (8): m = 0
    for stations in (2, 10, 50):
        assert transmission_probability(stations, doubling(64, 0)) == pytest.approx(2 / 65, rel=1e-9)


def test_fixed_point_satisfies_both_equations():
    backoff = doubling(32, 5)
    for stations in (2, 5, 10, 20, 50):
        solved = saturation(stations, backoff, BASIC)
        assert solved.p == pytest.approx(1 - (1 - solved.tau) ** (stations - 1))
        assert chain(solved.p, backoff) == pytest.approx(solved.tau)


@pytest.mark.parametrize(("slots", "published_k"), [(BASIC, 9.334), (RTS_CTS, 2.042)])
def test_highest_throughput_for_many_stations_is_the_papers_bound(slots, published_k):
    """The maximum over tau for many stations: tau* = 1/(nK), K = sqrt(Tc*/2); then
    S = P/(Ts + sigma K + Tc (K (e^(1/K) - 1) - 1))."""
    k = sqrt(slots.collision / slots.empty / 2)
    assert k == pytest.approx(published_k, abs=5e-4)
    bound = slots.payload / (slots.success + slots.empty * k + slots.collision * (k * (exp(1 / k) - 1) - 1))
    stations = 1000
    window = round(2 * k * stations) - 1  # tau = 2/(W+1)
    assert saturation(stations, doubling(window, 0), slots).utilisation == pytest.approx(bound, rel=2e-3)


def test_basic_access_falls_with_the_number_of_stations_and_rts_hardly_does():
    # the paper's figures 6 and 7 (W 32, m 3): basic from above 0.8 at 5 stations to below 0.6 at 50, RTS/CTS about 0.83
    backoff = doubling(32, 3)
    assert saturation(5, backoff, BASIC).utilisation > 0.80
    assert saturation(50, backoff, BASIC).utilisation < 0.60
    for stations in (5, 10, 20, 50):
        assert saturation(stations, backoff, RTS_CTS).utilisation == pytest.approx(0.83, abs=0.01)


def test_one_attempt_per_packet_leaves_only_the_first_window():
    assert chain(0.5, Backoff([32, 64, 128], attempts=1)) == pytest.approx(2 / 33)


def test_a_retry_limit_beyond_reach_changes_nothing():
    windows = [32, 64, 128, 256, 512, 1024]
    assert chain(0.3, Backoff(windows, attempts=60)) == pytest.approx(chain(0.3, Backoff(windows)), rel=1e-12)


def test_retry_limit_sums_the_stages_by_hand():
    # p = 1/2, windows 2 and 4, three attempts: (1 + 1/2 + 1/4) / (1.5 + 2.5 (1/2 + 1/4)) = 1.75 / 3.375
    assert chain(0.5, Backoff([2, 4], attempts=3)) == pytest.approx(1.75 / 3.375)


def test_one_frozen_station_sends_a_packet_per_exchange_and_mean_backoff():
    # exchange 100, slot 1, W = 16: 100 + 7.5 a packet
    solved = saturation(1, Backoff([16]), Slots(1, 100, 100, 1), freezing=True)
    assert 1 / solved.utilisation == pytest.approx(107.5)


@pytest.mark.parametrize(("stations", "published_mbps"), [(5, 29.2861), (10, 27.3763), (20, 25.3325), (50, 22.4162)])
def test_frozen_form_is_near_ns3s_reference_for_802_11a_at_54_mbps(stations, published_mbps):
    """ns-3 src/wifi/examples/wifi-bianchi.cc, bianchiResultsEifs, OfdmRate54Mbps: 1534 bytes, ACK at 24 Mbit/s.

    Data 20 + 4 * ceil((22 + 12272) / 216) = 248 us, ACK 20 + 4 * 2 = 28 us, SIFS 16, DIFS 34, slot 9. ns-3 keeps the
    chain of 2000 and gives the extra slot to successes alone: 1 % above.
    """
    busy = 248 + 16 + 28 + 34
    slots = Slots(empty=9, success=busy, collision=busy, payload=12000)
    solved = saturation(stations, doubling(16, 6), slots, freezing=True)
    assert solved.utilisation == pytest.approx(published_mbps, rel=0.015)
