"""One session in five ways: at the prompt, by a script, by a mesh, by a view, by a scenario's events.

Each leaves the same rows of events.csv, the same map and the same parts of the verdict, and `manet run DIR` repeats it.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.maps.past_snapshot import of_run
from manet_testbed import Mesh
from record.events_file import read_events
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, needs_runs, prompt
from testbed.view.actions import Actions

KEYS = {"hops": 3, "routing": "aodv", "flows": []}
ROWS = [("power", "sta3", "off"), ("move", "sta2", "to 400 400"), ("daemon", "sta1", "killed")]
PLACES = {"sta1": (0, 0), "sta2": (400, 400), "sta3": (400, 0), "sta4": (600, 0)}
SCRIPT = """
from mn_wifi.net import Mininet_wifi
from mn_wifi.link import adhoc
net = Mininet_wifi(scenario={"radio": "ns2-dsss-2m", "propagation": "two-ray"})
stations = [net.addStation(f"sta{n}", position=f"{200 * (n - 1)},0") for n in range(1, 5)]
for station in stations:
    net.addLink(station, cls=adhoc, proto="aodv")
net.build()
net.event(power="sta3", on=False)
stations[1].setPosition("400,400")
net.event(daemon="kill", station="sta1")
net.stop()
"""


def manet(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "testbed", *map(str, words)], capture_output=True, text=True, cwd=ROOT)


def at_the_prompt(directory: Path) -> None:
    prompt(Scenario(**KEYS), directory, "power sta3 off", "move sta2 400 400", "daemon sta1 kill", "exit")


def by_a_script(directory: Path) -> None:
    script = directory.with_suffix(".py")
    script.write_text(SCRIPT)
    done = manet("script", "--out", directory, script)
    assert done.returncode == 0 or "void" in done.stderr, done.stderr


def by_a_mesh(directory: Path) -> None:
    with Mesh.chain(4, routing="aodv", directory=directory) as mesh:
        mesh["sta3"].power(False)
        mesh["sta2"].move(400, 400)
        mesh["sta1"].daemon("kill")


def by_a_view(directory: Path) -> None:
    running, view = Background(Scenario(duration=6, warmup=0, **KEYS), directory).at("traffic"), Actions(directory)
    view.do({"op": "power", "station": "sta3", "on": False})
    view.do({"op": "move", "station": "sta2", "position": [400, 400]})
    view.do({"op": "daemon", "station": "sta1", "action": "kill"})
    assert running.result().status == "complete"


def by_events(directory: Path) -> None:
    events = [
        {"at": 0.2, "power": "sta3", "on": False},
        {"at": 0.3, "move": "sta2", "to": [400, 400]},
        {"at": 0.4, "daemon": "kill", "station": "sta1"},
    ]
    assert Background(Scenario(duration=1, warmup=0, events=events, **KEYS), directory).result().status == "complete"


WAYS: dict[str, Callable[[Path], None]] = {
    "prompt": at_the_prompt, "script": by_a_script, "mesh": by_a_mesh, "view": by_a_view, "scenario": by_events,
}  # fmt: skip


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.parametrize("source", WAYS)
def test_a_session_leaves_the_same_record_whoever_acts(tmp_path: Path, source: str) -> None:
    directory, again = tmp_path / "session", tmp_path / "again"
    WAYS[source](directory)
    assert rows_of(directory) == ROWS and {row["source"] for row in read_events(directory)} == {source}
    manet("run", directory, "--out", again)  # status 1 if the host was too busy
    assert json.loads((again / "run.json").read_text())["status"] == "complete"
    assert rows_of(again) == ROWS and {row["source"] for row in read_events(again)} == {"scenario"}
    for one in (directory, again):
        snapshot = at_the_end_of(one)
        assert (snapshot.off, snapshot.places) == (
            {"sta3"},
            {"sta1": (0, 0), "sta2": (400, 400), "sta3": (400, 0), "sta4": (600, 0)},
        )
        assert snapshot.links == frozenset()  # sta1 and sta4 are 600 m apart, and sta2 is 447 m from both
        verdict = json.loads((one / "verdict.json").read_text())
        assert {"programs", "neighbours_refused", "stopped", "changed"} <= verdict.keys() and "traffic_start" not in verdict
        assert (verdict["changed"], verdict["stopped"]) == ({}, {})


def rows_of(directory: Path) -> list[tuple[str, str, str]]:
    return [(row["event"], row["station"], row["detail"]) for row in read_events(directory)]


def at_the_end_of(directory: Path):
    """What `manet map` shows of the end, 0.1 s before which nothing happens any more."""
    run = RunDirectory(directory)
    first_s = 0.0 if run.begun_ns is None else (run.epoch_ns - run.begun_ns) / 1e9
    return of_run(run, first_s + run.verdict["model_ns"] / 1e9 - 0.01)
