"""Fixtures of several tests of scenarios."""

from pathlib import Path

import pytest

from scenarios.definition import load_scenario


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads TOML text as x.toml of the current folder, with `--set` values."""
    monkeypatch.chdir(tmp_path)

    def from_text(text, *overrides):
        Path("x.toml").write_text(text)
        return load_scenario(Path("x.toml"), overrides)

    return from_text
