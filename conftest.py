"""For all tests: how they are spread over pytest-xdist's workers, and a probe of the host.

The marks `root` and `alone` (pyproject.toml) decide when a test runs: testbed/commands/test.py.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.probe import Probe


def pytest_configure(config: pytest.Config) -> None:
    # A worker of pytest-xdist ignores Ctrl-C, and the programs of every test of Ctrl-C would inherit that.
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a module that share a fixture go to one worker, so that it is made once.

    First, since pytest-xdist reads the groups in the same hook.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        if shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def shares_a_fixture(item: pytest.Item) -> bool:
    """Does the test use a fixture that its own module makes once for all?"""
    module = item.nodeid.partition("::")[0]
    definitions = item._fixtureinfo.name2fixturedefs.values()  # type: ignore[attr-defined]
    return any(one.scope == "module" and one.baseid == module for several in definitions for one in several)


@pytest.fixture
def host() -> Iterator[Probe]:
    """Watches the host while the test runs; `host.void(reason)` ends a test whose run does not count."""
    with Probe() as probe:
        yield probe


@pytest.fixture(scope="session")
def watched_host() -> type[Probe]:
    """For a run that several tests look at: `with watched_host() as host` around it, and `host.void(reason)` in the tests."""
    return Probe
