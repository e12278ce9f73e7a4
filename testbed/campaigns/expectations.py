"""The outcome that an experiment states beforehand, compared with its results (`[expect]`, formats/scenario.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from analysis.tables.digits import exact
from keys.models import Strict, as_tuple


class Expectation(Strict):
    """A metric that is compared with a reference, cell by cell."""

    metric: str = "acked_kbps"
    variants: Annotated[tuple[str, ...] | None, BeforeValidator(as_tuple)] = None
    against: Literal["ns2", "published"] = "ns2"
    profile: Literal["period", "modern"] = "period"
    within_percent: float = Field(gt=0, le=1000)
    quick_within_percent: float | None = Field(default=None, gt=0, le=1000)
    quick_run_percent: float | None = Field(default=None, gt=0, le=1000)  # 95 of 100 runs are this near to their mean

    def of_size(self, quick: bool) -> "Expectation":
        """The expectation at a size. At quick size one short run replaces a mean and may deviate further."""
        if not quick:
            return self.model_copy(update={"quick_run_percent": None})
        return self.model_copy(update={"within_percent": self.quick_within_percent or self.within_percent})


class Expected(Strict):
    """The outcome stated beforehand, as text and as checks."""

    outcome: str | None = None
    checks: Annotated[tuple[Expectation, ...], BeforeValidator(as_tuple)] = ()


@dataclass(frozen=True)
class Comparison:
    """One expectation over all its cells; `ok` is None without comparable cells."""

    text: str
    ok: bool | None
    detail: str

    @property
    def mark(self) -> str:
        """pass, FAIL or none."""
        return {True: "pass", False: "FAIL", None: "none"}[self.ok]

    def line(self) -> str:
        """One line: pass, FAIL or none, the expectation, the figures."""
        return f"{self.mark}  {self.text}: {self.detail}"


def compare(
    expected: Sequence[Expectation], summary: Sequence[dict[str, Any]], axes: Sequence[str], profiles: Mapping[str, str]
) -> list[Comparison]:
    """`summary` has the rows of summary.csv (analysis.tables.results.Results); `profiles` is each variant's TCP profile, for
    experiments without the axis `profile`. An expectation is compared with runs of its own profile only."""
    return [_compare(check, [row for row in summary if _profile(row, profiles) == check.profile], axes) for check in expected]


def _profile(row: Mapping[str, Any], profiles: Mapping[str, str]) -> str:
    # a folder may hold runs of variants that this campaign did not run
    return row["profile"] if "profile" in row else profiles.get(row["variant"] or "", "")


def _compare(expected: Expectation, summary: Sequence[dict[str, Any]], axes: Sequence[str]) -> Comparison:
    variants = f" ({', '.join(expected.variants)})" if expected.variants else ""
    text = f"{expected.metric}{variants} within {expected.within_percent:g} % of {expected.against}"
    if expected.quick_run_percent is not None:
        text += f" (one run: +-{expected.quick_run_percent:g} % in 95 of 100)"
    deviations: list[tuple[float, str]] = []
    for row in summary:
        applies = expected.variants is None or row["variant"] in expected.variants
        reference = row[expected.against]
        if row["metric"] == expected.metric and applies and reference and row["mean"] is not None:
            cell = ", ".join([*([str(row["variant"])] if row["variant"] else []), *(f"{a} {exact(row[a])}" for a in axes)])
            deviations.append((100 * (row["mean"] / reference - 1), cell))
    if not summary:
        return Comparison(text, None, f'nothing was run with profile "{expected.profile}", for which this is expected')
    if not deviations:
        return Comparison(text, None, f"no cell has both a result and a number from {expected.against}")
    outside = [(percent, cell) for percent, cell in deviations if abs(percent) > expected.within_percent]
    if outside:
        shown = "; ".join(f"{cell}: {percent:+.1f} %" for percent, cell in outside)
        return Comparison(text, False, f"{len(outside)} of {len(deviations)} cells are not: {shown}")
    percent, cell = max(deviations, key=lambda pair: abs(pair[0]))
    return Comparison(text, True, f"all {len(deviations)} cells, the farthest {percent:+.1f} % ({cell})")
