"""The kernel's table of neighbours, which all runs of a machine share."""

import json
from pathlib import Path

import pytest

from testbed.host import neighbours
from testbed.programs import BUILT
from testbed.runs import verdict
from testbed.runs.run import run_scenario
from testbed.runs.verdict import NeighbourTable
from testbed.runs.waits import WaitSummary
from testbed.tests.running import chain, needs_runs

COUNTS = """entries  allocs   destroys table_fulls
00000001 000483f5 00049e2e 00008b4a
00000001 000479b3 00045f79 0000000a
"""


def limits(folder: Path, *values: int) -> Path:
    for name, value in zip(neighbours.NAMES, values, strict=True):
        (folder / name).write_text(f"{value}\n")
    return folder


def test_limits_are_raised_and_never_lowered(tmp_path):
    folder = limits(tmp_path, 1024, neighbours.ENTRIES * 4, 128)
    assert neighbours.raise_limits([folder])
    assert [int((folder / name).read_text()) for name in neighbours.NAMES] == [
        neighbours.ENTRIES, neighbours.ENTRIES * 4, neighbours.ENTRIES,
    ]  # fmt: skip


def test_without_the_limits_nothing_is_raised(tmp_path):
    assert not neighbours.raise_limits([tmp_path])


def test_refused_packets_are_summed_over_the_processors():
    assert neighbours.refused_in(COUNTS) == 0x8B4A + 10


def test_without_counts_nothing_is_known():
    neighbours.count_with([])
    assert neighbours.refused() is None


@pytest.mark.parametrize(("refused", "judged"), [(0, "valid"), (1, "suspect"), (19, "suspect"), (20, "void")])
def test_packets_that_a_full_table_dropped_make_a_run_suspect_or_void(tmp_path, refused, judged):
    (tmp_path / "verdict.json").write_text(json.dumps({"verdict": "valid", "reasons": []}))
    verdict.add_judgements(tmp_path, programs=WaitSummary(), neighbours_refused=NeighbourTable(refused))
    written = json.loads((tmp_path / "verdict.json").read_text())
    assert (written["verdict"], written["neighbours_refused"]) == (judged, refused)
    assert written["reasons"] == [] or "gc_thresh3" in written["reasons"][0]


@pytest.mark.root
@needs_runs
def test_a_run_counts_what_the_table_refused(tmp_path):
    result = run_scenario(chain(hops=1), 1, tmp_path / "run", programs=BUILT)
    assert result.status == "complete"
    assert json.loads((tmp_path / "run" / "verdict.json").read_text())["neighbours_refused"] == 0
    limits = [folder / name for folder in neighbours.LIMITS for name in neighbours.NAMES]
    assert all(int(limit.read_text()) >= neighbours.ENTRIES for limit in limits)
