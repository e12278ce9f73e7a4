"""Ranges of the project's radios against formats/radio.md and ns-2."""

import tomllib
from pathlib import Path

import pytest

from analysis.metrics.radio_range import range_m, range_of

RADIOS = Path(__file__).resolve().parents[2] / "medium" / "radios"


def radio(name: str) -> dict:
    return tomllib.loads((RADIOS / f"{name}.toml").read_text())


def test_the_papers_radio_is_received_at_250_m():
    assert range_m(radio("ns2-dsss-2m"), {"model": "two-ray"}) == pytest.approx(250, abs=0.1)


def test_free_space_reaches_as_far_as_friis_says():
    # Pt (lambda / 4 pi d)^2 = threshold: lambda = 3e8 / 914e6 = 0.3282 m, sqrt(0.28183815 / 3.652e-10) = 27780
    assert range_m(radio("ns2-dsss-2m"), {"model": "free-space"}) == pytest.approx(0.3282 / 12.566 * 27780, rel=1e-3)


def test_a_weak_radio_is_in_free_space_under_two_ray_ground_too():
    weak = radio("ns2-dsss-2m") | {"receive_threshold_w": 1e-7}  # 43.8 m, before the crossover at 86.1 m
    assert range_m(weak, {"model": "two-ray"}) == range_m(weak, {"model": "free-space"}) < 86


def test_log_distance_falls_with_its_exponent():
    # free space would carry 725.6 m: from 1 m on with exponent 3 it is 725.6^(2/3)
    assert range_m(radio("ns2-dsss-2m"), {"model": "log-distance"}) == pytest.approx(725.6 ** (2 / 3), rel=2e-3)


@pytest.mark.parametrize(
    "model",
    [
        {"model": "shadowing", "sigma_db": 4},
        {"model": "shadowing", "sigma_db": 4, "correlation_m": 20},
        {"model": "matrix", "matrix": []},
        {"model": "trace", "file": "links.csv"},
    ],
)
def test_models_with_different_pairs_have_no_single_range(model):
    assert range_m(radio("ns2-dsss-2m"), model) is None


def test_indoors_the_range_is_that_of_p_1238():
    # 24.5 dBm to -64.375 dBm are 88.875 dB: 20 log10(914) - 28 = 31.219 at 1 m, 57.656 / 30 = 1.9219 decades beyond
    assert range_m(radio("ns2-dsss-2m"), {"model": "itu-indoor"}) == pytest.approx(10**1.9219, rel=1e-3)


def test_a_network_with_walls_has_no_single_range():
    medium = {"radio": str(RADIOS / "ns2-dsss-2m.toml"), "stations": [{"name": "sta1"}]}
    assert range_of(medium) == pytest.approx(250, abs=0.1)
    assert range_of(medium | {"walls": [{"from": [0, 0], "to": [1, 1], "loss_db": 3}]}) is None
    assert range_of(medium | {"fading": {"model": "rayleigh"}}) == range_of(medium), "the mean"


def test_a_disc_has_its_stated_ranges_and_overrides_count():
    assert range_m(radio("ns2-dsss-2m"), {"model": "disc", "range_m": 120, "sense_m": 200}) == 120
    document = {"radio": str(RADIOS / "ns2-dsss-2m.toml"), "radio_overrides": {"receive_threshold_w": 3.652e-10 * 16}}
    assert range_of(document) == pytest.approx(125, abs=0.1)
    assert range_of({"radio": "/proc/nowhere.toml"}) is None
