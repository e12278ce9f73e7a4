"""The package as another project installs it."""

import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import manet_testbed
import testbed
from testbed.programs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_that_of_the_project_its_changelog_and_its_citation() -> None:
    version = PROJECT["project"]["version"]
    assert version == manet_testbed.__version__ == testbed.__version__
    assert f"## [{version}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert (ROOT / "debian" / "changelog").read_text(encoding="utf-8").startswith(f"manet ({version}) ")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_it_installs_itself_alone() -> None:
    assert PROJECT["project"]["dependencies"] == []
    assert {name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]} == {"manet_testbed"}


def test_the_entry_point_is_loaded_once_when_it_is_named_as_well() -> None:
    ((name, module),) = PROJECT["project"]["entry-points"]["pytest11"].items()
    assert name == module
    assert import_module(module).__name__ == name


def test_each_name_of_the_interface_is_there_and_documented() -> None:
    assert [name for name in manet_testbed.__all__ if not (getattr(manet_testbed, name).__doc__ or "").strip()] == []


def copy_of_the_package(folder: Path) -> Path:
    for name in ("pyproject.toml", "manet_testbed"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words, "--no-build-isolation", "--no-deps", "--no-index"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["wheel", "{}", "--wheel-dir", "{}/out"], ["install", "{}", "--target", "{}/out"]])
def test_a_wheel_is_refused_with_the_remedy(tmp_path: Path, words: list[str]) -> None:
    """It installed, and its first use said "run .../site-packages/setup.sh"."""
    folder = str(copy_of_the_package(tmp_path))
    done = pip(*(word.format(folder) for word in words))
    assert done.returncode != 0 and not list(tmp_path.glob("out/*"))
    assert "install it with: pip install --editable CHECKOUT, after CHECKOUT/setup.sh" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_editable_install_leads_to_the_checkout(tmp_path: Path) -> None:
    folder = copy_of_the_package(tmp_path)
    done = pip("install", "--editable", str(folder), "--prefix", f"{tmp_path}/prefix")
    assert done.returncode == 0, done.stderr
    (site,) = tmp_path.glob("prefix/**/*-packages")
    assert any(str(folder) in path.read_text() for path in site.glob("__editable__*"))
