"""What a first user of the editor sees, in headless Chromium: an empty page, mistakes in fields, a slow walk, copies, events."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.view.editor.tests.test_editor import Edited
from testbed.view.editor.tests.test_editor_page import click, quiet, saved, shown, type_in, values_of
from testbed.view.tests.test_page import MISSING, browser, until  # noqa: F401  (browser is a fixture)

pytestmark = [pytest.mark.slow, pytest.mark.pages, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

FOUR = """topology = "positions"
positions = [[0, 0], [200, 0], [400, 0], [600, 0]]
flows = [{ from = "sta1", to = "sta2" }, { from = "sta1", to = "sta4" }]
"""


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Edited]:
    with saved(tmp_path, "walk.toml") as running:
        yield running


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Edited]:
    with saved(tmp_path, "four.toml", FOUR) as running:
        yield running


def marks(page: Any) -> int:
    """Lines of the text with a mark of an error."""
    return page.evaluate("document.querySelector('#text').shadowRoot.querySelectorAll('.cm-lint-marker-error').length")


def field(page: Any, path: str) -> Any:
    return page.locator(f"#forms [data-path='{path}']").first


def test_an_empty_scenario_is_no_mistake_and_a_click_places_a_station(browser, edited):  # noqa: F811
    with shown(browser, edited) as page:
        quiet(page)
        assert page.inner_text("#verdict-line").startswith("Nothing is drawn yet") and marks(page) == 0
        assert not page.locator("#verdict-line.bad").count() and not page.locator("#forms .wrong").count()
        click(page, (100, 100))
        assert len(values_of(page)["positions"]) == 1
        type_in(page, "hops = 1\n")
        page.wait_for_selector("#verdict-line.bad")
        assert marks(page) == 1


def test_a_refusal_of_what_only_a_run_needs_has_the_line_of_its_key(browser, edited):  # noqa: F811
    with shown(browser, edited) as page:
        edited.version = page.evaluate("window.manetEditor.state.version")
        edited.change(op="add_stations", at=[[0, 0], [900, 0]])
        page.wait_for_selector("#verdict-line.bad:has-text('no path')")
        quiet(page)
        assert "line 3, positions" in page.inner_text("#verdict-line")
        edited.change(op="append", path=["flows"], value={"from": "sta1", "to": "sta2"})
        page.wait_for_selector("#verdict-line.bad:has-text('line 5, flows.0')")
        quiet(page)
        assert marks(page) == 1


def test_a_field_says_why_it_is_not_taken_until_it_is(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        box = field(page, '["window"]').locator("input")
        box.fill("1 banana")
        box.press("Tab")
        wrong = field(page, '["window"]').locator(".wrong")
        assert wrong.inner_text() == '"1 banana" is no number'
        assert box.get_attribute("aria-errormessage") == wrong.get_attribute("id")
        area = field(page, '["area"]').locator("input")
        area.nth(0).fill("700")
        area.nth(0).press("Tab")
        assert field(page, '["area"]').locator(".wrong").count() == 0, "the other one may come"
        page.keyboard.press("Tab")
        assert field(page, '["area"]').locator(".wrong").inner_text() == "give all 2 values"
        area.nth(1).fill("300 miles")
        area.nth(1).press("Tab")
        assert '"300 miles" is no number; a unit may be m' in field(page, '["area"]').locator(".wrong").inner_text()
        area.nth(1).fill("300")
        area.nth(1).press("Tab")
        until(page, "window.manetEditor.state.values.area?.length === 2")
        quiet(page)
        assert field(page, '["area"]').locator(".wrong").count() == 0
        assert wrong.count() == 1, "a check takes nothing back"
        box.fill("8")
        box.press("Tab")
        until(page, "window.manetEditor.state.values.window === 8")
        assert wrong.count() == 0 and box.get_attribute("aria-invalid") is None


def test_groups_that_a_search_has_opened_close_after_it(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        page.click("#forms summary:text-is('Movement')")
        page.fill("#find", "rts_threshold")
        assert page.locator("#forms > details[open]:visible").count() == 1
        page.fill("#find", "")
        assert page.locator("#forms > details[open] > summary").all_inner_texts() == ["Movement"]
        page.check("#only-set")
        assert page.locator("#forms > details[open]:visible").count() == 2
        page.uncheck("#only-set")
        assert page.locator("#forms > details[open] > summary").all_inner_texts() == ["Movement"]


def test_a_walk_that_ends_after_the_traffic_is_said(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        four.version = page.evaluate("window.manetEditor.state.version")
        four.change(op="waypoint", station="sta2", to=[200, 100], speed=2)
        until(page, "document.querySelector('#legend-line').textContent.includes('arrives at 50 s, after the 35 s of traffic')")
        four.change(op="set", path=["duration"], value=80)
        until(page, "!document.querySelector('#legend-line').textContent.includes('arrives')")


def test_stations_of_a_rectangle_are_copied_with_their_flow_by_pointer_and_keyboard(browser, four, tmp_path):  # noqa: F811
    with shown(browser, four) as page:
        until(page, "window.manetEditor.map.places().size === 4")
        quiet(page)
        box = page.locator("#map").bounding_box()
        begin, end = (
            page.evaluate("place => window.manetEditor.map.toScreen(place)", place) for place in ([-40, 40], [260, -40])
        )
        page.keyboard.down("Shift")
        page.mouse.move(box["x"] + begin[0], box["y"] + begin[1])
        page.mouse.down()
        page.mouse.move(box["x"] + end[0], box["y"] + end[1], steps=3)
        page.mouse.up()
        page.keyboard.up("Shift")
        assert page.evaluate("window.manetEditor.map.selected()") == ["sta1", "sta2"]
        page.click("#tool-form button:text-is('Copy')")
        until(page, "window.manetEditor.map.selected().join() === 'sta5,sta6'")
        assert values_of(page)["flows"][2:] == [{"from": "sta5", "to": "sta6"}]
        page.focus("#map")
        page.keyboard.press("Control+a")
        assert page.evaluate("window.manetEditor.map.selected().length") == 6
        page.keyboard.press("Control+c")
        page.keyboard.press("Control+v")
        until(page, "window.manetEditor.map.places().size === 12")
        for _ in range(2):
            page.keyboard.press("Control+z")
        until(page, f"window.manetEditor.state.text === {FOUR!r}")
    assert tomllib.loads((tmp_path / "four.toml").read_text()) == tomllib.loads(FOUR)


def test_closed_panes_stay_closed_and_open_for_what_is_in_them(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        width = page.locator("#map").bounding_box()["width"]
        page.click("#panes [data-pane=keys]")
        page.click("#panes [data-pane=text]")
        assert page.locator("#map").bounding_box()["width"] > width + 600 and not page.is_visible("#text")
        page.reload()
        until(page, "window.manetEditor?.state.version")
        assert not page.is_visible("#keys-section") and not page.is_visible("#text")
        four.version = page.evaluate("window.manetEditor.state.version")
        four.change(op="set", path=["queue"], value=0)
        page.click("#verdict-line button:has-text('show the key')")
        assert page.is_visible("#forms .wrong") and page.get_attribute("#panes [data-pane=keys]", "aria-pressed") == "true"
        page.click("#verdict-line button:has-text('show the line')")
        assert page.is_visible("#text")


def test_the_time_line_has_its_seconds(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        quiet(page)
        assert page.locator("#line .tick").all_inner_texts() == ["0 s", "5", "10", "15", "20", "25", "30", "35"]
        four.version = page.evaluate("window.manetEditor.state.version")
        four.change(op="set", path=["duration"], value=0.4)
        until(page, "document.querySelectorAll('#line .tick').length < 8")
        assert page.locator("#line .tick").all_inner_texts()[:2] == ["0 s", page.locator("#line .tick").all_inner_texts()[1]]


def test_a_station_is_found_by_its_name_and_the_map_saved_as_it_looks(browser, four):  # noqa: F811
    with shown(browser, four) as page:
        until(page, "window.manetEditor.map.places().size === 4")
        quiet(page)
        page.fill("#tool-form input", "sta9")
        page.keyboard.press("Enter")
        assert page.inner_text("#speech") == "there is no station sta9"
        assert page.evaluate("document.querySelector('#tool-form input').validationMessage") == "there is no station sta9"
        page.focus("#map")
        page.keyboard.press("Control+z")
        assert page.inner_text("#speech") == "there is nothing to undo"
        with page.expect_download() as download:
            page.click("#tool-form button:has-text('SVG')")
        assert download.value.suggested_filename == "four.svg"
        picture = download.value.path().read_text()
        page.fill("#tool-form input", "sta4")
        page.keyboard.press("Enter")
        assert page.evaluate("window.manetEditor.map.selected()") == ["sta4"]
        box = page.locator("#map").bounding_box()
        assert page.evaluate("window.manetEditor.map.toScreen([600, 0])") == pytest.approx(
            [box["width"] / 2, box["height"] / 2], abs=2
        )
    alone = browser.new_page(viewport={"width": 700, "height": 600})
    alone.set_content(picture)
    assert alone.locator("svg text", has_text="sta3").count() == 1
    ring = "getComputedStyle(document.querySelector('svg circle'))"
    assert alone.evaluate(f"[{ring}.fill, {ring}.stroke.startsWith('rgb')]") == ["none", True]
    alone.close()


def test_events_close_together_cover_none_and_leave_the_line_nowhere(browser, four):  # noqa: F811
    boxes = """[...document.querySelectorAll('#line [data-event]')].map(one => one.getBoundingClientRect().toJSON())"""

    def check(page: Any) -> None:
        line, found = page.locator("#line").bounding_box(), page.evaluate(boxes)
        assert all(line["x"] - 1 <= one["left"] and one["right"] <= line["x"] + line["width"] + 1 for one in found)
        for place, one in enumerate(found):
            for other in found[place + 1 :]:
                apart = one["right"] <= other["left"] or other["right"] <= one["left"]
                assert apart or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]

    with shown(browser, four) as page:
        four.version = page.evaluate("window.manetEditor.state.version")
        four.change(op="set", path=["events"], value=[{"at": at, "power": "sta2", "on": at % 2 == 1} for at in (0, 1, 34, 35)])
        until(page, "document.querySelectorAll('#line [data-event]').length === 4")
        assert page.inner_text("#line [data-event='3']") == "35 s power sta2"
        check(page)
        four.change(op="set", path=["events"], value=[{"at": at / 2, "power": "sta2", "on": at % 2 == 1} for at in range(60)])
        until(page, "document.querySelectorAll('#line [data-event]').length === 60")
        assert page.inner_text("#line [data-event='3']") == "1.5 s"
        check(page)
        page.set_viewport_size({"width": 400, "height": 800})
        page.wait_for_timeout(200)
        check(page)
        page.locator("#line [data-event='59']").scroll_into_view_if_needed()
        box = page.locator("#line [data-event='59']").bounding_box()
        page.mouse.move(box["x"] + 9, box["y"] + 9)
        page.mouse.down()
        page.mouse.move(box["x"] - 91, box["y"] + 9, steps=3)
        page.mouse.up()
        until(page, "window.manetEditor.state.values.events[59].at < 25")
