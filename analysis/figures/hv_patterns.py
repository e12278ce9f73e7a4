"""TCP over AODV and DSR on the ten patterns that ns-2.35 ran, in percent of the expected throughput, against mean speed.

Filled: this testbed, mean over the patterns with 95 % intervals, against its own static chains. Open: ns-2.35 on the same
movements, against its own static chains; of AODV, whose single runs are not kept, the ratio of the means.
"""

from pathlib import Path
from typing import Any

from analysis.drawing import shared, style
from analysis.references import load_reference
from analysis.tables.results import read_summary
from record.errors import RunFileError

METRIC = "percent"
REFERENCE = "hv_patterns"


def draw(out_dir: Path) -> list[Path]:
    """Draw from `out_dir`/summary.csv; returns the files written."""
    summary = read_summary(out_dir)
    measured = by_protocol([row for row in summary if row["metric"] == METRIC and row["mean"] is not None])
    simulated = by_protocol([dict(row) for row in load_reference("ns2", REFERENCE).rows])
    with style.page(out_dir, "hv_patterns", 3.2) as (axes, written):
        axes[0].axhline(100, color=style.BLACK, linewidth=0.6)
        for protocol, rows in measured.items():
            mark = style.of_variant(protocol)
            axes[0].errorbar([speed for speed, _ in rows], [row["mean"] for _, row in rows],
                             yerr=shared.half_widths([row for _, row in rows]), color=mark.colour, marker=mark.marker,
                             capsize=2.5, label=mark.name)  # fmt: skip
        for protocol in [name for name in measured if name in simulated]:
            mark, rows = style.of_variant(protocol), simulated[protocol]
            shares = [
                float(row["percent"] or 100 * float(row["acked_kbps"]) / float(row["expected_kbps"])) for _, row in rows
            ]  # fmt: skip
            axes[0].plot([speed + 0.4 for speed, _ in rows], shares, color=mark.colour, marker=mark.marker, linestyle=":",
                         markerfacecolor="white", label=f"{mark.name}, ns-2.35")  # fmt: skip
        axes[0].set(xlabel="mean speed (m/s)", ylabel="% of the expected throughput", ylim=(0, None))
        axes[0].legend()
        shared.write_origin(axes[0], out_dir, summary, METRIC)
    return written


def by_protocol(rows: list[dict[str, Any]]) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Groups rows of variants such as `aodv-30`: for each protocol (speed, row), slowest first."""
    found: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for row in rows:
        protocol, _, speed = (row["variant"] or "").rpartition("-")
        if not speed.isdecimal():
            raise RunFileError(f'variant "{row["variant"] or ""}" is not PROTOCOL-SPEED, such as aodv-30; name another figure')
        found.setdefault(protocol, []).append((float(speed), row))
    return {protocol: sorted(pairs, key=lambda pair: pair[0]) for protocol, pairs in found.items()}
