"""Tests with third-party routing daemons: only by `./manet test --interop`, which sets MANET_INTEROP=1."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.interop.mixed import MEDIUM

HERE = Path(__file__).resolve().parent
# pkg-config's files name libraries that libns3-dev does not depend on
NS3 = ("core", "network", "internet", "internet-apps", "fd-net-device", "dsdv", "olsr", "stats")


def unusable() -> str | None:
    """Why nothing here can run."""
    if os.geteuid() != 0:
        return "needs root for namespaces and TAPs"
    if not MEDIUM.exists():
        return "the medium is not built (./setup.sh)"
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = [item for item in items if item.path.is_relative_to(HERE)]
    if os.environ.get("MANET_INTEROP") != "1":
        # deselected, not skipped: skipped tests are those that were requested and cannot run
        items[:] = [item for item in items if item not in here]
        return config.hook.pytest_deselected(items=here)
    reason = unusable()
    for item in here:
        item.add_marker(pytest.mark.slow)
        item.add_marker(pytest.mark.root)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def ns3_station(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program ns3_station.cc, built with Debian's ns-3."""
    if shutil.which("g++") is None or not Path("/usr/include/ns3/dsdv-module.h").exists():
        pytest.skip("ns-3 or g++: not found; apt-get install g++ libns3-dev")
    program = tmp_path_factory.mktemp("ns3") / "ns3-station"
    argv = ["g++", "-std=c++17", "-O1", "-o", program, HERE / "ns3_station.cc", *(f"-lns3-{module}" for module in NS3)]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    return program
