"""The controls of the page on a run under way: a flow that is started there belongs to the run."""

import io
import threading
from pathlib import Path

import pytest
from PIL import Image

from analysis.captures.rundir import RunDirectory
from analysis.metrics.analyse import analyse_run
from testbed.tests.running import Background, chain, needs_runs
from testbed.view.tests.serving import view
from testbed.view.tests.test_page import MISSING, browser, opened, until, violations  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

MAP_DRAWN = "window.manetView.mapDrawn()"
STANDING = {"hops": 2, "window": 4, "duration": 30, "tcp": "newreno", "routing": "static"}

# At each picture from now on: what the details say of the radio, against the button and the list (a second for its next round).
WATCH_RADIO = """{
    window.contradictions = []; clearInterval(window.watching);
    let since = null;
    window.watching = setInterval(() => {
        const said = document.querySelector('#station dl').innerText.includes('off');
        const listed = document.querySelector('[data-station=sta3]').innerText.includes('off');
        const button = document.querySelector('#power').textContent === 'Switch on';
        if (said === button && listed === button) return void (since = null);
        since ??= performance.now();
        if (performance.now() - since > 1000) window.contradictions.push([said, button, listed].join());
    }, 50);
}"""


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
        page.click('button[data-station="sta3"]')
        assert page.get_by_label("x, m").input_value() == "400"
        page.click("#station button:has-text('Restore it')")
        page.wait_for_selector("#notice", state="hidden")
        frames, _, drops = page.inner_text("#counts").partition("; packets dropped: ")
        assert "delivered" in frames and "retry" not in frames and drops
        assert running.result().status == "complete"
        until(page, "window.manetView.state.about?.kind === 'recorded'")
        page.wait_for_selector("#story-flow option[value=flow2]", state="attached")
        page.click("#tab-verdict")
        page.wait_for_selector("#pane-verdict li:has-text('by a view')")
    assert [flow.source for flow in RunDirectory(directory).flows] == ["sta1", "sta3"]
    assert analyse_run(directory)["flows"]["flow2"]["acked_bps"] > 10000


@pytest.mark.alone("acts on a run under way, in real time")
def test_the_menu_of_a_station_acts_on_it_and_a_flow_of_datagrams_has_its_throughput(browser, tmp_path: Path):  # noqa: F811
    directory = tmp_path / "run"
    flow = {"from": "sta1", "to": "sta3", "traffic": "cbr", "rate": 200_000, "bytes": 500}
    running = Background(chain(hops=2, duration=30, routing="aodv", flows=[flow]), directory, deadline_s=120).at("traffic")
    with view(directory, "--control") as served, opened(browser, served) as page:
        until(page, "window.manetView.state.live?.frames.count > 50")
        until(page, "Math.abs(window.manetView.state.live.rates.flow1 - 200000) < 60000")
        until(page, "window.manetView.charts().some(one => one.title.startsWith('Throughput'))")
        assert "flow1" in page.inner_text("figure[data-chart=throughput]")
        page.focus('button[data-station="sta2"]')
        page.keyboard.press("Shift+F10")
        page.wait_for_selector("#menu [role=menuitem]:focus")
        assert violations(page) == 0 and page.locator("#menu [aria-disabled]").count() == 0
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.textContent") == "Switch off"
        page.keyboard.press("Enter")
        until(page, "window.manetView.state.live.off.has('sta2')")
        x, y = page.evaluate("window.manetView.toScreen(window.manetView.placeOf('sta2'))")
        box = page.locator("#map").bounding_box()
        page.mouse.click(box["x"] + x, box["y"] + y, button="right")
        page.click("#menu button:has-text('Switch on')")
        until(page, "!window.manetView.state.live.off.has('sta2')")
        page.click('button[data-station="sta2"]', button="right")
        page.click("#menu button:text-is('Move')")
        until(page, "document.activeElement.id === 'move-x'")
        page.click('button[data-station="sta2"]', button="right")
        page.click("#menu button:has-text('Restart its routing daemon')")
        until(page, "document.getElementById('speech').textContent.includes('is started again')")
        page.click('button[data-station="sta2"]', button="right")
        page.click("#menu button:has-text('Capture')")
        page.wait_for_selector("#terminals:not([hidden])")
        until(page, "document.getElementById('terminal-line').value === 'tcpdump -lni any'")
        assert running.result().status == "complete"
        until(page, "window.manetView.state.about?.kind === 'recorded'")
    events = [(row["event"], row["station"], row["detail"]) for row in RunDirectory(directory).events]
    assert [detail for event, _, detail in events if event == "power"] == ["off", "on"]
    assert any(event == "daemon" and station == "sta2" for event, station, _ in events)


@pytest.mark.alone("acts on a run under way, in real time")
def test_a_switched_station_is_said_everywhere_at_once(browser, tmp_path: Path):  # noqa: F811
    directory, seen = tmp_path / "run", threading.Event()
    running = Background(chain(**STANDING), directory, deadline_s=120, cancel=seen).at("traffic")
    with view(directory, "--control") as served, opened(browser, served) as page:
        until(page, "window.manetView.state.live?.frames.count > 50")
        page.click('button[data-station="sta3"]')
        for word, off in (("Switch off", True), ("Switch on", False)):
            page.wait_for_selector(f"#station button:has-text('{word}')")
            # every picture from the answer on: the details and the list say the same as the button
            page.evaluate(WATCH_RADIO)
            page.click(f"#station button:has-text('{word}')")
            page.wait_for_selector(f"#station button:has-text('{'Switch on' if off else 'Switch off'}')")
            page.wait_for_timeout(5000)
            assert page.evaluate("window.contradictions") == []
        seen.set()
        assert running.result().status == "interrupted", "it was under way to the end"


@pytest.mark.alone("starts a run, in real time")
def test_a_scenario_is_started_on_the_page_goes_live_and_ends_as_a_record(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "short.toml"
    scenario.write_text('hops = 2\nduration = 10\nwarmup = 0\nevents = [{ at = 2, move = "sta3", to = [400, 40] }]\n')
    with view(scenario, "--control", "--out", str(tmp_path / "results")) as served, planned(browser, served) as page:
        assert page.inner_text("#mode") == "planned"
        assert violations(page) == 0
        assert page.locator("#charts figure").count() == 0 and not page.is_visible("#charts-title"), "nothing has happened yet"
        page.locator("#slider").fill("1000000")
        until(page, "window.manetView.state.now === Number(window.manetView.state.about.end_ns)")
        page.fill("#start-seed", "2")
        page.press("#start-seed", "Tab")
        until(page, "window.manetView.state.about.seed === 2")
        page.click("#start")
        until(page, "window.manetView.state.live?.frames.count > 20")
        assert "live, with control" in page.inner_text("#mode") and page.is_visible("#stop")
        assert page.input_value("#window") == "2000000000", "a run that has only begun has no shorter window"
        assert {"500 ms", "2 s", "10 s"} <= set(page.locator("#window option").all_inner_texts())
        until(page, "window.manetView.state.about?.kind === 'recorded'")
        assert page.evaluate("window.manetView.state.about.directory") == str(tmp_path / "results" / "all" / "seed-2")
        assert page.is_disabled("#start") and "This seed has results" in page.inner_text("#start-form")


def test_a_broken_link_is_crossed_out_and_its_events_are_on_the_axis(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "broken.toml"
    scenario.write_text("""hops = 2
duration = 10
events = [{ at = 2, link = ["sta2", "sta1"], error_rate = 1 }, { at = 4, link = ["sta1", "sta2"], error_rate = 0.5 }]
""")
    with view(scenario) as served, planned(browser, served) as page:
        assert "a broken link" in page.inner_text("#legend")
        page.uncheck("#show-ranges")
        found = {t_s: crossed(page, t_s) for t_s in (1, 3, 5)}
        assert found == {1: False, 3: True, 5: False}
        page.select_option("#window", label="whole run")
        until(page, "window.manetView.events().length === 2")
        x, y, text = page.evaluate("window.manetView.events()[0]")
        assert "link sta2 sta1 error_rate 1" in text
        box = page.locator("#lanes").bounding_box()
        page.mouse.move(box["x"] + x, box["y"] + y)
        until(page, "document.getElementById('lanes').title.includes('error_rate 1')")


def test_the_menu_of_a_station_that_cannot_act_says_why(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "still.toml"
    scenario.write_text("hops = 2\nduration = 5\n")
    with view(scenario) as served, planned(browser, served) as page:
        page.click('button[data-station="sta2"]')
        page.click("#station-menu")
        page.wait_for_selector("#menu [role=menuitem]:focus")
        assert violations(page) == 0
        assert page.locator("#menu [aria-disabled=true]:has-text('only in a run under way')").count() == 6
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        assert page.locator("#menu").count() == 1, "a disabled entry does nothing"
        page.keyboard.press("Escape")
        assert page.locator("#menu").count() == 0 and page.evaluate("document.activeElement.id") == "station-menu"
        page.locator("#map").focus()
        page.keyboard.press("Shift+F10")
        page.wait_for_selector("#menu[aria-label='Actions on sta2']")
        page.mouse.click(5, 5)
        assert page.locator("#menu").count() == 0


def test_fit_includes_the_ranges_that_are_shown(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "far.toml"
    scenario.write_text('topology = "grid"\nrows = 2\ncolumns = 2\nspacing = 600\nduration = 5\n')
    per_metre = "window.manetView.toScreen([1, 0])[0] - window.manetView.toScreen([0, 0])[0]"
    with view(scenario) as served, planned(browser, served) as page:
        until(page, MAP_DRAWN)
        sense = page.evaluate("window.manetView.state.about.sense_m")
        box = page.locator("#map").bounding_box()
        for x, y in ((-sense, 0), (600 + sense, 0), (0, 600 + sense), (0, -sense)):
            u, v = page.evaluate("place => window.manetView.toScreen(place)", [x, y])
            assert 0 <= u <= box["width"] and 0 <= v <= box["height"]
        before = page.evaluate(per_metre)
        page.uncheck("#show-ranges")
        until(page, f"{per_metre} > {2 * before}")


def test_ranges_shrink_near_stations_to_a_third_at_most(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "near.toml"
    scenario.write_text("hops = 1\nspacing = 50\nduration = 5\n")
    per_metre = "window.manetView.toScreen([1, 0])[0] - window.manetView.toScreen([0, 0])[0]"
    with view(scenario) as served, planned(browser, served) as page:
        until(page, MAP_DRAWN)
        before = page.evaluate(per_metre)
        page.uncheck("#show-ranges")
        until(page, f"Math.abs({per_metre} - {3 * before}) < 0.01")


def test_gateways_and_hosts_have_shapes_of_their_own_and_the_legend_names_them(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "wired.toml"
    scenario.write_text('hops = 2\nduration = 5\nwires = [{ station = "sta3", host = "host1" }]\n')
    with view(scenario) as served, planned(browser, served) as page:
        assert "a gateway" in page.inner_text("#legend") and "a wired host" in page.inner_text("#legend")
        page.uncheck("#show-ranges")
        page.uncheck("#show-links")
        page.wait_for_timeout(300)
        picture = Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("L")
        places = "name => window.manetView.toScreen(window.manetView.placeOf(name))"
        for name, reaches in (("sta1", False), ("sta3", True)):  # a diamond reaches further out than a circle
            x, y = page.evaluate(places, name)
            assert (picture.getpixel((round(x) - 9, round(y))) < 128) is reaches, name


def test_an_event_near_the_right_edge_of_the_strip_has_its_words(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "late.toml"
    scenario.write_text('hops = 1\nduration = 10\nwarmup = 0\nevents = [{ at = 9.98, power = "sta2", on = false }]\n')
    with view(scenario) as served, planned(browser, served) as page:
        box = page.locator("#overview").bounding_box()
        page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] / 2)
        until(page, "document.getElementById('overview').title.includes('power sta2')")
        page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
        until(page, "!document.getElementById('overview').title.includes('power')")


def test_the_walls_of_a_scenario_are_drawn_where_they_are(browser, tmp_path: Path):  # noqa: F811
    scenario = tmp_path / "walled.toml"
    scenario.write_text("hops = 1\nduration = 2\nwalls = [{ from = [60, -80], to = [60, 80], loss_db = 6 }]\n")
    with view(scenario) as served, planned(browser, served) as page:
        until(page, MAP_DRAWN)
        (x, y), (empty, _) = (page.evaluate("at => window.manetView.toScreen(at)", [metres, 40]) for metres in (60, 90))
        picture = Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("L")
        contrast = [
            abs(picture.getpixel((round(at), round(y))) - picture.getpixel((round(empty), round(y)))) for at in (x, empty)
        ]
        assert contrast[0] > 40 and contrast[1] == 0


def crossed(page, t_s: float) -> bool:
    """Whether the middle of the link of sta1 and sta2 has the red of a cross."""
    page.evaluate("ns => window.manetView.goTo(ns)", t_s * 1e9)
    until(page, f"Math.abs(window.manetView.state.now - {t_s * 1e9}) < 1")
    page.wait_for_timeout(200)
    ends = [page.evaluate("name => window.manetView.toScreen(window.manetView.placeOf(name))", name) for name in ("sta1", "sta2")]
    picture = Image.open(io.BytesIO(page.locator("#map").screenshot())).convert("RGB")
    red, green, blue = picture.getpixel(tuple(round(sum(side) / 2) for side in zip(*ends, strict=True)))
    return red > max(green, blue) + 60


def planned(browser, served):  # noqa: F811
    """The page of a scenario before its start."""
    return opened(browser, served, attached="#mode:has-text('planned')")


def test_a_folder_of_runs_is_listed_and_a_link_chooses_one(browser, tmp_path: Path):  # noqa: F811
    for seed in (1, 2):
        directory = tmp_path / "results" / "all" / f"seed-{seed}"
        assert Background(chain(duration=2), directory).result().status == "complete"
    with view(tmp_path / "results") as served:
        assert [run["path"] for run in served.ask("/api/campaign")["runs"]] == ["all/seed-1", "all/seed-2"]
        assert served.ask("/api/run?run=all/seed-2")["directory"].endswith("all/seed-2")
        with opened(browser, served, attached="#folder-rows a") as page:
            page.click("#folder-rows a >> text=all/seed-2")
            page.wait_for_selector("#charts canvas", state="attached")
            assert page.evaluate("window.manetView.state.about.directory").endswith("all/seed-2")
            page.locator("#slider").fill("500000")
            until(page, "location.hash.includes('run=all%2Fseed-2') && location.hash.includes('t=')")
            link = page.evaluate("location.hash")
        with opened(browser, served, link) as page:
            assert page.evaluate("window.manetView.state.about.directory").endswith("all/seed-2")
            assert page.evaluate("location.hash") == link
