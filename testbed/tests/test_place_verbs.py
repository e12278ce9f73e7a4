"""`distance`, `position`, `setPosition`, `stop`, `start`, `radio` and the tab key at the prompt; without a network."""

from types import SimpleNamespace

import pytest

from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.runs import completion, place_verbs, prompt
from testbed.tests.running import acting_network

PLACES = {"sta1": [0.0, 0.0, 0.0], "sta2": [30.0, 40.0, 0.0]}
RADIO = {"tx_power_w": 0.1, "antenna_gain_db": 5.0, "antenna_height_m": 1.5}


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """A prompt on two stations and a host; what it asks is in `asked`, what it prints in `said`."""
    made = prompt.Prompt.__new__(prompt.Prompt)
    made.asked, made.said = [], []
    answers = {
        "positions": {"positions": PLACES},
        "radio": RADIO,
        "radios": {"radios": {"sta1": RADIO}},
        "status": {"model_ns": 9},
    }

    def ask(op: str, **given: object) -> dict:
        made.asked.append((op, given))
        return answers.get(op, {})

    for module in (prompt, place_verbs):
        monkeypatch.setattr(module, "say", made.said.append)
    stations = [SimpleNamespace(name=name) for name in PLACES]
    hosts = [*stations, SimpleNamespace(name="h1")]

    class Net(dict):
        @property
        def hosts(self) -> list:
            return hosts

    wires = [{"station": "sta1", "host": "h1"}]
    site = SimpleNamespace(scenario=Scenario(hops=1, spacing=50, area=(100.0, 100.0), wires=wires), directory=tmp_path)
    made.network = SimpleNamespace(
        net=Net({host.name: host for host in hosts}), stations=stations, medium=SimpleNamespace(ask=ask), site=site
    )
    made.live = acting_network(made.network, tmp_path)
    made.live.movement = SimpleNamespace(pause=lambda: True, resume=lambda: False)
    return made


def test_a_distance_and_positions_are_the_medium_s(shell):
    shell.do_distance("sta1 sta2")
    shell.do_position("")
    shell.do_position("sta2 sta9 h1")
    assert shell.said == [
        "The distance between sta1 and sta2 is 50.00 meters", "sta1: 0.00, 0.00, 0.00", "sta2: 30.00, 40.00, 0.00",
        "sta2: 30.00, 40.00, 0.00", "*** there is no station sta9; `nodes` lists them",
        "*** h1 is a wired host, which has no place; name a station",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["sta2 10,20,0", "sta2 10,20", "sta2 10 20 0"])
def test_a_station_is_put_at_a_place(shell, line):
    shell.do_setPosition(line)
    assert shell.asked[0] == ("move", {"station": "sta2", "position": [10.0, 20.0, 0.0]}) and not shell.said


def test_a_wrong_place_moves_nothing(shell):
    for line in ("", "sta2", "sta2 10", "sta2 1,2,3,4"):
        shell.do_setPosition(line)
    assert shell.said == ["usage: setPosition station x,y[,z]        (metres)"] * 4
    with pytest.raises(UsageError, match='position: "x" is not a distance; give a number in m'):
        shell.do_setPosition("sta2 x,y")
    with pytest.raises(UsageError, match=r"sta2 would go to \(101, 0\)"):
        shell.do_setPosition("sta2 101,0")
    assert not shell.asked


def test_the_movement_stops_and_starts(shell):
    shell.do_stop("")
    shell.do_start("")
    assert shell.said == ["all stations stand still; `start` lets them go on", "no movement was interrupted; `stop` does that"]


def test_a_power_is_shown_and_changed_in_dbm(shell, tmp_path):
    shell.do_radio("")
    shell.do_radio("sta1 txpower=20 gain=3")
    assert shell.said == ["sta1: 20.00 dBm, gain 5 dB, height 1.5 m"] * 2
    assert shell.asked[1] == ("radio", {"station": "sta1", "tx_power_w": pytest.approx(0.1), "antenna_gain_db": 3.0})
    assert (tmp_path / "radios.csv").read_text().endswith("9,sta1,0.1,5.0,1.5\n")
    for option in ("power=3", "txpower"):
        with pytest.raises(UsageError, match="usage: radio"):
            shell.do_radio(f"sta1 {option}")
    for option, wrong in (
        ("txpower=loud", '"loud" is of the wrong type; give a number in dBm'),
        ("gain=101", "give at most 100 dB"),
    ):
        with pytest.raises(UsageError, match=wrong):
            shell.do_radio(f"sta1 {option}")


def test_the_tab_key_completes_verbs_stations_and_paths(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stations").mkdir()
    (tmp_path / "stations" / "walk one.csv").touch()
    (tmp_path / ".hidden").touch()
    assert shell.completenames("sta") == ["sta1 ", "sta2 ", "start "]
    assert shell.completenames("setP") == ["setPosition "]
    assert "EOF " not in shell.completenames("")
    assert shell.completedefault("sta", "distance sta", 9, 12) == ["sta1 ", "sta2 ", "stations/"]
    assert shell.completedefault("stations/w", "replay stations/w", 7, 17) == ["stations/walk one.csv "]
    assert shell.completedefault("", "distance ", 9, 9) == ["h1 ", "sta1 ", "sta2 "]
    assert completion.paths("./") == ["./stations/"] and completion.paths(".h") == [".hidden "]
    assert completion.paths("nowhere/") == []
