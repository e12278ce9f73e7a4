"""A movement file given to a running medium: invalid files, and the rows in which it is sent; without a network."""

from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.runs.map_verb import MapVerb
from testbed.runs.replay_verb import ReplayVerb
from testbed.stages import replay
from testbed.stages.pause import LiveMovement

HEAD = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps\n"
WALK = HEAD + "0,sta1,10,0,0,0\n0,sta2,100,0,0,0\n2,sta2,50,0,0,5\n4,sta1,7,7,0,inf\n5,sta2,0,0,0,0\n"
SCENE = Scenario.model_validate({"hops": 2, "area": [500, 100]})


class Medium:
    """Answers like the medium's control socket, at 10 s of model time; refuses the first `late` rows as too late."""

    def __init__(self, late: int = 0) -> None:
        self.requests: list[tuple[str, dict]] = []
        self.late = late

    def ask(self, op: str, **arguments) -> dict:
        self.requests.append((op, arguments))
        if op == "follow" and self.late:
            self.late -= 1
            raise RunError("medium, follow: a leg of sta1 begins at 9 s, and it is 10 s; send legs ahead of their time")
        return {"ok": True, "model_ns": 10_000_000_000}

    def rows(self) -> list[dict]:
        return [row for op, arguments in self.requests if op == "follow" for row in arguments["legs"]]


def written(folder: Path, text: str, name: str = "walk.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_earlier_movement_ends_at_the_begin_of_the_file_whose_rows_are_sent_ahead(tmp_path):
    medium = Medium()
    playing = replay.play(medium, replay.movement(written(tmp_path, WALK), SCENE))
    begin_ns = 10_300_000_000
    assert medium.requests[1] == ("halt", {"at_ns": begin_ns})
    assert [(row["at_ns"] - begin_ns, row["station"], row.get("speed_mps")) for row in medium.rows()] == [
        (0, "sta1", None), (0, "sta2", None), (2_000_000_000, "sta2", 5.0), (4_000_000_000, "sta1", None),
        (5_000_000_000, "sta2", 0.0),
    ]  # fmt: skip
    assert (playing.begin_ns, playing.last_s, playing.stations) == (begin_ns, 5.0, 2)


def test_a_long_movement_goes_in_lines_that_the_medium_takes(tmp_path):
    rows = "".join(f"{time},sta1,{time % 500},1.2345678901234567,0,1.2345678901234567\n" for time in range(1, 1000))
    medium = Medium()
    replay.play(medium, replay.movement(written(tmp_path, HEAD + "0,sta1,0,0,0,0\n" + rows), SCENE))
    assert len(medium.rows()) == 1000
    assert max(len(str(arguments)) for _, arguments in medium.requests) < 60_000


def test_a_late_host_sends_further_ahead_and_at_last_reports_it(tmp_path):
    made = replay.movement(written(tmp_path, WALK), SCENE)
    assert replay.play(Medium(late=1), made).begin_ns == 11_000_000_000
    late = Medium(late=9)
    with pytest.raises(RunError, match="stations stand still; try again"):
        replay.play(late, made)
    assert late.requests[-1] == ("halt", {})


def test_the_pace_can_be_another(tmp_path):
    medium = Medium()
    replay.play(medium, replay.movement(written(tmp_path, WALK), SCENE, factor=2.0))
    assert medium.rows()[2]["at_ns"] == 11_300_000_000 and medium.rows()[2]["speed_mps"] == 10


@pytest.mark.parametrize(
    ("text", "name", "options", "error"),
    [
        (HEAD + "0,sta9,0,0,0,0\n", "walk.csv", {}, r'walk\.csv: line 3: unknown station "sta9"'),
        (
            WALK + "6,sta1,501,0,0,1\n",
            "walk.csv",
            {},
            r"walk\.csv: line 8: sta1 goes to \(501, 0\) m, outside the area of 500 x 100 m",
        ),
        (
            '$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 1.0 "$node_(0) setdest 1 200 5"\n',
            "a.tcl",
            {},
            r"a\.tcl: line 3: sta1 goes to",
        ),
        ("0 1 1 5 600 1\n", "a.movements", {}, r"a\.movements: line 1: sta1 goes to \(600, 1\)"),
        ("0 1 1\n" * 4, "a.movements", {}, "has 4 nodes and the scenario 3 stations"),
        (WALK, "walk.csv", {"speed": 3.0}, "does not state its mean speed"),
        ("walk\n", "walk.txt", {}, "is no movement of a known format"),
    ],
    ids=["unknown", "outside", "outside, ns-2", "outside, BonnMotion", "too many", "no mean", "format"],
)
def test_an_invalid_file_is_reported_with_its_line_before_any_station_moves(tmp_path, text, name, options, error):
    medium = Medium()
    with pytest.raises(UsageError, match=error):
        LiveMovement(medium, area=SCENE.area).play(replay.movement(written(tmp_path, text, name), SCENE, **options))
    assert [op for op, _ in medium.requests if op != "status"] == []


def test_the_verb_names_the_file_being_played_and_stops_it(tmp_path):
    medium, printed = Medium(), []
    verb = ReplayVerb(LiveMovement(medium), SCENE, printed.append)
    verb("")
    verb(str(written(tmp_path, WALK)))
    verb("off")
    assert printed[0].startswith("no movement file is being replayed; usage: replay FILE")
    assert printed[1].endswith("2 stations, 5 rows until 5 s, begins in 0.3 s; 1 stations are not in it and stand still")
    assert "all stations stop" in printed[2] and medium.requests[-1] == ("halt", {})
    for line, wrong in {
        "x.csv speed=0": "replay: speed: 0.0 is out of range; give more than 0 m/s",
        "x.csv speed=nan": "replay: speed: nan is not a finite number",
        "x.csv factor=1001": "replay: factor: 1001.0 is out of range; give at most 1000",
        **dict.fromkeys(("x.csv pace=2", "x.csv speed=1 factor=2", "x.csv fast"), "usage: replay FILE"),
    }.items():
        with pytest.raises(UsageError, match=wrong):
            verb(line)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("sta1", "two different stations"), ("sta1 sta1", "two different"), ("a.txt", "neither a node nor a .png"),
        ("a.png 0", "seconds from"), ("a.png often", "seconds from"), ("a.png 1 sta1 sta7", "there is no station sta7"),
    ],
)  # fmt: skip
def test_a_wrong_map_line_is_a_line_of_help(tmp_path, line, error):
    verb = MapVerb(None, {"sta1", "sta2"}, tmp_path / "map.png", print)
    with pytest.raises(UsageError, match=error):
        verb(line)


def test_without_a_map_there_is_none_to_stop(tmp_path):
    printed = []
    verb = MapVerb(None, set(), tmp_path / "map.png", printed.append)
    verb("off")
    verb.end()
    assert printed == ["no map is kept up to date; `map FILE.png 1` does"]
