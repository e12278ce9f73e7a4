"""The package as another project installs it."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import manet_testbed
import testbed
from manet_testbed import location
from testbed.programs import ROOT
from testbed.tests.running import needs_runs

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


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    source = copy_of_the_package(folder)
    done = pip("wheel", str(source), "--wheel-dir", f"{folder}/out")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("out/*.whl")
    assert wheel.name == f"manet_testbed-{manet_testbed.__version__}-py3-none-any.whl"
    assert pip("install", str(wheel), "--target", f"{folder}/site").returncode == 0
    return folder / "site"


def client(installed: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python code in another project's environment, which has the wheel and nothing else of the testbed."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MANET_HOME")}
    argv = [sys.executable, "-S", "-c", code]
    return subprocess.run(argv, env=kept | {"PYTHONPATH": str(installed)} | environment, cwd="/", capture_output=True, text=True)


@pytest.mark.slow
def test_the_wheel_has_the_client_and_its_plugin_alone(installed: Path) -> None:
    assert sorted(path.name for path in installed.glob("manet_testbed/*") if path.is_dir() and path.name != "__pycache__") == []
    assert (installed / "manet_testbed" / "py.typed").exists()
    (entry,) = installed.glob("*.dist-info/entry_points.txt")
    assert "[pytest11]\nmanet_testbed.pytest_plugin = manet_testbed.pytest_plugin" in entry.read_text()


@pytest.mark.slow
def test_the_client_finds_a_checkout_by_its_variable_and_runs_its_python(installed: Path) -> None:
    code = "from manet_testbed.location import find; print(find().python)"
    assert client(installed, code, MANET_HOME=str(ROOT)).stdout == f"{ROOT}/.venv/bin/python\n"


@pytest.mark.slow
def test_a_client_without_a_testbed_says_what_is_missing(installed: Path) -> None:
    places = "from manet_testbed import location; print(location.missing_testbed('0.3.0', places=()))"
    assert client(installed, places).stdout == (
        "no testbed on this machine, and manet_testbed is only its client; install the Debian package manet, set MANET_HOME to a "
        "checkout that its ./setup.sh has set up, or run in the image\n"
    )
    lab = client(installed, "from manet_testbed import Scenario", MANET_HOME=str(ROOT))
    assert lab.stderr.splitlines()[-1].endswith(f"this Python has no manet_testbed.lab; use {ROOT}/.venv/bin/python")


@pytest.mark.root
@needs_runs
@pytest.mark.slow
def test_a_mesh_of_the_client_runs_on_the_testbed_that_it_finds(installed: Path) -> None:
    code = "from manet_testbed import Mesh\nwith Mesh.chain(2) as mesh:\n    print(mesh['sta1'].ping(mesh['sta2']).loss)\n"
    done = client(installed, code, MANET_HOME=str(ROOT))
    assert (done.stdout, done.returncode) == ("0.0\n", 0), done.stderr


def laid_out(home: Path, version: str = "0.3.0") -> Path:
    (home / "testbed").mkdir(parents=True)
    (home / "testbed" / "__init__.py").write_text(f'"""Doc."""\n\n__version__ = "{version}"\n')
    (home / ".venv" / "bin").mkdir(parents=True)
    (home / ".venv" / "bin" / "python").touch()
    return home


def test_the_testbed_of_the_variable_comes_before_the_clients_own_checkout_and_installed_ones(tmp_path: Path) -> None:
    named, own, package, image = (laid_out(tmp_path / name) for name in ("named", "own", "package", "image"))
    places = (package, image)
    assert location.find({"MANET_HOME": str(named)}, own, places) == location.Testbed(named)
    assert location.find({}, own, places) == location.Testbed(own)
    shutil.rmtree(own)
    assert location.find({}, own, places) == location.Testbed(package)
    shutil.rmtree(package)
    assert location.find({}, own, places) == location.Testbed(image)
    shutil.rmtree(image)
    assert location.find({}, own, places) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda home: shutil.rmtree(home), "MANET_HOME={}: is no checkout of the testbed; name the folder"),
        (lambda home: (home / ".venv/bin/python").unlink(), "{}/.venv/bin/python: missing; run {}/setup.sh"),
        (lambda home: None, None),
    ],
)
def test_what_the_named_testbed_lacks_is_said_with_the_remedy(
    tmp_path: Path, change: Callable[[Path], object], words: str | None
) -> None:
    home = laid_out(tmp_path / "home")
    change(home)
    found = location.missing_testbed("0.3.0", {"MANET_HOME": str(home)})
    assert found is None if words is None else (found or "").startswith(words.format(home, home))


def test_a_testbed_of_another_version_is_refused(tmp_path: Path) -> None:
    home = laid_out(tmp_path, "0.4.0")
    found = location.missing_testbed("0.3.0", {"MANET_HOME": str(home)})
    assert found == f"{home}: is the testbed 0.4.0, and this client is 0.3.0; install the client of that version"


@pytest.mark.slow
def test_an_editable_install_leads_to_the_checkout(tmp_path: Path) -> None:
    folder = copy_of_the_package(tmp_path)
    done = pip("install", "--editable", str(folder), "--prefix", f"{tmp_path}/prefix")
    assert done.returncode == 0, done.stderr
    (site,) = tmp_path.glob("prefix/**/*-packages")
    assert any(str(folder) in path.read_text() for path in site.glob("__editable__*"))
