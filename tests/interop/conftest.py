"""Interoperation is tested when it is asked for (`manet test --interop` sets MANET_INTEROP): the peers are programs of others,
and each test takes a minute or so. Without it what is in this folder is deselected."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NS3 = ("core", "network", "internet", "internet-apps", "fd-net-device", "dsdv", "olsr", "stats")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("MANET_INTEROP"):
        return
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    items[:] = [item for item in items if item not in ours]
    config.hook.pytest_deselected(items=ours)


@pytest.fixture(scope="session")
def ns3_station(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program ns3_station.cc, built with Debian's ns-3."""
    if shutil.which("g++") is None or not Path("/usr/include/ns3").is_dir():
        pytest.skip("ns-3 or g++: not found; apt-get install g++ libns3-dev")
    program = tmp_path_factory.mktemp("ns3") / "ns3-station"
    # without pkg-config, whose files name libraries that libns3-dev does not depend on
    argv = ["g++", "-std=c++17", "-O1", "-o", program, HERE / "ns3_station.cc", *(f"-lns3-{module}" for module in NS3)]
    built = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    return program
