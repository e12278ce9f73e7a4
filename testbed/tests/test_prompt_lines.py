"""What the prompt of `manet cli` does with a line once a child has died; without a network."""

from types import SimpleNamespace

import pytest

from testbed.errors import RunError
from testbed.runs import prompt


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
