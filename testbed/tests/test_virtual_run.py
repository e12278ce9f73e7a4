"""The half of a run in virtual time that is in the guest: its results reach the host's disk, or the run fails with the reason."""

import errno
import os
from pathlib import Path

import pytest

from testbed.guests import virtual_run


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    directory, out = tmp_path / "run", tmp_path / "out"
    for folder in (directory / "log", out):
        folder.mkdir(parents=True)
    for name in ("run.json", "air.csv", "log/run.log"):
        (directory / name).write_text(name)
    return directory, out


def test_results_are_copied_to_the_output_folder(folders):
    directory, out = folders
    assert virtual_run.copy_results(directory, out) is None
    copied = {path.name: path.read_text() for path in out.rglob("*") if path.is_file()}
    assert copied == {"air.csv": "air.csv", "run.log": "log/run.log"}  # run.json is the host's


def test_a_full_disk_of_the_host_is_reported_in_one_line(folders, monkeypatch):
    """A 9p mount with a cache takes all that is written; that there is no room is known when it is synced."""
    directory, out = folders
    synced: list[int] = []

    def sync(descriptor: int) -> None:
        if len(synced) >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced.append(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    for room in (0, 1):  # files
        synced.clear()
        lost = 2 - room
        assert virtual_run.copy_results(directory, out) == (
            f"{directory}: disk full or not to be written (No space left on device, {lost} files); "
            "free space on it, or give another folder with --out"
        )
