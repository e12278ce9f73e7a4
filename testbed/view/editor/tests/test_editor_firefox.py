"""The editor's page in Firefox: by pointer, and by keyboard alone. Its tests in Chromium (test_editor_page.py) look at more."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.tests.running import needs_runs, wait_until
from testbed.view.editor.tests.test_editor import Edited, editor
from testbed.view.editor.tests.test_editor_page import EIGHT, save
from testbed.view.tests.firefox import FIREFOX, Firefox
from testbed.view.tests.test_firefox import accessible

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(FIREFOX is None, reason="Firefox is missing; apt-get install firefox-esr"),
]  # fmt: skip


@contextmanager
def shown(tmp_path: Path, edited: Edited) -> Iterator[Firefox]:
    """The page of an editor; at its end nothing was written to the console."""
    (tmp_path / "profile").mkdir()
    with Firefox(tmp_path / "profile", 1400, 900) as firefox:
        firefox.goto(edited.url)
        until(firefox, "window.manetEditor?.state.version")
        quiet(firefox)
        yield firefox
        complaints = firefox.complaints
    assert complaints == []


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Edited]:
    (tmp_path / "space").mkdir()
    with editor(tmp_path / "space", "--new", "walk.toml") as running:
        yield running
        save(running)


def until(page: Firefox, expression: str) -> None:
    wait_until(lambda: page.evaluate(f"Boolean({expression})"), expression)


def quiet(page: Firefox) -> None:
    """All changes have reached the server, and the check is that of the last one."""
    until(page, "!window.manetEditor.busy()")


def values_of(page: Firefox) -> dict[str, Any]:
    return tomllib.loads(page.evaluate("window.manetEditor.state.text"))


def place_of(page: Firefox, place: tuple[float, float]) -> tuple[float, float]:
    """Where a place of the scenario is in the window."""
    to_screen = f"window.manetEditor.map.toScreen({json.dumps(place)})"
    box = "document.getElementById('map').getBoundingClientRect()"
    x, y = page.evaluate(f"((box, [x, y]) => [box.x + x, box.y + y])({box}, {to_screen})")
    return x, y


def click(page: Firefox, place: tuple[float, float]) -> None:
    page.click(*place_of(page, place))
    quiet(page)


def test_the_pointer_draws_stations_and_a_flow_and_moves_one(edited, tmp_path):
    with shown(tmp_path, edited) as page:
        page.click_on("[data-tool=station]")
        for place in ((100, 100), (300, 100), (500, 100)):
            click(page, place)
        page.click_on("[data-tool=flow]")
        for place in ((100, 100), (500, 100)):
            click(page, place)
        assert values_of(page)["flows"] == [{"from": "sta1", "to": "sta3"}]
        drawn = values_of(page)["positions"]
        assert [value for place in drawn for value in place] == pytest.approx([100, 100, 300, 100, 500, 100], abs=2)
        page.click_on("[data-tool=select]")
        x, y = place_of(page, (300, 100))
        page.drag((x, y), (x + 20, y - 30))
        quiet(page)
        moved = values_of(page)["positions"][1]
        assert moved[0] > 300 and moved[1] > 100
        page.press("Control+z")
        wait_until(lambda: values_of(page)["positions"] == drawn, "the drag is undone")


def test_the_keyboard_alone_draws_a_scenario(edited, tmp_path):
    with shown(tmp_path, edited) as page:
        assert page.evaluate("document.hasFocus()"), "else Enter and the space bar do not act on a button"
        page.focus("[data-tool=chain]")
        page.press("Enter")
        page.focus("#tool-form input")
        page.press("Control+a")
        page.type("3")
        page.press("Enter")
        until(page, "window.manetEditor.map.places().size === 3")
        page.focus("[data-tool=select]")
        page.press(" ")
        page.focus('#map [data-name="sta1"]')
        page.press(".")
        assert page.evaluate("document.activeElement.dataset.name") == "sta2"
        page.press("ArrowUp")
        page.press("Shift+ArrowRight")
        until(page, "window.manetEditor.state.text.includes('[201, 10]')")
        page.focus("[data-tool=flow]")
        page.press("Enter")
        page.focus("#tool-form button")
        page.press("Enter")
        until(page, "window.manetEditor.state.values.flows?.length === 1")
        page.focus("#event-add")
        page.press("Enter")
        until(page, "window.manetEditor.state.values.events?.length === 1")
        page.focus("#line button")
        page.press("ArrowRight")
        until(page, "window.manetEditor.state.values.events[0].at === 6")
        page.focus("#map [data-name=sta3]")
        page.press("Delete")
        until(page, "window.manetEditor.map.places().size === 2")
        for _ in range(3):
            page.press("Control+z")
        until(page, "window.manetEditor.state.values.events?.[0].at !== 6")
        page.focus("#save")
        page.press("Enter")
        until(page, "document.querySelector('#saved').textContent === 'saved'")
    assert (tmp_path / "space" / "walk.toml").exists()


def test_axe_finds_no_violation_and_nothing_is_wider_than_the_screen(edited, tmp_path):
    with shown(tmp_path, edited) as page:
        edited.version = page.evaluate("window.manetEditor.state.version")
        edited.change(op="text", text=EIGHT, joins=False)
        until(page, "window.manetEditor.map.places().size === 8")
        quiet(page)
        page.evaluate("document.querySelectorAll('#forms > details').forEach((one) => (one.open = true))")
        until(page, "[...document.querySelectorAll('#forms > details')].every((one) => one.querySelector('.field'))")
        accessible(page)
