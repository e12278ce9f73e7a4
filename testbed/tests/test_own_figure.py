"""A figure of the user's own: found by its path, refused, drawn, executed only if a command or experiment names it."""

import json
from pathlib import Path

import pytest

from testbed import __main__ as manet
from testbed.campaigns.experiment import load
from testbed.campaigns.report import Report
from testbed.errors import UsageError
from testbed.tests.test_report import results  # noqa: F401  (a fixture)

FIGURE = '''"""The share of the first point, a figure of the user's own."""

from pathlib import Path

AXES = ("hops",)


def draw(out_dir: Path) -> list[Path]:
    written = out_dir / "own.txt"
    written.write_text((out_dir / "summary.csv").read_text())
    return [written]
'''
EXPERIMENT = 'question = "q"\nfigure = "{}"\n[scenario]\ntopology = "chain"\n[axes]\nhops = [1, 2]\n'


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """An experiment beside its figure."""
    (tmp_path / "own.py").write_text(FIGURE)
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT.format("./own.py"))
    return path


def test_a_figure_is_found_beside_the_file_that_names_it(named, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert load(named).figure == str(tmp_path / "own.py")
    below = tmp_path / "below"
    below.mkdir()
    (below / "other.toml").write_text('base = "../e.toml"\n[scenario]\nwindow = 8\n')
    assert load(below / "other.toml").figure == str(tmp_path / "own.py"), "relative to the base, which names it"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "has no function draw(out_dir); add one (docs/extend.md)"),
        ("def draw(:", "is not Python: SyntaxError: "),
        (FIGURE.replace('"hops",', '"speed",'), "is over the axis speed, but experiment e has hops; add it to [axes]"),
        (None, "there is no figure "),
    ],
)
def test_a_wrong_figure_is_refused_before_anything_starts(named, tmp_path, text, wanted):
    if text is None:
        (tmp_path / "own.py").unlink()
    else:
        (tmp_path / "own.py").write_text(text)
    with pytest.raises(UsageError) as problem:
        load(named)
    assert str(problem.value).startswith(f'{named}: line 2: key "figure": ')
    assert wanted in str(problem.value) and "\n" not in str(problem.value)


@pytest.fixture
def foreign(results: Path, tmp_path: Path) -> Path:  # noqa: F811
    """Results whose experiment.json names a program."""
    (tmp_path / "own.py").write_text(FIGURE.replace('("hops",)', "()"))
    path = results / "experiment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"figure": str(tmp_path / "own.py")}))
    return results


def test_results_do_not_have_a_program_executed(foreign, tmp_path, capsys):
    assert manet.main(["report", str(foreign)]) == 1
    assert not (foreign / "own.txt").exists()
    told = " ".join(capsys.readouterr().out.split())
    assert f"if you trust it, ./manet report {foreign} --figure {tmp_path}/own.py" in told


def test_a_command_that_names_the_figure_draws_it(foreign, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert manet.main(["report", str(foreign), "--figure", "own.py"]) == 0
    assert (foreign / "own.txt").read_text() == (foreign / "summary.csv").read_text()


def test_the_experiment_draws_its_own_figure(foreign, tmp_path):
    report = Report(foreign, str(tmp_path / "own.py"))
    report.make()
    assert (report.no_figure, report.figures) == (None, [foreign / "own.txt"])
    assert report.caption == "The share of the first point, a figure of the user's own."


def test_what_a_figure_raises_is_one_line_that_names_its_line(foreign, tmp_path):
    own = tmp_path / "own.py"
    own.write_text(FIGURE.replace('("hops",)', "()").replace("    return", '    raise KeyError("x\\ny")\n    return'))
    report = Report(foreign, str(own))
    report.make()
    assert report.no_figure == f"{own}: line 11: KeyError: 'x\\ny'; correct the file"
    assert report.figures == []
