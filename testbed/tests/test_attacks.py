"""All bad input of the table in attacks.py: one line, the status for wrong usage, the words asked for, nothing written."""

from pathlib import Path

import pytest

from testbed import __main__ as manet
from testbed.campaigns.schedule import Schedule
from testbed.tests.attacks import ATTACKS, Attack

MAX_ERROR_LENGTH = 1200


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with all requirements; an input that is accepted fails the test instead of being run."""

    def accepted(*_arguments: object, **_options: object) -> None:
        raise AssertionError("this input was accepted")

    monkeypatch.setattr("testbed.host.requirements.require_for_runs", lambda *_args, **_options: None)
    monkeypatch.setattr(Schedule, "_side_by_side", accepted)
    monkeypatch.setattr("testbed.runs.run.run_scenario", accepted)
    monkeypatch.chdir(tmp_path)


def command_of(attack: Attack, folder: Path) -> list[str]:
    path = folder / f"file{attack.suffix}"
    if callable(attack.file):
        attack.file(path)
    elif isinstance(attack.file, bytes):
        path.write_bytes(attack.file)
    elif attack.file or "{file}" in attack.command:
        path.write_text(attack.file)
    return [word.replace("{file}", path.name) for word in attack.command]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_bad_input_is_one_line_that_names_it(attack: Attack, rights: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    command = command_of(attack, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    try:
        status = manet.main(command)
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()
    assert status == attack.status, printed.err
    assert printed.err.count("\n") == 1, printed.err
    assert printed.err.startswith("manet") and printed.err.rstrip("\n").isprintable()
    assert len(printed.err) <= MAX_ERROR_LENGTH
    for words in attack.words:
        assert words in printed.err
    assert printed.out == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_the_table_has_a_hundred_cases_each_with_a_name_of_its_own() -> None:
    assert len(ATTACKS) >= 100
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
