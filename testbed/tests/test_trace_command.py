"""`manet trace`: what it says of a movement, what it writes, and its errors."""

import json
from pathlib import Path

import pytest

from mobility import files
from testbed import __main__ as manet
from testbed.programs import ROOT

P06 = str(ROOT / "mobility" / "patterns" / "p06.tcl")


def asked(capsys, *arguments: str) -> str:
    assert manet.main(["trace", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments: str) -> str:
    assert manet.main(["trace", *arguments]) == 2
    return capsys.readouterr().err.strip()


def test_a_pattern_s_numbers_are_those_of_the_reference(capsys):
    """Shares of mobility/patterns/hops.csv."""
    answer = json.loads(asked(capsys, P06, "--hops", "sta1", "sta2", "--json"))
    assert (answer["stations"], answer["end_s"], answer["stated_mean_mps"]) == (30, 3600, 1)
    assert answer["path"]["shares"]["0"] == pytest.approx(0.2343, abs=5e-4)
    assert answer["path"]["shares"]["1"] == pytest.approx(0.3142, abs=5e-4)
    assert 0.9 <= answer["speeds_mps"]["least"] < answer["speeds_mps"]["most"] <= 1.1


def test_the_text_says_the_same_in_words(capsys):
    text = asked(capsys, P06, "--hops", "sta1", "sta2")
    assert "p06.tcl: 30 stations, 3600 s" in text
    assert "sta1 to sta2     no path 23.4 % of the time, in 5 spells of at most 389 s; 2.81 hops while there is one" in text


def test_a_wider_range_has_shorter_paths(capsys):
    near, far = (json.loads(asked(capsys, P06, "--range", metres, "--json"))["path"]["mean_hops"] for metres in ("250", "500"))
    assert far < near


def test_a_model_stands_for_a_scenario_that_set_can_change(capsys):
    answer = json.loads(asked(capsys, "manhattan", "--set", "speed=4", "--set", "nodes=5", "--set", "duration=60", "--json"))
    assert (answer["stations"], answer["begin_s"], answer["end_s"]) == (5, 10, 70)
    assert 3.6 <= answer["speeds_mps"]["least"] <= answer["speeds_mps"]["most"] <= 4.4


def test_seeds_differ_and_a_scenario_s_first_flow_gives_the_ends(capsys, tmp_path):
    scenario = 'hops = 3\narea = [900, 300]\nmobility = "random-walk"\nspeed = 9\nflows = [{ from = "sta2", to = "sta4" }]\n'
    (tmp_path / "x.toml").write_text(scenario)
    answers = [json.loads(asked(capsys, str(tmp_path / "x.toml"), "--seed", seed, "--json")) for seed in ("1", "2")]
    assert answers[0]["path"]["ends"] == ["sta2", "sta4"]
    assert answers[0]["area_m"] != answers[1]["area_m"]


@pytest.mark.parametrize("ending", [".csv", ".ns_movements", ".movements"])
def test_a_movement_is_written_in_another_form(capsys, tmp_path, ending):
    out = tmp_path / f"p06{ending}"
    assert str(out) in asked(capsys, P06, "--convert", str(out))
    once, again = files.read(Path(P06)), files.read(out)
    assert again.end_s == 3600
    assert again.position("sta30", 1234.5) == pytest.approx(once.position("sta30", 1234.5), abs=1e-4)


def test_a_profile_is_drawn_where_it_is_asked_for(capsys, tmp_path):
    asked(capsys, P06, "--profile", str(tmp_path / "figures" / "p06.png"))
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["p06.pdf", "p06.png"]


def test_a_picture_without_a_name_stands_beside_the_user_and_is_told_of_as_map_and_plot_do(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = asked(capsys, P06, "--profile").splitlines()
    assert told[-2:] == ["written   profile.png", "written   profile.pdf"]
    assert manet.main(["map", P06]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "written   map.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.png", "profile.pdf", "profile.png"]


@pytest.mark.parametrize("arguments", [["map", P06, "--out"], ["plot", ".", "--out"], ["trace", P06, "--profile"]])
@pytest.mark.parametrize("name", ["there.pdf", "there", "."])
def test_a_name_that_is_no_picture_s_is_refused_alike(capsys, arguments, name):
    with pytest.raises(SystemExit):
        manet.main([*arguments, name])
    assert f'"{name}" is no name for a picture; give one that ends in .png' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["levy"], '"levy" is no model and no file; give one of static, random-waypoint'),
        (["nowhere.csv"], "nowhere.csv: cannot be read (No such file or directory)"),
        ([P06, "--hops", "sta1", "sta99"], 'there is no station "sta99"; the stations are sta1 to sta30'),
        ([P06, "--hops", "sta1", "sta1"], '"sta1" is both ends'),
        ([P06, "--set", "speed=3"], "is a movement and no scenario; leave --set out"),
        ([P06, "--convert", "out.gpx"], "out.gpx: the name does not say which format"),
        ([P06, "--convert", "/nosuchdir/x.csv"], "x.csv: cannot be written (No such file or directory); give a name in"),
        ([f"{ROOT}/experiments/hv-fig5.toml"], "hv-fig5.toml: is an experiment, which has several scenarios; give a scen"),
        (["group", "--set", "mobility.radius=400"], "do not fit into 1500 x 300 m"),
    ],
)
def test_an_error_is_one_line_with_the_remedy(capsys, arguments, wanted):
    error = refused(capsys, *arguments)
    assert wanted in error and "\n" not in error
