"""The package as another project installs it."""

import tomllib
from importlib import import_module

import manet_testbed
from testbed.programs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_that_of_the_project() -> None:
    assert PROJECT["project"]["version"] == manet_testbed.__version__


def test_it_installs_itself_alone() -> None:
    assert PROJECT["project"]["dependencies"] == []
    assert {name.split(".")[0] for name in PROJECT["tool"]["setuptools"]["packages"]} == {"manet_testbed"}


def test_the_entry_point_is_loaded_once_when_it_is_named_as_well() -> None:
    ((name, module),) = PROJECT["project"]["entry-points"]["pytest11"].items()
    assert name == module
    assert import_module(module).__name__ == name


def test_each_name_of_the_interface_is_there_and_documented() -> None:
    assert [name for name in manet_testbed.__all__ if not (getattr(manet_testbed, name).__doc__ or "").strip()] == []
