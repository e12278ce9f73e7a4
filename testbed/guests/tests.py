"""`manet test --guests`: the tests of tests.toml in guests of each kernel.

A test that fails is rerun once, alone, in the same guest, and the second result counts: an emulated machine stalls when its
host is loaded. Both are printed. MANET_SECOND_TRY tells the tests which try it is (tests/probe.py).
"""

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import ManetError
from testbed.guests import guest, kernels
from testbed.programs import ROOT

LIST = Path(__file__).with_name("tests.toml")
FIRST, AGAIN = "first.xml", "again.xml"  # pytest's JUnit XML of both tries
# Without plugins that pytest finds by itself: no test of the list uses one, and their import takes ten seconds in an emulated
# machine. pytest's status 1: tests failed. The second try has their names from pytest's cache: with --last-failed pytest ends
# where a test is named whose file has no failed one.
SCRIPT = """cd "$1"; results=$2; python=$3; shift 3
try() {
    file=$1; shift
    PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 "$python" -P -m pytest -ra -o cache_dir="$results/cache" -o junit_family=xunit1 \\
        --junitxml="$results/$file" "$@"
}
try first.xml "$@"
status=$?
[ $status = 1 ] || exit $status
echo "== failed tests, rerun alone =="
export MANET_SECOND_TRY=1
"$python" -c 'import json, sys; print(*json.load(sys.stdin), sep="\\n")' <"$results/cache/v/cache/lastfailed" >"$results/failed"
try again.xml "@$results/failed"
"""


def selected_kernels(name: str | None) -> list[str]:
    """The kernels to test in: the one named, or all of tests.toml. Raises UsageError for an unknown name."""
    return [kernels.find(name).name] if name else tomllib.loads(LIST.read_text())["kernels"]


def missing_requirement() -> str | None:
    """Reason why this machine cannot run guests, in one line; None if it can."""
    try:
        guest.require(guest.Machine())
    except ManetError as problem:
        return str(problem)
    return None


def side_by_side(number: int) -> int:
    """How many of this number of guests this machine has a CPU and memory for at the same time: 1 or more."""
    for fits in range(min(number, len(os.sched_getaffinity(0))), 1, -1):
        try:
            guest.require(guest.Machine(memory_mb=fits * guest.Machine().memory_mb))
        except ManetError:
            continue
        return fits
    return 1


def left_out(arguments: Sequence[str]) -> list[str]:
    """Tests that no guest can run, one line each; empty if `arguments` choose the tests."""
    return [] if arguments else tomllib.loads(LIST.read_text())["left_out"]


def parts(arguments: Sequence[str]) -> list[list[str]]:
    """The tests of each guest of a kernel: the lists of tests.toml; one empty list if the arguments name files."""
    if any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-")):
        return [[]]
    lists = tomllib.loads(LIST.read_text())["parts"]
    return [[test for test in tests if (ROOT / test.partition("::")[0]).exists()] for tests in lists]


def command(kernel: str, tests: Sequence[str], arguments: Sequence[str], results: Path) -> list[str]:
    """The command line that runs these tests in a guest, which writes FIRST and AGAIN into the folder `results`."""
    inside = ["sh", "-c", SCRIPT, "tests", str(ROOT), str(results), sys.executable, *arguments, *tests]
    # One CPU: such a guest's clock waits for what it computes (guest.COUNTED_CLOCK).
    machine = ["--kernel", kernel, "--cpus", "1", "--share", str(results)]
    return [sys.executable, "-P", "-m", "testbed", "vm", *machine, "shell", "--", *inside]
