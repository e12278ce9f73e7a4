"""The check of a text opens no file outside of the editor's folder, however the text leads there, and repeats nothing of it."""

import json
from pathlib import Path

import pytest

from testbed.view.editor.check import Checker
from testbed.view.editor.workspace import Workspace

TWO = 'flows = [{ from = "sta1", to = "sta2"'
SECRET = "swordfish = [\n"  # no TOML, no CSV and no JSON: whoever reads it complains, and quotes it


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """A folder with files that lead out of it."""
    (tmp_path / "secret.toml").write_text(SECRET)
    (tmp_path / "secret.csv").write_text(SECRET)
    space = tmp_path / "space"
    (space / "moves").mkdir(parents=True)
    (space / "link.toml").symlink_to(tmp_path / "secret.toml")
    (space / "out").symlink_to(tmp_path)
    (space / "moves" / "1.csv").symlink_to(tmp_path / "secret.csv")
    (space / "based.toml").write_text('base = "../secret.toml"\n')
    (space / "moving.toml").write_text('hops = 1\nmobility = "../secret.csv"\n')
    (space / "chain.toml").write_text('base = "moving.toml"\n')
    (space / "here").mkdir()
    (space / "here" / "own.toml").write_text('base = "../../secret.toml"\n')
    return space


def checked(space: Path, text: str) -> tuple[dict, str]:
    """The problem that the check finds, and all of its answer."""
    found = Checker(Workspace(space)).check(text, "x.toml")
    return found["problem"], json.dumps(found)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("base", 'base = "../secret.toml"'), ("base", 'base = "/etc/passwd"'), ("base", 'base = "link.toml"'),
        ("base", 'base = "out/secret.toml"'), ("base", 'base = "here/../../secret.toml"'),
        ("mobility", 'hops = 1\nmobility = "/etc/shadow"'), ("mobility", 'hops = 1\nmobility = { file = "../secret.csv" }'),
        ("mobility", 'hops = 1\nmobility = { file = "../*.csv" }'),
        ("propagation", 'hops = 1\npropagation = { model = "trace", file = "/etc/shadow" }'),
        ("routing", 'hops = 1\nrouting = "../secret.toml"'), ("routing", 'hops = 1\nrouting = { protocol = "/secret.toml" }'),
        ("flows", f'hops = 1\n{TWO}, traffic = "vbr", interval = 1, sizes = "/etc/shadow" }}]'),
        ("flows", f'hops = 1\n{TWO}, traffic = "vbr", interval = 1, sizes = "out/secret.csv" }}]'),
        ("flows", f'hops = 1\n{TWO}, traffic = "../secret.toml" }}]'),
        ("topology", 'topology = { file = "/etc/passwd" }'), ("radio", 'hops = 1\nradio = "../secret.toml"'),
        ("stations", 'hops = 1\nstations = [{ name = "sta1", rootfs = "/etc" }]'),
    ],
)  # fmt: skip
def test_a_key_that_names_a_file_outside_is_refused(space, key, text):
    problem, answer = checked(space, text)
    assert "outside of" in problem["text"] and problem["path"][0] == key and "swordfish" not in answer and "root:" not in answer


@pytest.mark.parametrize(
    "text",
    [
        'base = "based.toml"', 'base = "moving.toml"', 'base = "chain.toml"', 'hops = 1\nmobility = { file = "moves/*.csv" }',
        'hops = 1\nrouting = "here/own.toml"', 'hops = 1\nradio = "here/own.toml"',
        f'hops = 1\n{TWO}, traffic = "here/own.toml" }}]',
        'question = "?"\n[scenario]\nhops = 1\n[axes]\nmobility = ["../secret.csv"]',
        'question = "?"\n[scenario]\nhops = 1\n[[variants]]\nname = "v"\nset = { routing = "../secret.toml" }',
    ],
)  # fmt: skip
def test_a_file_of_the_folder_leads_to_none_outside(space, text):
    problem, answer = checked(space, text)
    assert "outside of" in problem["text"] and "swordfish" not in answer


def test_files_of_the_folder_are_opened(space):
    (space / "walk.csv").write_text("time_s,station,x_m,y_m\n0,sta1,0,0\n0,sta2,9,0\n")
    (space / "own.toml").write_text("hops = 1\n")
    problem, _answer = checked(space, 'base = "own.toml"\nmobility = "here/../walk.csv"')
    assert problem is None or "outside of" not in problem["text"]


ESCAPES = json.dumps("\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r")  # a title, a cleared screen, red, right to left; in TOML the same


@pytest.mark.parametrize(
    "text",
    [
        f"tcp = {ESCAPES}", f"{ESCAPES} = 1", f"mobility = {ESCAPES}", f"mobility = {{ file = {ESCAPES} }}",
        f"routing = {ESCAPES}", f"routing = {{ protocol = {ESCAPES} }}", f"routing = {{ protocol = 'aodv', {ESCAPES} = 1 }}",
        f"radio = {ESCAPES}", f"propagation = {{ model = 'trace', file = {ESCAPES} }}", f"propagation = {{ model = {ESCAPES} }}",
        f"radio_overrides = {{ {ESCAPES} = 1 }}", f"stations = [{{ name = 'sta1', rootfs = {ESCAPES} }}]",
        f"stations = [{{ name = {ESCAPES}, image = 'x' }}]", f"events = [{{ at = 1, power = {ESCAPES}, on = false }}]",
        f"events = [{{ at = 1, station = 'sta1', command = [{ESCAPES}] }}]",
        f"wires = [{{ station = 'sta1', host = {ESCAPES} }}]",
        f"walls = [{{ from = [0, 0], to = [1, 1], {ESCAPES} = 6 }}]", f"traffic = {ESCAPES}", f"duration = {ESCAPES}",
        f"flows = [{{ from = {ESCAPES}, to = 'sta1' }}]", f"flows = [{{ from = 'sta1', to = 'sta2', traffic = {ESCAPES} }}]",
        f"flows = [{{ from = 'sta1', to = 'sta2', tcp = {ESCAPES} }}]",
        f"flows = [{{ from = 'sta1', to = 'sta2', traffic = 'vbr', interval = 1, sizes = {ESCAPES} }}]",
        f"flows = [{{ from = 'sta1', to = 'sta2', traffic = 'command', command = [{ESCAPES}] }}]",
    ],
)  # fmt: skip
def test_no_escape_sequence_is_in_what_the_check_says(space, text):
    problem, _answer = checked(space, f"hops = 1\n{text}")
    assert problem is not None and problem["text"].isprintable()


@pytest.mark.parametrize(
    "text",
    [
        f"base = {ESCAPES}", f"topology = {{ file = {ESCAPES} }}", f"topology = {ESCAPES}", "#\x1b[2J", "hops = '\x1b'",
        f"topology = 'positions'\npositions = [[0, 0], {{ name = {ESCAPES}, at = [9, 9] }}]",
        f"question = '?'\n[scenario]\nhops = 1\n[axes]\ntcp = [{ESCAPES}]",
        f"question = '?'\n[scenario]\nhops = 1\n[axes]\n{ESCAPES} = [1]",
        f"question = '?'\n[scenario]\nhops = 1\n[[variants]]\nname = {ESCAPES}",
        f"question = '?'\nfigure = {ESCAPES}\nplot = {ESCAPES}\n[scenario]\nhops = 1\n[axes]\nhops = [1]",
    ],
)  # fmt: skip
def test_no_escape_sequence_is_in_what_is_said_of_a_whole_file(space, text):
    problem, _answer = checked(space, text)
    assert problem is not None and problem["text"].isprintable()
