"""Measured, published and ns-2's numbers: a table for each metric that an experiment shows or has references for."""

from collections.abc import Iterator
from typing import Any

from analysis.drawing.style import of_variant
from analysis.reports.answers import MINUS
from analysis.reports.content import NumberTable
from analysis.tables.digits import rounded
from analysis.tables.results import METRICS, Results, cell_of, endings_of_cells
from analysis.tables.shown import kinds_in, kinds_of_cells, shown_of
from traffic.shared.kind import Shown

REFERENCES = ("published", "ns2")
LABELS = {"percent": "share of the expected throughput"}  # also shown; most figures of HV are of this
HEADINGS = ("runs", "mean", "±95 %", "published", "mean / published", "ns-2.35", "mean / ns-2")


def number_tables(results: Results) -> tuple[NumberTable, ...]:
    """A table for each metric, with a row per cell; a column that is empty in every row is left out."""
    return tuple(table for shown, kind in _metrics(results) if (table := _table(results, shown, kind)) is not None)


def _metrics(results: Results) -> Iterator[tuple[Shown, str | None]]:
    """The metrics that the experiment prints of each traffic kind, then LABELS and others that a reference table has."""
    listed = set()
    for kind in kinds_in(results):
        for shown in shown_of(results, kind):
            listed.add(shown.metric)
            yield shown, kind
    compared = {row["metric"] for row in results.summary if any(row[key] is not None for key in REFERENCES)}
    compared |= {row["metric"] for row in results.summary if row["mean"] is not None} & LABELS.keys()
    for metric, (unit, _, _) in METRICS.items():
        if metric in compared - listed:
            yield Shown(metric, LABELS.get(metric) or metric.replace("_", " "), unit), None


def _table(results: Results, shown: Shown, kind: str | None) -> NumberTable | None:
    axes = results.experiment.axes
    kinds = kinds_of_cells(results)
    rows = [
        row for row in results.summary
        if row["metric"] == shown.metric and (kind is None or kind in kinds[cell_of(row, axes)])
    ]  # fmt: skip
    if not rows:
        return None
    names = [*axes, *(["variant"] if any(row["variant"] for row in rows) else [])]
    profiles = {row["profile"] for row in rows if row["profile"]}
    names += ["profile"] if len(profiles) > 1 and "profile" not in axes else []
    endings = endings_of_cells(results)
    texts = [[*_numbers(row, shown), ", ".join(endings.get(cell_of(row, axes), ["no runs"]))] for row in rows]
    filled = [column for column in range(len(texts[0])) if any(text[column] for text in texts)]
    headings = (*HEADINGS, "verdicts")
    caption = shown.label + (f", {shown.unit}" if shown.unit else "")
    caption += f" ({kind})" if kind is not None and len(kinds_in(results)) > 1 else ""
    caption += f", profile {next(iter(profiles))}" if len(profiles) == 1 else ""
    return NumberTable(
        caption, (*names, *(headings[column] for column in filled)), len(names),
        tuple((*(_name(key, row[key]) for key in names), *(text[column] for column in filled))
              for row, text in zip(rows, texts, strict=True)),
    )  # fmt: skip


def _numbers(row: dict[str, Any], shown: Shown) -> list[str]:
    """The texts of HEADINGS."""
    scaled = shown.scaled({key: row[key] for key in ("mean", "ci95", *REFERENCES)})
    texts = [str(row["n"]), _text(scaled["mean"]), _text(scaled["ci95"])]
    for reference in (scaled[key] for key in REFERENCES):
        ratio = scaled["mean"] / reference if reference and scaled["mean"] is not None else None
        texts += [_text(reference), "" if ratio is None else f"{ratio:.2f}"]
    return texts


def _text(value: float | None) -> str:
    return rounded(value).replace("-", MINUS)


def _name(key: str, value: Any) -> str:
    return str(value) if value or key != "variant" else of_variant("").name
