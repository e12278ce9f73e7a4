"""The editor's page in headless Chromium: map, forms and text are one document, by pointer and by keyboard alone."""

import itertools
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs, wait_until
from testbed.view.editor.tests.test_editor import Edited, editor
from testbed.view.tests.test_page import MISSING, browser, until, violations  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

EIGHT = """# eight stations of a comparison
topology = "positions"
positions = [
    [0, 0], [200, 0], [400, 0], [600, 0],
    [0, 180], [200, 180], [400, 180], { name = "gw", at = [600, 180] },
]
walls = [{ from = [300, 60], to = [300, 120], loss_db = 6 }]
mobility = { model = "schedule", moves = [{ at = 2, station = "sta5", to = [150, 300], speed = 10 }] }
flows = [
    { from = "sta1", to = "sta4" },   # along the lower row
    { from = "sta5", to = "host1", traffic = "cbr", rate = "100 kbit/s", bytes = 512 },
]
wires = [{ station = "gw", host = "host1" }]
events = [
    { at = 10, power = "sta2", on = false },
    { at = 20, link = ["sta6", "sta7"], error_rate = 1.0 },
]
"""


# How many addresses of pictures the page has given back.
COUNT_REVOKED = """{
    window.revoked = 0;
    const usual = URL.revokeObjectURL;
    URL.revokeObjectURL = (url) => ((window.revoked += 1), usual.call(URL, url));
}"""


class shown:
    """The page of an editor; at its end nothing was written to the console but what a test expects, and no script failed."""

    def __init__(self, browser: Any, edited: Edited, width: int = 1400, height: int = 900, **options: Any) -> None:  # noqa: F811
        self.complaints: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": height}, **options)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        self.dialogs: list[str] = []
        self.page.on("dialog", self._dismiss)
        self.page.goto(edited.url)
        until(self.page, "window.manetEditor?.state.version")
        until(self.page, "!document.querySelector('#verdict-line').textContent.startsWith('…')")

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.type)
        dialog.dismiss()

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, failed: object, *_rest: object) -> None:
        self.page.close(run_before_unload=False)
        if failed is None:
            assert self.complaints == []


@contextmanager
def saved(folder: Path, name: str, text: str | None = None) -> Iterator[Edited]:
    """An editor of a new file, or of one with this text, that is saved at the end."""
    if text is not None:
        (folder / name).write_text(text)
    with editor(folder, "--new" if text is None else "--edit", name) as running:
        yield running
        save(running)


@pytest.fixture
def edited(tmp_path: Path) -> Iterator[Edited]:
    with saved(tmp_path, "walk.toml") as running:
        yield running


@pytest.fixture
def eight(tmp_path: Path) -> Iterator[Edited]:
    with saved(tmp_path, "eight.toml", EIGHT) as running:
        yield running


def save(running: Edited) -> None:
    """Save, so that the end has nothing to say."""
    running.send("/api/edit/save", {"name": None, "version": running.ask("state")["version"], "overwrite": True})


def text_of(page: Any) -> str:
    return page.evaluate("window.manetEditor.state.text")


def values_of(page: Any) -> dict[str, Any]:
    return tomllib.loads(text_of(page))


def quiet(page: Any) -> None:
    """All changes have reached the server, and the check is that of the last one."""
    until(page, "!window.manetEditor.busy()")


def click(page: Any, place: tuple[float, float]) -> None:
    x, y = page.evaluate("place => window.manetEditor.map.toScreen(place)", list(place))
    box = page.locator("#map").bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)
    quiet(page)


def type_in(page: Any, line: str) -> None:
    """Type at the end of the text."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(line)
    until(page, f"window.manetEditor.state.text.includes({line.strip()!r})")
    quiet(page)


def test_two_clicks_a_flow_and_save_are_a_scenario_that_manet_takes(browser, edited, tmp_path):  # noqa: F811
    with shown(browser, edited) as page:
        page.click("[data-tool=station]")
        for place in ((100, 100), (300, 100)):
            click(page, place)
        page.click("[data-tool=flow]")
        for place in ((100, 100), (300, 100)):
            click(page, place)
        assert "takes this scenario" in page.inner_text("#verdict-line")
        assert "flow1 sta1 → sta2: 1 hop" in page.inner_text("#legend-line")
        type_in(page, "# by hand\n")
        page.keyboard.press("Control+s")
        until(page, "document.querySelector('#saved').textContent === 'saved'")
    text = (tmp_path / "walk.toml").read_text()
    assert tomllib.loads(text)["flows"] == [{"from": "sta1", "to": "sta2"}] and text.endswith("# by hand\n")
    places = [value for place in tomllib.loads(text)["positions"] for value in place]
    assert places == pytest.approx([100, 100, 300, 100], abs=2)
    argv = [sys.executable, "-P", "-m", "testbed", "run", "walk.toml", "--set", "duration=3", "--set", "warmup=0"]
    done = subprocess.run(
        [*argv, "--out", "out"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_change_of_the_text_moves_the_map_and_a_drag_changes_the_text(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        quiet(page)
        before = page.evaluate("window.manetEditor.map.toScreen([200, 0])")
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + before[0], box["y"] + before[1])
        page.mouse.down()
        page.mouse.move(box["x"] + before[0] + 20, box["y"] + before[1] + 30, steps=4)
        page.mouse.up()
        quiet(page)
        moved = values_of(page)["positions"][1]
        assert moved[0] > 200 and moved[1] < 0
        assert text_of(page) == EIGHT.replace("[200, 0]", f"[{moved[0]}, {moved[1]}]")
        page.keyboard.press("Control+z")
        until(page, "window.manetEditor.state.text.includes('[200, 0]')")
        assert text_of(page) == EIGHT
        type_in(page, "# the last line\n")
        page.evaluate("window.manetEditor.text.goTo(4)")
        page.keyboard.press("Home")
        page.keyboard.type("    [-50, 7],\n")
        until(page, "window.manetEditor.map.places().size === 9")
        assert page.evaluate("window.manetEditor.map.places().get('sta1')") == [-50, 7]


def test_the_check_is_at_the_field_and_leads_to_field_and_line(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:
        eight.version = page.evaluate("window.manetEditor.state.version")
        eight.change(op="set", path=["queue"], value=0)
        page.wait_for_selector("#verdict-line.bad:has-text('queue')")
        page.click("#verdict-line button:has-text('show the key')")
        page.wait_for_selector("#forms .wrong:has-text('at least 1')")
        field = page.locator("[data-path='[\"queue\"]'] input").last
        field.fill("20")
        field.press("Enter")
        until(page, "window.manetEditor.state.values.queue === 20")
        page.wait_for_selector("#verdict-line.good")
        assert page.locator("#forms .wrong").count() == 0


def test_every_field_of_the_form_is_on_the_page(browser, eight):  # noqa: F811
    def top(group: dict[str, Any]) -> list[str]:
        return [field["key"] for field in group["fields"]]

    wanted = [key for group in eight.ask("form")["groups"] for key in top(group)]
    with shown(browser, eight) as page:
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        # a group gets its fields by the event `toggle`, after the click
        page.wait_for_function("[...document.querySelectorAll('#forms > details')].every(one => one.querySelector('.field'))")
        found = page.evaluate(
            "[...document.querySelectorAll('#forms > details > div > .field')].map(one => JSON.parse(one.dataset.path)[0])"
        )
        assert found == wanted
        controls = (
            "[...document.querySelectorAll('#forms .field')].every(one => one.querySelector('input, select, button, summary'))"
        )
        assert page.evaluate(controls)
        page.fill("#find", "rts_threshold")
        assert page.locator("#forms > details:visible").count() == 1


def test_forms_set_what_they_say(browser, edited):  # noqa: F811
    with shown(browser, edited) as page:
        edited.version = page.evaluate("window.manetEditor.state.version")
        edited.change(op="add_stations", at=[[0, 0], [200, 0], [400, 0]])
        until(page, "window.manetEditor.map.places().size === 3")
        for summary in page.locator("#forms > details > summary").all():
            summary.click()

        def field(*path: Any) -> Any:
            return page.locator(f"[data-path='{json.dumps(path, separators=(',', ':'))}']").first

        def enter(value: str, *path: Any) -> None:
            box = field(*path).locator("input").first
            box.fill(value)
            box.press("Enter")
            quiet(page)

        field("radio").locator("select").first.select_option("dot11b-11m")
        quiet(page)
        enter("1.5 min", "duration")
        enter("vegas(alpha=2)", "tcp")
        field("routing").locator("select").first.select_option("aodv")
        quiet(page)
        field("routing").locator("summary").click()
        field("routing", "link").locator("select").select_option(label="hello")
        quiet(page)
        field("mobility").locator("select").first.select_option("random-waypoint")
        quiet(page)
        field("ipv6").locator("select").select_option(label="yes")
        quiet(page)
        field("flows").locator("button:has-text('Add to flows')").click()
        quiet(page)
        values = values_of(page)
        del values["positions"], values["topology"]
        assert values == {
            "radio": "dot11b-11m", "duration": "1.5 min", "tcp": "vegas(alpha=2)", "ipv6": True,
            "routing": {"protocol": "aodv", "link": "hello"}, "mobility": "random-waypoint",
            "flows": [{"from": "sta1", "to": "sta3"}],
        }  # fmt: skip
        enter("", "duration")
        assert "duration" not in values_of(page)
        box = field("duration").locator("input").first
        box.fill("soon")
        box.press("Enter")
        assert box.get_attribute("aria-invalid") == "true" and "duration" not in values_of(page)


def test_a_new_event_is_opened_once_the_server_has_it(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        page.click("#event-add")
        until(page, "window.manetEditor.state.values.events.length === 3")
        until(page, "document.activeElement.textContent.startsWith('3: at 5')")
        eight.version = page.evaluate("window.manetEditor.state.version")
        eight.change(op="set", path=["events"], value=[{"at": at, "power": "sta2", "on": at % 2 == 0} for at in range(2, 63)])
        until(page, "window.manetEditor.state.values.events.length === 61")
        page.click("#event-add")
        until(page, "window.manetEditor.state.values.events.length === 62")
        quiet(page)
        assert "2 more" in page.inner_text("#forms [data-path='[\"events\"]']"), "the one behind the last that is shown"
        assert not page.evaluate("document.activeElement.textContent.startsWith('61')")


def test_a_gateway_and_its_host_have_shapes_of_their_own(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        quiet(page)
        for where in ("#map", '#map [data-name="gw"]'):
            assert page.locator(f"{where} .icon.of-gateway").count() == 1
        assert page.locator("#map .icon.of-host").count() == 1 and page.locator("#map .icon.of-station").count() == 7
        assert "a gateway" in page.inner_text("#legend-line")
        assert page.get_attribute('#map [data-name="gw"]', "aria-label").endswith("gateway")


def test_a_chain_that_is_drawn_back_to_its_begin_has_places(browser, edited):  # noqa: F811
    with shown(browser, edited) as page:
        page.click("[data-tool=chain]")
        x, y = page.evaluate("window.manetEditor.map.toScreen([100, 100])")
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.mouse.down()
        page.mouse.move(box["x"] + x + 30, box["y"] + y, steps=3)
        page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
        page.mouse.up()
        quiet(page)
        places = values_of(page)["positions"]
        assert [b[0] - a[0] for a, b in itertools.pairwise(places)] == pytest.approx([200] * 4)


def test_the_ground_stays_below_the_pointer_while_the_lines_around_the_map_wrap(browser, edited):  # noqa: F811
    def ground() -> list[float]:
        """Where a place of the scenario is in the window, and the height of the map."""
        return page.evaluate(
            """(({ x, y, height }, [left, top]) => [x + left, y + top, height])(
                document.getElementById('map').getBoundingClientRect(), window.manetEditor.map.toScreen([100, 100]))"""
        )

    with shown(browser, edited) as page:
        page.click("[data-tool=station]")
        click(page, (100, 100))
        x, y, height = ground()
        edited.version = page.evaluate("window.manetEditor.state.version")
        edited.change(op="add_stations", at=[[300, 100], [500, 100]])
        for source in ("sta1", "sta2", "sta3"):  # a line of the legend for each flow
            edited.change(op="append", path=["flows"], value={"from": source, "to": "sta2" if source == "sta1" else "sta1"})
        until(page, "window.manetEditor.state.values.flows?.length === 3")
        quiet(page)
        assert ground()[2] < height - 10, "the legend has wrapped, else this shows nothing"
        assert ground()[:2] == pytest.approx([x, y], abs=0.6)
        edited.change(op="set", path=["flows", 0, "tcp"], value="no such algorithm " * 9)  # a long error above the map
        page.wait_for_selector("#verdict-line.bad")
        quiet(page)
        assert ground()[:2] == pytest.approx([x, y], abs=0.6)
        per_metre = page.evaluate("window.manetEditor.map.toScreen([1, 0])[0] - window.manetEditor.map.toScreen([0, 0])[0]")
        page.mouse.click(x, y + 40)
        quiet(page)
        assert values_of(page)["positions"][-1] == pytest.approx([100, 100 - 40 / per_metre], abs=2)


def test_a_file_with_the_lines_ends_of_windows_is_not_changed_by_being_looked_at(browser, tmp_path):  # noqa: F811
    (tmp_path / "a.toml").write_bytes(b"# one\r\nhops = 2\r\n")
    with editor(tmp_path, "--edit", "a.toml") as running:
        with shown(browser, running) as page:
            quiet(page)
            assert page.evaluate("document.querySelector('#saved').textContent") == "saved"
            type_in(page, "seeds = 3\n")
            assert values_of(page) == {"hops": 2, "seeds": 3}
        save(running)


def test_the_keyboard_alone_draws_a_scenario(browser, edited, tmp_path):  # noqa: F811
    with shown(browser, edited) as page:
        page.locator("[data-tool=chain]").focus()
        page.keyboard.press("Enter")
        page.locator("#tool-form input").first.focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("3")
        page.keyboard.press("Enter")
        until(page, "window.manetEditor.map.places().size === 3")
        page.locator("[data-tool=select]").focus()
        page.keyboard.press("Space")
        page.locator('#map [data-name="sta1"]').focus()
        page.keyboard.press(".")
        assert page.evaluate("document.activeElement.dataset.name") == "sta2"
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Shift+ArrowRight")
        until(page, "window.manetEditor.state.text.includes('[201, 10]')")
        page.locator("[data-tool=flow]").focus()
        page.keyboard.press("Enter")
        page.locator("#tool-form button").focus()
        page.keyboard.press("Enter")
        until(page, "window.manetEditor.state.values.flows?.length === 1")
        page.locator("#event-add").focus()
        page.keyboard.press("Enter")
        until(page, "window.manetEditor.state.values.events?.length === 1")
        page.locator("#line button").focus()
        page.keyboard.press("ArrowRight")
        until(page, "window.manetEditor.state.values.events[0].at === 6")
        page.locator("#map [data-name=sta3]").focus()
        page.keyboard.press("Delete")
        until(page, "window.manetEditor.map.places().size === 2")
        for _ in range(3):
            page.keyboard.press("Control+z")
        until(page, "window.manetEditor.state.values.events?.[0].at !== 6")
        page.locator("#save").focus()
        page.keyboard.press("Enter")
        until(page, "document.querySelector('#saved').textContent === 'saved'")
    assert (tmp_path / "walk.toml").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_axe_finds_no_violation_and_nothing_is_wider_than_the_screen(browser, eight, scheme, width, height):  # noqa: F811
    with shown(browser, eight, width, height, color_scheme=scheme) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        page.locator("#forms [data-path='[\"flows\"]'] details summary").first.click()
        page.locator("#forms [data-path='[\"radio_overrides\"]'] summary").first.click()
        quiet(page)
        assert violations(page) == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        folder = os.environ.get("PICTURES")
        if folder:
            page.screenshot(path=f"{folder}/editor-{scheme}-{width}.png")


def test_a_second_tab_sees_the_change_and_typing_in_it_is_not_lost(browser, eight):  # noqa: F811
    with shown(browser, eight) as one, shown(browser, eight) as other:
        one.click("[data-tool=station]")
        click(one, (100, 90))
        until(other, "window.manetEditor.map.places().size === 9")
        assert text_of(one) == text_of(other)


def test_text_typed_while_another_tab_changes_the_scenario_is_kept_after_a_question(browser, eight):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        until(page, "window.manetEditor.map.places().size === 8")

        late_ones: list[str] = []

        def late(route: Any) -> None:  # the change of another tab arrives before the first one of this tab
            if not late_ones:
                late_ones.append(route.request.url)
                eight.version = eight.ask("state")["version"]
                eight.change(op="set", path=["seeds"], value=7)
            route.continue_()

        page.route("**/api/edit/change", late)
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("# of this tab")
        page.wait_for_selector("#question:has-text('Another tab')")
        page.click("#yes")
        until(page, "window.manetEditor.state.text.endsWith('# of this tab')")
        quiet(page)
        assert "seeds" not in values_of(page)
        page.locator("#undo").click()
        until(page, "window.manetEditor.state.values.seeds === 7")
        assert len(held.complaints) == 1 and "409" in held.complaints.pop(), "the browser's own line about the refusal"


def test_a_tab_with_unsaved_work_does_not_close_without_a_question(browser, edited):  # noqa: F811
    with (held := shown(browser, edited)) as page:
        page.click("[data-tool=station]")
        click(page, (100, 100))
        page.evaluate("setTimeout(() => location.reload(), 10)")
        wait_until(lambda: page.wait_for_timeout(100) is None and held.dialogs, "the browser's question")
        assert held.dialogs == ["beforeunload"]
        assert page.evaluate("window.manetEditor.state.values.positions.length") == 1, "the page is gone"


def test_a_draft_is_asked_about_and_taken(browser, tmp_path):  # noqa: F811
    (tmp_path / "a.toml").write_text("hops = 1\n")
    (tmp_path / ".a.toml.draft").write_text("hops = 2 # never saved\n")
    with editor(tmp_path, "--edit", "a.toml") as running:
        with shown(browser, running) as page:
            page.wait_for_selector("#question:has-text('never saved')")
            page.click("#yes")
            until(page, "window.manetEditor.state.text.includes('never saved')")
            assert page.evaluate("document.querySelector('#saved').textContent") == "not saved"
        save(running)


def test_markup_in_names_is_text(browser, tmp_path):  # noqa: F811
    evil = "<img src=x onerror=document.title='owned'>"
    (tmp_path / "a.toml").write_text(
        f'topology = "positions"\npositions = [[0, 0], {{ name = "{evil}", at = [9, 9] }}]\ntcp = "{evil}"\n'
        f'flows = [{{ from = "{evil}", to = "{evil}", traffic = "{evil}", "{evil}" = 1 }}]\nrouting = "{evil}"\n'
        f'wires = [{{ station = "{evil}", host = "{evil}" }}]\nevents = [{{ at = "{evil}", power = "{evil}" }}]\n'
    )
    (tmp_path / ".a.toml.draft").write_text(f'tcp = "{evil}"\n')
    with editor(tmp_path, "--edit", "a.toml") as running, shown(browser, running) as page:
        page.click("#no")  # of the draft
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        page.wait_for_selector("#verdict-line.bad")
        page.wait_for_selector("#line button")
        assert page.locator("img").count() == 0 and "owned" not in page.title()


def test_seeds_run_and_their_results_open(browser, tmp_path):  # noqa: F811
    (tmp_path / "two.toml").write_text("hops = 1\nduration = 2\nwarmup = 0\n")
    words = ("--edit", "two.toml", "--control", "--out", str(tmp_path / "results"))
    with editor(tmp_path, *words) as running, shown(browser, running) as page:
        page.fill("#seeds", "2")
        page.click("#start")
        page.wait_for_selector("#runs li")
        wait_until(lambda: not running.ask("runs")["running"], "the runs have ended", 180)
        answer = running.ask("runs")
        assert answer["failure"] is None and [run["status"] for run in answer["runs"]] == ["complete", "complete"]
        page.wait_for_selector("#runs li:has-text('complete')")
        page.click("#runs button:has-text('figure')")
        page.wait_for_selector("#figure img")
        assert page.evaluate("document.querySelector('#figure img').decode().then(() => true)")
        assert "kbit/s" in page.inner_text("#printed")
        picture = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010800000000")  # a PNG's begin
        (Path(answer["folder"]) / "mine.png").write_bytes(picture)
        page.wait_for_selector("#figures button:has-text('mine')")
        page.focus("#figures button:has-text('mine')")
        for _ in range(2):  # rounds of the page's questions leave the focus where it is
            with page.expect_response("**/api/edit/runs"):
                pass
        assert "mine" in page.evaluate("document.activeElement.textContent")
        page.evaluate(COUNT_REVOKED)
        for _ in range(2):
            page.click("#runs li:first-child button:has-text('figure')")
            page.wait_for_timeout(100)
        until(page, "window.revoked === 2")
        with page.context.expect_page() as opened:
            page.click("#runs a")
        until(opened.value, "window.manetView?.state.about?.kind === 'recorded'")
        opened.value.close()
