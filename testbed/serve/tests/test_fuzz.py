"""Requests made from the interface's own description (Schemathesis), against a server whose runs end at once.

Valid and invalid requests of every address: no answer is an error of the server, each has a described status, kind and content,
invalid ones are refused, and addresses without the token too. Not checked is whether each request that fits the schema is
accepted: a scenario may contradict itself in ways that a schema does not express.
"""

import importlib.util
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.serve.tests.serving import SHORT, Served, serving
from testbed.tests.running import needs_runs

needs_schemathesis = pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None, reason="schemathesis: not installed; ./setup.sh --pages"
)
pytestmark = [pytest.mark.pages, pytest.mark.slow, needs_schemathesis, pytest.mark.root, needs_runs]
EXAMPLES = 40  # of each operation; of the request for a run, which has hundreds of keys:
RUN_EXAMPLES = 200
# run 1 has ended, with results; a body above the limit is refused by its size, before its keys
CONFIGURATION = """
[parameters]
{parameters}
[checks]
positive_data_acceptance.enabled = false
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 421, 422, 429]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run 1 is a real one; the others end at once."""
    folder = tmp_path_factory.mktemp("fuzz")
    with serving(folder) as served:
        served.end_of(served.start(SHORT))
    with serving(folder, "--end", held=True) as served:
        yield served


def fuzz(server: Served, folder: Path, *options: str, parameters: str = "") -> str:
    """Schemathesis's report; fails if it found something."""
    configuration = folder / "schemathesis.toml"
    configuration.write_text(CONFIGURATION.format(parameters=parameters))
    seed = random.randrange(1 << 31)
    argv = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration), "run",
        f"http://127.0.0.1:{server.port}/api/openapi.json", "--header", f"Authorization: Bearer {server.token}",
        "--seed", str(seed), "--continue-on-failure", "--no-color", *options,
    ]  # fmt: skip
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "120"})
    lines = "\n".join(line[:300] for line in (done.stdout + done.stderr).splitlines())
    assert done.returncode == 0, f"seed {seed}\n{lines}"
    assert server.get("/api/runs/1")["state"] == "complete"
    return done.stdout


def test_results_answer_all_requests_as_described(server: Served, tmp_path: Path) -> None:
    """Of run 1, so that most requests reach its files."""
    fixed = 'id = "1"\ncell = "all"\nseed = 1\n'
    report = fuzz(
        server, tmp_path, "-n", str(EXAMPLES), "--phases", "coverage,fuzzing", "--include-path-regex", "{id}", parameters=fixed
    )
    assert "10 selected" in report and "Tested: 10" in report


def test_any_path_and_query_answers_as_described(server: Served, tmp_path: Path) -> None:
    fuzz(server, tmp_path, "--phases", "coverage,fuzzing", "-n", str(EXAMPLES), "--exclude-method", "POST")


def test_any_request_for_a_run_answers_as_described(server: Served, tmp_path: Path) -> None:
    fuzz(server, tmp_path, "-n", str(RUN_EXAMPLES), "--phases", "examples,fuzzing", "--include-method", "POST")
