"""`manet test --guests`: the tests of tests.toml in a guest of each kernel.

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
# pytest's status 1: tests failed.
SCRIPT = """cd "$1"; results=$2; python=$3; shift 3
try() {
    file=$1; shift
    "$python" -P -m pytest -p no:hypothesispytest -ra -o cache_dir="$results/cache" -o junit_family=xunit1 \\
        --junitxml="$results/$file" "$@"
}
try first.xml "$@"
status=$?
[ $status = 1 ] || exit $status
echo "== failed tests, rerun alone =="
export MANET_SECOND_TRY=1
try again.xml --last-failed "$@"
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


def side_by_side(names: Sequence[str]) -> bool:
    """Whether this machine has a CPU and memory for all of these guests at the same time."""
    try:
        guest.require(guest.Machine(memory_mb=len(names) * guest.Machine().memory_mb))
    except ManetError:
        return False
    return 1 < len(names) <= len(os.sched_getaffinity(0))


def left_out(arguments: Sequence[str]) -> list[str]:
    """Tests that no guest can run, one line each; empty if `arguments` choose the tests."""
    return [] if arguments else tomllib.loads(LIST.read_text())["left_out"]


def command(kernel: str, arguments: Sequence[str], results: Path) -> list[str]:
    """The command line that runs the tests in a guest, which writes FIRST and AGAIN into the folder `results`. Arguments that
    name files take the place of the list."""
    named = any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))
    tests = (
        [] if named else [test for test in tomllib.loads(LIST.read_text())["tests"] if (ROOT / test.partition("::")[0]).exists()]
    )
    inside = ["sh", "-c", SCRIPT, "tests", str(ROOT), str(results), sys.executable, *arguments, *tests]
    # One CPU: such a guest's clock waits for what it computes (guest.COUNTED_CLOCK).
    machine = ["--kernel", kernel, "--cpus", "1", "--share", str(results)]
    return [sys.executable, "-P", "-m", "testbed", "vm", *machine, "shell", "--", *inside]
