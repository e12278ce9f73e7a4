"""`manet test`: cargo's and pytest's tests, counted together.

The last line is `N passed, N failed, N skipped` over all runners. A runner that cannot start counts as a failure. Skipped tests
are listed with their reasons; so are tests that failed first and passed when rerun alone.

pytest runs three times: tests without root use all cores; most tests with root wait for a real clock, so that a few more
workers than cores run them; tests with the mark `alone` have the machine to themselves. Cargo's tests run in parallel
with the first two, at the lowest priority.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from testbed.commands.options import add_verb

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = """
  ./manet test                     everything that needs no guest
  ./manet test --quick             without the tests marked slow, and with
                                   fewer cases of properties
  ./manet test --rootless          without the tests that need root
  ./manet test topologies -k chain
                                   arguments go to pytest, in one process;
                                   cargo's tests are left out
  ./manet test --rust              cargo's tests alone
  ./manet test --guests            the kernel-tcp tests under Debian 12's and
                                   13's kernels (./setup.sh --guests)
  ./manet test --guests --kernel 6.12 -k vegas
  ./manet test --with-guests       everything, then the guests
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
SLOWEST = 10
# For tests that mostly wait; with more, the verdicts of their runs change (measured in CONTRIBUTING.md).
WAITING_TESTS_PER_CORE = 1.5
LONG_CRATE = "manet-mesh"
QUICK_CASES = 32  # of a property of Rust, for 256
QUICK_PROFILE = "testbed-quick"  # of hypothesis: conftest.py
NO_TESTS_COLLECTED = 5  # pytest's exit status
_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_IGNORED = re.compile(r"^test (\S+) \.\.\. ignored(?:, (.*))?$")
_CARGO_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED")
_DURATION = re.compile(r"^([\d.]+)s (call|setup|teardown) +(\S.*)$")
_PYTEST = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)\b")


@dataclass
class Counts:
    """The counts of the test runners; an error of pytest counts as a failure."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    second_tries: list[str] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    steps: list[tuple[str, float]] = field(default_factory=list)

    def add(self, other: "Counts") -> None:
        """Add the counts of another runner."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += other.reasons
        self.failures += other.failures
        self.second_tries += other.second_tries
        self.slowest = sorted(self.slowest + other.slowest, reverse=True)[:SLOWEST]
        self.steps += other.steps

    def line(self) -> str:
        """`N passed, N failed, N skipped`."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb and its options."""
    parser = add_verb(verbs, "test", "run the tests of all languages and count them", EXAMPLES)
    parser.usage = (
        "manet test [-h] [--quick] [--rootless] [--interop] [--nightly]\n"
        "                  [--with-guests | --guests [--kernel NAME] | --rust | --python]\n"
        "                  [pytest arguments]"
    )
    parser.add_argument("--quick", action="store_true", help="skip the tests marked slow")
    parser.add_argument("--rootless", action="store_true", help="skip the tests that need root")
    parser.add_argument("--interop", action="store_true", help="also the tests against third-party routing daemons")
    parser.add_argument("--nightly", action="store_true", help="also the tests marked nightly")
    parser.add_argument("--rust", action="store_true", help="cargo's tests alone")
    parser.add_argument("--python", action="store_true", help="pytest's tests alone")
    parser.add_argument("--guests", action="store_true", help="only the tests of testbed/guests/tests.toml, in guests")
    parser.add_argument("--with-guests", action="store_true", help="also the guests' tests, after all others")
    parser.add_argument("--kernel", metavar="NAME", help='with --guests: only under this kernel ("manet vm list")')


def run(options: argparse.Namespace) -> int:
    """Run the tests and print the counts. The exit status: 1 if a test failed or none passed."""
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
    headings = (
        ("skipped", total.reasons),
        ("failed at first, passed or skipped alone", total.second_tries),
        ("failed", total.failures),
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
    if options.rest:  # a user watches these: one process, in order, so that -x, -s and --pdb work
        total = run_cargo(options.quick) if rust else Counts()
        total.add(Pytest(options.quick, options.interop, options.nightly).run("pytest", options.rest))
        return total
    return run_phases(options, rust)


def run_phases(options: argparse.Namespace, rust: bool) -> Counts:
    """All tests, then the failed ones again, alone."""
    cores = len(os.sched_getaffinity(0))
    pytest = Pytest(options.quick, options.interop, options.nightly)
    total = Counts()
    with ThreadPoolExecutor(1) as pool:
        cargo = pool.submit(run_cargo, options.quick, in_background=True) if rust else None
        total.add(pytest.run("pytest, without root", marks="not root", workers=cores))
        if not options.rootless:
            total.add(pytest.run("pytest, with root", marks="root and not alone", workers=round(WAITING_TESTS_PER_CORE * cores)))
        total.add(cargo.result() if cargo else Counts())
    if not options.rootless:
        total.add(pytest.run("pytest, alone", marks="alone"))
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
    """The options of all calls of pytest."""

    quick: bool = False
    interop: bool = False
    nightly: bool = False

    def run(self, name: str, arguments: Sequence[str] = (), *, marks: str = "", workers: int = 0, again: bool = False) -> Counts:
        """Run pytest with these arguments and marks, and count; `again` marks a second try."""
        expression = " and ".join(filter(None, [f"({marks})" if marks else "", "not slow" if self.quick else ""]))
        command = [sys.executable, "-P", "-m", "pytest", "-ra", f"--durations={SLOWEST}", "--durations-min=1", *arguments]
        command += ["-m", expression] if expression else []
        command += [f"--hypothesis-profile={QUICK_PROFILE}"] if self.quick else []
        command += ["-n", str(workers), "--dist", "load"] if workers > 1 else []
        options = {"MANET_INTEROP": "1"} if self.interop else {}
        options |= {"MANET_NIGHTLY": "1"} if self.nightly else {}
        options |= {SECOND_TRY: "1"} if again else {}
        environment = {**os.environ, **options, "PYTHONPATH": str(ROOT)}
        counts = _run(name, command, count_pytest, environment, may_be_empty=bool(marks))
        return counts if arguments == () or again else self.second_try(counts)

    def second_try(self, first: Counts) -> Counts:
        """Rerun the failed tests once, alone. There is no third try."""
        names = list(dict.fromkeys(_name(line) for line in first.failures if _is_pytests(line)))
        if not 0 < len(names) <= MAX_SECOND_TRIES or first.failed != len(first.failures):
            return first
        second = self.run("pytest, second try", names, again=True)
        return tried_again(first, second) if second.failed == len(second.failures) else first


def tried_again(first: Counts, second: Counts) -> Counts:
    """The counts after a second try of pytest's failures, each of which is named even where it then passed."""
    retried = [line for line in first.failures if _is_pytests(line)]
    still = {_name(line) for line in second.failures}
    failed = first.failed - len(retried) + second.failed
    counts = Counts(first.passed + second.passed, failed, first.skipped + second.skipped, first.reasons + second.reasons)
    counts.failures = [line for line in first.failures if not _is_pytests(line)] + second.failures
    counts.second_tries = [line for line in retried if _name(line) not in still]
    counts.add(Counts(slowest=first.slowest, steps=first.steps + second.steps))
    return counts


def _is_pytests(failure: str) -> bool:
    return failure.startswith(("FAILED ", "ERROR "))


def _name(failure: str) -> str:
    """Of pytest's line `FAILED test_x.py::test_y - why`: `test_x.py::test_y`."""
    return failure.split(" - ")[0].split(" ", 1)[1]


def run_guests(kernel: str | None, arguments: Sequence[str]) -> Counts:
    """Those of testbed/guests/tests.toml, or of pytest's arguments, in each kernel; side by side where there is room."""
    from testbed.guests import tests

    names = tests.selected_kernels(kernel)
    if reason := tests.missing_requirement():
        return Counts(skipped=1, reasons=[f"all tests in guests ({', '.join(names)}): {reason}"])
    if tests.side_by_side(names):
        with ThreadPoolExecutor(len(names)) as pool:
            found = list(pool.map(lambda name: run_guest(name, arguments, f"{name:<5}| "), names))
    else:
        found = [run_guest(name, arguments) for name in names]
    left_out = [f"all guests: {line}" for line in tests.left_out(arguments)]
    total = Counts(skipped=len(left_out), reasons=left_out)
    for counts in found:
        total.add(counts)
    return total


def run_guest(name: str, arguments: Sequence[str], prefix: str = "") -> Counts:
    """Run the tests in the guest with this kernel, and count."""
    from testbed.guests import tests

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    counts = _run(f"guest {name}", tests.command(name, arguments), count_guest, environment, prefix)
    for lines in (counts.reasons, counts.failures, counts.second_tries):
        lines[:] = [f"guest {name}: {line}" for line in lines]
    return counts


def count_guest(lines: Iterable[str]) -> Counts:
    """As pytest's; of a test that was run twice the second time counts."""
    from testbed.guests.tests import AGAIN

    first: list[str] = []
    second: list[str] = []
    for line in lines:
        (second if second or line.strip() == AGAIN else first).append(line)
    counts = count_pytest(first)
    again = count_pytest(second)
    return tried_again(counts, again) if again.passed + again.failed + again.skipped else counts


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
            counts.failures.append(match.group(1))
    return counts


def count_pytest(lines: Iterable[str]) -> Counts:
    """The closing line's counts, the reasons of `-rs`, and the durations of `--durations`. Of several summaries the last counts:
    those before it are in the output of tests that run pytest themselves."""
    counts = Counts()
    for line in lines:
        if line.strip("= \n") == "short test summary info":
            counts.failures, counts.reasons = [], []
        if match := _DURATION.match(line):
            seconds, when, name = match.groups()
            counts.slowest.append((float(seconds), name if when == "call" else f"{name} ({when})"))
        if line.startswith("SKIPPED "):
            counts.reasons.append(line.removeprefix("SKIPPED ").strip())
        if line.startswith(("FAILED ", "ERROR ")):
            counts.failures.append(line.strip())
        bare = line.strip("= \n")
        if re.fullmatch(r"(no tests ran|(\d+ \w+(, )?)+) in [\d.]+s.*", bare):
            found = {kind: int(number) for number, kind in _PYTEST.findall(bare)}
            counts.passed = found.get("passed", 0) + found.get("xpassed", 0)
            counts.failed = found.get("failed", 0) + found.get("error", 0) + found.get("errors", 0)
            counts.skipped = found.get("skipped", 0) + found.get("xfailed", 0)
    return counts


def _run(
    name: str,
    command: Sequence[str],
    count: Callable[[Iterable[str]], Counts],
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
