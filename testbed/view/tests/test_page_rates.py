"""The lesson on rates in headless Chromium: the page has the rate of a frame, and a station's rates of the whole run."""

import zipfile

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs
from testbed.view.recorded import RecordedRun
from testbed.view.tests.serving import view
from testbed.view.tests.test_page import MISSING, browser, opened  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

BUNDLE = ROOT / "examples" / "lessons" / "recorded" / "rates.zip"
RUN = "results/rates/minstrel-ht/seed-1"
LOST_ROW = 449  # the first frame at MCS 7 that is lost (docs/teaching/rates.md)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """The recorded run of the lesson, unpacked as it says."""
    folder = tmp_path_factory.mktemp("rates")
    with zipfile.ZipFile(BUNDLE) as archive:
        archive.extractall(folder)
    return folder / RUN


def test_the_page_shows_the_rate_of_a_frame_and_the_rates_of_a_station(browser, run_dir):  # noqa: F811
    recorded = RecordedRun(run_dir)
    frame = recorded.frame(LOST_ROW)
    with view(run_dir) as served, opened(browser, served, f"#t=1.11&span=0.05&frame={LOST_ROW}") as page:
        page.wait_for_selector("#frame h3")
        shown = page.inner_text("#frame")
        assert frame["mode"] in shown and f"{frame['sinr_db']} dB at sta2" in shown
        page.click("#tab-stations")
        page.click('button[data-station="sta1"]')
        page.wait_for_selector("#station table")
        rows = [
            [cell.inner_text() for cell in row.query_selector_all("td")] for row in page.query_selector_all("#station tbody tr")
        ]
        rates = recorded.station("sta1", recorded.end_ns)["rates"]
        assert [(row[0], row[2]) for row in rows] == [(one["peer"], str(one["frames"])) for one in rates]
        assert all(one["mode"] in row[1] for row, one in zip(rows, rates, strict=True))
