"""Terminals of the page: lines at a station, keys for their commands, and output that cannot act on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from record.events_file import read_events
from record.files import read_object
from testbed.view.tests.serving import Served, view
from testbed.view.tests.test_drive import Run
from testbed.view.tests.test_page import MISSING, browser, opened, until, violations  # noqa: F401  (browser is a fixture)

pytestmark = [
    pytest.mark.root, pytest.mark.slow, pytest.mark.pages,
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
    pytest.mark.alone("acts on a run under way, in real time"),
]  # fmt: skip

# sets titles, reads and writes the clipboard, opens a link, asks for reports, switches to the other screen, mouse and paste modes
ATTACKS = (
    r"\033]0;taken\007", r"\033]2;taken\007", r"\033]52;c;dGFrZW4=\007", r"\033]52;c;?\007",
    r"\033]8;;http://evil.example/\033\\link\033]8;;\033\\", r"\033[6n", r"\033[c", r"\033[>c", r"\033[21t", r"\033P$q\"p\033\\",
    r"\033]10;?\007", r"\033[?1049h", r"\033[?1003h", r"\033[?2004h", r"\033[?25l", r"\033[8m", r"\033[3;3t",
    r"\033]1337;File=inline=1:eA==\007", r"\033#8", "<script>window.taken = 1</script><img src=x onerror=window.taken=1>",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    running = Run(tmp_path_factory.mktemp("terminal"))
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def served(run: Run) -> Iterator[Served]:
    with view(run.directory, "--control") as with_control:
        yield with_control


def entered(page, line: str, station: str = "sta1") -> None:
    page.fill("#terminal-line", line)
    page.press("#terminal-line", "Enter")


def shows(page, text: str, station: str = "sta1") -> None:
    until(page, f"window.manetView.terminals().{station}?.text.includes({text!r})")


def is_idle(page, station: str = "sta1") -> None:
    until(
        page, f"window.manetView.terminals().{station}?.running === false && !document.querySelector('#terminal-line').disabled"
    )


def with_terminal(page, station: str = "sta1") -> None:
    until(page, "window.manetView.state.live?.frames.count > 20")
    if page.get_attribute(f'button[data-station="{station}"]', "aria-pressed") == "false":
        page.click(f'button[data-station="{station}"]')
    page.click("#terminal")
    page.wait_for_selector(f"#terminal-tabs button:has-text('{station}')")
    until(page, "document.activeElement.id === 'terminal-line'")


def test_a_line_runs_at_the_station_and_is_recorded(browser, served: Served, run: Run):  # noqa: F811
    with opened(browser, served) as page:
        with_terminal(page)
        page.keyboard.type("ip -brief address show dev lo; exit 3")
        page.keyboard.press("Enter")
        shows(page, "127.0.0.1")
        shows(page, "[status 3]")
        is_idle(page)
        page.keyboard.press("ArrowUp")
        assert page.input_value("#terminal-line") == "ip -brief address show dev lo; exit 3"
        page.keyboard.press("Control+c")
        assert page.input_value("#terminal-line") == ""
        assert violations(page) == 0
        with_terminal(page, "sta2")
        entered(page, "echo here $((40 + 2))")
        shows(page, "here 42", "sta2")
        page.click("#terminal-close")
        page.click("#terminal-close")
        page.wait_for_selector("#terminals", state="hidden")
    rows = [row for row in read_events(run.directory) if row["source"] == "exec"]
    assert [row["station"] for row in rows[-2:]] == ["sta1", "sta2"]


def test_keys_go_to_the_command_and_a_closed_terminal_hangs_it_up(browser, served: Served):  # noqa: F811
    with opened(browser, served) as page:
        with_terminal(page)
        entered(page, "read word; echo got $word; exec cat")
        until(page, "window.manetView.terminals().sta1.running")
        page.keyboard.type(" c. d")  # keys of the page elsewhere
        page.keyboard.press("Enter")
        shows(page, "got c. d")
        page.keyboard.press("Control+c")
        shows(page, "[ended by signal 2]")
        is_idle(page)
        entered(page, "exec sleep 98766")
        until(page, "window.manetView.terminals().sta1.running")
        page.click("#terminal-close")
        with_terminal(page)
        entered(page, "for i in $(seq 50); do pgrep -f '^sleep 9876[6]' >/dev/null || { echo gone; break; }; sleep 0.1; done")
        shows(page, "\ngone")


def test_escape_sequences_do_nothing_but_draw(browser, served: Served):  # noqa: F811
    with opened(browser, served, permissions=["clipboard-read", "clipboard-write"]) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
        with_terminal(page)
        page.evaluate("navigator.clipboard.writeText('mine')")
        title, address = page.title(), page.url
        for attack in ATTACKS:
            quoted = attack.replace("'", "'\\''")
            entered(page, f"printf '%b' '{quoted}'; echo; echo done")
            is_idle(page)
            assert page.input_value("#terminal-line") == "", attack
        entered(page, "echo still here")
        shows(page, "\nstill here")
        assert (page.title(), page.url.partition("#")[0], dialogs) == (title, address.partition("#")[0], [])
        assert page.evaluate("navigator.clipboard.readText()") == "mine"
        assert page.evaluate("window.taken") is None
        assert page.locator("#terminal-screens a[href], #terminal-screens script, #terminal-screens img").count() == 0
        entered(page, r"printf '\033]8;;http://evil.example/\033\\press\033]8;;\033\\\n'")
        is_idle(page)
        page.locator("#terminal-screens").get_by_text("press", exact=True).click(force=True)
        assert page.url.partition("#")[0] == address.partition("#")[0] and dialogs == []
        assert len(page.context.pages) == 1


def test_without_control_there_is_no_terminal(browser, run: Run):  # noqa: F811
    with view(run.directory) as served, opened(browser, served) as page:
        until(page, "window.manetView.state.live?.frames.count > 20")
        page.click('button[data-station="sta1"]')
        page.wait_for_selector("#station dl")
        assert page.locator("#terminal").count() == 0 and page.is_hidden("#terminals")


def test_lines_are_in_the_record(tmp_path: Path, browser):  # noqa: F811
    run = Run(tmp_path)
    try:
        with view(run.directory, "--control") as served, opened(browser, served) as page:
            with_terminal(page)
            entered(page, "ip route show 10.0.0.0/8")
            is_idle(page)
    finally:
        run.end()
    (command,) = read_object(run.directory / "run.json")["commands"]
    assert (command["station"], command["argv"]) == ("sta1", ["sh", "-c", "ip route show 10.0.0.0/8"])
