"""What the prompt of `manet cli` does with a line, also once a child has died; without a network."""

import os
from types import SimpleNamespace

import pytest

from testbed.errors import RunError
from testbed.runs import prompt


def site(area):
    return SimpleNamespace(scenario=SimpleNamespace(area=area))


@pytest.mark.parametrize("last", ["EOF", "exit", "quit"])
def test_a_death_is_told_once_and_the_prompt_can_be_left(monkeypatch, last):
    def check() -> None:
        raise RunError("sta1: aodvd was killed by SIGKILL")

    said = []
    monkeypatch.setattr(prompt, "say", said.append)
    monkeypatch.setattr(prompt.Prompt, "do_links", lambda _self, _line: said.append("links"))
    shell = prompt.Prompt.__new__(prompt.Prompt)
    shell.network = SimpleNamespace(children=SimpleNamespace(check=check))
    assert shell.onecmd("links") is None
    assert shell.onecmd(last)
    assert said == ["*** sta1: aodvd was killed by SIGKILL", "links"]


@pytest.mark.parametrize(
    ("line", "asked", "told"),
    [
        ("sta2 300 50", {"position": [300.0, 50.0, 0.0]}, "sta2: to (300, 50) m, height 0 m, at once"),
        ("sta2 300 50 5", {"position": [300.0, 50.0, 5.0]}, "sta2: to (300, 50) m, height 5 m, at once"),
        ("sta2 1 2 3 4.5", {"position": [1.0, 2.0, 3.0], "speed_mps": 4.5}, "sta2: to (1, 2) m, height 3 m, at 4.5 m/s"),
    ],
)
def test_a_move_says_what_was_understood(monkeypatch, line, asked, told):
    given, said = [], []
    monkeypatch.setattr(prompt, "say", said.append)
    shell = prompt.Prompt.__new__(prompt.Prompt)
    medium = SimpleNamespace(ask=lambda op, **arguments: given.append((op, arguments)))
    shell.network = SimpleNamespace(net={"sta2": None}, medium=medium, site=site(area=(300.0, 50.0)))
    shell.do_move(line)
    assert given == [("move", {"station": "sta2", **asked})]
    assert said == [told]


@pytest.mark.parametrize(
    ("line", "where"),
    [("sta2 301 50", "(301, 50)"), ("sta2 300 50.5 5", "(300, 50.5)"), ("sta2 -1 0 0 3", "(-1, 0)")],
)
def test_a_move_that_leaves_the_area_is_refused_as_a_trace_that_does_is(monkeypatch, line, where):
    given, said = [], []
    monkeypatch.setattr(prompt, "say", said.append)
    shell = prompt.Prompt.__new__(prompt.Prompt)
    medium = SimpleNamespace(ask=lambda op, **arguments: given.append(op))
    shell.network = SimpleNamespace(net={"sta2": None}, medium=medium, site=site(area=(300.0, 50.0)))
    shell.do_move(line)
    assert given == []
    told = f"*** sta2 would go to {where} m, outside the area of 300 x 50 m; stay within, or give the scenario a larger area"
    assert said == [told]
    shell.network.site = site(area=None)
    shell.do_move(line)
    assert given == ["move"]


def bare_prompt(monkeypatch) -> tuple[prompt.Prompt, list[str]]:
    """A prompt without a network, and what it says."""
    said: list[str] = []
    monkeypatch.setattr(prompt, "say", said.append)
    monkeypatch.setattr(prompt.Prompt, "do_links", lambda _self, line: said.append(f"links {line}".strip()))
    shell = prompt.Prompt.__new__(prompt.Prompt)
    shell.network, shell.sourced = SimpleNamespace(children=SimpleNamespace(check=lambda: None)), []
    return shell, said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b"\xff\xfe", "is not UTF-8 text"),
        ("folder", "is not a regular file"),
        ("fifo", "is not a regular file"),
        (b"source FILE\n", "is being read already"),
    ],
)
def test_a_file_that_cannot_be_sourced_is_one_line_and_not_the_end(monkeypatch, tmp_path, content, words):
    shell, said = bare_prompt(monkeypatch)
    file = tmp_path / "lines"
    if content == "folder":
        file.mkdir()
    elif content == "fifo":
        os.mkfifo(file)
    elif content is not None:
        file.write_bytes(content.replace(b"FILE", bytes(file)))
    assert not shell.onecmd(f"source {file}")
    assert len(said) == 1
    assert said[0].startswith(f"*** source {file}: {words}")


def test_a_sourced_file_is_obeyed_line_by_line_up_to_its_exit(monkeypatch, tmp_path):
    shell, said = bare_prompt(monkeypatch)
    (tmp_path / "lines").write_text("# who hears whom\nlinks one  # and why\n\nlinks two\nexit\nlinks three\n")
    assert shell.onecmd(f"source {tmp_path}/lines")
    assert said == ["links one", "links two"]
    assert not shell.onecmd("source")
    assert said[2:] == ["usage: source FILE"]


def test_a_verb_that_fails_is_one_line_and_not_the_end(monkeypatch):
    shell, said = bare_prompt(monkeypatch)
    monkeypatch.setattr(prompt.Prompt, "do_dump", lambda _self, _line: 1 / 0)
    assert not shell.onecmd("dump")
    assert said == ["*** dump: ZeroDivisionError: division by zero"]
