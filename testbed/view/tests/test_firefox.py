"""The pages in Firefox, with axe and without a complaint on the console: a recorded run, one under way, and the first page.

Their tests in Chromium (test_page*.py) look at more; the editor's are in ../editor/tests/test_editor_firefox.py.
"""

import base64
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from analysis.captures.rundir import RunDirectory
from testbed.tests.running import Background, chain, needs_runs, wait_until
from testbed.view.tests.firefox import FIREFOX, Firefox
from testbed.view.tests.serving import Served, view

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(FIREFOX is None, reason="Firefox is missing; apt-get install firefox-esr"),
]  # fmt: skip

RUN = {"hops": 4, "window": 8, "duration": 4, "tcp": "newreno", "routing": "static"}
SIZES = [(1400, 900), (400, 800)]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("firefox") / "run"
    assert Background(chain(**RUN), directory).result().status == "complete"
    return directory


@pytest.fixture(scope="module")
def served(run_dir) -> Iterator[Served]:
    with view(run_dir) as running:
        yield running


@contextmanager
def opened(tmp_path: Path, url: str, ready: str) -> Iterator[Firefox]:
    """A page; at its end nothing was written to the console."""
    (tmp_path / "profile").mkdir()
    with Firefox(tmp_path / "profile") as firefox:
        firefox.goto(url)
        until(firefox, ready)
        yield firefox
    assert firefox.complaints == []


@pytest.fixture
def page(served, tmp_path) -> Iterator[Firefox]:
    ready = "window.manetView?.state.movement && document.querySelectorAll('#charts canvas').length >= 4"
    with opened(tmp_path, f"{served.url}#t=1.5&span=0.02&station=sta2", ready) as firefox:
        yield firefox


def until(page: Firefox, expression: str) -> None:
    wait_until(lambda: page.evaluate(f"Boolean({expression})"), expression)


def test_map_lanes_and_charts_are_drawn(page, run_dir):
    assert page.evaluate("document.getElementById('now').textContent") == "1.500000 s"
    until(page, "window.manetView.boxes().length > 5")
    picture = Image.open(io.BytesIO(base64.b64decode(page.screenshot()))).convert("RGB")
    left, top = page.evaluate("(({ x, y }) => [x, y])(document.getElementById('map').getBoundingClientRect())")
    for entry in RunDirectory(run_dir).medium["stations"]:
        x, y = page.evaluate(f"window.manetView.toScreen({entry['position'][:2]})")
        # the ink of a station, or of a ring around the selected one
        assert max(picture.getpixel((round(left + x), round(top + y)))) < 60
    corners = "(({ x, y, right, bottom }) => [x, y, right, bottom].map(Math.round))"
    box = f"{corners}(document.getElementById('lanes-scroll').getBoundingClientRect())"
    left, top, right, bottom = page.evaluate(box)
    rgb = {
        picture.getpixel((x, y)) for x in range(left + 60, right - 10, 2) for y in range(top + 2, min(bottom, picture.height), 4)
    }
    assert (0x01, 0x6A, 0x7B) in rgb, "frames that were delivered, in the lanes"


def test_a_click_on_a_frame_and_keys_work(page):
    until(page, "window.manetView.boxes().length > 5")
    x, y, row = page.evaluate(
        """((canvas, [x0, x1, y0, y1, row]) => [canvas.x + (x0 + x1) / 2, canvas.y + (y0 + y1) / 2, row])(
            document.getElementById('lanes').getBoundingClientRect(),
            window.manetView.boxes().find(([x0, x1]) => x0 > 100 && x1 < 1200))"""
    )
    page.click(x, y)
    until(page, "document.querySelector('#frame h3')")
    assert page.evaluate("window.manetView.state.row") == row
    before = page.evaluate("window.manetView.state.now")
    page.press("ArrowRight")
    until(page, f"window.manetView.state.now > {before}")
    page.press("c")
    until(page, f"window.manetView.state.row !== {row}")
    assert "lost" in page.evaluate("document.getElementById('frame').textContent")
    page.press(" ")
    until(page, "window.manetView.state.playing")


def accessible(page: Firefox) -> None:
    """Without violations and not wider than the screen, on large and small screens, light and dark."""
    for _theme in ("the system's", "the other one"):
        for size in SIZES:
            page.resize(*size)
            assert page.violations() == [], size
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
        page.resize(*SIZES[0])
        page.click_on("#theme")


def test_axe_finds_no_violation_in_a_recorded_run(page):
    for tab in ("stations", "frames", "verdict", "story"):
        page.click_on(f"#tab-{tab}")
        if tab == "story":
            page.click_on("#story-now")
            until(page, "document.querySelector('#story-lines table')")
        accessible(page)


@pytest.mark.alone("acts on a run under way, in real time")
def test_a_run_under_way_is_followed_acted_on_and_then_shown_as_recorded(tmp_path):
    directory, seen = tmp_path / "run", threading.Event()
    standing = {**RUN, "hops": 2, "duration": 120}
    running = Background(chain(**standing), directory, deadline_s=240, cancel=seen).at("traffic")
    with view(directory, "--control") as served, opened(tmp_path, served.url, "window.manetView?.state.live") as page:
        until(page, "window.manetView.state.live?.frames.count > 50")
        until(page, "window.manetView.state.live.rates.flow1 > 10000")
        assert page.violations() == []
        place = "(([x, y], box) => [x + box.x, y + box.y])(window.manetView.toScreen(window.manetView.placeOf('sta2')), box)"
        x, y = page.evaluate(f"((box) => {place})(document.getElementById('map').getBoundingClientRect())")
        page.drag((x, y), (x, y - 60))
        until(page, "window.manetView.state.live.positions.sta2[1] > 5 && !window.manetView.state.live.held")
        page.focus('button[data-station="sta3"]')
        page.press("Shift+F10")
        until(page, "document.activeElement.closest('#menu')")
        page.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent") == "Switch off"
        page.press("Enter")
        until(page, "window.manetView.state.live.off.has('sta3')")
        page.click_on('button[data-station="sta3"]', button=2)
        until(page, "document.querySelector('#menu [role=menuitem]')")
        page.press("Escape")
        assert page.evaluate("document.querySelector('#menu') === null")
        seen.set()
        assert running.result().status == "interrupted", "it was under way to the end"
        until(page, "window.manetView.state.about?.kind === 'recorded'")
    acted = [(row["event"], row["station"], row["source"]) for row in RunDirectory(directory).events]
    assert ("power", "sta3", "view") in acted and ("move", "sta2", "view") in acted


def test_the_first_page_leads_to_a_run_and_back(run_dir, tmp_path):
    ready = "document.querySelectorAll('#scenarios .picture svg').length > 3"
    with view(None, "--out", str(run_dir.parent)) as served, opened(tmp_path, served.url, ready) as page:
        accessible(page)
        page.click_on("#recent .card a")
        until(page, "window.manetView?.state.about?.kind === 'recorded'")
        page.click_on("#all-runs")
        until(page, "document.querySelector('#recent .card')")
