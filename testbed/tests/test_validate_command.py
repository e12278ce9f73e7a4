"""`manet validate`: its output and its progress, without simulations."""

import json

import pytest

from testbed.__main__ import main
from testbed.validate import checks


@pytest.fixture
def simulations(monkeypatch):
    def evaluate(chosen, progress):
        for done in range(1, 651):
            progress(done, 650)
        return [checks.Check(case.name, 1.0, 1.0, "ns-2", 0.05, True, "kbit/s", 0.0) for case in chosen]

    monkeypatch.setattr(checks, "evaluate", evaluate)


def test_progress_is_lines_on_standard_error_where_that_is_no_terminal(simulations, capsys):
    """20 lines and the first, each but it a twentieth of 650 simulations, rounded up to a whole one: 33, 65, 98, ..."""
    assert main(["validate", "--only", "ns2/*", "--json"]) == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    assert len(lines) == 21
    assert lines[:3] == [f"manet validate: simulating: {done} of 650" for done in (1, 33, 65)]
    assert lines[-1] == "manet validate: simulating: 650 of 650"
    assert {check["name"].split("/")[0] for check in json.loads(printed.out)} == {"ns2"}
