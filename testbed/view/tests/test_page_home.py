"""The first page in headless Chromium: what it shows, where its cards lead, and that a click starts a scenario."""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from testbed.tests.running import needs_runs
from testbed.view.home import SCENARIOS
from testbed.view.tests.serving import Served, view
from testbed.view.tests.test_home import results, served  # noqa: F401  (fixtures)
from testbed.view.tests.test_page import MISSING, browser, opened, until, violations  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_axe_finds_no_violation_and_each_card_has_its_picture(browser, served, scheme, width, height):  # noqa: F811
    options = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    with opened(browser, served, attached="#scenarios .card", **options) as page:
        cards = 2 + len(list(SCENARIOS.glob("*.toml")))
        until(page, f"document.querySelectorAll('#recent .picture svg, #scenarios .picture svg').length === {cards}")
        assert violations(page) == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "manet view --control" in page.inner_text("#home-first") and page.locator("#scenarios button").count() == 0
        assert page.locator("#recent .rates").count() == 1, "one run is measured"
        if folder := os.environ.get("PICTURES"):
            page.screenshot(path=f"{folder}/home-{scheme}-{width}.png", full_page=True)


def test_a_card_leads_to_its_run_and_back(browser, served):  # noqa: F811
    with opened(browser, served, attached="#recent .card") as page:
        page.click("#recent .card:last-child a")
        page.wait_for_selector("#map")  # the page loads again
        until(page, "window.manetView?.state.about?.kind === 'recorded'")
        assert page.evaluate("window.manetView.state.about.directory").endswith("short/all/seed-2")
        page.click("#all-runs")
        page.wait_for_selector("#recent .card")


@pytest.mark.alone("starts a run, in real time")
def test_a_click_starts_a_scenario_and_another_waits_for_its_end(browser, tmp_path: Path):  # noqa: F811
    with view(None, "--control", "--out", str(tmp_path)) as running:
        with opened(browser, running, attached="#scenarios .card") as page:
            assert violations(page) == 0
            page.click("button[aria-label='Start hidden3']")
            page.wait_for_selector("#map")
            until(page, "window.manetView?.state.live?.frames.count > 20")
            assert "live, with control" in page.inner_text("#mode")
            body = post(running, "/api/control?run=chain5:", {"op": "start"})
            assert "hidden3 is under way" in body["error"]
            page.click("#stop")
            until(page, "window.manetView?.state.about?.kind === 'recorded'")
            assert (tmp_path / "hidden3/all/seed-1/run.json").exists()
        with opened(browser, running, attached="#draw") as page:
            page.click("#draw")
            until(page, "window.manetEditor?.state.version")


def post(running: Served, path: str, body: object) -> dict:
    request = urllib.request.Request(running.base + path, json.dumps(body).encode(), {"Authorization": f"Bearer {running.token}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return json.loads(found.read())
    except urllib.error.HTTPError as problem:
        return json.loads(problem.read())
