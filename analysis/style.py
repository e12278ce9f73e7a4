"""Colours, markers and display names of every figure, in one place.

The colours are Okabe and Ito's (Color Universal Design, 2008), which stay apart under every kind of colour
blindness; marker and line differ as well, so that a grey print can be read.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # figures are files; no display is needed
import matplotlib.pyplot as plt  # noqa: E402 (the backend comes first)
from matplotlib.figure import Figure  # noqa: E402

BLACK, GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#7f7f7f", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    name: str
    colour: str
    marker: str


VARIANTS = {
    "ns2": Look("802.11 at 1 and 2 Mbit/s, 200 m", BLUE, "o"),
    "hv": Look("all at 2 Mbit/s, 180 m", VERMILION, "s"),
    "hv-alt": Look("control at 1 Mbit/s, delayed ACK, 180 m", GREEN, "^"),
    "": Look("this testbed", BLUE, "o"),
}
_SPARE = [(PURPLE, "D"), (ORANGE, "v"), (SKY, "P")]
PUBLISHED = Look("published", BLACK, "x")
PEER = Look("Mininet-WiFi + wmediumd", GREY, "+")

SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,  # text stays text
}
COLUMN_WIDTH_IN = 5.0


def look(variant: str | None, position: int = 0) -> Look:
    """A variant's look; one that is not listed keeps its own name and gets a spare colour by its position."""
    key = variant or ""
    if key in VARIANTS:
        return VARIANTS[key]
    colour, marker = _SPARE[position % len(_SPARE)]
    return Look(key, colour, marker)


def variant_name(variant: str | None) -> str:
    return variant or ""


def new_figure(height_in: float, rows: int = 1, **options) -> tuple[Figure, list]:
    """A figure of our width with `rows` axes one above the other."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(rows, 1, figsize=(COLUMN_WIDTH_IN, height_in), squeeze=False, **options)
    return figure, list(axes[:, 0])


def save(figure: Figure, out_dir: Path, name: str) -> list[Path]:
    """PNG for the screen, PDF for print; the figure is closed."""
    out_dir.mkdir(parents=True, exist_ok=True)
    paths = [out_dir / f"{name}.png", out_dir / f"{name}.pdf"]
    with plt.rc_context(SETTINGS):
        figure.savefig(paths[0])
        figure.savefig(paths[1], metadata={"CreationDate": None})  # the same figure, the same bytes
    plt.close(figure)
    return paths
