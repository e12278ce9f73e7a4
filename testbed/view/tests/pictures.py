"""The pictures of the view and the editor in docs/pictures, made of today's page:

    .venv/bin/python -P -m testbed.view.tests.pictures RUN      of a recorded run, and of the editor
    .venv/bin/python -P -m testbed.view.tests.pictures --live   of a run of 50 moving stations under way, which it makes: as
                                                                root, on an idle machine

RUN: the directory of a run of a chain in which hidden stations spoil frames (`./manet run chain5`). Look at each picture before
it is committed; that of a run under way is of no use if its badge is not `valid`.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scenarios.definition import load_scenario
from testbed.programs import ROOT
from testbed.tests.running import Background
from testbed.view.editor.tests.test_editor import editor
from testbed.view.tests.serving import view
from testbed.view.tests.test_page import CHROMIUM, RUN_SHOWN, until

PICTURES = ROOT / "docs" / "pictures"
SETTLED = "window.manetView.settled()"
WALK = """# Eight stations, two flows and a walk.
topology = "positions"
positions = [
    [0, 0], [200, 30], [400, 0], [590, 40],
    [60, 190], [260, 210], [450, 200], { name = "gw", at = [640, 230] },
]
routing = "aodv"
mobility = { model = "schedule", moves = [
    { at = 2, station = "sta5", to = [150, 380], speed = 20 },
    { at = 14, station = "sta5", to = [420, 360], speed = 20 },
] }
tcp = "newreno"
flows = [
    { from = "sta1", to = "sta4" },
    { from = "sta5", to = "host1", tcp = "vegas" },  # leaves its neighbours
]
wires = [{ station = "gw", host = "host1" }]
events = [
    { at = 10, power = "sta2", on = false },
    { at = 22, power = "sta2", on = true },
]
"""
MOVING = """topology = "random"
nodes = 50
area = [1400, 500]
mobility = { model = "random-waypoint", speed = 10, spread = 0.5 }
routing = "aodv"
tcp = "newreno"
flows = [{ from = "sta1", to = "sta20" }, { from = "sta7", to = "sta40" }, { from = "sta3", to = "sta5" }]
duration = 60
"""
SHOWN_FROM = 0.5  # of the traffic, so that the charts have a past


@contextmanager
def opened(browser: Any, url: str, width: int, height: int, scheme: str = "light") -> Iterator[Any]:
    """The page of a run that is drawn."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.set_default_timeout(600_000)
    page.goto(url)
    page.wait_for_selector(RUN_SHOWN, state="attached")
    until(page, SETTLED)
    yield page
    page.close()


def drawn(page: Any, name: str) -> None:
    """Keep the picture once nothing moves."""
    until(page, SETTLED)
    page.mouse.move(2, 2)
    page.wait_for_timeout(1500)
    page.screenshot(path=PICTURES / name)


def of_chain(browser: Any, run: Path) -> None:
    """A frame that a hidden station spoils; the story of a segment, dark; the page on a phone."""
    with view(run) as served:
        with opened(browser, f"{served.url}#span=0.01&station=sta3", 1280, 900) as page:
            page.click("#tab-frames")
            page.keyboard.press("c")
            until(page, "document.querySelector('#frame')?.textContent.includes('hidden')")
            drawn(page, "view-collision.png")
        with opened(browser, f"{served.url}#flow=flow1&segment=40&span=0.5", 1280, 900, "dark") as page:
            for chart in ("throughput", "lost", "lateness"):  # leave room for the story
                page.uncheck(f"input[data-chart={chart}]")
            page.click("#tab-story")
            until(page, "document.querySelector('#story-lines table button')")
            page.click("#story-lines table button")  # to the time of its first step
            drawn(page, "view-story.png")
        with opened(browser, f"{served.url}#span=0.02&station=sta3", 375, 812) as page:
            drawn(page, "view-phone.png")


def of_editor(browser: Any) -> None:
    """Map, forms and text of a scenario."""
    with tempfile.TemporaryDirectory(prefix="manet-") as folder:
        (Path(folder) / "walk.toml").write_text(WALK)
        with editor(Path(folder), "--edit", "walk.toml", "--control", "--out", str(Path(folder) / "results")) as running:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            page.goto(running.url)
            until(page, "window.manetEditor?.map.places().size === 8 && !window.manetEditor.busy()")
            page.click('#map [data-name="sta5"] .icon')
            page.click("#forms summary:text-is('Routing, TCP and flows')")
            page.evaluate("document.querySelector('#file').textContent = 'walk.toml'")  # the folder is a temporary one
            flows = page.locator("#forms [data-path='[\"flows\"]']").first
            flows.locator(".items summary").nth(1).click()
            flows.evaluate("one => one.scrollIntoView()")
            until(page, "!window.manetEditor.busy()")
            page.mouse.move(2, 2)
            page.wait_for_timeout(1000)
            page.screenshot(path=PICTURES / "editor.png")
            page.close()


def of_run_under_way(browser: Any) -> None:
    """Fifty moving stations in the middle of their traffic."""
    with tempfile.TemporaryDirectory(prefix="manet-") as folder:
        (Path(folder) / "moving50.toml").write_text(MOVING)
        directory = Path(folder) / "moving50"
        running = Background(load_scenario(Path(folder) / "moving50.toml"), directory, deadline_s=300).at("traffic", SHOWN_FROM)
        with view(directory) as served:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{served.url}#span=2&station=sta7")
            until(page, "window.manetView?.state.live?.frames.count > 500")
            page.select_option("#lanes-of", "routes")
            page.mouse.move(2, 2)
            page.wait_for_timeout(1500)
            page.screenshot(path=PICTURES / "view-live.png")
            page.close()
        print(f"verdict   {running.result().verdict}")


def main() -> None:
    """Make them all."""
    from playwright.sync_api import sync_playwright  # of ./setup.sh --pages

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if sys.argv[1:] == ["--live"]:
            of_run_under_way(browser)
        else:
            of_editor(browser)
            of_chain(browser, Path(sys.argv[1]))
        browser.close()


if __name__ == "__main__":
    main()
