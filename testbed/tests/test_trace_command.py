"""`manet trace`: the description of a movement, its files, and its errors."""

import json
import os
from pathlib import Path

import pytest

from analysis.tests.drawn import panels
from mobility import connectivity, files
from testbed import __main__ as manet
from testbed.programs import ROOT

P06 = str(ROOT / "mobility" / "patterns" / "p06.tcl")


def output_of(capsys, *arguments: str) -> str:
    assert manet.main(["trace", *arguments]) == 0
    return capsys.readouterr().out


def error_of(capsys, *arguments: str) -> str:
    assert manet.main(["trace", *arguments]) == 2
    return capsys.readouterr().err.strip()


def test_a_pattern_s_numbers_are_those_of_the_reference(capsys):
    """Shares of mobility/patterns/hops.csv."""
    answer = json.loads(output_of(capsys, P06, "--hops", "sta1", "sta2", "--json"))
    assert (answer["stations"], answer["end_s"], answer["stated_mean_mps"]) == (30, 3600, 1)
    assert answer["path"]["shares"]["0"] == pytest.approx(0.2343, abs=5e-4)
    assert answer["path"]["shares"]["1"] == pytest.approx(0.3142, abs=5e-4)
    assert 0.9 <= answer["speeds_mps"]["least"] < answer["speeds_mps"]["most"] <= 1.1


def test_a_movement_lasts_until_its_last_row(capsys, tmp_path):
    """Of a file that states no end: the last waypoint at 50 s, whether the node moves until then or stands; no jump in it."""
    for number, line in enumerate(("0 0 0 50 100 0", "0 0 0 10 100 0 50 100 0", "0 0 0 50 0.3 0 50 0.30000000000000004 0")):
        (tmp_path / f"{number}.txt").write_text(f"{line}\n0 9 9\n")
        text = output_of(capsys, str(tmp_path / f"{number}.txt"))
        assert f"{number}.txt: 2 stations, 50 s\n" in text and "jump" not in text
    (tmp_path / "m.scen").write_text('$node_(3) set X_ 1\n$node_(3) set Y_ 1\n$ns_ at 50 "$node_(3) setdest 1 1 5"\n')
    text = output_of(capsys, str(tmp_path / "m.scen"))
    assert "m.scen: 1 stations, 50 s" in text and "note             node 3 of the script: sta1" in text


def test_the_text_has_the_same_numbers(capsys):
    text = output_of(capsys, P06, "--hops", "sta1", "sta2")
    assert "p06.tcl: 30 stations, 3600 s" in text
    assert "sta1 to sta2     no path 23.4 % of the time, in 5 outages of at most 389 s; 2.81 hops while there is one" in text


def test_a_wider_range_has_shorter_paths(capsys):
    near, far = (
        json.loads(output_of(capsys, P06, "--range", metres, "--json"))["path"]["mean_hops"] for metres in ("250", "500")
    )
    assert far < near


def test_a_model_stands_for_a_scenario_that_set_can_change(capsys):
    answer = json.loads(output_of(capsys, "manhattan", "--set", "speed=4", "--set", "nodes=5", "--set", "duration=60", "--json"))
    assert (answer["stations"], answer["begin_s"], answer["end_s"]) == (5, 10, 70)
    assert 3.6 <= answer["speeds_mps"]["least"] <= answer["speeds_mps"]["most"] <= 4.4


def test_seeds_differ_and_a_scenario_s_first_flow_gives_the_ends(capsys, tmp_path):
    scenario = 'hops = 3\narea = [900, 300]\nmobility = "random-walk"\nspeed = 9\nflows = [{ from = "sta2", to = "sta4" }]\n'
    (tmp_path / "x.toml").write_text(scenario)
    answers = [json.loads(output_of(capsys, str(tmp_path / "x.toml"), "--seed", seed, "--json")) for seed in ("1", "2")]
    assert answers[0]["path"]["ends"] == ["sta2", "sta4"]
    assert answers[0]["area_m"] != answers[1]["area_m"]


@pytest.mark.parametrize("ending", [".csv", ".ns_movements", ".movements"])
def test_a_movement_is_written_in_another_form(capsys, tmp_path, ending):
    out = tmp_path / f"p06{ending}"
    assert str(out) in output_of(capsys, P06, "--convert", str(out))
    once, again = files.read(Path(P06)), files.read(out)
    assert again.end_s == 3600
    assert again.position("sta30", 1234.5) == pytest.approx(once.position("sta30", 1234.5), abs=1e-4)


def test_a_profile_is_drawn_on_request(tmp_path):
    (panel,) = panels(manet.main, ["trace", P06, "--hops", "sta1", "sta2", "--profile", str(tmp_path / "figures" / "p06.png")])
    profile = connectivity.links(files.read(Path(P06))).hops("sta1", "sta2")
    steps = [(round(begin_s, 4), round(end_s, 4), hops) for begin_s, end_s, hops in profile.steps() if hops]
    assert [(one.x[0], one.x[1], one.y[0]) for one in panel.series if one.y[0] == one.y[1]] == steps
    assert panel.ylabel == "hops sta1 to sta2"
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["p06.pdf", "p06.png", "p06.svg"]


def test_a_picture_without_a_name_goes_into_the_current_folder_and_is_printed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = output_of(capsys, P06, "--profile").splitlines()
    assert lines[-3:] == ["written   profile.png", "written   profile.pdf", "written   profile.svg"]
    assert manet.main(["map", P06]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "written   map.png"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["map.png", "profile.pdf", "profile.png", "profile.svg"]


@pytest.mark.parametrize("arguments", [["map", P06, "--out"], ["plot", ".", "--out"], ["trace", P06, "--profile"]])
@pytest.mark.parametrize("name", ["there.pdf", "there", "."])
def test_a_name_without_a_picture_suffix_is_refused(capsys, arguments, name):
    with pytest.raises(SystemExit):
        manet.main([*arguments, name])
    assert f'"{name}" is not the name of a picture; give one that ends in .png' in capsys.readouterr().err


HEAD = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n"
APART = f"{HEAD}0,sta1,0,0,0,0\n0,sta2,200,0,0,0\n10,sta2,300,0,0,10\n30,sta2,200,0,0,10\n50,sta2,900,0,0,inf\n"


def test_times_of_broken_and_restored_paths_are_printed(capsys, tmp_path):
    """sta2 leaves the 250 m at 15 s (200 m + 5 s of 10 m/s), is back at 35 s, and jumps away at 50 s."""
    (tmp_path / "x.csv").write_text(APART.replace("time_s", "# end_s: 60\ntime_s", 1))
    text = output_of(capsys, str(tmp_path / "x.csv"), "--hops", "sta1", "sta2")
    assert [line.strip() for line in text.splitlines()[-3:]] == [
        "outages          2, the longest 20 s",
        "breaks at 15.000 s, back at 35.000 s (20 s)",
        "breaks at 50.000 s, not back by the end (10 s)",
    ]
    path = json.loads(output_of(capsys, str(tmp_path / "x.csv"), "--hops", "sta1", "sta2", "--json"))["path"]
    times = [tuple(outage.values()) for outage in path["outages"]]
    assert times == [pytest.approx((15, 35, 20)), (50, None, 10)]
    assert path["longest_partition_s"] == pytest.approx(20)
    assert "\n  outages " not in output_of(capsys, str(tmp_path / "x.csv"))
    near = output_of(capsys, str(tmp_path / "x.csv"), "--hops", "sta1", "sta2", "--range", "1000")
    assert "none: the path never breaks" in near


@pytest.fixture
def run_folder(tmp_path):
    """A run of 8 s, of a script that moved its stations: the plan has everybody at rest, the rest of the walk was never gone."""
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "verdict.json").write_text('{"model_ns": 8000000000}')
    (tmp_path / "trace.csv").write_text(f"{HEAD}0,sta1,0,0,0,0\n0,sta2,100,0,0,0\n")
    (tmp_path / "moved.csv").write_text(f"{HEAD}0,sta1,0,0,0,0\n0,sta2,100,0,0,0\n2,sta2,900,0,0,1\n3600,sta2,0,0,0,20\n")
    return tmp_path


def test_a_run_s_movement_ends_with_the_run(capsys, run_folder, tmp_path):
    for what in (run_folder, run_folder / "moved.csv"):
        answer = json.loads(output_of(capsys, str(what), "--json"))
        assert (answer["end_s"], answer["speeds_mps"]["most"], answer["remark"]) == (8, 1, None)
    output_of(capsys, str(run_folder), "--convert", str(tmp_path / "gone.csv"))
    assert "3600" not in (tmp_path / "gone.csv").read_text()


def test_the_trace_of_a_run_with_manual_moves_points_to_the_actual_movement(capsys, run_folder):
    text = output_of(capsys, str(run_folder / "trace.csv"))
    assert "2 stations, 8 s" in text
    assert f"stations were moved by hand in this run; their actual positions are in {run_folder / 'moved.csv'}" in text


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.tcl", "pipe.toml", "zero.csv", "zero.movements.gz"])
def test_files_that_may_block_or_never_end_are_refused(capsys, tmp_path, name):
    if name.startswith("pipe"):
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    assert error_of(capsys, str(tmp_path / name)).endswith(f"{name}: is not a regular file; give the path of a movement file")


def test_a_file_beyond_any_movement_is_refused_by_its_size(capsys, tmp_path):
    with (tmp_path / "x.csv").open("wb") as file:
        file.truncate(1 << 40)
    assert "has 1099511627776 bytes, of at most 67108864 (64 MiB), packed or not; give a shorter movement" in error_of(
        capsys, str(tmp_path / "x.csv")
    )


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([str(ROOT / "docs")], "docs: is not the folder of a run that has ended; give the path of a movement file"),
        (["levy"], '"levy" is neither a model nor a file; give one of static, random-waypoint'),
        (["nowhere.csv"], "nowhere.csv: cannot be read (No such file or directory)"),
        ([P06, "--hops", "sta1", "sta99"], 'there is no station "sta99"; the stations are sta1 to sta30'),
        ([P06, "--hops", "sta1", "sta1"], '"sta1" is both ends'),
        ([P06, "--set", "speed=3"], "is a movement and no scenario; leave --set out"),
        ([P06, "--convert", "out.gpx"], "out.gpx: unknown format"),
        ([P06, "--convert", "/proc/nowhere/x.csv"], "x.csv: cannot be written (No such file or directory); give a name in"),
        ([f"{ROOT}/experiments/hv-fig5.toml"], "hv-fig5.toml: is an experiment, which has several scenarios; give a scen"),
        (["group", "--set", "mobility.radius=400"], "do not fit into 1500 x 300 m"),
    ],
)
def test_an_error_is_one_line_with_the_remedy(capsys, arguments, wanted):
    error = error_of(capsys, *arguments)
    assert wanted in error and "\n" not in error
