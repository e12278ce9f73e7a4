"""Fixtures: stations, each a process in a network namespace of its own, and a medium, both ended with the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routing.host.tests.harness import Namespace
from tests.medium.medium import Medium


@pytest.fixture
def hosts() -> Iterator[Callable[[int], list[Namespace]]]:
    """`hosts(2)`: two new stations."""
    made: list[Namespace] = []

    def make(count: int) -> list[Namespace]:
        made.extend(Namespace() for _ in range(count))
        return made[-count:]

    yield make
    for host in made:
        host.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Medium]]:
    """`start(configuration)`: a medium, of which is asserted that it becomes ready, or does not."""
    started: list[Medium] = []

    def start(config: dict, *options: str, ready: bool = True) -> Medium:
        daemon = Medium(tmp_path, config, *options)
        started.append(daemon)
        assert daemon.ready == ready, daemon.stop()
        return daemon

    yield start
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.process.kill()
        daemon.process.communicate()
