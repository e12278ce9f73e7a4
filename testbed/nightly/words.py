"""A night as text and as JSON."""

from math import isfinite
from typing import Any

from analysis.nights.change import MIN_NIGHTS, Verdict
from testbed.nightly.night import Night

SHORT = 10  # digits of a commit in a line


def lines(night: Night) -> list[str]:
    """The printed report."""
    found = []
    for name, part in night.parts.items():
        watched = [one for one in night.verdicts if one.series.part == name]
        young = sum(one.p is None for one in watched)
        said = f"skipped: {part.skipped}" if part.skipped else f"{len(watched)} figures watched"
        wait = f", {young} with too few earlier nights ({MIN_NIGHTS} needed, exact ones 1)" if young else ""
        found.append(f"{name:<11}{said}{wait}")
        if smallest := [
            (one.smallest, one.series.metric) for one in watched if one.smallest is not None and not one.series.exact
        ]:
            share, metric = max(smallest)
            found.append(f"{'':<11}nine nights in ten find a change of {share:.1%} (the least certain figure: {metric})")
    found += [f"failed     {failure}" for failure in night.failures]
    found += [f"changed    {alarm_line(verdict)}" for verdict in night.alarms]
    state = f"{len(night.alarms)} changed, {len(night.failures)} failed" if night.alarms or night.failures else "no change"
    return [*found, f"night      {night.name}, {shortened_range(night.commits)}: {state}"]


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
    return "..".join(one[:SHORT] + ("+" if one.endswith("+") else "") for one in commits.split(".."))


def as_json(night: Night) -> dict[str, Any]:
    """The night as an object: failures, and each watched figure with its verdict."""
    return {
        "format": "manet-night/1", "night": night.name, "date": night.date.isoformat(), "commits": night.commits,
        "parts": {name: {"skipped": part.skipped or None, "failures": part.failures} for name, part in night.parts.items()},
        "figures": [
            {
                "part": one.series.part, "metric": one.series.metric, "unit": one.series.unit, "old": one.old, "new": one.new,
                "change": _finite(one.change), "p": one.p, "nights": one.nights, "alarm": one.alarm, "commits": one.commits,
                "smallest": _finite(one.smallest), "runs": list(one.series.tonight.runs),
            }
            for one in night.verdicts
        ],
    }  # fmt: skip


def _finite(number: float | None) -> float | None:
    """JSON has no infinity, the change from 0."""
    return number if number is not None and isfinite(number) else None
