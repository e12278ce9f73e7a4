"""For all tests: how they are spread over pytest-xdist's workers, and a probe of the host.

The marks `root` and `alone` (pyproject.toml) decide when a test runs: testbed/commands/test.py.
"""

import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.probe import Probe

# Else each worker, and each Python program that a test starts, compiles all of the project's modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    # pytest-xdist gives its workers COLUMNS, by which manet's rows would be wrapped (testbed/columns.py).
    os.environ.pop("COLUMNS", None)
    # A worker of pytest-xdist ignores Ctrl-C, and the programs of every test of Ctrl-C would inherit that.
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a module with a fixture of its own for all of them go to one worker, so that it is made once; all
    others go to whichever worker is free. (`--dist loadgroup` of pytest-xdist 3.8 has no effect with pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if shares_a_fixture(config.rootpath / module) else nodeid

    return ByFixture(config, log)


@cache
def shares_a_fixture(module: Path) -> bool:
    return 'scope="module"' in module.read_text()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("alone") and not item.get_closest_marker("root"):
            raise pytest.UsageError(f"{item.nodeid}: alone without root: tests that need no root run beside each other")


@pytest.fixture
def host() -> Iterator[Probe]:
    """Watches the host while the test runs; `host.void(reason)` ends a test whose run does not count."""
    with Probe() as probe:
        yield probe


@pytest.fixture(scope="session")
def watched_host() -> type[Probe]:
    """For a run that several tests look at: `with watched_host() as host` around it, and `host.void(reason)` in the tests."""
    return Probe
