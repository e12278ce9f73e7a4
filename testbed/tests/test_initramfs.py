"""The files of a guest as an archive: the same bytes for the same files, links kept, Python's code valid at any date."""

import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.guests.initramfs import Files


def archive_of(files: Files) -> bytes:
    archive = io.BytesIO()
    files.write(archive)
    return archive.getvalue()


def entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Path: mode and content, read by the kernel's description of the format (buffer-format.rst)."""
    found, at = {}, 0
    while True:
        numbers = [int(archive[at + 6 + 8 * field : at + 14 + 8 * field], 16) for field in range(13)]
        assert archive[at : at + 6] == b"070701"
        mode, mtime, size, name_bytes = numbers[1], numbers[5], numbers[6], numbers[11]
        name = archive[at + 110 : at + 110 + name_bytes]
        assert name.endswith(b"\0") and mtime == 0
        begin = -(-(at + 110 + name_bytes) // 4) * 4
        if name == b"TRAILER!!!\0":
            assert len(archive) == begin
            return found
        found[name[:-1].decode()] = (mode, archive[begin : begin + size])
        at = -(-(begin + size) // 4) * 4


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """program -> real/tool (a link), real/module.py, and a folder that is a link."""
    (tmp_path / "real" / "tests").mkdir(parents=True)
    (tmp_path / "real" / "tool").write_bytes(b"\x7fELF")
    (tmp_path / "real" / "tool").chmod(0o700)
    (tmp_path / "real" / "module.py").write_text("NAME = 'one'\n")
    (tmp_path / "real" / "tests" / "test_module.py").write_text("")
    (tmp_path / "program").symlink_to("real/tool")
    (tmp_path / "folder").symlink_to("real")
    return tmp_path


def test_links_are_kept_with_their_targets(tree):
    files = Files()
    assert files.add(tree / "program") == tree / "real" / "tool"
    assert files.add(tree / "folder" / "module.py") == tree / "real" / "module.py"
    found = {path.removeprefix(f"{tree}/"[1:]): entry for path, entry in entries(archive_of(files)).items()}
    assert found["program"] == (stat.S_IFLNK | 0o777, b"real/tool")
    assert found["folder"] == (stat.S_IFLNK | 0o777, b"real")
    assert found["real/tool"] == (stat.S_IFREG | 0o755, b"\x7fELF")
    assert found["real/module.py"] == (stat.S_IFREG | 0o644, b"NAME = 'one'\n")
    assert found["real"] == (stat.S_IFDIR | 0o755, b"")


def test_folders_come_before_their_content(tree):
    files = Files()
    files.put("/a/b/c", b"text")
    files.add_tree(tree / "real")
    assert files.paths() == sorted(files.paths())
    assert files.paths()[:4] == ["/", "/a", "/a/b", "/a/b/c"]


def test_the_archive_does_not_depend_on_dates_or_order(tree):
    first, second = Files(), Files()
    first.add_tree(tree / "real")
    first.add(tree / "program")
    before = archive_of(first)
    for path in (tree / "real").rglob("*"):
        os.utime(path, (1e9, 1e9))
    second.add(tree / "program")
    second.add_tree(tree / "real")
    assert archive_of(second) == before


def test_names_left_out_are_not_in_the_tree(tree):
    files = Files()
    added = files.add_tree(tree / "real", without=("tests",))
    assert sorted(path.name for path in added) == ["module.py", "tool"]
    assert not any("tests" in path for path in files.paths())


@pytest.mark.parametrize("cached", [True, False])
def test_python_takes_the_code_whatever_the_date_of_the_source(tree, tmp_path, cached):
    """PEP 552: an unchecked .pyc. The source is replaced by another, which Python must not compile."""
    if cached:
        subprocess.run([sys.executable, "-m", "compileall", "-q", tree / "real"], check=True)
    files = Files()
    files.add_python(tree / "real" / "module.py")
    copies = {Path(path).name: content for path, (mode, content) in entries(archive_of(files)).items() if stat.S_ISREG(mode)}
    assert sorted(copies) == [f"module.{sys.implementation.cache_tag}.pyc", "module.py"]
    place = tmp_path / "guest"
    (place / "__pycache__").mkdir(parents=True)
    (place / "__pycache__" / f"module.{sys.implementation.cache_tag}.pyc").write_bytes(
        copies[f"module.{sys.implementation.cache_tag}.pyc"]
    )
    (place / "module.py").write_text("NAME = 'another'\n")
    argv = [sys.executable, "-c", "import module; print(module.NAME)"]
    done = subprocess.run(argv, cwd=place, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(place)})
    assert done.stdout == "one\n"
