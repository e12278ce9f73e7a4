"""`map`, `replay` and `move` at the prompt of a real network, and `manet map` of it from outside."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import pytest

from analysis.tests.drawn import panels
from mobility import files
from testbed import __main__ as manet
from testbed.tests.running import Background, chain, needs_runs, nothing_left, prompt

pytestmark = [pytest.mark.root, needs_runs]

# sta3 walks away from sta2 at 100 m/s from second 1 on, sta2 stands; sta1 jumps at second 2
WALK = """# manet-trace/1
time_s,station,x_m,y_m,z_m,speed_mps
0,sta1,0,50,0,0
0,sta2,200,50,0,0
0,sta3,400,50,0,0
1,sta3,400,950,0,100
2,sta1,100,50,0,inf
"""


def test_a_movement_is_replayed_and_the_log_of_places_stays_true(tmp_path: Path) -> None:
    walk, picture = tmp_path / "walk.csv", tmp_path / "now.png"
    walk.write_text(WALK)
    lines = ["map", f"map {picture} 0.3", f"replay {walk}", "sh sleep 5", "map sta1 sta3", "links", "move sta2 10 20 0 50"]
    lines += ["replay off", f"replay {tmp_path}/no.csv", "map off", "map sta1", "map", "exit"]
    answers = prompt(chain(hops=2), tmp_path / "run", *lines)
    assert "flow1  sta1 > sta2 > sta3   2 hops" in answers
    assert "path1  sta1 > sta2 x sta3   sta2: sta3 does not hear it" in answers
    assert "3 stations, 5 rows until 2 s" in answers
    assert "no.csv: cannot be read" in answers
    assert re.search(r"now\.png stays as it is, drawn [1-9]\d* times\n", answers), answers
    assert "status complete None" in answers
    for file in (picture, tmp_path / "run" / "map.png"):
        assert min(matplotlib.image.imread(file).shape[:2]) > 300
    was = files.read(tmp_path / "run" / "moved.csv", ["sta1", "sta2", "sta3"])
    walked = next(leg for leg in was.legs if (leg.station, leg.speed_mps) == ("sta3", 100))
    begin_s = walked.start_s - 1
    assert was.position("sta3", begin_s - 0.001) == (400, 0, 0)
    assert was.position("sta3", begin_s + 4) == pytest.approx((400, 350, 0), abs=1e-3)
    assert was.position("sta1", begin_s + 1.999999) == (0, 50, 0) and was.position("sta1", begin_s + 2) == (100, 50, 0)
    stood = was.position("sta3", was.legs[-1].start_s)
    assert stood == was.position("sta3", 1e6) and stood[1] >= 350
    assert nothing_left(tmp_path / "run")


def test_an_unchanged_network_has_a_map_and_no_log_of_moves(tmp_path: Path, capsys) -> None:
    assert "status complete None" in prompt(chain(), tmp_path / "run", "links", "exit")
    assert not (tmp_path / "run" / "moved.csv").exists()
    assert manet.main(["map", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"run: [\d.]+ s of the medium \(no traffic\), its end\n2 stations, 1 link", printed)
    assert "   nothing sent\n" in printed


def test_a_run_started_elsewhere_is_drawn_during_and_after_it(tmp_path: Path, capsys) -> None:
    directory = tmp_path / "run"
    run = Background(chain(hops=2, duration=14, routing="aodv"), directory).at("traffic", 0.3)
    (panel,) = panels(manet.main, ["map", str(directory), "--out", str(tmp_path / "live.png")])
    live = capsys.readouterr().out
    assert manet.main(["map", str(tmp_path), "--out", str(tmp_path / "parent.png")]) == 0  # the folder with this one run
    parent = capsys.readouterr().out
    assert manet.main(["map", str(directory), "--path", "sta3", "sta1", "--out", str(tmp_path / "back.png")]) == 0
    assert "path1  sta3 > sta2 > sta1   2 hops" in capsys.readouterr().out
    assert manet.main(["map", str(directory), "--path", "sta3", "sta9"]) == 2
    assert "--path sta9: there is no such station in" in capsys.readouterr().err
    assert manet.main(["map", str(directory), "--at", "1"]) == 2
    assert "is running, so only the present can be drawn" in capsys.readouterr().err
    assert run.result().status == "complete"
    assert "flow1  sta1 > sta2 > sta3   2 hops" in live, live
    assert re.search(r"run: \d+\.\d s of the traffic\n3 stations, 2 links, range 250 m, sensed 550 m", live)
    # live: to a tenth of a second and with what is acknowledged now; `0 s` is what it was for a run that has ended
    assert re.search(r"run: \d+\.\d s of the traffic", parent) and "flow1  sta1 > sta2 > sta3   2 hops" in parent, parent
    assert manet.main(["map", str(directory), "--at", "4"]) == 0
    past = capsys.readouterr().out
    assert re.search(r"flow1  sta1 > sta2 > sta3   2 hops, [1-9]\d+ kbit/s acknowledged", past), past
    places = [one.points[0] for one in panel.series if one.marker == "o"]
    assert [x for x, _ in places] == [0, 200, 400] and panel.arrows == [(places[0], places[1]), (places[1], places[2])]
    assert (tmp_path / "live.png").exists() and (directory / "map.png").exists()
    assert manet.main(["map", str(directory), "--every", "1"]) == 2
    assert "not under way" in capsys.readouterr().err
    assert manet.main(["map", str(directory), "--at", "1000"]) == 1
    assert "is after the run's end; give a time of" in capsys.readouterr().err


def test_a_movement_file_is_drawn_without_a_network(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text(WALK)
    argv = [sys.executable, "-P", "-m", "testbed", "map", "walk.csv", "--at", "3.5", "--range", "330"]
    root = Path(manet.__file__).resolve().parents[1]
    done = subprocess.run(
        argv, cwd=tmp_path, env={"PYTHONPATH": str(root), "PATH": "/usr/bin"}, capture_output=True, text=True, check=False
    )
    assert "3 stations, 2 links, range 330 m" in done.stdout, done.stderr
    assert (tmp_path / "map.png").exists()
