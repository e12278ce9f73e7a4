"""/metrics of `manet serve`: jobs, and a run under way."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from testbed.serve.tests.serving import LONG, SHORT, Served, serving
from testbed.tests.running import needs_runs


def scraped(server: Served) -> dict[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels."""
    answer = server.send("GET", "/metrics")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = text_string_to_metric_families(answer.body.decode())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_jobs_are_counted_by_state(tmp_path: Path) -> None:
    with serving(tmp_path, held=True) as server:
        first, second = server.start(SHORT), server.start(SHORT)
        server.wait_for(first, lambda run: run["state"] == "running")
        found = scraped(server)
        assert [found["manet_jobs", state] for state in ("running", "queued", "stopped")] == [1, 1, 0]
        server.delete(second)
        assert scraped(server)["manet_jobs", "stopped"] == 1
        assert server.send("GET", "/metrics", headers={"Authorization": ""}).status == 401
        assert "unknown word" in server.send("GET", "/metrics?name=x").error


@pytest.mark.root
@needs_runs
def test_a_run_under_way_has_the_path_of_its_results(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        number = server.start(LONG)
        run = f"{number}/results/all/seed-1"
        server.wait_for(number, lambda job: bool(job["progress"]) and job["progress"][0]["stage"] == "traffic")
        found = scraped(server)
        assert found["manet_run_up", run] == 1 and found["manet_stations", run] == 3
        server.delete(number)
        server.end_of(number)
        assert not any(run in key for key in scraped(server))
