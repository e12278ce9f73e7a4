"""Where the testbed is: what a package and a checkout have different, and that a package never writes to its own folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.programs import PACKAGE, ROOT, Installation

COMMIT = "83efa1e8c0ffee"


@pytest.fixture
def packaged(tmp_path: Path) -> Installation:
    """A package as debian/rules describes it."""
    root = tmp_path / "usr/lib/manet"
    root.mkdir(parents=True)
    (root / PACKAGE).write_text(f'package = "manet"\nversion = "0.3.0~deb13"\ncommit = "{COMMIT}"\n')
    return Installation.at(root)


def test_a_folder_without_the_file_is_a_checkout(tmp_path: Path) -> None:
    assert Installation.at(tmp_path) == Installation(tmp_path)
    assert Installation.at(ROOT).package is None, "the tests run in a checkout"


def test_a_package_knows_its_name_and_the_commit_of_its_sources(packaged: Installation) -> None:
    assert (packaged.package, packaged.commit, packaged.command) == ("manet", COMMIT, "manet")


def test_results_of_a_checkout_are_in_it_wherever_the_caller_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Installation(ROOT).results() == ROOT / "results"
    monkeypatch.chdir(ROOT)
    assert Installation(ROOT).results() == Path("results")


def test_results_of_a_package_are_in_the_current_folder(
    packaged: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert packaged.results() == Path("results")


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/share", "/etc", "/proc/self"])
def test_results_of_a_package_are_never_in_a_folder_of_the_system(
    packaged: Installation, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.chdir(folder)
    assert packaged.results() == Path("/home/ann/manet-results")


def test_results_of_a_package_are_at_home_if_the_folder_cannot_be_written(
    packaged: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (locked := tmp_path / "locked").mkdir(mode=0o555)
    monkeypatch.chdir(locked)
    if os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert packaged.results() == Path.home() / "manet-results"


def test_caches_of_a_package_are_the_users(packaged: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/ann/cache")
    assert packaged.cache("images") == Path("/home/ann/cache/manet/images")
    assert Installation(ROOT).cache("images") == ROOT / ".build" / "images"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("x: not built; run ./setup.sh", "x: not built; run apt-get install --reinstall manet"),
        ("./setup.sh --guests installs QEMU", "`./setup.sh --guests` in a checkout installs QEMU"),
        ("see ./manet list, then ./manet run X", "see manet list, then manet run X"),
        ("/x/my./setup is no command", "/x/my./setup is no command"),
    ],
)
def test_messages_name_the_commands_of_the_installation(packaged: Installation, written: str, read: str) -> None:
    assert packaged.reworded(written) == read
    assert Installation(ROOT).reworded(written) == written


@pytest.mark.slow
def test_the_command_of_a_package_runs_in_any_folder_without_a_set_up(packaged: Installation, tmp_path: Path) -> None:
    """The launcher and the package of Python, copied as debian/rules lays them out; a link stands for /usr/bin/manet."""
    for name in (
        "testbed",
        "scenarios",
        "mobility",
        "keys",
        "record",
        "traffic",
        "topologies",
        "analysis",
        "formats",
        "medium/radios",
    ):
        ignored = shutil.ignore_patterns("tests", "__pycache__")
        shutil.copytree(ROOT / name, packaged.root / name, ignore=ignored)
    shutil.copy(ROOT / "manet", packaged.root)
    (packaged.root / ".venv/bin").mkdir(parents=True)
    (packaged.root / ".venv/bin/python").symlink_to(sys.executable)
    (link := tmp_path / "manet").symlink_to(packaged.root / "manet")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([link, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    before = sorted(packaged.root.rglob("*"))
    helped = run("run", "--help")
    assert helped.returncode == 0 and "  manet run hv-fig1" in helped.stdout and "./manet" not in helped.stdout
    for words in (["test"], ["report", "--rows", "results/x"]):
        refused = run(*words)
        assert refused.returncode == 2 and "package" in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert sorted(packaged.root.rglob("*")) == before
