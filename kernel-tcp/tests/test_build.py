"""kernel-tcp's Makefile follows the list of algorithms/*.bpf.c.

Only algorithms.o is built, which holds all of them; clang is replaced by a script that copies a source without `error`.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL_TCP = Path(__file__).resolve().parent.parent
CLANG = """#!/bin/sh
while [ $# -gt 1 ]; do case $1 in -o) to=$2; shift ;; esac; shift; done
if grep -q "error here" "$1"; then echo "$1:1:1: error: unknown type name" >&2; exit 1; fi
cp "$1" "$to"
"""


class Copy:
    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.clang = folder / "kernel-tcp", folder / "build", folder / "clang"
        shutil.copytree(KERNEL_TCP, self.root, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        self.clang.write_text(CLANG)
        self.clang.chmod(0o755)
        self.own = self.root / "algorithms" / "mytahoe.bpf.c"

    def make(self) -> subprocess.CompletedProcess:
        target = f"{self.build}/algorithms.o"
        without = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        return subprocess.run(
            ["make", "-C", str(self.root), f"BUILD={self.build}", f"CLANG={self.clang}", target],
            env=without, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def holds(self, text: str) -> bool:
        return text.encode() in (self.build / "algorithms.o").read_bytes()


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_deleted_algorithm_is_removed_after_a_failed_make(copy: Copy) -> None:
    copy.own.write_text("/* first */")
    assert copy.make().returncode == 0
    copy.own.write_text("error here")
    failed = copy.make()
    assert failed.returncode != 0 and "mytahoe.bpf.c:1:1: error" in failed.stderr
    copy.own.unlink()
    (copy.build / "mytahoe.bpf.o").unlink()
    done = copy.make()
    assert done.returncode == 0, done.stderr
    assert not copy.holds("mytahoe")


def test_deleted_algorithm_is_removed_after_a_successful_make(copy: Copy) -> None:
    copy.own.write_text("/* bytes of mytahoe */")
    assert copy.make().returncode == 0 and copy.holds("bytes of mytahoe")
    copy.own.unlink()
    assert copy.make().returncode == 0 and not copy.holds("mytahoe")


def test_same_list_makes_nothing(copy: Copy) -> None:
    assert copy.make().returncode == 0
    made = (copy.build / "algorithms.o").stat().st_mtime_ns
    assert copy.make().returncode == 0
    assert (copy.build / "algorithms.o").stat().st_mtime_ns == made
