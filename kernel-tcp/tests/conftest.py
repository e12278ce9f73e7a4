"""Fixtures: a cgroup v2 hierarchy, two stations, and skips with the reason if the machine lacks something."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from tcplab import IN_GUEST, MANET_TCP, stations  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "root: needs root and namespaces")


def pytest_collection_modifyitems(items):
    """Skips, in a guest, the tests that need a better clock than an emulated machine has."""
    if not IN_GUEST:
        return
    for item in items:
        if mark := item.get_closest_marker("not_in_guests"):
            item.add_marker(pytest.mark.skip(reason=f"not in a guest: {mark.args[0]}"))


@pytest.fixture(scope="session")
def program() -> Path:
    """manet-tcp, built from the current sources."""
    done = subprocess.run(["make", "-C", str(HERE.parent)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return MANET_TCP


@pytest.fixture(scope="session")
def features(program) -> dict:
    return json.loads(subprocess.run([program, "features", "--json"], capture_output=True, text=True).stdout)


@pytest.fixture(scope="session")
def cgroup_root(features) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces, cgroups and BPF; sudo ./manet test")
    if not features["usable"]:
        pytest.skip("this kernel cannot: " + "; ".join(features["missing"]))
    for tool in ("nsenter", "unshare", "ethtool", "tcpdump", "ss", "bpftool"):
        if not shutil.which(tool, path="/usr/sbin:/sbin:" + os.environ.get("PATH", "")):
            pytest.skip(f"needs {tool} (./setup.sh)")
    return Path(features["cgroup2"])


@pytest.fixture
def lab(tmp_path, cgroup_root):
    """Two stations on a veth pair."""
    with stations(tmp_path, cgroup_root) as lab:
        yield lab


@pytest.fixture
def slow_lab(tmp_path, cgroup_root, request):
    """Two stations with a relay between them: 2 Mbit/s, 20 ms each way, ACK per segment, the profile's sysctls that matter.

    Indirect parameter: the data segments that are lost, comma between.
    """
    drop = getattr(request, "param", "")
    relay = ["--rate-bps", "2e6", "--delay-ms", "20", "--drop", drop]
    with stations(tmp_path, cgroup_root, relay, quickack=True) as lab:
        for station in (lab.a, lab.b):
            station.sysctl(tcp_max_reordering=3, tcp_frto=0)
        yield lab
