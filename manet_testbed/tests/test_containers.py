"""A mesh with a station that has a root file system of its own."""

from pathlib import Path

import pytest

from manet_testbed.mesh import Mesh
from testbed.tests.rootfs import made_of
from testbed.tests.running import needs_runs


@pytest.mark.root
@needs_runs
def test_commands_run_in_the_container_of_a_station(tmp_path: Path) -> None:
    made_of(tmp_path / "root", "ls", "sleep")
    stations = [{"name": "sta1", "rootfs": str(tmp_path / "root"), "command": ["sleep", "1000"]}]
    with Mesh.of(hops=1, stations=stations, directory=tmp_path / "run") as mesh:
        first, second = mesh.stations
        assert first.run(["ls", "/"]).stdout.split() == sorted(
            ["bin", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sys", "tmp", "usr", "var"]
        )
        assert first.run("sh -c 'exit 3'", check=False).returncode == 3
        assert "home" in second.run(["ls", "/"]).stdout
        endless = first.popen("sleep 100")
        endless.kill()
        assert endless.wait() == -9
        assert second.ping(first).received == 3
