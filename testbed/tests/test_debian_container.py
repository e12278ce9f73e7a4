"""Debian root file systems as stations: nginx of Debian at one end of two hops, curl at the other, both in sandboxes."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import chain, needs_runs

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    needs_runs,
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed (apt-get install mmdebstrap)"),
]
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
BYTES = 20_000  # of the page: 14 segments


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("debian") / "root"
    words = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=essential",
        "--include=nginx-light,curl",
        "bookworm",
        folder,
        MIRROR,
    ]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"this machine makes no Debian root: mmdebstrap: {done.stderr.strip().splitlines()[-1]}")
    (folder / "var/www/html/page").write_bytes(b"x" * BYTES)
    return folder


def test_debians_nginx_serves_debians_curl_over_two_hops(debian, tmp_path, host):
    """Worker processes are www-data; the log and the pid file are on paths that Debian's root alone may write."""
    get = 'until curl -sf -o /tmp/page http://"$0"/page; do sleep 0.2; done; wc -c </tmp/page'
    flow = {"from": "sta1", "to": "sta3", "traffic": "command", "command": ["sh", "-c", get, "{target}"]}
    common = {"rootfs": str(debian), "sandbox": True, "memory": 128 << 20, "pids": 50}
    server = {"name": "sta3", "command": ["nginx", "-g", "daemon off;"], **common}
    scenario = chain(hops=2, duration=6, flows=[flow], stations=[{"name": "sta1", **common}, server])
    result = run_scenario(scenario, 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    if result.verdict != "valid":
        host.void(f"the run is {result.verdict}")
    assert (tmp_path / "run/log/flow1-sender.log").read_text() == f"{BYTES}\n"
    assert not (debian / "run/nginx.pid").exists() and (debian / "var/log/nginx/access.log").stat().st_size == 0
