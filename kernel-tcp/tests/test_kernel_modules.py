"""The kernel's own congestion controls that are modules: loaded on demand, beside our own of the same name.

`manet test --guests` brings kernels that have them (Debian's); elsewhere they are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tcplab import IN_GUEST, stations

pytestmark = pytest.mark.root

MEGABYTES = 300_000 if IN_GUEST else 4_000_000
# `kernel-NAME` is always the kernel's own; of the table's names only vegas is a module's as well
MODULES = ["kernel-vegas", "westwood", "kernel-westwood", "veno"]
LOADED = Path("/sys/module")


def has_module(algorithm: str) -> bool:
    """Whether the module exists or is loaded."""
    modinfo = shutil.which("modinfo", path="/usr/sbin:/sbin:/usr/bin")
    return modinfo is not None and subprocess.run([modinfo, f"tcp_{algorithm}"], capture_output=True).returncode == 0


def sender_flags(lab, name: str, parameters: dict[str, int] | None = None) -> str:
    """The output of `ss` for a connection of `a` that carries data with this algorithm."""
    settings = {"algorithm": name, **({"parameters": parameters} if parameters else {})}
    with lab.manet_tcp(both=settings):
        lab.transfer(MEGABYTES)
        server = lab.serve(5202, read=False)
        client = lab.send(1000, 5202, then="time.sleep(600)")
        lab.ready_line(client, "connected")
        lab.ready_line(client, "sent")
        lab.ready_line(server, "accepted")
        return lab.a.sockets()[0]["words"]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_kernels_carries_data_under_its_own_name(lab, name):
    algorithm = name.removeprefix("kernel-")
    if not has_module(algorithm):
        pytest.skip(f"this kernel ({os.uname().release}) has no {algorithm}; ./manet test --guests boots kernels that have it")
    assert algorithm in sender_flags(lab, name).split()
    assert (LOADED / f"tcp_{algorithm}").is_dir(), "it was not the module"


def test_our_vegas_runs_with_the_module_loaded_under_another_name(tmp_path, cgroup_root, features):
    if not features["struct_ops"] or not has_module("vegas"):
        pytest.skip(f"this kernel ({os.uname().release}) has not both Vegas; ./manet test --guests boots kernels that have")
    flags = {}
    for name in ("kernel-vegas", "vegas"):
        (tmp_path / name).mkdir()
        with stations(tmp_path / name, cgroup_root) as lab:
            flags[name] = sender_flags(lab, name).split()
    assert "vegas" in flags["kernel-vegas"] and not any(word.startswith("vegas.") for word in flags["kernel-vegas"])
    assert "vegas" not in flags["vegas"] and any(word.startswith("vegas.") for word in flags["vegas"])
