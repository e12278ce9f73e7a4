"""JUnit XML of a night, for other systems: a suite for each part, a case for each watched figure and each failure. A figure that
was not compared, for want of earlier nights, is skipped: it has passed no test."""

from collections.abc import Sequence
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from analysis.nights.change import Verdict
from record.files import write_atomic
from testbed.nightly.night import Night
from testbed.nightly.words import alarm_line, untested_reason


def write(night: Night, path: Path) -> None:
    """Write the file."""
    document = JUnitXml("manet nightly")
    for name, part in night.parts.items():
        suite = TestSuite(name)
        suite.timestamp = night.date.isoformat(timespec="seconds")
        suite.add_property("commits", night.commits)
        for verdict in (each for each in night.verdicts if each.series.part == name):
            suite.add_testcase(_case(verdict.series.metric, name, _results(verdict)))
        for failure in part.failures:
            suite.add_testcase(_case(failure.partition(":")[0], f"{name}.failures", [Error(failure, "failed")]))
        if part.skipped:
            suite.add_testcase(_case(name, name, [Skipped(part.skipped)]))
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    write_atomic(path, document.tostring().decode())  # type: ignore[no-untyped-call]


def _results(verdict: Verdict) -> list[Failure | Skipped]:
    if verdict.alarm:
        return [Failure(alarm_line(verdict), "change")]
    return [Skipped(reason)] if (reason := untested_reason(verdict)) else []


def _case(name: str, suite: str, results: Sequence[Failure | Error | Skipped]) -> TestCase:
    case = TestCase(name, f"nightly.{suite}")
    case.result = list(results)
    return case
