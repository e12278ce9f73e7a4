"""The workflows of examples/ci: valid YAML that names programs, options and files that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from manet_testbed import pytest_plugin
from testbed.programs import ROOT

FOLDER = ROOT / "examples" / "ci"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def script_of(path: Path) -> str:
    """The commands of the only job: of GitHub's steps, or GitLab's script."""
    described = yaml.safe_load(path.read_text())
    if "jobs" not in described:
        return "\n".join(described["mesh"]["script"])
    (job,) = described["jobs"].values()
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_workflow_needs_a_privileged_container_or_runs_the_testbed_by_sudo(path: Path) -> None:
    text = re.sub(r"^ *#.*$", "", path.read_text(), flags=re.MULTILINE)
    assert not re.search(r"\bprivileged", text)
    assert not re.search(r"sudo \S*(manet|pytest|python)", script_of(path))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_sets_up_installs_and_tests(path: Path) -> None:
    assert len(WORKFLOWS) == 3
    script = script_of(path)
    order = [
        script.index(words) for words in ("manet/setup.sh\n", "pip install pytest --editable manet", "-m pytest --manet-require")
    ]
    assert order == sorted(order)
    assert [name for name in re.findall(r"tests/(\w+\.py)", script) if not (FOLDER / name).exists()] == []
    assert "--manet-require" in Path(pytest_plugin.__file__).read_text()


def test_the_test_is_collected_in_place_without_the_libraries_of_the_checkouts_own_tests(tmp_path: Path) -> None:
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "manet_testbed.pytest_plugin"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run([*command, "test_babeld.py"], cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "test_babeld.py::test_two_hops" in done.stdout, done.stdout + done.stderr


def test_the_packages_of_the_hosted_workflow_are_those_of_setup() -> None:
    assert " $(manet/setup.sh --packages)\n" in (FOLDER / "github-actions.yml").read_text()
    listed = subprocess.run([ROOT / "setup.sh", "--packages"], capture_output=True, text=True, check=True).stdout.split()
    assert {"mininet", "iperf3", "bpftool"} <= set(listed)
