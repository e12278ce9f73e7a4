"""docs/python.md: its code runs as it is written, and its reference names every part of the interface."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import manet_testbed
from testbed.programs import ROOT
from testbed.tests.running import needs_runs

PAGE = (ROOT / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CLASSES = (manet_testbed.Scenario, manet_testbed.Experiment, manet_testbed.Results, manet_testbed.Run)


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_the_code_of_the_page_runs_from_any_folder(tmp_path: Path) -> None:
    assert len(BLOCKS) == 4
    path = tmp_path / "page.py"
    path.write_text("\n".join(BLOCKS))
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "[3/3] all seed " in done.stdout and "newreno" in done.stdout
    assert {path.name for path in tmp_path.glob("*.png")} == {"two-hops.png", "heat-map.png", "window.png"}
    assert len(list(tmp_path.glob("results/*/table.csv"))) == 3


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_the_reference_names_every_part_of_a_class(one: type) -> None:
    reference = PAGE.partition("## Reference")[2]
    names = [name for name, _ in inspect.getmembers(one) if not name.startswith("_")]
    assert len(names) > 5
    assert [name for name in names if not re.search(rf"\b{name}\b", reference)] == []


def test_the_reference_names_every_error() -> None:
    errors = [name for name in manet_testbed.__all__ if name.startswith(("Wrong", "Unreadable", "Missing"))]
    assert [name for name in errors if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_every_part_of_a_class_has_a_docstring(one: type) -> None:
    members = inspect.getmembers(one, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    assert [name for name, member in members if not name.startswith("_") and not inspect.getdoc(member)] == []


def test_the_python_of_the_checkout_imports_the_package_from_any_folder(tmp_path: Path) -> None:
    """By manet.pth, which setup.sh writes."""
    python = ROOT / ".venv" / "bin" / "python"
    if not list((ROOT / ".venv").glob("lib/python3.*/site-packages/manet.pth")):
        pytest.skip("no manet.pth in .venv: ./setup.sh of this version was not run")
    code = "import manet_testbed, testbed; print(manet_testbed.__file__)"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, env={})
    assert done.stdout == f"{ROOT / 'manet_testbed' / '__init__.py'}\n", done.stderr
