"""Every figure of analysis/figures draws from small data, is not empty, and says in its docstring what it shows."""

import importlib
import itertools
import json
import shutil
import tomllib
from pathlib import Path

import matplotlib.image
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import figures, paired, style
from analysis.errors import RunFileError
from analysis.figures import (
    be_per,
    be_recompute,
    cwnd,
    hv_elfn,
    hv_fig1,
    hv_fig3,
    hv_fig7,
    hv_load,
    hv_patterns,
    moving_chain,
    routing_chain,
    routing_reaction,
    rt_tables,
)
from analysis.metrics import analyse_run
from analysis.tables import write_tables
from analysis.tests.test_tables import EXPERIMENT, make_run

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"
NAMES = sorted(path.stem for path in Path(figures.__file__).parent.glob("*.py") if path.stem != "__init__")


@pytest.fixture
def campaign(tmp_path) -> Path:
    """Two variants, up to three hops, one of the cells all void."""
    for variant in ("ns2", "hv"):
        for hops, value in ((1, 1250.0), (2, 630.0), (3, 400.0)):
            for seed in (1, 2):
                make_run(tmp_path, variant, hops, seed, value + 10 * seed, verdict="void" if hops == 3 else "valid")
    write_tables(tmp_path, EXPERIMENT)
    return tmp_path


@pytest.fixture
def run_dir(tmp_path) -> Path:
    folder = Path(shutil.copytree(FIXTURE, tmp_path / "hops2" / "seed-1"))
    analyse_run(folder)
    return folder


def _assert_drawn(paths: list[Path]) -> None:
    assert [path.suffix for path in paths] == [".png", ".pdf"] * (len(paths) // 2)
    for path in paths:
        if path.suffix == ".png":
            assert matplotlib.image.imread(path)[..., :3].std() > 0.05, "a blank page"
        else:
            assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_caption_and_a_draw_function(name):
    module = importlib.import_module(f"analysis.figures.{name}")
    assert len(module.__doc__) > 80
    assert callable(module.draw)


def test_hv_fig1_draws(campaign):
    _assert_drawn(hv_fig1.draw(campaign))


def test_hv_fig1_draws_what_there_is_after_a_campaign_of_void_runs(tmp_path):
    make_run(tmp_path, "ns2", 1, 1, 1.0, verdict="void")
    write_tables(tmp_path, EXPERIMENT)
    _assert_drawn(hv_fig1.draw(tmp_path))


def test_hv_fig1_says_what_to_do_first_when_there_are_no_tables(tmp_path):
    with pytest.raises(RunFileError, match=r"summary\.csv: missing; make the tables first"):
        hv_fig1.draw(tmp_path)


def test_the_same_data_give_the_same_pdf(campaign):
    first = hv_fig1.draw(campaign)[1].read_bytes()
    assert hv_fig1.draw(campaign)[1].read_bytes() == first


def test_cwnd_draws_a_run_and_a_folder_of_runs(run_dir):
    _assert_drawn(cwnd.draw(run_dir))
    assert [path.name for path in cwnd.draw(run_dir.parent.parent)] == ["cwnd_flow1.png", "cwnd_flow1.pdf"]


def test_cwnd_leaves_out_iperf3_s_control_connection(run_dir):
    metrics = analyse_run(run_dir)["flows"]["flow1"]
    samples = cwnd._of_flow(cwnd._read(run_dir / "tcp.csv"), metrics)
    assert len(samples) == 60
    assert set(samples["sport"]) == {40000}


def test_cwnd_says_when_the_run_has_no_samples(run_dir):
    (run_dir / "tcp.csv").unlink()
    with pytest.raises(RunFileError, match=r"tcp\.csv: no TCP samples; .*manet doctor"):
        cwnd.draw(run_dir)


def test_routing_chain_draws_ours_beside_ns2(tmp_path, monkeypatch):
    for variant in ("aodv", "dsr", "olsr"):  # of OLSR ns-2.35 has nothing
        for hops in (1, 2, 3):
            make_run(tmp_path, variant, hops, 1, 1250.0 / hops, verdict="suspect" if hops == 3 else "valid")
    write_tables(tmp_path, {"name": "routing-chain", "axes": {"hops": [1, 2, 3]}, "ns2": "chain_routing"})
    words = _words(routing_chain.draw, tmp_path, monkeypatch)
    assert all(word in words for word in ("AODV", "DSR", "OLSR", "one run each\nopen: ns-2.35", "with a suspect run"))
    _assert_drawn(routing_chain.draw(tmp_path))


def test_routing_reaction_draws_quartiles_and_counts_what_never_came_back(tmp_path, monkeypatch):
    for variant, times in (("aodv", [0.1, 0.2, 0.3, 0.4, 0.5]), ("aodv-silence", [2.0, None, 3.0, None])):
        for seed, value in enumerate(times, start=1):
            make_run(tmp_path, variant, 2, seed, 1.0)
            path = tmp_path / f"{variant}-hops2" / f"seed-{seed}" / "metrics.json"
            metrics = json.loads(path.read_text())
            metrics["flows"]["flow1"]["reaction_s"] = value
            path.write_text(json.dumps(metrics))
    words = _words(routing_reaction.draw, tmp_path, monkeypatch)
    assert "AODV, feedback" in words and "AODV, silence" in words
    assert "0.3 s (0.2 to 0.4), n = 5" in words
    # of 2, 3, never, never: quartiles between 2 and 3 and among the never
    assert "inf s (2.75 to inf), n = 4, 2 never" in words
    assert (tmp_path / "reaction.csv").read_text().splitlines()[1] == "aodv,5,0,0.3000,0.2000,0.4000,0.1000,0.5000"


def test_moving_chain_draws_throughput_and_silence_in_the_experiments_order(tmp_path, monkeypatch):
    for variant, silences in (("aodv", [0.0, 1.0, 9.0]), ("batman-adv", [8.0, 9.0])):
        for seed, value in enumerate(silences, start=1):
            make_run(tmp_path, variant, 2, seed, 100.0 * seed, verdict="void" if seed == 3 else "valid")
            path = tmp_path / f"{variant}-hops2" / f"seed-{seed}" / "metrics.json"
            metrics = json.loads(path.read_text())
            metrics["flows"]["flow1"]["silence_s"] = value
            path.write_text(json.dumps(metrics))
    (tmp_path / "experiment.json").write_text(json.dumps({"variants": ["batman-adv", "aodv"]}))
    words = _words(moving_chain.draw, tmp_path, monkeypatch)
    assert words.index("batman-adv") < words.index("AODV")
    assert "150 kbit/s, n = 2" in words and "8.5 s, n = 2" in words and "0.5 s, n = 2" in words
    _assert_drawn(moving_chain.draw(tmp_path))


def make_patterns(folder: Path, name: str, gains: dict[str, float]) -> None:
    """Three patterns at 10 m/s; the third is void for the first variant."""
    for number, (variant, gain) in enumerate(gains.items()):
        for seed, value in ((1, 300.0), (2, 700.0), (3, 500.0)):
            make_run(folder, variant, 1, seed, value + gain + seed, verdict="void" if (seed, number) == (3, 0) else "valid")
    for path in folder.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"speed": 10}}))
    write_tables(folder, {"name": name, "axes": {"speed": [10]}})


def test_hv_elfn_sets_each_variant_beside_plain_reno(tmp_path):
    make_patterns(tmp_path, "hv-fig12", {"reno": 0.0, "elfn-2s": 50.0, "elfn-30s": -40.0})
    found = paired.differences(tmp_path, "reno", ["elfn-2s", "elfn-30s"])
    assert found == {"elfn-2s": {10: pytest.approx([50, 50])}, "elfn-30s": {10: pytest.approx([-40, -40])}}
    _assert_drawn(hv_elfn.draw(tmp_path))


def test_rt_tables_has_a_table_a_protocol_coloured_where_there_is_a_reference(tmp_path):
    axes = {"routing": ["aodv", "olsr"], "tcp": ["newreno", "vegas"], "hops": [1, 2]}
    for number, (routing, tcp, hops) in enumerate(itertools.product(*axes.values())):
        make_run(tmp_path, f"{routing}-{tcp}", hops, 1, 700.0 / hops + number)
        path = tmp_path / f"{routing}-{tcp}-hops{hops}" / "seed-1" / "run.json"
        there = {"axes": {"routing": routing, "tcp": tcp, "hops": hops}, "variant": ""}
        path.write_text(json.dumps(json.loads(path.read_text()) | there))
    write_tables(tmp_path, {"name": "rt-static", "axes": axes, "ns2": "rt_static", "published": "rt_static"})
    _assert_drawn(rt_tables.draw(tmp_path))


def test_be_per_draws_ours_ns2s_and_the_published_points(tmp_path):
    for rate, value in (("0", 350.0), ("0.015", 300.0), ("0.2", 20.0)):
        make_run(tmp_path, f"frame-{rate}", 3, 1, value)
    for path in tmp_path.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {"nodes": 4}}))
    write_tables(tmp_path, {"name": "be-per", "axes": {"nodes": [4]}, "ns2": "be_per", "published": "be_per"})
    _assert_drawn(be_per.draw(tmp_path))


def expect(folder: Path, expected_kbps: float) -> None:
    """Gives every run below `folder` an expected throughput."""
    for path in folder.rglob("metrics.json"):
        document = json.loads(path.read_text())
        flow = document["flows"]["flow1"]
        flow |= {"expected_bps": expected_kbps * 1e3, "percent_of_expected": flow["acked_bps"] / expected_kbps / 10}
        path.write_text(json.dumps(document))


def test_hv_fig3_holds_each_pattern_against_what_it_allows(tmp_path):
    make_patterns(tmp_path, "hv-fig3", {"reno": 0.0, "elfn-2s": 50.0})
    expect(tmp_path, 800.0)
    write_tables(tmp_path, {"name": "hv-fig3", "axes": {"speed": [10]}})
    _assert_drawn(hv_fig3.draw(tmp_path))


def test_hv_patterns_draws_ours_beside_ns2s(tmp_path):
    for variant in ("aodv-10", "aodv-30", "dsr-30"):
        make_run(tmp_path, variant, 1, 1, 500.0)
    for path in tmp_path.rglob("run.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"axes": {}}))
    expect(tmp_path, 700.0)
    write_tables(tmp_path, {"name": "hv-patterns", "axes": {}, "ns2": "hv_patterns"})
    _assert_drawn(hv_patterns.draw(tmp_path))


def test_hv_load_has_a_panel_a_load(tmp_path):
    make_patterns(tmp_path, "hv-fig15", {"reno-5pps": 0.0, "elfn-5pps": 50.0, "reno-five": 10.0, "elfn-five": 20.0})
    _assert_drawn(hv_load.draw(tmp_path))


def test_hv_load_keeps_the_points_of_a_single_speed_off_its_edges(tmp_path, monkeypatch):
    make_patterns(tmp_path, "hv-fig15", {"reno-5pps": 0.0, "elfn-5pps": 50.0})
    spans = []
    limits = Axes.set_xlim
    monkeypatch.setattr(Axes, "set_xlim", lambda axes, *to, **how: (spans.append(to), limits(axes, *to, **how)))
    _assert_drawn(hv_load.draw(tmp_path))
    assert (8, 12) in spans  # of 10 m/s


def test_hv_fig7_pairs_the_patterns(tmp_path):
    make_patterns(tmp_path, "hv-fig7", {"cache-replies": 0.0, "no-cache-replies": 50.0})
    assert hv_fig7.differences(tmp_path) == {10: pytest.approx([50, 50])}
    _assert_drawn(hv_fig7.draw(tmp_path))


RECOMPUTE = ROOT / "experiments" / "be-recompute.toml"


def recompute(variant: str) -> dict:
    """What scenario.json has of a variant."""
    raw = tomllib.loads(RECOMPUTE.read_text())
    changed = next(entry for entry in raw["variants"] if entry["name"] == variant).get("set", {})
    scenario = raw["scenario"] | changed
    places = [{"name": None, "at": at} for at in scenario["positions"]]
    return scenario | {"positions": places, "flows": [{**flow, "start": flow["start"]} for flow in scenario["flows"]]}


def test_be_recompute_knows_when_there_is_no_path():
    assert be_recompute.gaps(recompute("as-printed")) == []
    # ns-2's movement: out of range at 12.5 s, the other in range at 18.0 s
    assert be_recompute.gaps(recompute("rearranged")) == [(pytest.approx(12.5, abs=0.2), pytest.approx(18.0, abs=0.1))]


def test_be_recompute_draws_runs_beside_ns2(tmp_path, monkeypatch):
    for variant in ("as-printed", "rearranged"):
        make_run(tmp_path, variant, 3, 1, 400.0)
        folder = tmp_path / f"{variant}-hops3" / "seed-1"
        (folder / "scenario.json").write_text(json.dumps(recompute(variant)))
        metrics = json.loads((folder / "metrics.json").read_text())
        metrics["flows"]["flow1"] |= {
            "start_ns": 10**18 + 9 * 10**9,
            "acked_bps_by_second": [400_000] * 8 + [0] * 8 + [400_000] * 9,
        }
        (folder / "metrics.json").write_text(json.dumps(metrics))
        run = json.loads((folder / "run.json").read_text())
        (folder / "run.json").write_text(json.dumps(run | {"epoch_ns": 10**18}))
        (folder / "events.csv").write_text("t_s,at_s,event,station,detail\n14.0,10,move,sta4,to 599 599 at 30\n")
    words = _words(be_recompute.draw, tmp_path, monkeypatch)
    assert "rearranged" in words and "ns-2.35" in words
    _assert_drawn(be_recompute.draw(tmp_path))
    run = be_recompute._runs(tmp_path)[0]
    assert be_recompute._begin_s(run, recompute("as-printed")) == 5  # model time 9, traffic from 4 on


def test_be_recompute_says_what_to_do_first(tmp_path):
    with pytest.raises(RunFileError, match="run the experiment first"):
        be_recompute.draw(tmp_path)


def test_variants_differ_in_colour_and_in_marker():
    named = [style.look(variant) for variant in ("ns2", "hv", "hv-alt")] + [style.look("new", 0), style.look("newer", 1)]
    assert len({look.colour for look in named}) == len({look.marker for look in named}) == 5


def _words(draw, folder: Path, monkeypatch) -> str:
    """Every text of the figure, as it stood when it was saved."""
    found: list[str] = []
    saved = Figure.savefig

    def save(figure, *where, **how):
        found.extend(text.get_text() for text in figure.findobj(Text))
        return saved(figure, *where, **how)

    monkeypatch.setattr(Figure, "savefig", save)
    draw(folder)
    return "\n".join(found)


def test_hv_fig1_promises_intervals_only_for_several_runs(campaign, tmp_path_factory, monkeypatch):
    assert "mean of 2 runs, 95 % intervals" in _words(hv_fig1.draw, campaign, monkeypatch)
    single = tmp_path_factory.mktemp("single")
    make_run(single, "ns2", 1, 1, 1250.0)
    write_tables(single, EXPERIMENT)
    words = _words(hv_fig1.draw, single, monkeypatch)
    assert "this testbed, one run each" in words
    assert "95 %" not in words


def test_hv_fig1_says_of_which_runs_it_is_and_marks_the_suspect(tmp_path, monkeypatch):
    make_run(tmp_path, "ns2", 1, 1, 1250.0)
    write_tables(tmp_path, EXPERIMENT)
    assert "suspect" not in _words(hv_fig1.draw, tmp_path, monkeypatch)
    make_run(tmp_path, "ns2", 2, 1, 630.0, verdict="suspect")
    for scenario in tmp_path.rglob("scenario.json"):
        scenario.write_text(json.dumps({"duration": 12.0}))
    (tmp_path / "experiment.json").write_text(json.dumps({"name": "hv-fig1", "quick": True}))
    write_tables(tmp_path, EXPERIMENT)
    words = _words(hv_fig1.draw, tmp_path, monkeypatch)
    assert "hv-fig1 quick: 1 run of 12 s per point (seed 1); 1 valid, 1 suspect" in words
    assert "with a suspect run" in words
