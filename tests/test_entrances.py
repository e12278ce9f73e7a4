"""A quantity has the same limits at every entrance: a file, `--set`, HTTP, Python, a script, the prompt, a view, a mesh."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from manet_testbed import Mesh, WrongRequest, WrongScenario
from manet_testbed import Scenario as LabScenario
from mobility import trace
from scenarios import owned
from scenarios.definition import load_scenario
from scenarios.toml_text import file_text, value_text
from testbed.errors import ManetError, UsageError
from testbed.mn_wifi import session
from testbed.mn_wifi.link import adhoc
from testbed.mn_wifi.net import Mininet_wifi
from testbed.programs import ROOT
from testbed.runs.under_way import act_on, actions_of
from testbed.serve.request import plan_of
from testbed.tests.running import chain, needs_runs, prompt, wait_until
from topologies import layouts

# a key, a bad value, and the words of the refusal
BAD: list[tuple[str, Any, str]] = [
    ("area", [0, 100], 'key "area.0": 0 is out of range; give more than 0 m'),
    ("area", [100, "1e9 m"], 'key "area.1": "1e9 m" is out of range; give at most 1e+07 m'),
    ("speed", 0, 'key "speed": 0 is out of range; give more than 0 m/s'),
    ("speed", 1001, 'key "speed": 1001 is out of range; give at most 1000 m/s'),
    ("mtu", 2297, 'key "mtu": 2297 is out of range; give at most 2296 bytes'),
    ("duration", "1_0 s", 'key "duration": "1_0 s" is not a time; give a number in s, or text with one of s, ms, us, min'),
    ("radios", [{"station": "sta1", "tx_power_w": 0}], 'key "radios.0.tx_power_w": 0 is out of range; give at least 1e-13'),
    ("radios", [{"station": "sta1", "tx_power_w": 2e27}], "give at most 1e+27"),
    ("radios", [{"station": "sta1", "antenna_gain_db": 101}], "101 is out of range; give at most 100"),
    ("radios", [{"station": "sta1", "antenna_height_m": 2e5}], "200000.0 is out of range; give at most 100000"),
    ("events", [{"at": 0, "move": "sta1", "to": [0, -2e7]}], 'key "events.0.to.1": -20000000.0 is out of range; give at least'),
    ("events", [{"at": 0, "move": "sta1", "to": [0, 0], "speed": 1001}], 'key "events.0.speed": 1001 is out of range'),
    ("events", [{"at": 0, "command": ["echo", "a\0b"], "station": "sta1"}], 'key "events.0.command.1": has a NUL character'),
    (
        "flows",
        [{"from": "sta1", "to": "sta2", "traffic": "command", "command": ["ec\0ho"]}],
        'key "flows.0.command.0": has a NUL character, which no command or file may have; remove it',
    ),
    ("radio", "a\0b", 'key "radio": has a NUL character'),
    (
        "stations",
        [{"name": "sta1", "rootfs": "/srv/none", "memory": "1e30 GiB"}],
        'key "stations.0.memory": "1e30 GiB" is out of range; give at most 1.1259e+15 bytes',
    ),
]


def by_file(folder: Path, key: str, value: Any) -> object:
    path = folder / "scenario.toml"
    path.write_text(file_text({"hops": 1, key: value}))
    return load_scenario(path)


def by_set(folder: Path, key: str, value: Any) -> object:
    path = folder / "scenario.toml"
    path.write_text("hops = 1\n")
    return load_scenario(path, [f"{key}={value_text(value, key)}"])


def by_http(_folder: Path, key: str, value: Any) -> object:
    return plan_of(json.loads(json.dumps({"scenario": {"hops": 1, key: value}})), check_machine=False)


def by_python(_folder: Path, key: str, value: Any) -> object:
    return LabScenario({"hops": 1, key: value})


def by_script(_folder: Path, key: str, value: Any) -> object:
    net = Mininet_wifi(scenario={key: value})
    for number in (1, 2):
        net.addLink(net.addStation(f"sta{number}", position=f"{number},1"), cls=adhoc)
    return net.scenario()


@pytest.fixture
def in_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_current_session", [])
    session.begin(session.Session(Path("mine.py"), tmp_path, seed=1))


@pytest.mark.usefixtures("in_a_script")
@pytest.mark.parametrize("entrance", [by_file, by_set, by_http, by_python, by_script])
@pytest.mark.parametrize(("key", "value", "refusal"), BAD, ids=lambda part: str(part)[:40])
def test_a_key_is_refused_in_the_same_words(
    tmp_path: Path, key: str, value: Any, refusal: str, entrance: Callable[[Path, str, Any], object]
) -> None:
    with pytest.raises((UsageError, WrongScenario)) as caught:
        entrance(tmp_path, key, value)
    assert refusal in str(caught.value) and "\n" not in str(caught.value)


def test_a_place_has_the_medium_s_limits() -> None:
    assert owned.node("medium", "stations.position")["items"]["maximum"] == layouts.MAX_COORDINATE_M == trace.MAX_COORDINATE_M


def test_a_trace_may_have_as_many_stations_as_a_scenario() -> None:
    assert trace.MAX_STATIONS == layouts.MAX_STATIONS


# a place, a speed, and the words of the refusal
MOVES: list[tuple[list[float], float | None, str]] = [
    ([float("nan"), 0], None, "nan is not a finite number; give a distance in m"),
    ([0, float("inf")], None, "inf is not a finite number; give a distance in m"),
    ([-2e7, 0], None, "-20000000.0 is out of range; give at least -1e+07 m"),
    ([500, 0], None, "sta1 would go to (500, 0) m, outside the area of 300 x 300 m"),
    ([-5, 0], None, "sta1 would go to (-5, 0) m, outside the area of 300 x 300 m"),
    ([0, 0], 0.0, "0.0 is out of range; give more than 0 m/s"),
    ([0, 0], 1001.0, "1001.0 is out of range; give at most 1000 m/s"),
    ([0, 0], float("nan"), "nan is not a finite number; give a speed in m/s"),
]
AREA = [300, 300]


@pytest.fixture(scope="module")
def mesh() -> Iterator[Mesh]:
    with Mesh.chain(2, area=AREA) as up:
        yield up


@pytest.mark.root
@needs_runs
@pytest.mark.parametrize(("place", "speed", "refusal"), MOVES)
def test_a_mesh_refuses_a_move_as_a_file_does(mesh: Mesh, place: list[float], speed: float | None, refusal: str) -> None:
    before = mesh["sta1"].position
    with pytest.raises(WrongRequest) as caught:
        mesh["sta1"].move(*place, speed=speed)
    assert refusal in str(caught.value)
    assert mesh["sta1"].position == before


@pytest.mark.root
@needs_runs
def test_a_station_does_not_measure_itself(mesh: Mesh) -> None:
    with pytest.raises(WrongRequest, match=r"tcp\(sta1, sta1\): a station would measure itself; name two"):
        mesh.tcp("sta1", mesh["sta1"])


@pytest.mark.root
@needs_runs
def test_prompt_and_view_refuse_a_move_as_a_file_does(tmp_path: Path) -> None:
    """The prompt waits in `sleep` while the view acts on the same network."""
    directory, printed = tmp_path / "run", []
    lines = [f"move sta1 {x} {y}{'' if speed is None else f' 0 {speed}'}" for (x, y), speed, _ in MOVES]
    lines += [f"setPosition sta1 {x},{y}" for (x, y), speed, _ in MOVES if speed is None]
    lines += ["radio sta1 txpower=301", "radio sta1 gain=101", "radio sta1 height=2e5", "iperf sta1 sta1", "sta1 sleep 5"]
    session = threading.Thread(target=lambda: printed.append(prompt(chain(area=AREA), directory, *lines)))
    session.start()
    wait_until(lambda: actions_of(directory) is not None, "the session's socket")
    for place, speed, refusal in MOVES:
        if speed is None:  # a view's moves are at once
            with pytest.raises(ManetError) as caught:
                act_on(directory, {"op": "move", "station": "sta1", "position": place})
            assert str(caught.value) == f"position: {refusal}" or str(caught.value).startswith(f"position: {refusal};")
    session.join()
    answers = [line for line in printed[0].splitlines() if line.startswith("*** ") or line.startswith("usage: iperf")]
    at_once = [refusal for _, speed, refusal in MOVES if speed is None]
    expected = [*(refusal for _, _, refusal in MOVES), *at_once, "give at most 300 dBm", "give at most 100 dB"]
    expected += ["give at most 100000 m", "usage: iperf"]
    assert len(answers) == len(expected), printed[0]
    for answer, refusal in zip(answers, expected, strict=True):
        assert refusal in answer


SCRIPT = """
from mn_wifi.net import Mininet_wifi
from mn_wifi.link import adhoc
net = Mininet_wifi(scenario={"area": [300, 300]})
stations = [net.addStation(f"sta{n}", position=f"{n},1") for n in (1, 2)]
for station in stations:
    net.addLink(station, cls=adhoc)
net.build()
for call, values in CALLS.items():
    for value in values:
        try:
            getattr(stations[0], call)(value)
            print(call, value, "accepted")
        except Exception as problem:
            print(call, value, problem)
try:
    net.iperf([stations[0], stations[0]])
except Exception as problem:
    print(problem)
net.stop()
"""
CALLS = {
    "setPosition": ["nan,0", "inf,0", "-2e7,0", "500,0", "-5,0"],
    "setTxPower": [301, "nan", "1_0"],
    "setAntennaGain": [101],
    "setAntennaHeight": [2e5],
    "setRange": [0, 1e6],
}


@pytest.mark.root
@needs_runs
def test_a_script_is_refused_as_a_file_is(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(f"CALLS = {CALLS!r}\n{SCRIPT}")
    argv = [ROOT / "manet", "script", "--out", tmp_path / "results", script]
    printed = subprocess.run(argv, capture_output=True, text=True, timeout=120).stdout
    assert "accepted" not in printed
    assert "(-5, 0) m, outside the area of 300 x 300 m" in printed and "(500, 0) m, outside the area" in printed
    limits = ("301.0 is out of range; give at most 300 dBm", "give at most 100 dB", "give at most 100000 m", "give more than 0 m")
    assert all(words in printed for words in limits)
    assert "iperf sta1 sta1: a station would measure itself; name two" in printed
