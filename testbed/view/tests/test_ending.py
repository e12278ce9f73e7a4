"""Ctrl-C of a view whose client does not take its answer: one line, in each kind of view."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.tests.running import Background, chain, needs_runs
from testbed.view.tests.serving import UNFINISHED, unfinished_request, view

pytestmark = pytest.mark.slow  # the server waits 5 s for the client


@pytest.mark.parametrize("kind", ["first page", "planned", "editor"])
def test_ctrl_c_with_an_unfinished_request_says_one_line(kind: str, tmp_path: Path):
    scenario = tmp_path / "walk.toml"
    scenario.write_text("hops = 1\n")
    name, *words = {
        "first page": [None, "--out", str(tmp_path)], "planned": [scenario], "editor": [None, "--edit", str(scenario)],
    }[kind]  # fmt: skip
    with ExitStack() as after, view(name, *words, complaint=UNFINISHED) as served:
        after.enter_context(unfinished_request(served.url))


@pytest.mark.root
@needs_runs
def test_ctrl_c_with_an_unfinished_request_of_a_run_says_one_line(tmp_path: Path):
    running = Background(chain(hops=2, duration=15, routing="static"), tmp_path / "run", deadline_s=120).at("traffic")
    for kind in ("live", "recorded"):
        with ExitStack() as after, view(tmp_path / "run", complaint=UNFINISHED) as served:
            assert served.ask("/api/run")["kind"] == kind
            after.enter_context(unfinished_request(served.url))
        running.result()
