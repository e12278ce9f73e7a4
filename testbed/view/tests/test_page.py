"""The page in headless Chromium: what it draws is true, everything is reachable by keyboard, and it recovers."""

import io
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from analysis.captures.rundir import RunDirectory
from mobility import files
from scenarios.scenario import Scenario
from testbed.programs import ROOT
from testbed.tests.running import Background, chain, needs_runs, wait_until
from testbed.view.tests.serving import Served, view

CHROMIUM = shutil.which("chromium")
try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Error, Page, sync_playwright
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
CROWD = {"topology": "random", "nodes": 50, "area": [700, 300], "routing": "static", "warmup": 0, "duration": 2, "tcp": "newreno"}
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


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> Iterator[Served]:
    """Fifty stations on a few hectares."""
    directory = tmp_path_factory.mktemp("crowd") / "run"
    assert Background(Scenario.model_validate(CROWD), directory, deadline_s=120).result().status == "complete"
    with view(directory) as running:
        yield running


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
        if self.attached == RUN_SHOWN:
            until(self.page, "window.manetView.settled()")  # a test that sets the time does so later
        return self.page

    def __exit__(self, failed: object, *_rest: object) -> None:
        self.page.close()
        if failed is None:
            assert self.complaints == []


@contextmanager
def served_page(browser, served: Served, ready: str = "window.manetView?.state.movement") -> Iterator["Page"]:
    """A page whose console may complain: of the requests that failed."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(served.url)
    until(page, ready)
    yield page
    page.close()


def until(page, expression: str) -> None:
    """Wait for an expression of the page. (wait_for_function of Playwright uses eval, which the page's policy forbids.)"""

    def holds() -> bool:
        try:
            return page.evaluate(f"Boolean({expression})")
        except Error as problem:
            if "Execution context was destroyed" in problem.message:  # it asked while the page went to another address
                return False
            raise

    wait_until(holds, expression)


def violations(page) -> int:
    """How many violations of accessibility axe finds."""
    return Axe().run(page).violations_count


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
    wanted = Counter(fate or "broadcast or unfinished" for fate in air.filter(air["event"] == "tx")["fate"])
    _, _, text = page.inner_text("#counts").partition(": ")
    assert {fate: int(count) for count, fate in (part.split(" ", 1) for part in text.split(", "))} == wanted


def test_the_frames_on_the_map_are_those_on_the_air(page, run_dir):
    air = RunDirectory(run_dir).air.with_row_index("row")
    sent = air.filter(air["event"] == "tx")
    for row in sent[:: len(sent) // 8].iter_rows(named=True):
        at_ns = row["t_ns"] + row["airtime_ns"] // 2
        page.evaluate("ns => window.manetView.goTo(ns)", at_ns)
        until(page, f"window.manetView.framesOnMap().includes({row['row']})")
        wanted = sent.filter((sent["t_ns"] <= at_ns) & (sent["t_ns"] + sent["airtime_ns"] >= at_ns))["row"]
        assert set(page.evaluate("window.manetView.framesOnMap()")) == set(wanted)


def test_the_queues_on_the_map_and_in_the_list_are_those_of_the_server(page, served):
    page.locator("#slider").fill("600000")
    at_ns = round(now_ns(page))
    queues = served.ask(f"/api/queues?t={at_ns}")["queues"]
    assert queues, "eight segments on four hops wait nowhere?"
    name, queue = next(iter(queues.items()))
    wait_until(lambda: page.evaluate("window.manetView.state.queues") == queues, "the queues of this instant")
    until(
        page, f"""document.querySelector('[data-station="{name}"]').textContent.startsWith('{name} {queue["packets"]} packet')"""
    )


def test_the_drawn_routes_are_those_of_manet_routes(page, run_dir):
    page.locator("#slider").fill("700000")
    until(page, "window.manetView.state.paths.length")
    [drawn] = page.evaluate("window.manetView.state.paths")
    assert drawn["nodes"] == path_by_routes(run_dir, drawn["nodes"][0], drawn["nodes"][-1])
    assert drawn["nodes"] == ["sta1", "sta2", "sta3", "sta4", "sta5"]
    # only the routes differ in the two pictures, and each hop has its part of them
    page.uncheck("#show-links")
    pictures = []
    for shown in (True, False):
        page.set_checked("#show-routes", shown)
        page.wait_for_timeout(300)
        pictures.append(Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("RGB"))
    with_routes = ImageChops.difference(*pictures).convert("L")
    places = [page.evaluate("name => window.manetView.toScreen(window.manetView.placeOf(name))", name) for name in drawn["nodes"]]
    for (x, y), (u, v) in itertools.pairwise(places):
        assert with_routes.getpixel((round(x * 0.7 + u * 0.3), round(y * 0.7 + v * 0.3))) > 10
    left, top, right, bottom = with_routes.getbbox()
    assert left >= places[0][0] - 8 and right <= places[-1][0] + 8 and bottom - top <= 12


def path_by_routes(run_dir: Path, source: str, target: str) -> list[str]:
    """The stations that `manet routes` leads a packet over."""
    argv = [sys.executable, "-P", "-m", "testbed", "routes", str(run_dir), "--json"]
    answer = subprocess.run(argv, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    stations = json.loads(answer.stdout)["stations"]
    by_address = {station["address"]: name for name, station in stations.items()}
    path, wanted = [source], stations[target]["address"]
    while path[-1] != target:
        [route] = [one for one in stations[path[-1]]["routes"] if one["destination"] == wanted]
        path.append(by_address[route["via"] or wanted])
        assert len(path) <= len(stations), path
    return path


def test_the_lateness_and_the_verdict_so_far_are_those_of_the_file(page, run_dir):
    rows = RunDirectory(run_dir).lateness
    for place in (1, len(rows) // 2):
        page.evaluate("ns => window.manetView.goTo(ns)", (int(rows[place - 1]["t_ns"]) + int(rows[place]["t_ns"])) // 2)
        wanted = [f"{float(f'{float(rows[place][name]) / 1e3:.3g}'):g}" for name in ("p50_us", "p99_us", "max_us")]
        shown = "[...document.querySelectorAll('#charts figure:last-child output')].map(one => one.textContent)"
        wait_until(lambda shown=shown: page.evaluate(shown), "the chart of lateness")
        wait_until(
            lambda shown=shown, wanted=wanted, place=place: page.evaluate(shown) == [*wanted, rows[place - 1]["verdict"]],
            f"{wanted} of row {place}",
        )


def test_a_click_on_a_drop_opens_it_and_its_packet(browser, served, run_dir):
    air = RunDirectory(run_dir).air.with_row_index("row")
    drop = air.filter((air["event"] == "drop") & (air["fate"] == "retry-short")).row(0, named=True)
    with opened(browser, served, f"#t={of_traffic(run_dir, drop['t_ns']):.9f}&span=0.005") as page:
        until(page, f"window.manetView.boxes().some(box => box[4] === {drop['row']})")
        click_box(page, drop["row"])
        page.wait_for_selector("#frame h3")
        text = page.inner_text("#frame")
        assert (
            "Drop of DATA" in text
            and "drop: retry-short" in text
            and f"row of air.csv\n{drop['row']}" in text.replace("\t", "\n")
        )
        page.click(f"text=Story of packet {drop['packet']}")
        page.wait_for_selector("#frame ol")
        last = page.locator("#frame ol li").last.inner_text()
        assert last.split()[2:] == ["drop", "data", drop["station"], "→", drop["peer"], "retry-short"]


def test_a_click_on_a_segments_frame_leads_to_its_bytes_and_its_story(browser, served, run_dir):
    air = RunDirectory(run_dir).air.with_row_index("row")
    sent = air.filter((air["event"] == "tx") & (air["frame"] == "data") & (air["station"] == "sta1") & (air["bytes"] > 1000))
    frame = sent.row(len(sent) // 2, named=True)
    number = len(air.filter((air["event"] == "tx") & (air["row"] <= frame["row"])))
    with opened(browser, served, f"#t={of_traffic(run_dir, frame['t_ns']) + 1e-3:.9f}&span=0.02") as page:
        until(page, f"window.manetView.boxes().some(box => box[4] === {frame['row']})")
        click_box(page, frame["row"])
        page.wait_for_selector("#frame h3")
        assert f"air.pcapng, packet {number}" in page.inner_text("#frame")
        page.click("summary:has-text('Bytes')")
        assert page.inner_text("#frame pre").startswith("0000  ")
        page.click(f"text=Story of packet {frame['packet']}")
        page.click("button:has-text('its story')")
        page.wait_for_selector("#story-lines table")
        segment = page.evaluate("window.manetView.state.segment")
        assert f"tcp {segment}" in page.inner_text("#story-lines") and page.input_value("#story-segment") == str(segment)


def click_box(page, row: int) -> None:
    """Click the middle of what the lanes show of a row of the air log."""
    x0, x1, y0, y1 = page.evaluate("row => window.manetView.boxes().find(box => box[4] === row).slice(0, 4)", row)
    box = page.locator("#lanes").bounding_box()
    page.mouse.click(box["x"] + (x0 + x1) / 2, box["y"] + (y0 + y1) / 2)


def of_traffic(run_dir: Path, t_ns: int) -> float:
    """Seconds of the traffic of an instant of the air log."""
    run = RunDirectory(run_dir)
    return (t_ns + run.epoch_ns - run.begun_ns) / 1e9


def test_the_tab_key_reaches_every_control(page):
    """Of a group of tabs the arrow keys reach the others; what is not shown cannot be reached."""
    page.click('button[data-station="sta2"]')
    page.wait_for_selector("#station h3")
    shown = """[...document.querySelectorAll('a[href], button, input, select, summary, canvas[tabindex]')].filter(one =>
        one.offsetParent && !one.disabled && (one.tabIndex >= 0 || one.role !== 'tab'))"""
    page.evaluate(f"{shown}.forEach((one, at) => (one.dataset.walk = at))")
    wanted = set(page.evaluate(f"{shown}.map(one => one.dataset.walk)"))
    page.locator("#theme").focus()
    reached = set()
    for _ in range(2 * len(wanted)):
        reached.add(page.evaluate("document.activeElement.dataset.walk"))
        page.keyboard.press("Tab")
    assert len(wanted) > 25 and wanted <= reached


def test_the_keyboard_alone_works_everything(page):
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


def test_the_keys_of_the_time_work_wherever_the_focus_is(page):
    for place in ("#slider", "#show-trails", "#tab-verdict", "#speed", "#play"):
        page.locator("#slider").fill("300000")
        page.locator(place).focus()
        for key in (".", ",", "c", "d"):
            before = page.evaluate("window.manetView.state.row")
            page.keyboard.press(key)
            wait_until(lambda before=before: page.evaluate("window.manetView.state.row") != before, f"{key} on {place}", 20)
        page.keyboard.press("]")
        until(page, "window.manetView.state.speed === 2")
        page.keyboard.press("[")
        until(page, "window.manetView.state.speed === 1")


def test_a_key_works_right_after_a_click_into_map_or_lanes(page):
    for place in ("#map", "#lanes"):
        box = page.locator(place).bounding_box()
        page.mouse.click(box["x"] + 2 * box["width"] / 3, box["y"] + box["height"] - 3)
        page.wait_for_timeout(300)
        before = page.evaluate("window.manetView.state.row")
        page.keyboard.press(".")
        wait_until(
            lambda before=before: page.evaluate("window.manetView.state.row") != before, f"the frame after a click, {place}"
        )


def test_a_number_field_keeps_its_keys(page):
    page.click("#tab-story")
    page.locator("#story-segment").focus()
    now = now_ns(page)
    page.keyboard.type("12")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("c")
    page.wait_for_timeout(200)
    assert page.input_value("#story-segment") == "12" and now_ns(page) == now


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


def test_a_link_holds_speed_map_flows_and_station(browser, served):
    link = "#t=1.5&span=0.02&speed=0.01&map=300,50,400&station=sta2"
    with opened(browser, served, link) as page:
        page.wait_for_timeout(300)
        assert page.input_value("#speed") == "0.01"
        assert page.evaluate("window.manetView.toScreen([300, 50])") == [
            page.locator("#map").evaluate(f"map => map.client{side} / 2") for side in ("Width", "Height")
        ]
        assert page.evaluate("location.hash") == link
        page.uncheck('[data-flow="flow1"]')
        until(page, "location.hash.includes('flows=')")
        page.click("#map-fit")
        until(page, "!location.hash.includes('map=')")


def test_a_link_to_what_the_run_has_not_is_said(browser, served):
    with opened(browser, served, "#t=abc&station=nope&flows=flow1,flow9") as page:
        page.wait_for_selector("#notice:has-text('ignored: t=abc, station=nope, flows=flow9')")


def test_one_packet_is_not_packets(page):
    page.click('button[data-station="sta2"]')
    for value in range(0, 1_000_000, 20_000):
        page.locator("#slider").fill(str(value))
        page.locator("#slider").blur()
        page.wait_for_timeout(100)
        if "1 packet\n" in page.inner_text("#station dl"):
            return
    raise AssertionError("a relay never has one packet?")


def test_the_theme_follows_the_system_until_somebody_switches_it(browser, served):
    theme = "document.documentElement.dataset.theme"
    with opened(browser, served, color_scheme="light") as page:
        assert page.evaluate(theme) == "light"
        page.emulate_media(color_scheme="dark")
        until(page, f"{theme} === 'dark'")
        page.click("#theme")
        assert page.evaluate(theme) == "light"
        page.reload()
        until(page, "window.manetView?.state.movement")
        assert page.evaluate(theme) == "light", "the switch is remembered"
        page.click("#theme")
        page.emulate_media(color_scheme="light")
        until(page, f"{theme} === 'light'")


def test_reduced_motion_shows_few_pictures(browser, served):
    with opened(browser, served, reduced_motion="reduce") as page:
        page.locator("#slider").fill("0")
        page.select_option("#speed", "0.1")
        page.evaluate("{ window.times = new Set(); setInterval(() => window.times.add(window.manetView.state.now), 5); }")
        page.click("#play")
        page.wait_for_timeout(3000)
        assert 2 <= page.evaluate("window.times.size") <= 8, "a picture each half second, not sixty a second"


def test_names_do_not_overlap_and_the_chosen_one_is_always_written(browser, crowd):
    with opened(browser, crowd, "#station=sta37") as page:
        page.wait_for_timeout(500)
        names = page.evaluate("window.manetView.namesWritten()")
        assert 5 <= len(names) < 50 and "sta37" in {name[4] for name in names}
        for one, other in itertools.combinations(names, 2):
            assert one[0] >= other[2] or one[2] <= other[0] or one[1] >= other[3] or one[3] <= other[1], (one[4], other[4])
        left_out = ({f"sta{number}" for number in range(1, 51)} - {name[4] for name in names}).pop()
        x, y = page.evaluate("name => window.manetView.toScreen(window.manetView.placeOf(name))", left_out)
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + x, box["y"] + y)
        until(page, f"window.manetView.namesWritten().some(name => name[4] === '{left_out}' || name[4] !== 'sta37')")


def test_fifty_lanes_scroll_and_can_be_chosen(browser, crowd):
    with opened(browser, crowd) as page:
        page.wait_for_timeout(300)
        heights = "[document.getElementById('lanes').clientHeight, document.getElementById('lanes-scroll').clientHeight]"
        lanes, seen = page.evaluate(heights)
        assert lanes >= 50 * 12 > seen, "each lane has the height of its name"
        page.click('button[data-station="sta1"]')
        page.select_option("#lanes-of", "near")
        until(page, f"{heights}[0] < {lanes}")
        page.select_option("#lanes-of", "all")
        until(page, f"{heights}[0] === {lanes}")


def test_many_stations_are_small_on_the_map(browser, crowd, served):
    ink = {}
    for many, shown in ((True, crowd), (False, served)):
        with opened(browser, shown) as page:
            page.wait_for_timeout(300)
            for control in ("ranges", "links", "routes"):
                page.uncheck(f"#show-{control}")
            x, y = page.evaluate("window.manetView.toScreen(window.manetView.placeOf('sta1'))")
            picture = Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("L")
            ink[many] = next(wide for wide in range(1, 20) if picture.getpixel((round(x), round(y) - wide)) > 100)
    assert ink[True] < ink[False]


def test_names_and_lanes_grow_with_the_text_of_a_large_screen(browser, crowd):
    found = {}
    for width, height in ((1280, 800), (3840, 2160)):
        with opened(browser, crowd, "#station=sta1", viewport={"width": width, "height": height}) as page:
            until(page, "window.manetView.namesWritten().length")
            _, top, _, foot, _ = page.evaluate("window.manetView.namesWritten()[0]")
            found[width] = (foot - top, page.evaluate("document.getElementById('lanes').clientHeight"))
    assert found[3840][0] > 1.4 * found[1280][0] and found[3840][1] > 1.4 * found[1280][1]


def test_a_phone_has_no_empty_space_below_the_stations(browser, served):
    with opened(browser, served, viewport={"width": 375, "height": 812}) as page:
        text, below = page.locator("#station p").bounding_box(), page.locator("#time-section").bounding_box()
        assert below["y"] - (text["y"] + text["height"]) < 60


@pytest.mark.parametrize("size", [(375, 812), (3840, 2160)])
def test_nothing_sticks_out_or_overlaps(browser, served, size):
    with opened(browser, served, viewport={"width": size[0], "height": size[1]}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        parts = ["header", "#map-section", "#panel", "#time-section", "footer"]
        boxes = [page.locator(part).bounding_box() for part in parts]
        for (one, a), (other, b) in itertools.combinations(zip(parts, boxes, strict=True), 2):
            apart = a["x"] + a["width"] <= b["x"] + 1 or b["x"] + b["width"] <= a["x"] + 1
            apart |= a["y"] + a["height"] <= b["y"] + 1 or b["y"] + b["height"] <= a["y"] + 1
            assert apart, (one, a, other, b)
        assert page.locator("#map").bounding_box()["height"] >= 190


def test_a_lost_connection_recovers(browser, served):
    with served_page(browser, served) as page:
        page.context.set_offline(True)
        page.locator("#slider").fill("300000")
        page.wait_for_selector("#notice:has-text('connection to the server is lost')")
        assert "A run that this server did not start goes on without it." in page.inner_text("#notice"), "its own may have ended"
        page.context.set_offline(False)
        page.wait_for_selector("#notice", state="hidden")
        page.click("#collision")
        page.wait_for_selector("#frame h3")


def test_after_a_new_start_of_the_server_the_page_says_what_to_do(browser, run_dir):
    with view(run_dir) as first:
        port = first.base.rsplit(":", 1)[1]
        page = browser.new_page()
        page.goto(first.url)
        until(page, "window.manetView?.state.movement")
    page.locator("#slider").fill("400000")
    page.wait_for_selector("#notice:has-text('connection to the server is lost')")
    link = page.evaluate("location.hash")
    with view(run_dir, "--listen", port) as second:
        page.wait_for_selector("#notice:has-text('Open the page at the address that it printed')")
        before = now_ns(page)
        page.goto(second.url + link)
        until(page, "window.manetView?.state.movement")
        page.wait_for_timeout(300)
        assert now_ns(page) == pytest.approx(before, abs=1) and page.is_hidden("#notice")
        page.close()


def test_a_folder_of_runs_lists_them_and_opens_each(browser, run_dir, tmp_path):
    for seed in (1, 2):
        shutil.copytree(run_dir, tmp_path / f"all/seed-{seed}")
    with (
        view(tmp_path) as served,
        served_page(browser, served, ready="document.querySelectorAll('#folder-rows tr').length") as page,
    ):
        rows = page.locator("#folder-rows tr").all_inner_texts()
        assert [row.split("\t")[:2] for row in rows] == [["all/seed-1", "complete"], ["all/seed-2", "complete"]]
        assert violations(page) == 0
        assert page.is_hidden("#keys"), "a list of runs has no player"
        page.click("text=all/seed-2")
        page.wait_for_selector("#map")  # the address changes and the page loads again: no script can run until then
        until(page, "window.manetView?.state.movement")
        assert page.evaluate("window.manetView.state.about.directory").endswith("all/seed-2")
        assert "run=all" in page.evaluate("location.hash")
        page.go_back()
        page.wait_for_selector("#folder-rows tr:nth-child(2)")
        assert page.is_hidden("#map")


def test_the_memory_of_frames_is_bounded(page):
    for value in range(0, 1_000_000, 20_000):
        page.locator("#slider").fill(str(value))
    page.wait_for_timeout(500)
    assert page.evaluate("window.manetView.framesKept()") <= 24 * 20_000


def test_each_chart_has_a_scale_and_now_within_it_while_playing(page):
    until(page, "window.manetView.charts().length >= 4")
    page.locator("#slider").fill("200000")
    page.select_option("#window", "500000000")
    page.select_option("#speed", "1")
    page.evaluate("""{ window.without = 0; window.pictures = 0; window.heights = new Set();
        setInterval(() => {
            window.heights.add(document.getElementById('charts').offsetHeight);
            const charts = window.manetView.charts();
            window.pictures += charts.length; window.without += charts.filter(one => one.ticks < 2 || !one.hasNow).length;
        }, 20); }""")
    page.click("#play")
    page.wait_for_timeout(2500)
    page.click("#play")
    pictures, without = page.evaluate("[window.pictures, window.without]")
    assert pictures > 50 and without < pictures / 20, "the axes move one picture after now at most"
    heights = page.evaluate("[...window.heights]")
    assert sorted(heights) == heights, "the row of charts never shrinks, or the map would jump"


def test_charts_have_the_time_axis_of_the_lanes(page):
    until(page, "window.manetView.charts().length >= 4")
    width = page.evaluate("document.getElementById('lanes-scroll').clientWidth")
    for value, span in (
        ("300000", "500000000"),
        ("0", "2000000000"),
        ("1000000", "100000000"),
        ("400000", "20000000"),
        ("500000", "5000000"),
    ):
        page.locator("#slider").fill(value)
        page.select_option("#window", span)
        until(page, f"window.manetView.charts().every(one => Math.abs(one.axis[1] - one.axis[0] - {int(span) / 1e9}) < 1e-6)")
        for one in page.evaluate("window.manetView.charts()"):
            assert one["hasNow"] and one["left"] == pytest.approx(58, abs=1) and one["right"] == pytest.approx(width, abs=1)
            assert len(set(one["times"])) == len(one["times"]) > 3, "the instants of the axis"


# of two charts, while they may be drawn again
HEIGHTS = "['throughput', 'lost'].map(kind => document.querySelector(`figure[data-chart=${kind}]`)?.offsetHeight ?? 0)"


def test_charts_are_switched_and_enlarged_and_the_browser_remembers_it(browser, served):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        for round_ in range(2):
            page = context.new_page()
            page.goto(served.url)
            until(page, "window.manetView?.charts().length >= 3")
            assert page.locator("figure[data-chart=rtt]").count() == (0 if round_ == 0 else 1)
            compared = "a && b && Math.abs(a - b) < 30" if round_ == 0 else "b && a > b + 100"
            until(page, f"(([a, b]) => {compared})({HEIGHTS})")
            if round_ == 0:
                page.check("input[data-chart=rtt]")
                page.wait_for_selector("figure[data-chart=rtt]")
                page.uncheck("input[data-chart=cwnd]")
                page.wait_for_selector("figure[data-chart=cwnd]", state="detached")
                page.click("figure[data-chart=throughput] button")
                page.wait_for_selector("figure[data-chart=throughput] button[aria-pressed=true]")
            else:
                assert page.locator("figure[data-chart=cwnd]").count() == 0
            page.close()
    finally:
        context.close()


def test_the_page_opens_where_most_frames_were_lost_and_the_strip_sets_time_and_window(browser, served, run_dir):
    with opened(browser, served) as page:
        begin, end = (int(page.evaluate(f"window.manetView.state.about.{name}")) for name in ("begin_ns", "end_ns"))
        air = served.ask(f"/api/overview?from={begin}&to={end}&bins=300")["fates"]
        lost = [
            sum(counts) for counts in zip(*(air[fate] for fate in ("collision", "hidden", "weak", "error", "busy")), strict=True)
        ]
        part = (end - begin) / len(lost)
        busiest = begin + (lost.index(max(lost)) + 0.5) * part
        until(page, f"Math.abs(window.manetView.state.now - {busiest}) < {part}")
        box = page.locator("#overview").bounding_box()
        at = lambda share: (box["x"] + share * box["width"], box["y"] + box["height"] / 2)  # noqa: E731
        page.mouse.click(*at(0.75))
        until(page, f"Math.abs(window.manetView.state.now - {begin + 0.75 * (end - begin)}) < {(end - begin) / 200}")
        page.mouse.move(*at(0.5))
        page.mouse.down()
        page.mouse.move(*at(0.55), steps=3)
        page.mouse.move(*at(0.6), steps=3)
        page.mouse.up()
        until(page, f"Math.abs(window.manetView.state.span - {0.1 * (end - begin)}) < {(end - begin) / 200}")
        assert page.input_value("#window") == str(page.evaluate("window.manetView.state.span"))


def test_space_plays_after_a_click_on_any_button_and_presses_one_that_the_keyboard_has_led_to(page):
    page.locator("#slider").fill("100000")
    page.select_option("#speed", "0.01")
    for place in ("#map-in", "#tab-frames", "#play"):
        playing = page.evaluate("window.manetView.state.playing")
        page.click(place)
        if place == "#play":
            until(page, f"window.manetView.state.playing === {str(not playing).lower()}")
            playing = not playing
        page.keyboard.press(" ")
        until(page, f"window.manetView.state.playing === {str(not playing).lower()}")
    if page.evaluate("window.manetView.state.playing"):
        page.keyboard.press(" ")
        until(page, "!window.manetView.state.playing")
    page.locator("#map-out").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "map-fit"
    page.keyboard.press(" ")
    page.wait_for_timeout(300)
    assert not page.evaluate("window.manetView.state.playing")


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
    moved = files.read(directory / "moved.csv")
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
