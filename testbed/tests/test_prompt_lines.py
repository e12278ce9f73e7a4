"""Lines at the prompt of `manet cli`, also after the death of a child; without a network."""

import io
import os
import re
from types import SimpleNamespace

import pytest

from scenarios.scenario import Scenario
from testbed.errors import RunError, UsageError
from testbed.mn_wifi.cli import CLI
from testbed.runs import prompt
from testbed.tests.running import acting_network


def site(area):
    return SimpleNamespace(scenario=Scenario(hops=1, spacing=10, area=area))


@pytest.mark.parametrize("last", ["EOF", "exit", "quit"])
def test_a_failure_is_reported_once_and_the_prompt_can_be_left(monkeypatch, last):
    def check() -> None:
        raise RunError("sta1: aodvd was killed by SIGKILL")

    printed = []
    monkeypatch.setattr(prompt, "say", printed.append)
    monkeypatch.setattr(prompt.Prompt, "do_links", lambda _self, _line: printed.append("links"))
    shell = prompt.Prompt.__new__(prompt.Prompt)
    shell.network = SimpleNamespace(children=SimpleNamespace(check=check))
    assert shell.onecmd("links") is None
    assert shell.onecmd(last)
    assert printed == ["*** sta1: aodvd was killed by SIGKILL", "links"]


@pytest.mark.parametrize(
    ("line", "move", "expected"),
    [
        ("sta2 300 50", {"position": [300.0, 50.0, 0.0]}, "sta2: to (300, 50) m, height 0 m, at once"),
        ("sta2 300 50 5", {"position": [300.0, 50.0, 5.0]}, "sta2: to (300, 50) m, height 5 m, at once"),
        ("sta2 1 2 3 4.5", {"position": [1.0, 2.0, 3.0], "speed_mps": 4.5}, "sta2: to (1, 2) m, height 3 m, at 4.5 m/s"),
    ],
)
def test_a_move_prints_the_parsed_command(monkeypatch, tmp_path, line, move, expected):
    given, printed = [], []
    monkeypatch.setattr(prompt, "say", printed.append)
    shell = prompt.Prompt.__new__(prompt.Prompt)
    medium = SimpleNamespace(ask=lambda op, **arguments: given.append((op, arguments)) or {"model_ns": 0})
    shell.network = SimpleNamespace(net={"sta2": None}, medium=medium, site=site(area=(300.0, 50.0)))
    shell.live = acting_network(shell.network, tmp_path)
    shell.do_move(line)
    assert given == [("move", {"station": "sta2", **move}), ("status", {})]
    assert printed == [expected]


@pytest.mark.parametrize(
    ("line", "where"),
    [("sta2 301 50", "(301, 50)"), ("sta2 300 50.5 5", "(300, 50.5)"), ("sta2 -1 0 0 3", "(-1, 0)")],
)
def test_a_move_that_leaves_the_area_is_refused_as_a_trace_that_does_is(monkeypatch, tmp_path, line, where):
    given, printed = [], []
    monkeypatch.setattr(prompt, "say", printed.append)
    shell = prompt.Prompt.__new__(prompt.Prompt)
    medium = SimpleNamespace(ask=lambda op, **arguments: given.append(op) or {"model_ns": 0})
    shell.network = SimpleNamespace(net={"sta2": None}, medium=medium, site=site(area=(300.0, 50.0)))
    shell.live = acting_network(shell.network, tmp_path)
    with pytest.raises(UsageError) as refused:
        shell.do_move(line)
    assert given == printed == []
    assert str(refused.value) == (
        f"position: sta2 would go to {where} m, outside the area of 300 x 50 m; correct the place, or give a larger area"
    )
    shell.live.site = site(area=None)
    shell.do_move(line)
    assert given == ["move", "status"]


def bare_prompt(monkeypatch) -> tuple[prompt.Prompt, list[str]]:
    """A prompt without a network, and what it says."""
    printed: list[str] = []
    monkeypatch.setattr(prompt, "say", printed.append)
    monkeypatch.setattr(prompt.Prompt, "do_links", lambda _self, line: printed.append(f"links {line}".strip()))
    shell = prompt.Prompt.__new__(prompt.Prompt)
    shell.network, shell.sourced = SimpleNamespace(children=SimpleNamespace(check=lambda: None)), []
    return shell, printed


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
    shell, printed = bare_prompt(monkeypatch)
    file = tmp_path / "lines"
    if content == "folder":
        file.mkdir()
    elif content == "fifo":
        os.mkfifo(file)
    elif content is not None:
        file.write_bytes(content.replace(b"FILE", bytes(file)))
    assert not shell.onecmd(f"source {file}")
    assert len(printed) == 1
    assert printed[0].startswith(f"*** source {file}: {words}")


def test_a_sourced_file_is_obeyed_line_by_line_up_to_its_exit(monkeypatch, tmp_path):
    shell, printed = bare_prompt(monkeypatch)
    (tmp_path / "lines").write_text("# who hears whom\nlinks one  # and why\n\nlinks two\nexit\nlinks three\n")
    assert shell.onecmd(f"source {tmp_path}/lines")
    assert printed == ["links one", "links two"]
    assert not shell.onecmd("source")
    assert printed[2:] == ["usage: source FILE"]


def test_a_verb_that_fails_is_one_line_and_not_the_end(monkeypatch):
    shell, printed = bare_prompt(monkeypatch)
    monkeypatch.setattr(prompt.Prompt, "do_dump", lambda _self, _line: 1 / 0)
    assert not shell.onecmd("dump")
    assert printed == ["*** dump: ZeroDivisionError: division by zero"]


def test_help_lists_the_commands_of_the_testbed_first_with_a_line_each(monkeypatch):
    said = []
    monkeypatch.setattr(prompt, "say", said.append)
    prompt.Prompt.__new__(prompt.Prompt).do_help("")
    ours, mininets, stations = said
    names = [line.split()[0] for line in ours.splitlines()[1:]]
    assert {
        "links",
        "routes",
        "map",
        "move",
        "replay",
        "power",
        "link",
        "event",
        "drops",
        "air",
        "iperf",
        "iperfudp",
        "source",
    } <= set(names)
    assert all(len(line.split()) > 3 for line in ours.splitlines())
    assert mininets.startswith("Mininet's own: dump, exit, ")
    assert not set(names) & set(re.findall(r"\w+", mininets))
    assert not {"switch", "dpctl"} & {*names, *re.findall(r"\w+", mininets)}
    assert "sta1 ping" in stations and "h1" not in stations


def test_help_of_a_script_s_prompt_has_its_own_commands_too(monkeypatch):
    said = []
    monkeypatch.setattr(prompt, "say", said.append)
    shell = CLI.__new__(CLI)
    shell.do_help("")
    names = [line.split()[0] for line in said[0].splitlines()[1:]]
    assert {"links", "distance", "stop"} <= set(names)


def test_help_of_a_command_says_how_it_is_written(monkeypatch):
    shell, _said = bare_prompt(monkeypatch)
    shell.stdout = io.StringIO()
    shell.onecmd("help power")
    assert "Usage: power station off|on" in shell.stdout.getvalue()


@pytest.mark.parametrize(
    ("links", "moving", "told"),
    [
        ([("sta1", "sta2"), ("sta2", "sta1"), ("sta2", "sta3"), ("sta3", "sta2")], False, None),
        ([("sta1", "sta2"), ("sta2", "sta1")], False, "sta3 reaches no other station; `map` shows"),
        ([("sta1", "sta2")], False, "sta2 and sta3 reach no other station; `map` shows places and ranges, `move sta2 X Y`"),
        ([], False, "no station reaches another; `map` shows places and ranges, `move sta1 X Y` moves a station"),
        ([], True, None),
    ],
)
def test_stations_that_nobody_hears_are_named_at_the_start(links, moving, told):
    stations = [SimpleNamespace(name=name) for name in ("sta1", "sta2", "sta3")]
    network = SimpleNamespace(stations=stations, medium=SimpleNamespace(links=lambda: links))
    said = prompt.unheard(network, SimpleNamespace(mobility=SimpleNamespace(moving=moving)))
    assert said is None if told is None else said.startswith(told)


def test_many_stations_that_nobody_hears_are_counted():
    stations = [SimpleNamespace(name=f"sta{number}") for number in range(1, 13)]
    network = SimpleNamespace(stations=stations, medium=SimpleNamespace(links=lambda: [("sta1", "sta2"), ("sta2", "sta1")]))
    said = prompt.unheard(network, SimpleNamespace(mobility=SimpleNamespace(moving=False)))
    assert said.startswith("sta3, sta4, sta5, sta6, sta7, sta8, sta9, sta10 and 2 more reach no other station; ")
