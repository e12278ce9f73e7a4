"""Every figure of analysis/figures draws from small data, is not empty, and says in its docstring what it shows."""

import importlib
import json
import shutil
from pathlib import Path

import matplotlib.image
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import figures, style
from analysis.errors import RunFileError
from analysis.figures import cwnd, hv_fig1
from analysis.metrics import analyse_run
from analysis.tables import write_tables
from analysis.tests.test_tables import EXPERIMENT, make_run

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
    folder = Path(shutil.copytree(FIXTURE, tmp_path / "cell" / "seed-1"))
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
