"""For all tests: distribution over pytest-xdist's workers, and a probe of the host.

The marks `root` and `alone` (pyproject.toml) decide when a test runs: testbed/commands/test.py.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.probe import Probe

# Otherwise each worker, and each Python program that a test starts, recompiles all of the project's modules.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
with suppress(ImportError):  # in the environment of another project, which tries examples/ci
    import hypothesis

    # No test depends on time: on a loaded host the first example imports for longer than hypothesis's 0.2 s.
    hypothesis.settings.register_profile("testbed", deadline=None)
    hypothesis.settings.register_profile("testbed-quick", deadline=None, max_examples=20)
    hypothesis.settings.load_profile("testbed")


def pytest_configure(config: pytest.Config) -> None:
    # pytest-xdist sets COLUMNS for its workers, which would wrap manet's rows (testbed/columns.py).
    os.environ.pop("COLUMNS", None)
    # Programs inherit what is ignored (after nohup, or `&` in a script), not what is handled: those of the tests begin as from a
    # terminal, and this process still survives the signal.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    # A worker of pytest-xdist ignores Ctrl-C; the programs in tests of Ctrl-C would inherit this.
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a module with a module-wide fixture go to one worker, which builds the fixture once; all
    other tests go to any free worker. (`--dist loadgroup` of pytest-xdist 3.8 has no effect with pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFixture(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            return module if shares_a_fixture(config.rootpath / module) else nodeid

    return ByFixture(config, log)


@cache
def shares_a_fixture(module: Path) -> bool:
    return 'scope="module"' in module.read_text()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("MANET_NIGHTLY") != "1":
        # deselected, not skipped: skipped tests are those that were requested and cannot run
        nightly = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if item not in nightly]
        config.hook.pytest_deselected(items=nightly)
    for item in items:
        if item.get_closest_marker("alone") and not item.get_closest_marker("root"):
            raise pytest.UsageError(f"{item.nodeid}: alone without root: tests that need no root run in parallel")


@pytest.fixture(autouse=True)
def no_run_left() -> Iterator[None]:
    """Ends the runs that a test has started in the background and left, as one that fails in the middle does: they would keep
    network namespaces and radios. Those of fixtures that several tests share go on."""
    before = threading.enumerate()
    yield
    for thread in threading.enumerate():
        if thread not in before and hasattr(thread, "end_run"):  # of testbed/tests/running.py, which most tests do not import
            thread.end_run()


@pytest.fixture
def host() -> Iterator[Probe]:
    """Watches the host while the test runs; `host.void(reason)` ends a test whose run does not count."""
    with Probe() as probe:
        yield probe


@pytest.fixture(scope="session")
def watched_host() -> type[Probe]:
    """For a run that several tests share: `with watched_host() as host` around it, and `host.void(reason)` in the tests."""
    return Probe
