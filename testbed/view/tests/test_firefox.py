"""The page in Firefox: it draws, moves and opens what is clicked, without a complaint on the console."""

import base64
import io
from collections.abc import Iterator
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
ARROW_RIGHT = "\ue014"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("firefox") / "run"
    assert Background(chain(**RUN), directory).result().status == "complete"
    return directory


@pytest.fixture(scope="module")
def served(run_dir) -> Iterator[Served]:
    with view(run_dir) as running:
        yield running


@pytest.fixture
def page(served, tmp_path) -> Iterator[Firefox]:
    with Firefox(tmp_path) as firefox:
        firefox.goto(f"{served.url}#t=1.5&span=0.02&station=sta2")
        until(firefox, "window.manetView?.state.movement && document.querySelectorAll('#charts canvas').length >= 4")
        yield firefox
    assert firefox.complaints == []


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
    page.press(ARROW_RIGHT)
    until(page, f"window.manetView.state.now > {before}")
    page.press("c")
    until(page, f"window.manetView.state.row !== {row}")
    assert "lost" in page.evaluate("document.getElementById('frame').textContent")
    page.press(" ")
    until(page, "window.manetView.state.playing")
