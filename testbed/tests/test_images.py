"""OCI images as root file systems of stations: unpacked once, with their environment and folder."""

import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host import images
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.run import run_scenario
from testbed.tests.rootfs import made_of
from testbed.tests.running import chain, needs_runs

MISSING = [tool for tool in images.TOOLS if shutil.which(tool) is None]
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(MISSING), reason=f"apt-get install {' '.join(MISSING)}")]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image with sh and ls, the variable GREETING and the folder /tmp."""
    folder = tmp_path_factory.mktemp("image")

    def call(*words: object) -> None:
        subprocess.run([str(word) for word in words], cwd=folder, check=True, capture_output=True)

    call("umoci", "init", "--layout", "layout")
    call("umoci", "new", "--image", "layout:web")
    call("umoci", "unpack", "--image", "layout:web", "bundle")
    made_of(folder / "bundle/rootfs", "ls")
    call("umoci", "repack", "--image", "layout:web", "bundle")
    call("umoci", "config", "--image", "layout:web", "--config.env", "GREETING=hello=you", "--config.workingdir", "/tmp")
    call("skopeo", "copy", "oci:layout:web", "oci-archive:web.tar:web")
    return folder / "web.tar"


def test_an_archive_is_unpacked_once_with_its_environment_and_folder(archive, tmp_path):
    image = images.unpacked(str(archive), tmp_path)
    assert (image.folder, image.environment["GREETING"]) == ("/tmp", "hello=you")
    assert (image.rootfs / "usr/bin/ls").exists() and image.digest.startswith("sha256:")
    changed = (image.rootfs / "usr/bin/ls").lstat().st_ctime_ns
    assert images.unpacked(str(archive), tmp_path) == image
    assert (image.rootfs / "usr/bin/ls").lstat().st_ctime_ns == changed
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([image.digest.removeprefix("sha256:"), "lock"])


def test_a_file_that_is_no_image_is_refused_before_anything_starts(tmp_path):
    (tmp_path / "web.tar").write_text("not an archive")
    scenario = chain(stations=[{"name": "sta1", "image": str(tmp_path / "web.tar")}])
    with pytest.raises(
        UsageError, match=r'key "stations.0.image": .*skopeo inspect: .*; give an OCI archive or a local image$'
    ) as refused:
        preflight.check_programs({"scenario": scenario}, 1, BUILT)
    assert "\n" not in str(refused.value)


def test_a_name_that_is_no_file_is_an_image_of_the_machines_storage(tmp_path):
    with pytest.raises(UsageError, match="manet-no-such-image"):
        images.unpacked("localhost/manet-no-such-image", tmp_path)


@needs_runs
def test_a_station_runs_in_an_image(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(images, "STORE", tmp_path / "images")
    words = ["sh", "-c", "echo $GREETING $PWD; ls /"]
    flow = {"from": "sta1", "to": "sta2", "traffic": "command", "command": words}
    scenario = chain(flows=[flow], stations=[{"name": "sta1", "image": str(archive)}])
    assert run_scenario(scenario, 1, tmp_path / "run", programs=BUILT).status == "complete"
    first, *names = (tmp_path / "run/log/flow1-sender.log").read_text().splitlines()
    assert first == "hello=you /tmp" and "home" not in names
