"""Fixtures of several tests: scenarios, and whose rights the testbed has."""

from pathlib import Path

import pytest

from scenarios.definition import load_scenario
from testbed.host import privileges


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads TOML text as x.toml of the current folder, with `--set` values."""
    monkeypatch.chdir(tmp_path)

    def from_text(text, *overrides):
        Path("x.toml").write_text(text)
        return load_scenario(Path("x.toml"), overrides)

    return from_text


@pytest.fixture
def as_root(monkeypatch):
    """The testbed takes this process for root of the machine, whoever calls the tests."""
    monkeypatch.setattr(privileges, "rootless", lambda: False)


@pytest.fixture
def as_user(monkeypatch):
    """The testbed takes this process for an ordinary user's, and has it enter no namespace."""
    monkeypatch.setattr(privileges, "rootless", lambda: True)
    monkeypatch.setattr(privileges, "enter", lambda *_arguments: None)


@pytest.fixture(params=["root", "user"])
def rights(request):
    """Both, one after the other: the name of the one."""
    request.getfixturevalue(f"as_{request.param}")
    return request.param
