"""The map of a snapshot: its picture, its text, and the snapshot of a run or movement that has ended."""

import itertools
import json
import math
import random
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import pytest

from analysis.captures.rundir import RunDirectory
from analysis.maps import map_picture, map_text, past_snapshot
from analysis.maps.map_picture import CIRCLES, _circled, _name_offsets, _overlap, draw
from analysis.maps.snapshot import FlowPath, Snapshot, azimuths_of, jammers_of
from analysis.metrics.radio_range import SENSED, range_m
from analysis.tests.drawn import Panel, page, panels
from mobility import trace
from record.errors import RunFileError

RADIO = Path(__file__).resolve().parents[2] / "medium" / "radios" / "ns2-dsss-2m.toml"
FIXTURE = Path(__file__).parent / "fixtures" / "two-flows"
BROKEN = FlowPath("flow2", "sta3", "sta1", ("sta3",), "sta3: sta2 does not hear it", "sta2")


def chain(*paths: FlowPath, **more) -> Snapshot:
    links = frozenset({("sta1", "sta2"), ("sta2", "sta1"), ("sta3", "sta2")})
    return Snapshot("chain: 1.5 s", {"sta1": (0, 0), "sta2": (200, 0), "sta3": (400, 0)}, links, paths=paths, **more)


def crowd(count: int, **more) -> Snapshot:
    draws = random.Random(1)
    places = {f"sta{number}": (draws.uniform(0, 1500), draws.uniform(0, 300)) for number in range(1, count + 1)}
    links = frozenset((a, b) for a in places for b in places if a != b and math.dist(places[a], places[b]) <= 250)
    return Snapshot("crowd", places, links, range_m=250.0, sense_m=550.0, area=(1500, 300), **more)


def dots(panel: Panel) -> list[tuple[float, float]]:
    """The places of the stations."""
    return [one.points[0] for one in panel.series if one.marker == "o"]


@pytest.mark.parametrize(
    "snapshot",
    [
        chain(
            FlowPath("flow1", "sta1", "inet1", ("sta1", "sta2", "sta3", "inet1")),
            BROKEN,
            wires=(("sta3", "inet1"),),
            range_m=250.0,
        ),
        crowd(50, paths=(FlowPath("flow1", "sta1", "sta9", ("sta1",), "sta1: no route"),), off=frozenset({"sta7"})),
        Snapshot("alone", {"sta1": (5, 5)}),
        crowd(30, paths=tuple(FlowPath(f"flow{n}", "sta1", "sta2", ("sta1", "sta2"), rate="9 kbit/s") for n in range(1, 30))),
    ],
    ids=["chain", "fifty", "alone", "many flows"],
)
def test_a_picture_is_written_atomically_without_leftovers(tmp_path, snapshot):
    file = tmp_path / "new" / "map.png"
    (panel,) = panels(draw, snapshot, file)
    assert min(matplotlib.image.imread(file).shape[:2]) > 300
    assert dots(panel) == [(round(x, 4), round(y, 4)) for x, y in snapshot.places.values()]
    assert set(snapshot.places) <= set(panel.texts)
    assert [path.name for path in file.parent.iterdir()] == ["map.png"]


def test_the_picture_has_stations_links_ranges_wires_and_paths_at_their_places(tmp_path):
    flow_path = FlowPath("flow1", "sta1", "inet1", ("sta1", "sta2", "sta3", "inet1"), rate="80 kbit/s")
    snapshot = chain(
        flow_path, BROKEN, wires=(("sta3", "inet1"),), range_m=250.0, sense_m=550.0, off=frozenset({"sta2"}), note="a note"
    )
    drawn = page(draw, snapshot, tmp_path / "map.png")
    (panel,) = drawn.panels
    filled = {one.points[0]: one.filled for one in panel.series if one.marker == "o"}
    assert filled == {(0, 0): True, (200, 0): False, (400, 0): True}, "who is off is open"
    host = next(one.points[0] for one in panel.series if one.marker == "s")
    assert host[0] > 400 and host[1] == 0, "outwards of its gateway"
    lines = [(one.points, one.line) for one in panel.series if one.marker == "None"]
    assert ([(0, 0), (200, 0)], "-") in lines and ([(400, 0), (200, 0)], ":") in lines, "both ways, one way"
    assert panel.circles == [((x, 0), radius) for x in (0, 400) for radius in (250, 550)], "whom nobody hears has none"
    assert panel.arrows == [((0, 0), (200, 0)), ((200, 0), (400, 0)), ((400, 0), host), ((400, 0), (200, 0))]
    (cross,) = (one for one in panel.series if one.marker == "x")
    assert cross.x == [300], "between sta3 and the next hop that does not hear it"
    assert set(panel.texts) == {"sta1", "sta2", "sta3", "inet1"} and panel.title == "chain: 1.5 s"
    assert drawn.legend == [
        "flow1  sta1 \u2192 inet1: 3 hops, 80 kbit/s", "flow2  sta3 \u2192 sta1: sta3: sta2 does not hear it",
        "1 links, 1 one way (dotted)", f"{snapshot.ranges}, dotted", "switched off", "a note",
    ]  # fmt: skip


def test_jammers_and_main_lobes_are_drawn_at_their_places(tmp_path):
    jammers = {"jam1": (300.0, 150.0), "jam2": (200.0, 0.0)}
    snapshot = chain(jammers=jammers, azimuths={"sta1": 90.0})
    (panel,) = panels(draw, snapshot, tmp_path / "map.png")
    assert [one.points[0] for one in panel.series if one.marker == "^"] == list(jammers.values())
    assert {"jam1", "jam2"} <= set(panel.texts) and snapshot.bounds() == (0, 400, 0, 150)
    assert "jam1" in "".join(map_text.lines(snapshot))


def test_jammers_and_azimuths_are_those_of_the_medium():
    antennas = [
        {"name": "sta1", "antenna": {"pattern": "sector", "azimuth_deg": 45}},
        {"name": "sta2", "antenna": {"pattern": "omni"}},
    ]
    jammers = [{"name": "jam1", "position": [1, 2, 3]}, {"name": "jam2", "follows": "sta2"}, {"name": "jam3", "follows": "sta9"}]
    medium = {"stations": [*antennas, {"name": "sta3"}], "jammers": jammers}
    assert azimuths_of(medium) == {"sta1": 45}
    assert jammers_of(medium, {"sta2": (7.0, 8.0)}) == {"jam1": (1, 2), "jam2": (7.0, 8.0)}


def test_links_that_no_range_tells_are_unknown(tmp_path):
    unknown = replace(chain(), links=frozenset(), links_known=False)
    assert "links unknown" in map_text.lines(unknown)[1] and "0 links" not in map_text.lines(unknown)[1]
    assert "links unknown" in page(draw, unknown, tmp_path / "map.png").legend


def test_walls_are_drawn_counted_and_within_the_picture(tmp_path):
    walls = (((100.0, -50.0), (100.0, 60.0)), ((-300.0, 0.0), (-200.0, 0.0)))
    drawn = page(draw, chain(walls=walls), tmp_path / "map.png")
    (panel,) = drawn.panels
    lines = [one.points for one in panel.series if one.marker == "None"]
    assert all(list(wall) in lines for wall in walls)
    assert "wall" in drawn.legend and "wall" not in page(draw, chain(), tmp_path / "map.png").legend
    assert chain(walls=walls).bounds() == (-300.0, 400, -50.0, 60.0)
    assert "2 walls" in map_text.lines(chain(walls=walls))[1] and "wall" not in "".join(map_text.lines(chain()))


def test_a_map_of_text_lists_where_the_walls_are(tmp_path):
    walls = (((100.0, -50.0), (100.0, 60.5)), ((-300.0, 0.0), (-200.0, 0.0)))
    assert [line for line in map_text.lines(chain(walls=walls)) if line.startswith("wall ")] == [
        "wall   (100, -50) to (100, 60.5)", "wall   (-300, 0) to (-200, 0)",
    ]  # fmt: skip
    many = map_text.lines(chain(walls=walls * 10))
    assert sum(line.startswith("wall ") for line in many) == 12 and "and 8 more walls; the picture shows all" in many


def test_another_ending_and_a_folder_that_cannot_be_are_refused_in_one_line(tmp_path):
    with pytest.raises(RunFileError, match=r"map\.pdf: a map is a \.png file"):
        draw(chain(), tmp_path / "map.pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match=r"give another file"):
        draw(chain(), tmp_path / "file" / "map.png")


def test_with_many_stations_only_those_on_a_path_have_circles():
    assert len(_circled(chain())) == 3
    assert _circled(crowd(50, paths=(FlowPath("flow1", "sta1", "sta9", ("sta1", "sta4")),))) == ["sta1", "sta4"]
    everywhere = tuple(FlowPath(f"flow{n}", f"sta{n}", "sta9", tuple(f"sta{i}" for i in range(n, 21))) for n in range(1, 4))
    assert len(_circled(crowd(50, paths=everywhere))) <= CIRCLES


def test_names_do_not_hide_each_other_in_a_crowd():
    places, size = crowd(50).places, 6.2
    offsets = _name_offsets(places, size, 1720 / 511)
    boxes = []
    for name, (x, y) in places.items():
        dx, dy = offsets[name]
        boxes.append((x / (1720 / 511) + dx, y / (1720 / 511) + dy, 0.32 * size * len(name), 0.55 * size))
    hidden = sum(_overlap(a, b) > 5 for i, a in enumerate(boxes) for b in boxes[:i])
    assert hidden <= 3


def test_the_text_has_positions_and_the_end_of_a_path():
    drawn_lines = map_text.lines(chain(FlowPath("flow1", "sta1", "sta3", ("sta1", "sta2", "sta3"), rate="80 kbit/s"), BROKEN))
    assert drawn_lines[1] == "3 stations, 1 link, 1 one way"
    assert drawn_lines[3].split("|")[1].split() == ["1", "2", "3"]
    assert drawn_lines[-2] == "flow1  sta1 > sta2 > sta3   2 hops, 80 kbit/s"
    assert drawn_lines[-1] == "flow2  sta3 x sta2 (to sta1)   sta3: sta2 does not hear it"


def test_the_text_of_many_in_one_place_has_a_mark_for_those_without_room():
    drawn_lines = map_text.lines(Snapshot("pile", {f"sta{n}": (0.0, 0.0) for n in range(1, 40)}))
    assert "*" in "".join(drawn_lines)
    assert max(map(len, drawn_lines)) < 100


def test_a_movement_file_has_a_moment():
    made = trace.Trace("walk.csv", [trace.Leg(0, "sta1", (0, 0, 0), 0), trace.Leg(0, "sta2", (300, 0, 0), 0),
                                    trace.Leg(1, "sta2", (200, 0, 0), 10)])  # fmt: skip
    assert past_snapshot.of_movement(made, 3.0, 250.0).links == frozenset()
    later = past_snapshot.of_movement(made, 7.0, 250.0)
    assert (later.places["sta2"], later.bidirectional) == ((240.0, 0.0), [("sta1", "sta2")])


def test_a_movement_file_has_no_moment_after_its_end():
    made = trace.Trace("walk.csv", [trace.Leg(0, "sta1", (0, 0, 0), 0), trace.Leg(1, "sta1", (100, 0, 0), 10)])
    assert past_snapshot.of_movement(made, 11.0, 250.0).places["sta1"] == (100.0, 0.0)
    with pytest.raises(RunFileError, match=r"walk\.csv: 11\.5 s is after the movement's end; give a time of 0 to 11\.0 s"):
        past_snapshot.of_movement(made, 11.5, 250.0)
    stated = trace.Trace("walk.csv", [trace.Leg(0, "sta1", (0, 0, 0), 0)], end_s=900.0)
    assert past_snapshot.of_movement(stated, 900.0, 250.0).places == {"sta1": (0.0, 0.0)}


def placed(tmp_path: Path) -> Path:
    """The fixture with its stations 200 m apart on a disc of 250 m."""
    shutil.copytree(FIXTURE, tmp_path / "two-flows")
    medium = json.loads((FIXTURE / "medium.json").read_text())
    for number, entry in enumerate(medium["stations"]):
        entry["position"] = [200.0 * number, 0.0, 0.0]
    medium |= {"propagation": {"model": "disc", "range_m": 250, "sense_m": 550}, "radio": str(RADIO)}
    (tmp_path / "two-flows" / "medium.json").write_text(json.dumps(medium))
    return tmp_path / "two-flows"


def test_a_run_in_which_nothing_was_sent_shows_places_and_links(tmp_path):
    folder = placed(tmp_path)
    shutil.rmtree(folder / "traffic")
    for capture in (folder / "captures").glob("*.pcap"):
        capture.write_bytes(capture.read_bytes()[:24])  # the header of an empty capture
    snapshot = past_snapshot.of_run(RunDirectory(folder), 3.0)
    assert len(snapshot.places) == 3 and ("sta1", "sta2") in snapshot.bidirectional
    drawn_lines = map_text.lines(snapshot)
    assert drawn_lines[0].endswith("two-flows: 3 s of the medium (no traffic)")
    assert [line.split("   ")[-1] for line in drawn_lines if line.startswith("flow")] == ["nothing sent"] * len(snapshot.paths)
    (panel,) = panels(draw, snapshot, tmp_path / "map.png")
    assert dots(panel) == [(0, 0), (200, 0), (400, 0)] and panel.arrows == []
    assert [one.points for one in panel.series if one.marker == "None"] == [[(0, 0), (200, 0)], [(200, 0), (400, 0)]], "links"


def test_the_map_of_a_run_has_its_walls_and_says_when_stations_have_no_positions(tmp_path):
    folder = placed(tmp_path)
    medium = json.loads((folder / "medium.json").read_text())
    medium |= {"walls": [{"from": [100, -20], "to": [100, 20], "loss_db": 6}], "propagation": {"model": "two-ray"}}
    (folder / "medium.json").write_text(json.dumps(medium))
    snapshot = past_snapshot.of_run(RunDirectory(folder), 3.0)
    assert snapshot.walls == (((100, -20), (100, 20)),)
    assert (snapshot.range_m, snapshot.links) == (None, frozenset()), "no single range"
    assert past_snapshot.UNPLACED not in snapshot.note
    scenario = json.loads((folder / "scenario.json").read_text())
    scenario |= {"topology": "unplaced", "nodes": 3, "hops": None, "spacing": None, "area": None, "positions": None}
    scenario["propagation"] = {"model": "trace", "file": "links.csv"}
    (folder / "scenario.json").write_text(json.dumps(scenario))
    assert past_snapshot.of_run(RunDirectory(folder), 3.0).note.endswith(past_snapshot.UNPLACED)


def test_without_a_time_the_map_is_of_the_middle_of_the_traffic(tmp_path):
    """warmup 1 s and duration 4 s: 2.5 s."""
    folder = placed(tmp_path)
    (folder / "verdict.json").unlink(missing_ok=True)
    snapshot = past_snapshot.of_run(RunDirectory(folder))
    assert map_text.lines(snapshot)[0].endswith("two-flows: 2.5 s of the traffic, its middle")
    assert replace(past_snapshot.of_run(RunDirectory(folder), 2.5), title="") == replace(snapshot, title="")
    assert "nothing sent yet" not in str(snapshot.paths)


def test_the_middle_of_a_run_that_ended_early_is_that_of_its_recorded_part(tmp_path):
    folder = placed(tmp_path)
    run = RunDirectory(folder)
    begin_s = (run.traffic_ns - run.epoch_ns) / 1e9
    (folder / "verdict.json").write_text(json.dumps({"format": "manet-verdict/1", "model_ns": round((begin_s + 3.05) * 1e9)}))
    assert past_snapshot.of_run(RunDirectory(folder)).title.endswith(": 1.5 s of the traffic, its middle")


def test_the_map_of_a_run_of_a_script_states_that_it_has_no_flows(tmp_path):
    folder = placed(tmp_path)
    scenario = json.loads((folder / "scenario.json").read_text()) | {"flows": []}
    (folder / "scenario.json").write_text(json.dumps(scenario))
    snapshot = past_snapshot.of_run(RunDirectory(folder), 1.5)
    assert snapshot.paths == ()
    assert map_text.lines(snapshot)[-1] == "no flows: the scenario has none, what was sent was a script's own"
    assert map_text.lines(snapshot)[0].endswith("1.5 s of the medium (no traffic)")


def test_without_a_time_the_map_of_a_session_is_of_its_end(tmp_path):
    folder = placed(tmp_path)
    for name, change in {"scenario": {"flows": []}, "run": {"session_s": 2.5}, "verdict": {"model_ns": 3_140_000_000}}.items():
        path = folder / f"{name}.json"
        record = json.loads(path.read_text()) if path.exists() else {"format": "manet-verdict/1"}
        path.write_text(json.dumps({key: value for key, value in (record | change).items() if key != "traffic_ns"}))
    header = "t_s,at_s,event,station,detail,source\n"
    (folder / "events.csv").write_text(f"{header}3.1,2.4,power,sta3,off,prompt\n")
    snapshot = past_snapshot.of_run(RunDirectory(folder))
    assert snapshot.title.endswith(": 3.14 s of the medium (no traffic), its end") and snapshot.off == {"sta3"}
    (folder / "verdict.json").unlink()  # a session that was killed
    assert past_snapshot.of_run(RunDirectory(folder)).title.endswith(": 0 s of the medium (no traffic)")


def test_a_silent_flow_does_not_hide_another_flow(tmp_path):
    folder = placed(tmp_path)
    wanted = past_snapshot.of_run(RunDirectory(folder), 1.5).paths[0]
    scenario = json.loads((folder / "scenario.json").read_text())
    scenario["flows"].append({"from": "sta3", "to": "sta2", "traffic": "bulk"})
    (folder / "scenario.json").write_text(json.dumps(scenario))
    paths = past_snapshot.of_run(RunDirectory(folder), 1.5).paths
    assert paths[0] == wanted and paths[-1].summary == "nothing sent"


def test_rows_after_the_end_of_a_run_were_not_executed(tmp_path):
    folder = placed(tmp_path)
    run = RunDirectory(folder)
    begin_s = (run.traffic_ns - run.epoch_ns) / 1e9
    (folder / "verdict.json").write_text(json.dumps({"format": "manet-verdict/1", "model_ns": round((begin_s + 4.26) * 1e9)}))
    head = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n"
    (folder / "moved.csv").write_text(f"{head}0,sta1,0,0,0,0\n{begin_s + 6},sta1,900,0,0,inf\n")
    run = RunDirectory(folder)
    assert past_snapshot.of_run(run, 4.2).places["sta1"] == (0.0, 0.0)
    with pytest.raises(RunFileError, match=r"7 s of the traffic is after the run's end; give a time of 4\.2 s or less"):
        past_snapshot.of_run(run, 7.0)
    with pytest.raises(RunFileError, match=r"is before the medium's start; give a time of -\d+\.\d s or more"):
        past_snapshot.of_run(run, -99.0)


def test_a_run_that_has_ended_shows_the_path_of_its_last_packet(tmp_path):
    run = RunDirectory(placed(tmp_path))
    snapshot = past_snapshot.of_run(run, 1.5)
    assert set(snapshot.places) == {entry["name"] for entry in run.medium["stations"]}
    assert [flow_path.flow for flow_path in snapshot.paths] == [flow.name for flow in run.flows]
    assert all(flow_path.nodes[0] == flow_path.source for flow_path in snapshot.paths)
    (panel,) = panels(draw, snapshot, tmp_path / "map.png")
    assert dots(panel) == [(0, 0), (200, 0), (400, 0)]
    hops = [hop for flow_path in snapshot.paths for hop in itertools.pairwise(flow_path.nodes)]
    assert panel.arrows == [(snapshot.places[a], snapshot.places[b]) for a, b in hops] and hops
    assert "two-flows: 1.5 s of the traffic" in map_text.lines(snapshot)[0]


def test_a_radio_is_sensed_farther_than_received():
    radio = tomllib.loads(RADIO.read_text())
    assert range_m(radio, {}, SENSED) == pytest.approx(550, abs=0.5)
    disc = {"model": "disc", "range_m": 100, "sense_m": 220}
    assert (range_m(radio, disc), range_m(radio, disc, SENSED)) == (100, 220)


def test_pictures_of_two_threads_do_not_meet(tmp_path):
    """matplotlib's settings are the process's."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        files = list(pool.map(lambda number: map_picture.draw(chain(), tmp_path / f"{number}.png"), range(4)))
    assert len({file.read_bytes() for file in files}) == 1
