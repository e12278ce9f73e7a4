"""Two tabs, a killed server, a connection that breaks, a full disk: nothing is lost without a question. The page in headless
Chromium, the real server, and a disk that is full."""

import os
import signal
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from testbed.tests.running import needs_runs, wait_until
from testbed.view.editor.tests.test_editor import Edited, editor, started
from testbed.view.editor.tests.test_editor_page import EIGHT, click, quiet, save, saved, shown, text_of, type_in, values_of
from testbed.view.tests.test_page import MISSING, browser, until  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]  # fmt: skip

BADGE = "document.querySelector('#saved').textContent"


@pytest.fixture
def eight(tmp_path: Path) -> Iterator[Edited]:
    with saved(tmp_path, "eight.toml", EIGHT) as running:
        yield running


def notice(page: Any) -> str:
    return page.inner_text("#notice") if page.is_visible("#notice") else ""


def asks_before_it_closes(held: shown) -> bool:
    """Whether the browser asks the user, who stays then."""
    held.dialogs.clear()
    held.page.evaluate("setTimeout(() => location.reload(), 10)")
    with suppress(AssertionError):
        wait_until(lambda: held.page.wait_for_timeout(100) is None and held.dialogs, "the browser's question", 10)
    return held.dialogs == ["beforeunload"]


def refusals_alone(held: shown) -> None:
    """Take note of the browser's own lines about requests that found no server, or were refused."""
    held.complaints = [line for line in held.complaints if "Failed to load resource" not in line]


# --- two tabs -------------------------------------------------------------------------------------------------------------------


def a_conflict(page: Any, eight: Edited) -> None:
    """A line is typed while another tab sets the seeds, which reaches the server first."""
    seen: list[str] = []

    def late(route: Any) -> None:
        if not seen:
            seen.append(route.request.url)
            eight.version = eight.ask("state")["version"]
            eight.change(op="set", path=["seeds"], value=7)
        route.continue_()

    page.route("**/api/edit/change", late)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# of this tab")
    page.wait_for_selector("#question:has-text('Another tab')")


def test_what_is_typed_while_the_question_stands_is_kept_with_the_rest(browser, eight):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        a_conflict(page, eight)
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type(", and more")
        page.click("#yes")
        until(page, "window.manetEditor.state.text.endsWith('# of this tab, and more')")
        quiet(page)
        assert text_of(page) == eight.ask("state")["text"] == EIGHT + "# of this tab, and more"
        refusals_alone(held)


def test_the_other_tabs_text_is_shown_when_that_is_the_answer(browser, eight):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        a_conflict(page, eight)
        assert asks_before_it_closes(held)
        page.click("#no")
        until(page, "window.manetEditor.state.values.seeds === 7")
        quiet(page)
        assert "of this tab" not in page.inner_text(".cm-content") and "seeds = 7" in page.inner_text(".cm-content")
        assert text_of(page) == eight.ask("state")["text"]
        refusals_alone(held)


def test_a_field_that_is_half_filled_stays_while_another_tab_changes_the_scenario(browser, eight):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        eight.version = page.evaluate("window.manetEditor.state.version")
        eight.change(op="set", path=["routing"], value={"protocol": "aodv"})
        until(page, "window.manetEditor.state.values.routing")
        routing = page.locator("[data-path='[\"routing\"]']").first
        routing.locator("summary").first.click()
        option = routing.locator("input[type=text]:visible").nth(1)
        place = page.locator("[data-path='[\"area\"]'] input").first
        duration = page.locator("[data-path='[\"duration\"]'] input").first

        def typed(box: Any, value: str, seeds: int) -> None:
            """A field has what was typed, and its focus, after the change of another tab."""
            box.click()
            page.keyboard.type(value)
            eight.version = page.evaluate("window.manetEditor.state.version")
            eight.change(op="set", path=["seeds"], value=seeds)
            until(page, f"window.manetEditor.state.values.seeds === {seeds}")
            quiet(page)
            assert box.input_value() == value and box.evaluate("node => node === document.activeElement")

        typed(option, "3", 21)
        option.fill("")
        typed(place, "700", 22)
        page.keyboard.press("Tab")
        typed(duration, "1.5 m", 23)
        assert place.input_value() == "700", "one of two numbers, which is no value yet"
        duration.fill("soon")
        duration.press("Enter")
        eight.version = page.evaluate("window.manetEditor.state.version")
        eight.change(op="set", path=["seeds"], value=24)
        until(page, "window.manetEditor.state.values.seeds === 24")
        assert duration.input_value() == "soon", "no value, which the user still sees"
        duration.fill("20")
        page.wait_for_timeout(100)
        assert page.evaluate(f"{BADGE}") == "not saved" and asks_before_it_closes(held)
        until(page, "window.manetEditor.state.values.duration === 20")


def test_ctrl_s_saves_the_field_that_is_written_in(browser, eight, tmp_path):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        field = page.locator("[data-path='[\"duration\"]'] input").first
        field.click()
        page.keyboard.type("17")
        assert asks_before_it_closes(held), "a field that is written in"
        field.fill("19")
        page.keyboard.press("Control+s")
        until(page, f"window.manetEditor.state.values.duration === 19 && {BADGE} === 'saved'")
    assert tomllib.loads((tmp_path / "eight.toml").read_text())["duration"] == 19


def test_run_waits_for_the_field_that_was_written_in(browser, tmp_path):  # noqa: F811
    (tmp_path / "a.toml").write_text("hops = 1\nqueue = 0\n")  # nothing runs
    words = ("--edit", "a.toml", "--control", "--out", str(tmp_path / "results"))
    with editor(tmp_path, *words) as running, (held := shown(browser, running)) as page:
        for summary in page.locator("#forms > details > summary").all():
            summary.click()
        page.locator("[data-path='[\"duration\"]'] input").first.click()
        page.keyboard.type("19")
        at = page.locator("#start").bounding_box()
        page.click("#start")
        wait_until(lambda: "at least 1" in notice(page), "the refusal of the run")
        assert tomllib.loads((tmp_path / "a.toml").read_text())["duration"] == 19
        assert page.evaluate(BADGE) == "saved"
        page.evaluate("document.querySelector('#saved').textContent = 'not saved'")
        assert page.locator("#start").bounding_box() == at, "the button moves while it is pressed"
        refusals_alone(held)


def test_typing_on_while_the_server_is_slow_loses_no_letter(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:

        def slow(route: Any) -> None:
            page.wait_for_timeout(700)  # longer than the rest after which what was typed is sent
            route.continue_()

        page.route("**/api/edit/change", slow)
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("#")
        words = "abcdefgh"
        for letter in words:
            page.keyboard.type(letter)
            page.wait_for_timeout(350)
        until(page, f"window.manetEditor.state.text.endsWith('#{words}')")
        quiet(page)
        assert text_of(page) == eight.ask("state")["text"] == f"{EIGHT}#{words}"


def test_the_tool_keeps_what_was_chosen_while_the_scenario_changes(browser, eight):  # noqa: F811
    with shown(browser, eight) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        page.click("[data-tool=flow]")
        kind = page.locator("#tool-form select").nth(2)
        kind.select_option("cbr")
        kind.focus()
        eight.version = page.evaluate("window.manetEditor.state.version")
        eight.change(op="add_stations", at=[[800, 0]])
        until(page, "window.manetEditor.map.places().size === 9")
        quiet(page)
        assert kind.input_value() == "cbr" and kind.evaluate("node => node === document.activeElement")
        assert "sta9" in page.locator("#tool-form select").first.inner_text()


# --- a killed server, a connection that breaks ----------------------------------------------------------------------------------


def test_a_killed_server_leaves_draft_and_page_and_the_next_editor_asks(browser, tmp_path):  # noqa: F811
    (tmp_path / "eight.toml").write_text(EIGHT)
    running = started(tmp_path, "--edit", "eight.toml")
    with (held := shown(browser, running)) as page:
        page.click("[data-tool=station]")
        click(page, (100, 90))
        type_in(page, "# before the end\n")
        at_the_end = text_of(page)
        running.process.kill()
        running.process.communicate(timeout=30)
        page.keyboard.type("# and after it")
        wait_until(lambda: "does not answer" in notice(page), "the page says so")
        page.wait_for_timeout(2000)
        assert page.inner_text(".cm-content").endswith("# and after it"), "the page keeps what is typed"
        assert page.evaluate(BADGE) == "not saved" and asks_before_it_closes(held)
        refusals_alone(held)
        held.complaints = [line for line in held.complaints if "ERR_CONNECTION" not in line]
    with editor(tmp_path, "--edit", "eight.toml") as again:
        with shown(browser, again) as page:
            page.wait_for_selector("#question:has-text('never saved')")
            page.click("#yes")
            until(page, "window.manetEditor.map.places().size === 9")
            assert text_of(page) == at_the_end
            page.click("#undo")
            until(page, "window.manetEditor.map.places().size === 8")
            assert text_of(page) == EIGHT == (tmp_path / "eight.toml").read_text()
            page.click("#redo")
            until(page, "window.manetEditor.map.places().size === 9")
        save(again)


def test_what_is_drawn_and_typed_while_the_connection_is_broken_arrives_when_it_is_back(browser, eight):  # noqa: F811
    with (held := shown(browser, eight)) as page:
        until(page, "window.manetEditor.map.places().size === 8")
        quiet(page)
        page.route("**/api/edit/**", lambda route: route.abort())
        page.click("[data-tool=station]")
        x, y = page.evaluate("window.manetEditor.map.toScreen([100, 90])")
        box = page.locator("#map").bounding_box()
        page.mouse.click(box["x"] + x, box["y"] + y)
        page.locator(".cm-content").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("# meanwhile")
        wait_until(lambda: "does not answer" in notice(page), "the page says so")
        assert page.evaluate(BADGE) == "not saved" and asks_before_it_closes(held)
        page.unroute("**/api/edit/**")
        until(page, "window.manetEditor.map.places().size === 9")
        until(page, "window.manetEditor.state.text.endsWith('# meanwhile')")
        quiet(page)
        assert text_of(page) == eight.ask("state")["text"] and notice(page) == ""
        refusals_alone(held)


# --- a full disk ----------------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, size: str = "256k") -> Iterator[Path]:
    """A file system of its own in `folder`."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> Path:
    """Leave no byte free; removing the file makes room."""
    filler = disk / "filler"
    with filler.open("wb") as file, suppress(OSError):
        while True:
            os.write(file.fileno(), b"x" * 4096)
    return filler


def test_a_full_disk_is_said_until_there_is_room_and_ctrl_c_asks(browser, tmp_path):  # noqa: F811
    with small_disk(tmp_path / "disk") as disk:
        running = started(disk, "--new", "walk.toml")
        with (held := shown(browser, running)) as page:
            page.click("[data-tool=station]")
            click(page, (100, 100))
            safe = (disk / ".walk.toml.draft").read_text()
            filler = fill(disk)
            click(page, (300, 100))
            assert "Not safe yet" in notice(page) and "disk full" in notice(page)
            assert page.evaluate(BADGE) == "not safe"
            click(page, (500, 100))
            with page.expect_response("**/api/edit/state**"):
                pass
            page.wait_for_timeout(200)
            assert "Not safe yet" in notice(page), "it is said until it is safe"
            page.click("#save")
            wait_until(lambda: "was not written" in notice(page), "the refusal of saving")
            assert page.evaluate(BADGE) == "not safe" and asks_before_it_closes(held)
            assert (disk / ".walk.toml.draft").read_text() == safe and not (disk / "walk.toml").exists()
            assert sorted(path.name for path in disk.iterdir()) == [".walk.toml.draft", "filler"], "a part of a file is left"
            running.process.send_signal(signal.SIGINT)
            assert running.process.stderr is not None
            said = running.process.stderr.readline()
            assert "could not be written" in said and "Ctrl-C again" in said and "Traceback" not in said
            assert len(values_of(page)["positions"]) == len(tomllib.loads(running.ask("state")["text"])["positions"]) == 3
            filler.unlink()
            wait_until(lambda: notice(page) == "", "it is safe again, without a change")
            assert page.evaluate(BADGE) == "not saved"
            assert (disk / ".walk.toml.draft").read_text() == text_of(page)
            page.click("#save")
            until(page, f"{BADGE} === 'saved'")
            assert len(tomllib.loads((disk / "walk.toml").read_text())["positions"]) == 3
            assert sorted(path.name for path in disk.iterdir()) == ["walk.toml"]
            refusals_alone(held)
        running.process.send_signal(signal.SIGINT)
        _, said = running.process.communicate(timeout=30)
        assert (running.process.returncode, said) == (0, "")


def test_a_second_ctrl_c_ends_an_editor_whose_disk_is_full_and_says_what_is_lost(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        complaint = "manet view: walk.toml is not saved, and its draft could not be written"
        running = started(disk, "--new", "walk.toml")
        filler = fill(disk)
        running.change(op="add_stations", at=[[0, 0]])
        assert running.process.stderr is not None
        for _ in range(2):
            running.process.send_signal(signal.SIGINT)
            assert running.process.stderr.readline().startswith(complaint)
        _, said = running.process.communicate(timeout=30)
        assert (running.process.returncode, said) == (0, "")
        filler.unlink()


def test_a_full_disk_for_results_or_for_temporary_files_is_one_line(tmp_path, monkeypatch):
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        (tmp_path / "two.toml").write_text("hops = 1\nduration = 2\n")
        monkeypatch.setenv("TMPDIR", str(disk))
        with editor(tmp_path, "--edit", "two.toml") as running:
            status, answer = running.send("/api/edit/check")
            assert status == 200 and answer["problem"] is None, "Python takes another folder for temporary files"
        monkeypatch.delenv("TMPDIR")
        subprocess.run(["mount", "-o", "remount,nr_inodes=2", disk], check=True)
        with editor(tmp_path, "--edit", "two.toml", "--control", "--out", str(disk / "results")) as running:
            status, answer = running.send("/api/edit/start", {"seeds": 1})
            assert status == 400 and "\n" not in answer["error"] and "No space left" in answer["error"], answer
            assert not running.ask("runs")["running"]
