"""`manet test`: cargo's and pytest's tests, counted together.

The last line is `N passed, N failed, N skipped` over all runners. A runner that cannot start counts as a failure. Skipped tests
are listed with their reasons; so are tests that failed first and passed when rerun alone.

pytest runs three times: tests without root use all cores; most tests with root wait for a real clock, so that a few more
workers than cores run them; tests with the mark `alone` have the machine to themselves. Cargo's tests run in parallel
with the first two, at the lowest priority. `--pages` runs twice: a browser for each core, then those with the mark `alone`.

pytest's results are read from its JUnit XML, and its cache of failed tests (`--last-failed`) selects those of the second try.
Cargo's are read from its lines: libtest writes JUnit XML with unstable options only.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from testbed.commands.options import add_verb
from testbed.errors import UsageError
from testbed.programs import INSTALLATION

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = """
  ./manet test                     everything that needs no guest
  ./manet test --quick             without the tests marked slow, and with
                                   fewer cases of properties
  ./manet test --rootless          without the tests that need root, as it is
                                   for an ordinary user (docs/rootless.md)
  ./manet test topologies -k chain
                                   arguments go to pytest, in one process;
                                   cargo's tests are left out
  ./manet test --rust              cargo's tests alone
  ./manet test --guests            the kernel-tcp tests under Debian 12's and
                                   13's kernels (./setup.sh --guests)
  ./manet test --guests --kernel 6.12 -k vegas
  ./manet test --with-guests       everything, then the guests
  ./manet test --pages             the tests of pages, of notebooks and of the
                                   site (./setup.sh --pages)
  ./manet test --interop tests/interop
                                   our routing daemons with third-party ones
                                   (ns-3, olsrd, AODV-UU)

  ./manet test --nightly tests/faults
                                   each process and each file of a run, with
                                   each fault, at each stage (an hour)

Without --interop and --nightly those tests are left out; the former need what
tests/interop/README.md lists.
"""
# These tests run real programs on a real clock: a loaded host can fail one. Failed tests are rerun once, alone, and named, unless
# they are more than this.
MAX_SECOND_TRIES = 12
SECOND_TRY = "MANET_SECOND_TRY"  # tests/probe.py reads it
OF_ROOT = "all tests with the mark root: this is an ordinary user; sudo ./manet test runs them"
SLOWEST = 10
MIN_SLOW_S = 1.0
# For tests that mostly wait; with more, the verdicts of their runs change (measured in CONTRIBUTING.md).
WAITING_TESTS_PER_CORE = 1.5
LONG_CRATE = "manet-mesh"
QUICK_CASES = 32  # of a property of Rust, for 256
QUICK_PROFILE = "testbed-quick"  # of hypothesis: conftest.py
NO_TESTS_COLLECTED = 5  # pytest's exit status
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_IGNORED = re.compile(r"^test (\S+) \.\.\. ignored(?:, (.*))?$")
_CARGO_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED")
_SKIPPED_MODULE = re.compile(r"^\('(?P<file>.+)', \d+, [\"']Skipped: (?P<reason>.*)[\"']\)$", re.DOTALL)


@dataclass
class Counts:
    """The counts of the test runners; an error of pytest counts as a failure. `failures`: a line per failed test, by name."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    second_tries: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    steps: list[tuple[str, float]] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Add the counts of another runner."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += other.reasons
        self.failures |= other.failures
        self.second_tries += other.second_tries
        self.slowest = sorted(self.slowest + other.slowest, reverse=True)[:SLOWEST]
        self.steps += other.steps

    def line(self) -> str:
        """`N passed, N failed, N skipped`."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "test", "run the tests of all languages and count them", EXAMPLES)
    parser.usage = (
        "manet test [-h] [--quick] [--rootless] [--interop] [--nightly]\n"
        "                  [--with-guests | --guests [--kernel NAME] | --pages |\n"
        "                  --rust | --python] [pytest arguments]"
    )
    parser.add_argument("--quick", action="store_true", help="skip the tests marked slow")
    parser.add_argument("--rootless", action="store_true", help="skip the tests that need root")
    parser.add_argument("--interop", action="store_true", help="also the tests against third-party routing daemons")
    parser.add_argument("--nightly", action="store_true", help="also the tests marked nightly")
    parser.add_argument("--rust", action="store_true", help="cargo's tests alone")
    parser.add_argument("--python", action="store_true", help="pytest's tests alone")
    parser.add_argument("--pages", action="store_true", help="only the tests with the mark pages (-m pages: in one process)")
    parser.add_argument("--guests", action="store_true", help="only the tests of testbed/guests/tests.toml, in guests")
    parser.add_argument("--with-guests", action="store_true", help="also the guests' tests, after all others")
    parser.add_argument("--kernel", metavar="NAME", help='with --guests: only under this kernel ("manet vm list")')


def run(options: argparse.Namespace) -> int:
    """Run the tests and print the counts. The exit status: 1 if a test failed or none passed."""
    if INSTALLATION.package is not None:
        raise UsageError("this is a package, which has no tests; run `manet test` in a checkout")
    if options.pages and options.rest:
        raise UsageError(f"--pages: takes no arguments of pytest; run `manet test -m pages {' '.join(options.rest)}`")
    # A script's background job inherits an ignored Ctrl-C, and so would every test of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    total = Counts()
    if not options.guests:
        total.add(run_here(options))
    if options.guests or options.with_guests:  # last: nothing else may run at the same time as an emulated machine
        total.add(run_guests(options.kernel, options.rest))
    report(total)
    return 1 if total.failed or not total.passed else 0


def report(total: Counts) -> None:
    """The closing lines; the last one is for CI to read."""
    headings: tuple[tuple[str, Collection[str]], ...] = (
        ("skipped", total.reasons),
        ("failed at first, passed or skipped alone", total.second_tries),
        ("failed", total.failures.values()),
        ("the slowest tests", [f"{seconds:7.1f} s  {name}" for seconds, name in total.slowest]),
        ("durations", [f"{seconds:7.0f} s  {name}" for name, seconds in total.steps]),
    )
    for heading, lines in headings:
        if lines:
            print("\n  ".join([f"\n{heading}:", *lines]))
    print(f"\n{total.line()}")


def run_here(options: argparse.Namespace) -> Counts:
    """Run all tests that need no guest, or those that the options select."""
    rust = not options.python and (options.rust or not options.rest)
    python = not options.rust or options.rest
    if not python:
        return run_cargo(options.quick)
    with tempfile.TemporaryDirectory(prefix="manet-test.") as folder:
        pytest = Pytest(Path(folder), options.quick, options.interop, options.nightly)
        if options.pages:
            return run_pages(pytest, options.rootless or as_user())
        if not options.rest:
            return run_phases(pytest, options.rootless or as_user(), rust)
        # a user watches these: one process, in order, so that -x, -s and --pdb work
        total = run_cargo(options.quick) if rust else Counts()
        total.add(pytest.second_try(pytest.run("pytest", options.rest), options.rest))
        return total


def as_user() -> bool:
    """Whether this is an ordinary user's process, whose tests with the mark `root` are left out."""
    return os.geteuid() != 0


def run_phases(pytest: "Pytest", rootless: bool, rust: bool) -> Counts:
    """All tests, then pytest's failed ones again, alone."""
    cores = len(os.sched_getaffinity(0))
    total, of_cargo = Counts(), Counts()
    if as_user():
        total.add(Counts(skipped=1, reasons=[OF_ROOT]))
    with ThreadPoolExecutor(1) as pool:
        cargo = pool.submit(run_cargo, pytest.quick, in_background=True) if rust else None
        total.add(pytest.run("pytest, without root", marks="not root", workers=cores))
        if not rootless:
            total.add(pytest.run("pytest, with root", marks="root and not alone", workers=round(WAITING_TESTS_PER_CORE * cores)))
        if cargo:
            of_cargo = cargo.result()
    if not rootless:
        total.add(pytest.run("pytest, alone", marks="alone"))
    total = pytest.second_try(total)
    total.add(of_cargo)
    return total


def run_pages(pytest: "Pytest", rootless: bool) -> Counts:
    """The tests of pages, a browser for each core, then those that act on runs in real time, and the failed ones again, alone."""
    marks = "pages and not root" if rootless else "pages"
    total = pytest.run("pages", marks=f"{marks} and not alone", workers=len(os.sched_getaffinity(0)))
    if not rootless:
        total.add(pytest.run("pages, alone", marks=f"{marks} and alone"))
    return pytest.second_try(total)


def run_cargo(quick: bool, *, in_background: bool = False) -> Counts:
    """Run cargo's tests in release mode: setup.sh has built it, and the medium's long tests would take minutes in debug mode.

    Without documentation tests: no crate has one, and rustdoc would be called for each. `quick` leaves out tests/mesh, whose
    networks live for up to 900 s of virtual time: most of the processor time of all crates. With `in_background` they run at
    nice 19 and use only spare processor time.
    """
    command = ["cargo", "test", "--workspace", "--lib", "--bins", "--tests", "--release", "--locked", "--no-fail-fast"]
    command += ["--exclude", LONG_CRATE] if quick else []
    if in_background:
        command = ["nice", "-n", "19", *command]
    environment = {**os.environ, **({"PROPTEST_CASES": str(QUICK_CASES)} if quick else {})}
    return _run("cargo test", command, count_cargo, environment, "cargo| " if in_background else "")


@dataclass
class Pytest:
    """The options of all calls of pytest; `folder`: for its results in JUnit XML, and its cache of failed tests."""

    folder: Path
    quick: bool = False
    interop: bool = False
    nightly: bool = False

    def run(self, name: str, arguments: Sequence[str] = (), *, marks: str = "", workers: int = 0, again: bool = False) -> Counts:
        """Run pytest with these arguments and marks, and count; `again` marks a second try."""
        expression = " and ".join(filter(None, [f"({marks})" if marks else "", "not slow" if self.quick else ""]))
        results = self.folder / f"{name.replace(', ', '-').replace(' ', '-')}.xml"
        command = [sys.executable, "-P", "-m", "pytest", "-ra", f"--junitxml={results}", "-o", "junit_family=xunit1", *arguments]
        command += [] if arguments else ["-o", f"cache_dir={self.folder}/cache"]  # else the user's
        command += ["-m", expression] if expression else []
        command += ["--last-failed", "--last-failed-no-failures=none"] if again else []
        command += [f"--hypothesis-profile={QUICK_PROFILE}"] if self.quick else []
        command += ["-n", str(workers), "--dist", "load"] if workers > 1 else []
        options = {"MANET_INTEROP": "1"} if self.interop else {}
        options |= {"MANET_NIGHTLY": "1"} if self.nightly else {}
        options |= {SECOND_TRY: "1"} if again else {}
        environment = {**os.environ, **options, "PYTHONPATH": str(ROOT)}
        return _run(name, command, lambda _lines: count_junit(results), environment, may_be_empty=bool(marks))

    def second_try(self, first: Counts, arguments: Sequence[str] = ()) -> Counts:
        """Rerun the failed tests once, alone. There is no third try."""
        if not 0 < len(first.failures) <= MAX_SECOND_TRIES:
            return first
        second = self.run("pytest, second try", arguments, again=True)
        return tried_again(first, second) if second.passed + second.skipped + len(second.failures) else first


def tried_again(first: Counts, second: Counts) -> Counts:
    """The counts after a second try of the failures, each of which is named even where it then passed."""
    counts = Counts(
        first.passed + second.passed, first.failed - len(first.failures) + second.failed, first.skipped + second.skipped,
        first.reasons + second.reasons, second.failures,
        [line for name, line in first.failures.items() if name not in second.failures],
    )  # fmt: skip
    counts.add(Counts(slowest=first.slowest, steps=first.steps + second.steps))
    return counts


def run_guests(kernel: str | None, arguments: Sequence[str]) -> Counts:
    """Those of testbed/guests/tests.toml, or of pytest's arguments, in each kernel; side by side where there is room."""
    from testbed.guests import tests

    names = tests.selected_kernels(kernel)
    if reason := tests.missing_requirement():
        return Counts(skipped=1, reasons=[f"all tests in guests ({', '.join(names)}): {reason}"])
    parts = tests.parts(arguments)
    guests = [
        Guest(name, part, f"{name} part {number}" if len(parts) > 1 else name)
        for name in names
        for number, part in enumerate(parts, 1)
    ]
    at_once = tests.side_by_side(len(guests))
    widest = max(len(guest.label) for guest in guests)
    with ThreadPoolExecutor(at_once) as pool:
        results = list(
            pool.map(lambda guest: run_guest(guest, arguments, f"{guest.label:<{widest}}| " if at_once > 1 else ""), guests)
        )
    left_out = [f"all guests: {line}" for line in tests.left_out(arguments)]
    total = Counts(skipped=len(left_out), reasons=left_out)
    for counts in results:
        total.add(counts)
    return total


@dataclass(frozen=True)
class Guest:
    """A guest with a kernel, and its tests; `label` tells it from those beside it."""

    kernel: str
    tests: Sequence[str]
    label: str


def run_guest(one: Guest, arguments: Sequence[str], prefix: str = "") -> Counts:
    """Run the tests of a guest, and count; of a test that was run twice the second time counts."""
    from testbed.guests import tests

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory(prefix="manet-test.") as folder:
        first, again = (Path(folder) / file for file in (tests.FIRST, tests.AGAIN))

        def count(_lines: Sequence[str]) -> Counts:
            counts = count_junit(first)
            return tried_again(counts, count_junit(again)) if again.exists() else counts

        command = tests.command(one.kernel, one.tests, arguments, Path(folder))
        # `-k` may choose tests of another part only
        counts = _run(f"guest {one.label}", command, count, environment, prefix, may_be_empty=bool(arguments))
    for lines in (counts.reasons, counts.second_tries):
        lines[:] = [f"guest {one.kernel}: {line}" for line in lines]
    counts.failures = {f"guest {one.kernel}: {test}": f"guest {one.kernel}: {line}" for test, line in counts.failures.items()}
    return counts


def count_cargo(lines: Iterable[str]) -> Counts:
    """One `test result` line per test binary."""
    counts = Counts()
    for line in lines:
        if match := _CARGO.match(line):
            passed, failed, ignored = map(int, match.groups())
            counts.add(Counts(passed, failed, ignored))
        elif match := _CARGO_IGNORED.match(line):
            counts.reasons.append(f"{match.group(1)}: {match.group(2) or 'ignored, no reason given'}")
        elif match := _CARGO_FAILED.match(line):
            counts.failures[match.group(1)] = match.group(1)
    return counts


def count_junit(path: Path) -> Counts:
    """The results in pytest's JUnit XML; none if it ended before it wrote them."""
    from junitparser import Attr, Error, Failure, JUnitXml, Skipped, TestCase

    class Case(TestCase):
        file = Attr()

    counts, reasons = Counts(), Counter[str]()
    if not path.exists():
        return counts
    cases = (case for suite in JUnitXml.fromfile(str(path)) for case in suite)
    for case in map(Case.fromelem, cases):
        classes = (case.classname or "").removeprefix((case.file or "").removesuffix(".py").replace("/", "."))
        name = "::".join(filter(None, [case.file, *classes.split("."), case.name]))
        counts.slowest.append((case.time or 0.0, name))
        if wrong := [result for result in case.result if isinstance(result, Failure | Error)]:
            counts.failed += name not in counts.failures  # a test and its teardown have an element each
            why = (wrong[0].message or "").strip().partition("\n")[0]
            counts.failures[name] = f"{'FAILED' if isinstance(wrong[0], Failure) else 'ERROR'} {name} - {why}"
        elif skipped := [result for result in case.result if isinstance(result, Skipped)]:
            counts.skipped += 1
            module = _SKIPPED_MODULE.match(skipped[0].text or "")
            where, why = (module["file"], module["reason"]) if module else (case.file, skipped[0].message)
            reasons[f"{os.path.relpath(where, ROOT) if where and module else where}: {why}"] += 1
        else:
            counts.passed += 1
    counts.slowest = sorted((test for test in counts.slowest if test[0] >= MIN_SLOW_S), reverse=True)[:SLOWEST]
    counts.reasons = [f"[{number}] {reason}" for reason, number in reasons.items()]
    return counts


def _run(
    name: str,
    command: Sequence[str],
    count: Callable[[list[str]], Counts],
    environment: dict[str, str],
    prefix: str = "",
    *,
    may_be_empty: bool = False,
) -> Counts:
    """Print the runner's output as it comes, and count its tests; an error status without a failed test is a failure."""
    print(f"{prefix}$ {' '.join(' '.join(command).split())[:400]}", flush=True)
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except FileNotFoundError:
        print(f"{command[0]}: not found; run ./setup.sh", file=sys.stderr)
        return Counts(failed=1)
    lines: list[str] = []
    assert process.stdout is not None
    try:
        for line in process.stdout:
            print(prefix + line, end="", flush=True)
            lines.append(line)
        status = process.wait()
    except KeyboardInterrupt:
        process.wait()  # the terminal has sent it the signal, too
        raise
    counts = count(lines)
    counts.steps.append((name, time.monotonic() - began))
    if status != 0 and counts.failed == 0 and not (may_be_empty and status == NO_TESTS_COLLECTED):
        print(f"{name}: ended with status {status} without a result; its output above says why", file=sys.stderr)
        counts.failed = 1
    return counts
