"""The first page: the runs and scenarios that it lists, their pictures, and what it refuses."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from testbed.errors import UsageError
from testbed.tests.running import Background, chain, needs_runs
from testbed.view.home import SCENARIOS, Home, of_scenario, text_of
from testbed.view.tests.serving import Served, view

pytestmark = [pytest.mark.root, needs_runs]
RUN = {"hops": 2, "duration": 3, "tcp": "newreno", "routing": "static"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the first one measured; the page is about their files."""
    folder = tmp_path_factory.mktemp("home") / "results"
    for seed in (1, 2):
        directory = folder / "short" / "all" / f"seed-{seed}"
        assert Background(chain(**RUN), directory).result().status == "complete"
    analyse_run(folder / "short" / "all" / "seed-1")
    return folder


@pytest.fixture(scope="module")
def served(results: Path) -> Iterator[Served]:
    with view(None, "--out", str(results)) as running:
        yield running


def test_the_last_runs_are_listed_with_their_verdicts(served: Served, results: Path):
    assert served.ask("/api/run")["kind"] == "home"
    home = served.ask("/api/home")
    assert [run["path"] for run in home["runs"]] == ["short/all/seed-1", "short/all/seed-2"], "the one measured last is first"
    run = RunDirectory(results / "short/all/seed-1")
    assert home["runs"][0]["verdict"] == run.verdict["verdict"] and home["runs"][0]["started"] == run.run["started"]
    assert (home["results"], home["control"], home["editor"], home["more"]) == (str(results), False, False, 0)


def test_a_run_has_a_picture_of_its_places_flows_and_measured_rates(served: Served):
    measured, other = (served.ask(f"/api/picture?of=short/all/seed-{seed}") for seed in (1, 2))
    assert [place[:2] for place in measured["stations"]] == [[0, 0], [200, 0], [400, 0]] and measured["flows"] == [[0, 2]]
    assert measured["bps"] > 10_000 and len(measured["by_second"]) >= 2
    assert (other["bps"], other["by_second"]) == (None, [])


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_each_scenario_of_the_project_has_a_sentence_and_a_picture(path: Path):
    assert len(text_of(path)) > 20
    picture = of_scenario(path.stem, path)
    count = len(picture["stations"])
    assert count >= 2 and picture["flows"] and all(end < count for flow in picture["flows"] for end in flow)


def test_gateways_and_their_hosts_are_told_from_stations():
    picture = of_scenario("gateway", SCENARIOS / "gateway.toml")
    assert [role for _, _, role in picture["stations"]] == ["station", "station", "gateway"] and picture["hosts"] == [2]


def test_runs_and_scenarios_are_opened_by_their_names(served: Served, results: Path):
    assert served.ask("/api/run?run=short/all/seed-2")["kind"] == "recorded"
    planned = served.ask("/api/run?run=chain5:")
    assert (planned["kind"], planned["name"]) == ("planned", "chain5:all/seed-1")
    assert planned["directory"] == str(results / "chain5/all/seed-1")
    assert served.ask("/api/run?run=chain5:all/seed-7")["seed"] == 7


STRANGE = ["../../etc", "/etc", "short", "short/all/void", "nothing:", "chain5:x", "a%00b", "x" * 5000, ""]


@pytest.mark.parametrize("name", STRANGE)
def test_another_name_is_one_line(served: Served, name: str):
    for path in (f"/api/run?run={name}", f"/api/picture?of={name}"):
        status, body = served.answer(path)
        assert status == 400 and "\n" not in json.loads(body)["error"], path


def test_a_read_only_first_page_starts_nothing(served: Served, tmp_path: Path):
    token = {"Authorization": f"Bearer {served.token}"}
    request = urllib.request.Request(f"{served.base}/api/control?run=chain5:", b'{"op": "start"}', token)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 405
    assert not (tmp_path / "chain5").exists()
    with pytest.raises(UsageError, match="name a run"):
        Home(tmp_path, control=True).act(None, {"op": "start"})
