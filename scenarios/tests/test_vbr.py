"""The traffic kind `vbr`: its keys, the distribution of the sizes, files of sizes."""

from itertools import islice
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

import pytest

from keys.errors import UsageError
from scenarios.definition import load_scenario
from scenarios.flows import Flow
from scenarios.scenario import Scenario
from traffic import kind_named
from traffic.shared.datagrams import Train
from traffic.shared.kind import FlowPlan
from traffic.vbr import PRESETS, VbrKeys, drawn_sizes, sizes_in

VBR = kind_named("vbr")
DRAWN = {"interval": 0.1, "mean": 500, "variance": 10_000, "min": 100, "max": 1400}


def keys(**given: Any) -> VbrKeys:
    flow = Flow.model_validate({"from": "sta1", "to": "sta2", "traffic": "vbr", **given})
    own: VbrKeys = flow.own_keys()
    return own


def plan(folder: Path, of: VbrKeys, seed: int = 1, name: str = "flow1") -> FlowPlan:
    ends = {"source": "10.0.0.1", "target": "10.0.0.2", "port": 5201}
    return FlowPlan(name, of, **ends, seconds=2.0, seed=seed, report=folder / "x.json", log=folder)


@pytest.mark.parametrize(
    ("mean", "variance", "low", "high"),
    [(500, 10_000, 100, 1400), (463.2, 10_864.7, 144, 1308), (300, 180_000, 100, 1400), (1390, 500, 100, 1400)],
)
def test_sizes_have_the_mean_the_variance_and_the_limits_of_the_keys(mean: float, variance: float, low: int, high: int) -> None:
    """Of 100000 draws the mean has a standard error of sqrt(variance / 100000); the bound is five of them, the sum of the five
    dropped with 1e-6. Rounding to whole bytes adds 1/12 to the variance. The third is U-shaped: its bound is
    (300 - 100) * (1400 - 300) = 220000."""
    drawn = list(islice(drawn_sizes(keys(interval=1, mean=mean, variance=variance, min=low, max=high), "seed 1"), 100_000))
    assert fmean(drawn) == pytest.approx(mean, abs=5 * (variance / 100_000) ** 0.5)
    assert pvariance(drawn) == pytest.approx(variance, rel=0.03)
    assert low <= min(drawn) and max(drawn) <= high


def test_without_variance_all_sizes_are_the_mean() -> None:
    assert list(islice(drawn_sizes(keys(**DRAWN | {"variance": 0}), "seed"), 3)) == [500, 500, 500]
    assert list(islice(drawn_sizes(keys(interval=1, mean=200, variance=0, min=200, max=200), "seed"), 2)) == [200, 200]


def test_the_series_depends_on_the_seed_and_the_flow_s_name_alone(tmp_path: Path) -> None:
    def series(seed: int, name: str, **more: Any) -> list[int]:
        return list(islice(VBR.sizes(plan(tmp_path, keys(**DRAWN | more), seed, name)), 50))

    assert series(1, "flow1") == series(1, "flow1") == series(1, "flow1", interval=0.5)
    assert len({tuple(series(seed, name)) for seed in (1, 2) for name in ("flow1", "flow2", "flow11")}) == 6


def test_the_sender_gets_a_size_for_each_packet(tmp_path: Path) -> None:
    """2 s / 0.1 s are 20 packets."""
    sender = VBR.sender(plan(tmp_path, keys(**DRAWN)), 4711)
    assert sender.argv[-6:-4] == ["--sizes", str(tmp_path / "flow1-sizes.txt")]
    assert sender.argv[sender.argv.index("--bytes") + 1] == "1400"
    written = sizes_in(tmp_path / "flow1-sizes.txt")
    assert written == list(islice(drawn_sizes(keys(**DRAWN), "sizes 1 flow1"), 20))


def test_presets_have_the_published_mean_rates() -> None:
    """463.2 bytes * 8 / 0.0694444 s = 53360 bit/s; a fifth of it is 10672 bit/s. Published: 53 and 10.6 kbit/s."""
    rates = {name: VBR.offered_bps(keys(preset=name).model_dump()) for name in PRESETS}
    assert rates == {"video-53k": pytest.approx(53_360, abs=5), "video-10k": pytest.approx(10_672, abs=1)}
    assert all(preset["source"] for preset in PRESETS.values())
    assert keys() == keys(preset="video-53k")


def test_keys_replace_those_of_a_preset_and_scenario_json_has_all_of_them() -> None:
    changed = keys(preset="video-53k", interval=0.2)
    assert (changed.interval, changed.mean, changed.max) == (0.2, 463.2, 1308)
    flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", "preset": "video-53k", "interval": 0.2}
    scenario = Scenario.model_validate({"hops": 1, "flows": [flow]})
    assert (scenario.flows[0].mean, scenario.flows[0].variance) == (463.2, 10_864.7)
    assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("variance = -1", 'key "flows.0.variance": -1 is out of range; give at least 0'),
        ("min = 1401", 'key "flows.0.min": 1401 bytes are above max = 1400'),
        ("mean = 99", 'key "flows.0.mean": 99 bytes are not between min = 100 and max = 1400'),
        ("mean = 1400.5", 'key "flows.0.mean": 1400.5 bytes are not between'),
        # (500 - 100) * (1400 - 500)
        ("variance = 360_000", 'key "flows.0.variance": 360000 is too large for this mean, min and max; give less than'),
        ("max = 1501", 'key "flows.0.max": 1501 is out of range; give at most 1500'),
        ("min = 39", 'key "flows.0.min": 39 is out of range; give at least 40'),
        ("interval = 0", 'key "flows.0.interval": 0 is out of range; give at least 0.001 s'),
        ('sizes = "x.txt"', 'key "flows.0.mean": contradicts sizes = "x.txt"; remove one of the two keys'),
        ('preset = "video"', 'key "flows.0.preset": "video" is not known; use one of "video-53k", "video-10k"'),
    ],
)
def test_an_impossible_distribution_is_refused_with_its_key(tmp_path: Path, change: str, message: str) -> None:
    given = [f"{key} = {value}" for key, value in DRAWN.items() if not change.startswith(f"{key} =")]
    path = tmp_path / "x.toml"
    path.write_text(
        "\n".join(["hops = 1", "[[flows]]", 'from = "sta1"', 'to = "sta2"', 'traffic = "vbr"', *given, change]) + "\n"
    )
    with pytest.raises(UsageError) as refused:
        load_scenario(path)
    assert message in str(refused.value)


def test_a_distribution_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ValueError, match=r'a "vbr" flow needs "variance"; add variance = 10864\.7, or preset = "video-53k"'):
        keys(interval=0.1, mean=500, min=100, max=1400)
    with pytest.raises(ValueError, match='a flow with "sizes" needs "interval"'):
        keys(sizes="x.txt")


def test_a_packet_above_the_mtu_is_refused() -> None:
    flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", **DRAWN}
    with pytest.raises(ValueError, match="1400 bytes are above mtu = 1000") as refused:
        Scenario.model_validate({"hops": 1, "mtu": 1000, "flows": [flow]})
    assert refused.value.errors()[0]["ctx"]["error"].path == ("flows", 0, "max")  # type: ignore[attr-defined]


def with_file(folder: Path, text: str, *more: str) -> Path:
    (folder / "video").mkdir()
    (folder / "video" / "sizes.txt").write_text(text)
    flow = '{ from = "sta1", to = "sta2", traffic = "vbr", interval = 0.5, sizes = "video/sizes.txt" }'
    path = folder / "x.toml"
    path.write_text("\n".join(["hops = 1", *more, f"flows = [{flow}]"]) + "\n")
    return path


def test_sizes_of_a_file_are_repeated(tmp_path: Path) -> None:
    """Relative to the scenario's file. The mean of 100, 200 and 600 bytes is 300: 300 * 8 / 0.5 s = 4800 bit/s."""
    scenario = load_scenario(with_file(tmp_path, "# bytes\n100\n200\n\n600\n"))
    flow = scenario.flows[0]
    assert flow.sizes == str(tmp_path / "video" / "sizes.txt")
    assert VBR.train(flow.own_keys()) == Train(every_s=0.5, packets=1, packet_bytes=600)
    VBR.sender(plan(tmp_path, flow.own_keys()), 4711)
    assert (tmp_path / "flow1-sizes.txt").read_text().split() == ["100", "200", "600", "100"]
    assert VBR.offered_bps(flow.model_dump()) == 4800
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_a_path_of_set_is_relative_to_the_current_folder_then_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_file(tmp_path, "100\n")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "own.txt").write_text("200\n")
    monkeypatch.chdir(tmp_path / "here")
    found = {given: load_scenario(path, [f"flows.0.sizes={given}"]).flows[0].sizes for given in ("own.txt", "video/sizes.txt")}
    assert found == {"own.txt": str(tmp_path / "here" / "own.txt"), "video/sizes.txt": str(tmp_path / "video" / "sizes.txt")}


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("100\n39\n", "", 'line 2: "39" is no size of a packet; give whole bytes, 40 to 1500'),
        ("100.5\n", "", 'line 1: "100.5" is no size of a packet'),
        ("-100\n", "", 'line 1: "-100" is no size of a packet'),
        ("1400\n", "mtu = 1000", 'line 1: "1400" is no size of a packet; give whole bytes, 40 to 1000 (mtu = 1000)'),
        ("# none\n", "", "no sizes in it"),
    ],
)
def test_a_wrong_file_of_sizes_is_refused(tmp_path: Path, text: str, more: str, message: str) -> None:
    path = with_file(tmp_path, text, more)
    with pytest.raises(UsageError) as refused:
        load_scenario(path)
    assert 'key "flows.0.sizes"' in str(refused.value) and message in str(refused.value)


def test_a_missing_file_of_sizes_is_refused(tmp_path: Path) -> None:
    path = with_file(tmp_path, "100\n")
    (tmp_path / "video" / "sizes.txt").unlink()
    with pytest.raises(UsageError, match=r'key "flows.0.sizes": there is no file .*video/sizes.txt"; give the path of'):
        load_scenario(path)
