"""The page in headless Chromium: what it draws is true, everything is reachable by keyboard, and it recovers."""

import io
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from analysis.rundir import RunDirectory
from mobility import trace
from testbed.tests.running import Background, chain, needs_runs, wait_until
from testbed.view.tests.serving import Served, view

CHROMIUM = shutil.which("chromium")
try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Page, sync_playwright
except ImportError:
    MISSING: str | None = "Playwright is missing; ./setup.sh --pages"
else:
    MISSING = None if CHROMIUM else "chromium is missing; ./setup.sh --pages"

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

RUN_SHOWN = "#charts canvas, #mode:has-text('live')"
HIDDEN = {"hops": 4, "window": 8, "duration": 5, "tcp": "newreno", "routing": "static"}
STANDING = {"hops": 2, "window": 4, "duration": 25, "tcp": "newreno", "routing": "static"}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory) -> Path:
    """A chain whose ends are hidden from each other; the page is about its files, whatever its verdict."""
    directory = tmp_path_factory.mktemp("page") / "run"
    assert Background(chain(**HIDDEN), directory).result().status == "complete"
    return directory


@pytest.fixture(scope="module")
def served(run_dir) -> Iterator[Served]:
    with view(run_dir) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def page(browser, served) -> Iterator["Page"]:
    with opened(browser, served) as found:
        yield found


class opened:
    """A page of the view; at its end nothing was written to the console, and no script failed."""

    def __init__(self, browser, served: Served, link: str = "", attached: str = RUN_SHOWN, **options: object) -> None:
        self.browser, self.address, self.attached, self.options = browser, served.url + link, attached, options
        self.complaints: list[str] = []

    def __enter__(self) -> "Page":
        self.page = self.browser.new_page(**{"viewport": {"width": 1280, "height": 800}, **self.options})
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.page.goto(self.address)
        until(self.page, "window.manetView")
        self.page.wait_for_selector(self.attached, state="attached")
        return self.page

    def __exit__(self, failed: object, *_rest: object) -> None:
        self.page.close()
        if failed is None:
            assert self.complaints == []


def until(page, expression: str) -> None:
    """Wait for an expression of the page. (wait_for_function of Playwright uses eval, which the page's policy forbids.)"""
    wait_until(lambda: page.evaluate(f"Boolean({expression})"), expression)


def now_ns(page) -> float:
    return page.evaluate("window.manetView.state.now")


def a_hidden_frame(run_dir) -> tuple[int, float]:
    """Row and middle (ns) of a frame that a hidden station spoiled."""
    air = RunDirectory(run_dir).air.with_row_index("row")
    lost = air.filter((air["event"] == "tx") & (air["fate"] == "hidden"))
    assert len(lost), "a chain of four hops without RTS losses?"
    row = lost.row(0, named=True)
    return row["row"], row["t_ns"] + row["airtime_ns"] / 2


def test_the_map_shows_each_station_at_its_place(page, run_dir):
    places = {entry["name"]: entry["position"] for entry in RunDirectory(run_dir).medium["stations"]}
    page.wait_for_timeout(300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    left, top = (page.locator("#map").bounding_box()[side] for side in ("x", "y"))
    for place in places.values():
        # the ink of a station's circle, at the place that the map's own scale gives
        x, y = page.evaluate("place => window.manetView.toScreen(place)", place[:2])
        assert max(picture.getpixel((round(left + x), round(top + y)))) < 60
    xs = [page.evaluate("place => window.manetView.toScreen(place)", place[:2])[0] for place in places.values()]
    gaps = [b - a for a, b in itertools.pairwise(xs)]
    assert max(gaps) - min(gaps) < 0.5, "the stations are 200 m apart each"


def test_a_click_on_a_lost_frame_opens_it(browser, served, run_dir):
    row, at_ns = a_hidden_frame(run_dir)
    begin_s = (at_ns - RunDirectory(run_dir).begun_ns + RunDirectory(run_dir).epoch_ns) / 1e9
    with opened(browser, served, f"#t={begin_s:.9f}&span=0.005") as page:
        until(page, "window.manetView.state.about")
        page.wait_for_timeout(500)
        box = page.locator("#lanes").bounding_box()
        names = page.evaluate("window.manetView.state.about.stations.map(s => s.name)")
        station = RunDirectory(run_dir).air["station"][row]
        lane = (box["height"] - 22) / len(names)
        middle = 58 + (box["width"] - 58) / 2
        page.mouse.click(box["x"] + middle, box["y"] + 4 + lane * (names.index(station) + 0.5))
        page.wait_for_selector("#frame h3")
        text = page.inner_text("#frame")
        assert "hidden terminal" in text and f"row of air.csv\n{row}" in text.replace("\t", "\n")
        assert "air.pcapng, packet" in text


def test_the_slider_and_a_deep_link_land_on_the_same_instant(browser, served, page):
    page.locator("#slider").fill("500000")
    page.wait_for_timeout(300)
    link = page.evaluate("location.hash")
    with opened(browser, served, link) as other:
        other.wait_for_timeout(300)
        assert now_ns(other) == pytest.approx(now_ns(page), abs=1)
        assert other.inner_text("#now") == page.inner_text("#now")
        assert other.evaluate("location.hash") == link


def test_a_deep_link_to_a_segment_shows_its_story(browser, served):
    with opened(browser, served, "#flow=flow1&segment=5") as page:
        page.wait_for_selector("#story-lines table")
        assert "tcp 5" in page.inner_text("#story-lines") and page.input_value("#story-segment") == "5"


def test_the_counts_on_the_page_are_those_of_the_air_log(page, run_dir):
    page.wait_for_selector("#counts:not(:empty)")
    air = RunDirectory(run_dir).air
    sent = air.filter(air["event"] == "tx")
    for fate in ("delivered", "hidden"):
        assert f"{len(sent.filter(sent['fate'] == fate))} {fate}" in page.inner_text("#counts")


def test_the_drawn_routes_are_those_of_the_server(page, served):
    page.locator("#slider").fill("700000")
    until(page, "window.manetView.state.paths.length")
    page.wait_for_timeout(500)
    found = page.evaluate("window.manetView.state.paths")
    assert [path["nodes"] for path in found] == [["sta1", "sta2", "sta3", "sta4", "sta5"]]


def test_the_keyboard_alone_reaches_everything(page):
    page.locator("body").press("Tab")
    reached = []
    for _ in range(80):
        reached.append(page.evaluate("document.activeElement?.id || document.activeElement?.dataset?.station || ''"))
        page.keyboard.press("Tab")
    wanted = {
        "theme", "show-ranges", "map-in", "map", "tab-stations", "sta1", "sta5", "play", "speed", "forth", "collision", "drop",
        "window", "slider", "lanes",
    }  # fmt: skip
    assert wanted <= set(reached)
    page.locator("#theme").focus()
    before = now_ns(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(200)
    assert now_ns(page) > before
    page.keyboard.press("c")
    page.wait_for_selector("#frame h3")
    assert "lost" in page.inner_text("#frame")
    page.keyboard.press("]")
    page.wait_for_timeout(200)
    assert page.input_value("#speed") == "2"
    page.locator("#map").focus()
    page.keyboard.press("+")
    page.locator("#tab-stations").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-story"


@pytest.mark.parametrize("size", [(375, 812), (1280, 800), (3840, 2160)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser, served, size, scheme):
    with opened(
        browser, served, "#flow=flow1&segment=5", viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
    ) as page:
        page.wait_for_selector("#story-lines table")
        for tab in ("stations", "frames", "story", "verdict"):
            page.click(f"#tab-{tab}")
            page.wait_for_timeout(200)
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], "nothing sticks out"


def test_the_next_lost_frame_is_the_next_of_the_log_and_back_again(page, run_dir):
    air = RunDirectory(run_dir).air.with_row_index("row")
    lost = air.filter((air["event"] == "tx") & air["fate"].is_in(["hidden", "collision"])).sort("t_ns", maintain_order=True)
    wanted = lost["row"].to_list()
    page.locator("#slider").fill("0")
    page.locator("#theme").focus()
    visited = []
    for _ in wanted[:12]:
        before = page.evaluate("window.manetView.state.row")
        page.keyboard.press("c")
        wait_until(lambda before=before: page.evaluate("window.manetView.state.row") != before, "the next lost frame")
        visited.append(page.evaluate("window.manetView.state.row"))
    assert visited == wanted[:12]
    sent = air.filter(air["event"] == "tx").sort("t_ns", maintain_order=True)["row"].to_list()
    page.keyboard.press(",")
    wait_until(lambda: page.evaluate("window.manetView.state.row") != visited[-1], "the frame before")
    assert page.evaluate("window.manetView.state.row") == sent[sent.index(visited[-1]) - 1]


def test_the_memory_of_frames_is_bounded(page):
    for value in range(0, 1_000_000, 20_000):
        page.locator("#slider").fill(str(value))
    page.wait_for_timeout(500)
    assert page.evaluate("window.manetView.framesKept()") <= 24 * 20_000


def test_playing_moves_the_time_and_stops_at_the_end(page):
    page.locator("#slider").fill("950000")
    page.select_option("#speed", "10")
    page.click("#play")
    until(page, "!window.manetView.state.playing")
    assert now_ns(page) == float(page.evaluate("window.manetView.state.about.end_ns"))


@pytest.mark.alone("acts on a run under way, in real time")
def test_a_run_under_way_is_followed_acted_on_and_then_shown_as_recorded(browser, tmp_path):
    directory = tmp_path / "run"
    running = Background(chain(**STANDING), directory, deadline_s=120).at("traffic")
    with view(directory, "--control") as served, opened(browser, served) as page:
        until(page, "window.manetView.state.live?.frames.count > 50")
        assert "live, with control" in page.inner_text("#mode")
        drag(page, "sta2", (0, -60))
        until(page, "window.manetView.state.live.positions.sta2[1] > 5 && !window.manetView.state.live.held")
        x, y = page.evaluate("window.manetView.state.live.positions.sta2")
        page.click('button[data-station="sta3"]')
        page.click("text=Switch off")
        page.wait_for_selector("text=Switch on")
        page.reload()
        until(page, "window.manetView.state.live?.frames.count > 5")
        running.result()
        until(page, "window.manetView.state.about?.kind === 'recorded'")
    moved = trace.read(directory / "moved.csv")
    assert moved.position("sta2", moved.legs[-1].start_s + 1)[:2] == pytest.approx((x, y), abs=1)
    inputs = [json.loads(line) for line in (directory / "inputs.jsonl").read_text().splitlines()]
    assert any("Power" in json.dumps(one["input"]) for one in inputs), "the action is in the run's record"


def drag(page, name: str, by: tuple[int, int]) -> None:
    place = page.evaluate("name => window.manetView.state.live.positions[name]", name)
    x, y = page.evaluate("place => window.manetView.toScreen(place)", place)
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    page.mouse.move(box["x"] + x + by[0] / 2, box["y"] + y + by[1] / 2, steps=4)
    page.mouse.move(box["x"] + x + by[0], box["y"] + y + by[1], steps=4)
    page.mouse.up()
