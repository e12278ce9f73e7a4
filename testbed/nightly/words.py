"""A night as text and as JSON."""

from math import isfinite
from typing import Any

from analysis.nights.change import MIN_NIGHTS, Verdict
from testbed.nightly.night import Night

SHORT = 10  # digits of a commit in a line


def lines(night: Night) -> list[str]:
    """The printed report."""
    report = []
    for name, part in night.parts.items():
        watched = [verdict for verdict in night.verdicts if verdict.series.part == name]
        young = sum(verdict.p is None for verdict in watched)
        watched_text = f"skipped: {part.skipped}" if part.skipped else f"{len(watched)} figures watched"
        wait = f", {young} with too few earlier nights ({MIN_NIGHTS} needed, exact ones 1)" if young else ""
        report.append(f"{name:<11}{watched_text}{wait}")
        changes = [(v.smallest, v.series.metric) for v in watched if v.smallest is not None and not v.series.exact]
        if changes:
            share, metric = max(changes)
            report.append(f"{'':<11}nine nights in ten find a change of {share:.1%} (the least certain figure: {metric})")
    report += [f"failed     {failure}" for failure in night.failures]
    report += [f"changed    {alarm_line(verdict)}" for verdict in night.alarms]
    state = f"{len(night.alarms)} changed, {len(night.failures)} failed" if night.alarms or night.failures else "no change"
    return [*report, f"night      {night.name}, {shortened_range(night.commits)}: {state}"]


def alarm_line(verdict: Verdict) -> str:
    """Metric, old and new value, commit range and runs."""
    series = verdict.series
    runs = series.tonight.runs
    where = runs[0] if len(runs) == 1 else f"{runs[0]} to {runs[-1]}" if runs else "-"
    return (
        f"{series.metric}: {verdict.old:.5g} -> {verdict.new:.5g} {series.unit} ({verdict.change:+.1%}, p = {verdict.p:.2g}, "
        f"{verdict.nights} nights), {shortened_range(verdict.commits)}, runs {where} of {series.tonight.night}"
    )


def untested_reason(verdict: Verdict) -> str | None:
    """The reason why a figure was not compared; None for one that was."""
    if verdict.p is not None:
        return None
    needed = 1 if verdict.series.exact else MIN_NIGHTS
    return f"too few earlier nights: {verdict.nights} of {needed}"


def shortened_range(commits: str) -> str:
    """`old..new` with short commits; a + stays."""
    return "..".join(commit[:SHORT] + ("+" if commit.endswith("+") else "") for commit in commits.split(".."))


def as_json(night: Night) -> dict[str, Any]:
    """The night as an object: failures, and each watched figure with its verdict."""
    return {
        "format": "manet-night/1", "night": night.name, "date": night.date.isoformat(), "commits": night.commits,
        "parts": {name: {"skipped": part.skipped or None, "failures": part.failures} for name, part in night.parts.items()},
        "figures": [
            {
                "part": verdict.series.part, "metric": verdict.series.metric, "unit": verdict.series.unit, "old": verdict.old,
                "new": verdict.new, "change": _finite(verdict.change), "p": verdict.p, "nights": verdict.nights,
                "alarm": verdict.alarm, "commits": verdict.commits, "smallest": _finite(verdict.smallest),
                "runs": list(verdict.series.tonight.runs),
            }
            for verdict in night.verdicts
        ],
    }  # fmt: skip


def _finite(number: float | None) -> float | None:
    """JSON has no infinity, the change from 0."""
    return number if number is not None and isfinite(number) else None
