"""`manet links`: the description of measured links, their conversion, and its errors; and what the medium makes of them."""

import csv
import json
import subprocess

import pytest

from mobility import measured
from scenarios.definition import load_scenario
from testbed import __main__ as manet
from testbed.errors import UsageError
from testbed.programs import BUILT, ROOT
from testbed.runs import preflight
from testbed.stages.measured import write_links
from testbed.stages.medium import medium_config
from testbed.stages.site import Site

EXAMPLE = str(ROOT / "formats" / "examples" / "links.csv")


def output_of(capsys, *arguments: str) -> str:
    assert manet.main(["links", *arguments]) == 0
    return capsys.readouterr().out


def test_links_are_counted_and_described(capsys):
    answer = json.loads(output_of(capsys, EXAMPLE, "--json"))
    assert (answer["stations"], answer["links"], answer["both_ways"], answer["rows"]) == (3, 4, 2, 8)
    assert (answer["column"], answer["least"], answer["most"], answer["end_s"]) == ("loss_db", 70, 90, 20)
    text = output_of(capsys, EXAMPLE)
    assert "3 stations, 8 rows, 0 to 20 s" in text and "4 directed: 2 both ways, 0 one way" in text


def test_events_of_emane_become_a_table_of_either_kind(capsys, tmp_path):
    (tmp_path / "e.eel").write_text("0 nem:1 pathloss nem:2,90\n5 nem:1 pathloss nem:2,95\n")
    for name in ("links.csv", "links.parquet"):
        made = tmp_path / name
        assert f"written   {made}" in output_of(capsys, str(tmp_path / "e.eel"), "--shift", "10", "--convert", str(made))
        rows = [(row.time_s, row.value) for row in measured.read(made).rows if row.source == "sta1"]
        assert rows == [(10, 90), (15, 90), (15, 95)]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["nowhere.csv"], "manet links: nowhere.csv: cannot be read (No such file or directory)"),
        ([EXAMPLE, "--shift", "-1"], f"manet links: {EXAMPLE}: time_s -1 is outside 0 to"),
        ([EXAMPLE, "--convert", "x.txt"], "manet links: x.txt: unknown format; give a name that ends in .csv or .parquet"),
        ([EXAMPLE, "--window", "0"], 'manet links: argument --window: "0" is not a time above 0 s'),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, wanted):
    try:
        status = manet.main(["links", *arguments])
    except SystemExit as ended:
        status = ended.code
    error = capsys.readouterr().err
    assert status == 2 and error.startswith(wanted) and error.count("\n") == 1, error


def simulated(scenario, folder, traffic, duration_s):
    """The frames that arrived: (time s, from, to)."""
    site = Site(scenario, 1, folder, cgroup=folder)
    write_links(site)
    config = medium_config(site, {}) | {"outputs": {"air_log": "air.csv"}, "traffic": traffic, "duration_s": duration_s}
    for unused in ("trace", "control_socket", "feedback_dir"):
        del config[unused]
    (folder / "medium.json").write_text(json.dumps(config))
    subprocess.run([BUILT.medium, "sim", folder / "medium.json"], check=True, capture_output=True)
    with (folder / "air.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "deliver"]
    return [(int(row["t_ns"]) / 1e9, row["peer"], row["station"]) for row in rows]


def test_a_scenario_s_keys_work_in_the_medium_alone(tmp_path):
    """Broadcasts of sta2 over its fading link: -82 dBm, the reception threshold of dot11b-11m, is reached at 18.9 s."""
    scenario = load_scenario(ROOT / "experiments" / "scenarios" / "measured.toml", ["fading=none"])
    traffic = [{"from": "sta2", "to": "*", "kind": "cbr", "bytes": 100, "rate_bps": 8000.0}]
    arrived = simulated(scenario, tmp_path, traffic, 30.0)
    last_s = max(at for at, _, to in arrived if to == "sta3")
    # broadcasts, at 1 Mbit/s, are received at lower powers: between 20 and 25 s the RSSI falls by 3 dB a second
    assert 18.9 < last_s < 25
    assert max(at for at, _, to in arrived if to == "sta4") > 29.8
    assert {to for _, _, to in arrived} == {"sta1", "sta3", "sta4"}


def test_walls_are_in_the_medium_alone_too(tmp_path):
    indoor = ROOT / "experiments" / "scenarios" / "indoor.toml"
    traffic = [{"from": "sta1", "to": "*", "kind": "cbr", "bytes": 100, "rate_bps": 8000.0}]
    reached = {}
    for name, settings in (("walls", ["fading=none"]), ("open", ["fading=none", "walls=[]"])):
        (tmp_path / name).mkdir()
        arrived = simulated(load_scenario(indoor, settings), tmp_path / name, traffic, 2.0)
        reached[name] = {to for _, _, to in arrived}
    assert reached == {"walls": {"sta2"}, "open": {"sta2", "sta3"}}


def test_static_routes_and_the_medium_s_check_know_the_links(tmp_path):
    text = 'hops = 2\nrouting = "static"\npropagation = { model = "trace", file = "links.csv" }\n'
    (tmp_path / "x.toml").write_text(text)
    (tmp_path / "links.csv").write_text(
        "time_s,from,to,rssi_dbm\n0,sta1,sta2,-60\n0,sta2,sta3,-60\n0,sta2,sta1,-60\n0,sta3,sta2,-60\n"
    )
    scenario = load_scenario(tmp_path / "x.toml")
    preflight.check_medium(scenario, 1, BUILT)
    preflight.check_paths({"x": scenario}, [1], BUILT)
    walled = load_scenario(ROOT / "experiments" / "scenarios" / "indoor.toml", ["routing=static", "fading=none"])
    preflight.check_paths({"indoor": walled}, [1], BUILT)
    with pytest.raises(UsageError, match=r"no path from sta1 to sta3|sta1 to sta3"):
        preflight.check_paths({"x": walled.model_copy(update={"walls": (*walled.walls, _across())})}, [1], BUILT)


def test_walls_that_have_no_effect_are_refused_by_the_medium(tmp_path):
    scenario = load_scenario(
        ROOT / "experiments" / "scenarios" / "indoor.toml", ['propagation={model="disc", range_m=50, sense_m=50}']
    )
    with pytest.raises(UsageError, match='key "walls": walls have no effect under disc'):
        preflight.check_medium(scenario, 1, BUILT)


def _across():
    """A wall between sta1 and the others."""
    from scenarios.propagation import Wall

    return Wall.model_validate({"from": [4, -5], "to": [4, 20], "loss_db": 100})
