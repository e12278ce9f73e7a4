"""The packages of an image are those that pip installed, whatever the machine and the path of the checkout."""

import base64
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from image import packages
from testbed.programs import ROOT


def row(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """The RECORD of a package with one module and one script."""
    (tmp_path / "one.py").write_bytes(b"1\n")
    path = tmp_path / "one-1.dist-info" / "RECORD"
    path.parent.mkdir()
    path.write_text(row("../../../bin/one", b"#!/some/checkout") + row("one.py", b"1\n") + "one-1.dist-info/RECORD,,\n")
    return path


def run(record: Path) -> subprocess.CompletedProcess[str]:
    (record.parent / "lock").write_text("one==1\n")
    command = [sys.executable, packages.__file__, record.parent.parent, record.parent / "lock"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_hashes_of_scripts_which_follow_the_path_of_the_checkout_are_removed(record: Path) -> None:
    done = run(record)
    assert (done.returncode, done.stderr) == (0, "")
    assert record.read_text() == row("one.py", b"1\n") + "one-1.dist-info/RECORD,,\n"


def test_a_changed_file_that_cannot_be_restored_is_refused_with_the_remedy(record: Path) -> None:
    (record.parent.parent / "one.py").write_bytes(b"1\nand a CA\n")
    assert packages.changed_files(record) == ["one.py"]
    done = run(record)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "image: one-1.dist-info: not restored; remove .venv and run ./setup.sh"


def test_an_absent_file_is_no_change(record: Path) -> None:
    (record.parent.parent / "one.py").unlink()  # build.sh leaves tests of packages out
    assert packages.changed_files(record) == []


def test_bpf_programs_have_no_path_of_the_checkout() -> None:
    program = (ROOT / ".build" / "kernel-tcp" / "manet_tcp.bpf.o").read_bytes()
    assert b"manet_tcp.bpf.c" in program and bytes(ROOT) not in program


def test_a_package_that_the_lock_file_does_not_list_is_removed(record: Path) -> None:
    """It is of the tests, of pages or of a cluster; an image has the same packages with and without it."""
    other = record.parent.parent / "other_one-2.dist-info" / "RECORD"
    (other.parent.parent / "other" / "inner").mkdir(parents=True)
    (other.parent.parent / "other" / "inner" / "two.py").write_bytes(b"2\n")
    other.parent.mkdir()
    other.write_text(row("other/inner/two.py", b"2\n") + "other_one-2.dist-info/RECORD,,\n")
    assert run(record).returncode == 0
    left = {path.relative_to(record.parent.parent).as_posix() for path in record.parent.parent.rglob("*")}
    assert left == {"one.py", "one-1.dist-info", "one-1.dist-info/RECORD", "one-1.dist-info/lock"}
