"""Ctrl-C of a view whose client does not take its answers: one line, and its end, in each kind of view."""

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.programs import ROOT
from testbed.view.tests.serving import UNFINISHED, unfinished_request, view

pytestmark = pytest.mark.slow  # the server waits 5 s for the client

BUNDLE, RUN = ROOT / "examples/lessons/recorded/rates.zip", "results/rates/minstrel-ht/seed-1"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Iterator[Path]:
    """The recorded run of a lesson."""
    folder = tmp_path_factory.mktemp("rates")
    with zipfile.ZipFile(BUNDLE) as archive:
        archive.extractall(folder)
    yield folder / RUN


@pytest.mark.parametrize("path", ["/static/vendor/uPlot.esm.js", "/api/frames?from=0&to=99999999999"])
def test_ctrl_c_with_an_unfinished_request_of_a_recorded_run_says_one_line(path: str, run: Path):
    with ExitStack() as after, view(run, complaint=UNFINISHED) as served:
        after.enter_context(unfinished_request(served.url, served.process, path))


@pytest.mark.parametrize("kind", ["first page", "planned", "editor"])
def test_ctrl_c_with_an_unfinished_request_says_one_line(kind: str, tmp_path: Path):
    scenario = tmp_path / "walk.toml"
    scenario.write_text("hops = 1\n")
    name, *words = {
        "first page": [None, "--out", str(tmp_path)], "planned": [scenario], "editor": [None, "--edit", str(scenario)],
    }[kind]  # fmt: skip
    with ExitStack() as after, view(name, *words, complaint=UNFINISHED) as served:
        after.enter_context(unfinished_request(served.url, served.process))
