"""Experiments: cells, sizes, overrides, and errors before anything starts. Every definition of the project loads."""

import importlib
import json
from pathlib import Path

import pytest

from analysis.decisions.question import SEEDS_FOR_T
from analysis.references import known_references
from testbed.campaigns.experiment import load
from testbed.campaigns.figures import axes_of, figures
from testbed.campaigns.library import FOLDER, find, names
from testbed.campaigns.request import Request
from testbed.errors import UsageError
from testbed.tests.refusals import message

TEXT = """
question = "?"
[scenario]
topology = "chain"
window = 8
duration = 60
[axes]
hops = [1, 2, 3]
tcp = ["newreno", "cubic"]
[[variants]]
name = "near"
[[variants]]
name = "far"
set = { spacing = 240, "propagation.model" = "free-space" }
[full]
seeds = 5
[quick]
seeds = 2
duration = 10
variants = ["far"]
axes = { hops = [1, 3] }
[[expect.checks]]
variants = ["near"]
within_percent = 7
"""


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def from_text(text=TEXT, *overrides, **request):
        Path("e.toml").write_text(text)
        return load(Path("e.toml"), Request(overrides=overrides, **request))

    return from_text


def test_cells_are_the_cross_product_of_axes_and_variants(experiment):
    full = experiment()
    assert len(full.cells) == 12
    assert full.seeds == 5
    assert full.cells[0].name == "near-hops1-tcpnewreno"
    assert full.cells[-1].name == "far-hops3-tcpcubic"
    assert full.cells[-1].axes == {"hops": 3, "tcp": "cubic"}
    assert full.cells[-1].scenario.spacing == 240
    assert full.cells[-1].scenario.propagation.model == "free-space"
    assert full.cells[0].scenario.duration == 60


def test_quick_has_its_own_seeds_axes_variants_and_keys(experiment):
    quick = experiment(TEXT, quick=True)
    assert [cell.name for cell in quick.cells] == [
        "far-hops1-tcpnewreno", "far-hops1-tcpcubic", "far-hops3-tcpnewreno", "far-hops3-tcpcubic",
    ]  # fmt: skip
    assert quick.seeds == 2
    assert {cell.scenario.duration for cell in quick.cells} == {10}


AROUND = """
question = "?"
scenario = { hops = 1 }
[axes]
tcp = ["newreno", "elfn(newreno, probe=2s)", "elfn(probe = 30s, reno-f)"]
"""


def test_tcps_with_parameters_make_cells_with_plain_names(experiment):
    text = AROUND.replace("probe = 30s, reno-f", "reno-f, probe = 30s")
    cells = experiment(text).cells
    assert [cell.name for cell in cells] == ["tcpnewreno", "tcpelfn_newreno_probe_2s", "tcpelfn_reno_f_reno_probe_30s"]
    assert [cell.axes["tcp"] for cell in cells] == ["newreno", "elfn(newreno, probe=2s)", "elfn(reno-f(reno), probe=30s)"]
    assert [cell.scenario.tcp.spelled for cell in cells] == [cell.axes["tcp"] for cell in cells]
    one = experiment(text, "tcp=elfn(newreno, probe=100ms)")
    assert [cell.name for cell in one.cells] == ["tcpelfn_newreno_probe_100ms"]


def test_values_with_similar_file_names_make_different_cells(experiment):
    cells = experiment(AROUND.replace("elfn(probe = 30s, reno-f)", "a-b").replace('newreno"', 'a_b"')).cells
    assert len({cell.name for cell in cells}) == 3
    assert all(cell.name.startswith("tcpa_b_") for cell in (cells[0], cells[2]))
    assert all(len(cell.name) < 80 for cell in cells)


def test_a_tcp_is_not_an_axis_value_twice_under_two_spellings(experiment):
    error = message(experiment, AROUND.replace("elfn(probe = 30s, reno-f)", "elfn(probe=2000ms)"))
    assert error == 'e.toml: line 5: key "axes.tcp": elfn(newreno, probe=2s) is listed twice; remove one'


def test_an_invalid_tcp_is_reported_with_its_place_in_the_axis(experiment):
    assert message(experiment, AROUND) == (
        'e.toml: line 5: key "axes.tcp.2": "reno-f" comes after a parameter; write the inner TCP of "elfn" first'
    )


def test_set_narrows_an_axis_and_overrides_variants(experiment):
    one = experiment(TEXT, "hops=4", 'tcp=["bbr"]', "spacing=100", variants=("far",), seeds=3)
    assert [cell.name for cell in one.cells] == ["far-hops4-tcpbbr"]
    assert one.cells[0].scenario.spacing == 100
    assert one.seeds == 3
    assert experiment(TEXT, "seeds=4").seeds == 4


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("hops = [1, 2, 3]", "hops = [1, 0]", 'e.toml: line 8: key "axes.hops.1": 0 is out of range; give at least 1'),
        (
            "spacing = 240",
            'spacing = "240 s"',
            'e.toml: line 14: key "variants.1.set.spacing": "240 s" has the unit "s", but a distance is expected; '
            "give a number in m, or text with one of m, km, cm",
        ),
        ("duration = 10", "durtion = 10", None),
        ("window = 8", "windw = 8", 'e.toml: line 5: key "windw": unknown key; did you mean "window"?'),
        ('name = "far"', 'name = "near"', 'e.toml: line 13: key "variants.1.name": two variants are named "near"; '
         "give each its own name"),
        ("hops = [1, 2, 3]", "hops = []", 'e.toml: line 8: key "axes.hops": has no values; give at least one'),
        ("hops = [1, 2, 3]", "hops = [1, 1]", 'e.toml: line 8: key "axes.hops": 1 is listed twice; remove one'),
        ("hops = [1, 2, 3]", "hopps = [1, 2]", 'e.toml: line 8: key "axes.hopps": unknown key; did you mean "hops"?'),
        ('question = "?"\n', "", 'e.toml: line 1: key "question": is missing; add it'),
        ("within_percent = 7", "", 'e.toml: line 22: key "expect.checks.0.within_percent": is missing; add it'),
        ('question = "?"', 'qestion = "?"', 'e.toml: line 2: key "qestion": unknown key; did you mean "question"?'),
        ("seeds = 5", "seeds = 0", 'e.toml: line 16: key "full.seeds": 0 is out of range; give at least 1'),
        ('variants = ["near"]', 'variants = ["nah"]',
         'e.toml: line 23: key "expect.checks.0.variants": there is no variant "nah"; the variants are far, near'),
        ('question = "?"\n', 'question = "?"\nshown = ["acked_kpbs"]\n',
         'e.toml: line 3: key "shown.0": there is no metric "acked_kpbs"; did you mean "acked_kbps"?'),
    ],
)  # fmt: skip
def test_an_error_names_the_axis_variant_or_table_it_comes_from(experiment, old, new, wanted):
    assert TEXT.count(old) == 1
    text = TEXT.replace(old, new)
    if wanted is None:
        experiment(text)  # the full size does not read [quick]
        wanted = 'e.toml: line 19: key "quick.durtion": unknown key; did you mean "duration"?'
        assert message(experiment, text, quick=True) == wanted
    else:
        assert message(experiment, text) == wanted


def test_an_axis_by_set_is_checked_like_one_of_the_file(experiment):
    assert message(experiment, TEXT, "hops=[]") == '--set: key "hops": has no values; give at least one'
    assert message(experiment, TEXT, "hops=[2,2]") == '--set: key "hops": 2 is listed twice; remove one'


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            'figure = "nofig"',
            'key "figure": no such figure "nofig"; there are {figures}; your own is the path of a file, ./my-figure.py',
        ),
        (
            'figure = "__init__"',
            'key "figure": no such figure "__init__"; there are {figures}; your own is the path of a file, ./my-figure.py',
        ),
        (
            'figure = "hv_fig3"',
            'key "figure": figure "hv_fig3" is over the axis speed, but experiment e has hops, tcp; '
            "add it to [axes], name another figure, or none for the general one",
        ),
        ('published = "no"', 'key "published": no such table "no" in analysis/published; there are {published}'),
        ('ns2 = "../peers/wmediumd"', 'key "ns2": no such table "../peers/wmediumd" in analysis/ns2; there are {ns2}'),
    ],
)
def test_a_missing_figure_or_table_is_refused_before_anything_starts(experiment, line, wanted):
    there = {kind: ", ".join(known_references(kind)) for kind in ("published", "ns2")} | {"figures": ", ".join(figures())}
    assert "hv_fig1" in there["figures"] and "chain_static" in there["ns2"]
    assert message(experiment, TEXT.replace("[scenario]", f"{line}\n[scenario]")) == f"e.toml: line 3: {wanted.format(**there)}"


@pytest.mark.parametrize("figure", figures())
def test_the_axes_that_a_figure_states_are_found_without_importing_it(figure):
    assert axes_of(figure) == getattr(importlib.import_module(f"analysis.figures.{figure}"), "AXES", ())


def test_a_run_without_flows_is_refused(experiment):
    text = 'key "flows": is empty, and a run measures flows; name one, or leave it out for the default'
    assert message(experiment, TEXT.replace("window = 8", "flows = []")) == f"e.toml: line 5: {text}"
    assert message(experiment, "hops = 1\nflows = []") == f"e.toml: line 2: {text}"


def test_the_results_say_the_units_of_their_axes(experiment):
    text = TEXT.replace("[axes]\n", "[axes]\nspacing = [100, 200]\nwindow = [8]\n")
    assert json.loads(experiment(text).to_json())["units"] == {"spacing": "m", "window": "segments"}


def test_an_unknown_variant_on_the_command_line_is_refused(experiment):
    assert message(experiment, TEXT, variants=("x",)) == "--variant x: e.toml has no such variant; the variants are near, far"


def test_an_unknown_experiment_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"nowhere: there is no experiment or file of this name; there are .*hv-fig1"):
        find("nowhere")


def test_a_scenario_file_is_an_experiment_of_one_cell(experiment):
    single = experiment("hops = 2\nseeds = 3", "tcp=cubic")
    assert [(cell.name, cell.variant, cell.axes) for cell in single.cells] == [("all", "", {})]
    assert (single.name, single.seeds, single.cells[0].scenario.tcp.spelled) == ("e", 3, "cubic")


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", names())
def test_every_experiment_of_the_project_loads(name, quick):
    experiment = load(find(name), Request(quick=quick))
    assert experiment.cells
    assert experiment.question
    assert experiment.expect.outcome


@pytest.mark.parametrize("name", names())
def test_every_question_may_have_the_pairs_that_decide_it(name):
    """Fewer than thirty decide by bounds only: an effect of a tenth stays undecided, however many runs there are."""
    found = load(FOLDER / f"{name}.toml", Request())
    assert all((question.max_pairs or found.looks[1]) >= SEEDS_FOR_T for question in found.questions)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("scenarios/*.toml")), ids=lambda path: path.stem)
def test_every_scenario_of_the_project_loads(path):
    assert load(path).cells[0].scenario.flows


# hv-fig1 is static, hv-patterns repeats runs of ns-2
HV = sorted({name for name in names() if name.startswith("hv-")} - {"hv-fig1", "hv-patterns"})


def test_a_size_replaces_a_key_of_a_table_alone(tmp_path):
    text = '[scenario]\nhops = 1\nrouting = { protocol = "dsr", arp = "cmu" }\n[quick]\n"routing.cache_timeout" = 20\n'
    (tmp_path / "e.toml").write_text(f'question = "?"\n{text}')
    (quick,) = load(tmp_path / "e.toml", Request(quick=True)).cells
    options = json.loads(quick.scenario.to_json())["routing"]
    assert (options["arp"], options["cache_timeout"]) == ("cmu", 20)
    (tmp_path / "e.toml").write_text(f'question = "?"\n{text.replace("cache_timeout", "cache_time")}')
    with pytest.raises(UsageError, match=r'line 6: key "quick.routing.cache_time"'):
        load(tmp_path / "e.toml", Request(quick=True))


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", HV)
def test_holland_and_vaidya_s_patterns_are_the_same_at_every_speed(name, quick):
    """Section 2. A pattern of 3600 m takes 120 s at 30 m/s, section 5.1."""
    scenarios = [cell.scenario for cell in load(find(name), Request(quick=quick)).cells]
    (travelled,) = {round(scenario.duration * scenario.speed, 6) for scenario in scenarios}
    assert travelled <= 3600 if quick else travelled == 3600
    assert {scenario.warmup for scenario in scenarios} == {0}
    assert max(scenario.traffic_seconds() for scenario in scenarios) <= (600 if quick else 1805)


def test_holland_and_vaidya_s_experiments_differ_in_what_they_compare_alone():
    """A setting of one experiment alone would be a difference between figures that the paper does not have."""
    varied = {"mobility", "speed", "pause", "duration", "flows", "tcp"}  # a pause is that of the movement's table
    found = set()
    compared = [name for name in HV if name not in ("hv-eras", "hv-caches")]  # which compare settings
    for cell in (cell for name in compared for cell in load(find(name)).cells):
        settings = {key: value for key, value in json.loads(cell.scenario.to_json()).items() if key not in varied}
        settings["routing"].pop("cache_replies")
        found.add(json.dumps(settings))
    assert len(found) == 1


def test_hv_fig1_has_ten_hops_three_variants_and_five_seeds():
    full = load(find("hv-fig1"))
    assert full.axes == {"hops": list(range(1, 11))}
    assert (full.variants, full.seeds, len(full.cells)) == (("ns2", "hv", "hv-alt"), 5, 30)
    settings = {c.variant: (c.scenario.radio, c.scenario.spacing, c.scenario.window, c.scenario.profile) for c in full.cells}
    assert settings == {
        "ns2": ("ns2-dsss-2m", 200, 8, "period"),
        "hv": ("hv-dsss-2m", 180, 8, "period"),
        "hv-alt": ("hv-dsss-2m-alt", 180, 8, "period"),
    }


def test_the_quick_size_of_hv_fig1_takes_minutes_even_one_run_at_a_time():
    quick = load(find("hv-fig1"), Request(quick=True))
    assert quick.seeds * sum(cell.scenario.traffic_seconds() for cell in quick.cells) <= 240
