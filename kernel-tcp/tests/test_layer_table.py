"""The table of layers is made from names/*.toml and layers/*.layer.c (layers/table.py): each layer has both."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KERNEL_TCP = Path(__file__).resolve().parents[1]
NAMES = """
kind = "layer"
notices = "held"
[parameters.wait]
type = "time"
default = "1.5s"
min = "100ms"
max = "1min"
rtts = [0.5, 20]
[parameters.factor]
type = "number"
default = 1.25
min = 1
max = 4
[parameters.when]
type = "choice"
default = "at-last"
choices = ["at-once", "at-last"]
"""


class Folder:
    """A kernel-tcp that has only the table's script."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("layers", "names"):
            (root / name).mkdir()
        shutil.copy(KERNEL_TCP / "layers" / "table.py", root / "layers")

    def add(self, path: str, text: str = "") -> None:
        (self.root / path).write_text(text)

    def table(self) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(self.root / "layers" / "table.py")]
        return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_row_has_parameters_in_the_units_of_the_agent(folder: Folder) -> None:
    folder.add("names/mine-2.toml", NAMES)
    folder.add("layers/mine-2.layer.c")
    folder.add("names/reno.toml", 'kind = "algorithm"')
    header = folder.table().stdout
    assert '{ "mine-2", &mine_2_layer, true, {' in header and "reno" not in header
    assert '{ "wait_us", 100000, 60000000, 1500000, 1, NULL }' in header
    assert '{ "factor", 1, 4, 1.25, NUMBER_SCALE, NULL }' in header
    assert '{ "when", 0, 0, 1, 1, (const char *const[]){ "at-once", "at-last", NULL } }' in header
    assert '{ "wait_rtts", 0, 20, 0, NUMBER_SCALE, NULL }' in header
    assert "enum { MINE_2_WAIT_US, MINE_2_WAIT_RTTS, MINE_2_FACTOR, MINE_2_WHEN };" in header
    assert "enum { MINE_2_WAIT_US_MIN = 100000, MINE_2_WAIT_US_MAX = 60000000 };" in header
    assert "enum { MINE_2_WHEN_AT_ONCE, MINE_2_WHEN_AT_LAST };" in header


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("names/mine.toml", NAMES, "names/mine.toml: the layer has no layers/mine.layer.c; add it"),
        ("layers/mine.layer.c", "", "layers/mine.layer.c: the layer has no names/mine.toml; add it"),
        ("names/mine.toml", "kind =", "names/mine.toml: cannot be read as TOML"),
    ],
)
def test_half_a_layer_is_refused(folder: Folder, path: str, text: str, words: str) -> None:
    folder.add(path, text)
    refused = folder.table()
    assert refused.returncode == 1 and words in refused.stderr and refused.stderr.count("\n") == 1


@pytest.mark.parametrize("wrong", ['"100"', '"100 fortnights"', "100"])
def test_a_time_without_its_unit_is_refused(folder: Folder, wrong: str) -> None:
    folder.add("names/mine.toml", NAMES.replace('"100ms"', wrong))
    folder.add("layers/mine.layer.c")
    refused = folder.table()
    text = f'names: "{wrong.strip(chr(34))}" is no time; write a number with one of us, ms, s, min\n'
    assert (refused.returncode, refused.stderr) == (1, text)


def test_tree_has_a_row_for_each_module() -> None:
    header = subprocess.run(
        [sys.executable, str(KERNEL_TCP / "layers" / "table.py")], capture_output=True, text=True, check=True
    ).stdout
    modules = sorted(path.name.removesuffix(".layer.c") for path in (KERNEL_TCP / "layers").glob("*.layer.c"))
    assert [name for name in modules if f'{{ "{name}", &' in header] == modules and "elfn" in modules
