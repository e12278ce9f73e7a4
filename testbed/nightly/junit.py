"""JUnit XML of a night, for other systems: a suite for each part, a case for each watched figure and each failure."""

from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from analysis.files import write_atomic
from testbed.nightly.night import Night
from testbed.nightly.words import alarm_line


def write(night: Night, path: Path) -> None:
    """Write the file."""
    document = JUnitXml("manet nightly")
    for name, part in night.parts.items():
        suite = TestSuite(name)
        suite.timestamp = night.date.isoformat(timespec="seconds")
        suite.add_property("commits", night.commits)
        for verdict in (one for one in night.verdicts if one.series.part == name):
            results = [Failure(alarm_line(verdict), "change")] if verdict.alarm else []
            suite.add_testcase(_case(verdict.series.metric, name, results))
        for failure in part.failures:
            suite.add_testcase(_case(failure.partition(":")[0], f"{name}.failures", [Error(failure, "failed")]))
        if part.skipped:
            suite.add_testcase(_case(name, name, [Skipped(part.skipped)]))
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    write_atomic(path, document.tostring().decode())  # type: ignore[no-untyped-call]


def _case(name: str, suite: str, results: Sequence[Failure | Error | Skipped]) -> TestCase:
    case = TestCase(name, f"nightly.{suite}")
    case.result = list(results)
    return case
