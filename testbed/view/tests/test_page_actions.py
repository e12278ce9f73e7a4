"""The controls of the page on a run under way: a flow that is started there belongs to the run."""

from pathlib import Path

import pytest

from analysis.metrics import analyse_run
from analysis.rundir import RunDirectory
from testbed.tests.running import Background, chain, needs_runs
from testbed.view.tests.serving import view
from testbed.view.tests.test_page import MISSING, browser, opened, until  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

STANDING = {"hops": 2, "window": 4, "duration": 30, "tcp": "newreno", "routing": "static"}


@pytest.mark.alone("acts on a run under way, in real time")
def test_a_flow_started_on_the_page_is_drawn_recorded_and_measured(browser, tmp_path: Path):  # noqa: F811
    directory = tmp_path / "run"
    running = Background(chain(**STANDING), directory, deadline_s=120).at("traffic")
    with view(directory, "--control") as served, (shown := opened(browser, served)) as page:
        until(page, "window.manetView.state.live?.frames.count > 50")
        page.select_option("#flow-from", "sta3")
        page.select_option("#flow-to", "sta2")
        page.select_option("#flow-tcp", "vegas")
        page.fill("#flow-seconds", "8")
        page.click("#flow-start")
        until(page, "window.manetView.state.about.flows.length === 2")
        page.wait_for_selector("#flows label:has-text('flow2')")
        until(page, "window.manetView.state.live.rates.flow2 > 10000")
        page.click("#tab-verdict")
        page.wait_for_selector("#pane-verdict li:has-text('by a view')")
        page.click("#tab-stations")
        page.fill("#flow-seconds", "1000")
        page.click("#flow-start")
        page.wait_for_selector("#notice:has-text('seconds:')")
        shown.complaints.clear()  # the browser's own line about the refusal
        assert running.result().status == "complete"
        until(page, "window.manetView.state.about?.kind === 'recorded'")
        page.wait_for_selector("#story-flow option[value=flow2]", state="attached")
        page.click("#tab-verdict")
        page.wait_for_selector("#pane-verdict li:has-text('by a view')")
    assert [flow.source for flow in RunDirectory(directory).flows] == ["sta1", "sta3"]
    assert analyse_run(directory)["flows"]["flow2"]["acked_bps"] > 10000
