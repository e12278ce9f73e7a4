"""Colours, markers and display names of every figure, in one place.

The colours are Okabe and Ito's (Color Universal Design, 2008), which stay apart under every kind of colour
blindness; marker and line differ as well, so that a grey print can be read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # figures are files; no display is needed
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from analysis.files import atomic_file

BLACK, GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#7f7f7f", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """Display name, colour (`#rrggbb`) and marker (matplotlib) of a variant."""

    name: str
    colour: str
    marker: str


VARIANTS = {
    "ns2": Look("ns2: data at 2, control at 1 Mbit/s, 200 m", BLUE, "o"),
    "hv": Look("hv: all at 2 Mbit/s, 180 m", VERMILION, "s"),
    "hv-alt": Look("hv-alt: control at 1 Mbit/s, delayed ACK, 180 m", GREEN, "^"),
    "aodv": Look("AODV", VERMILION, "o"),
    "aodv-silence": Look("AODV, by hellos alone", ORANGE, "P"),
    "aodv-ns2": Look("AODV, ns-2's waits", ORANGE, "P"),
    "dsdv": Look("DSDV", BLUE, "s"),
    "dsdv-feedback": Look("DSDV, link feedback", SKY, "X"),
    "dsr": Look("DSR", GREEN, "^"),
    "dsr-ns2": Look("DSR as ns-2's", GREY, "p"),
    "olsr": Look("OLSR", PURPLE, "D"),
    "olsr-feedback": Look("OLSR, link feedback", PURPLE, "P"),
    "olsr-silence": Look("OLSR, by hellos alone", BLUE, "P"),
    "batman-adv": Look("batman-adv", GREEN, "^"),
    "batman-adv-fast": Look("batman-adv, 5 messages a second", SKY, "X"),
    "babeld": Look("Babel", GREY, "p"),
    "static": Look("static routes", BLACK, "v"),
    "as-printed": Look("positions as printed", BLUE, "o"),
    "rearranged": Look("rearranged", VERMILION, "s"),
    "rearranged-diameter-6": Look("rearranged, NET_DIAMETER 6", GREEN, "^"),
    "n2-leaves": Look("n2 leaves", PURPLE, "D"),
    "n2-leaves-rearranged": Look("n2 leaves, rearranged", ORANGE, "v"),
    "cache-replies": Look("DSR, replies from caches", VERMILION, "o"),
    "no-cache-replies": Look("DSR, replies by the target alone", BLUE, "s"),
    "reno": Look("Reno", BLACK, "v"),
    "elfn-2s": Look("ELFN, probes every 2 s", BLUE, "o"),
    "elfn-4s": Look("ELFN, 4 s", SKY, "P"),
    "elfn-6s": Look("ELFN, 6 s", GREEN, "^"),
    "elfn-15s": Look("ELFN, 15 s", ORANGE, "D"),
    "elfn-30s": Look("ELFN, 30 s", VERMILION, "s"),
    "elfn": Look("ELFN, state unchanged", BLUE, "o"),
    "elfn-any-ack": Look("ELFN, any ACK ends stand-by", BLUE, "o"),
    "elfn-probe-ack": Look("ELFN, an ACK after a probe does", GREEN, "^"),
    "elfn-window": Look("ELFN, window of one", GREEN, "^"),
    "elfn-initial": Look("ELFN, window of one, initial RTO", VERMILION, "s"),
    "elfn-first": Look("ELFN, probes with the first of the window", BLUE, "o"),
    "elfn-lost": Look("ELFN, with the lowest reported lost", VERMILION, "s"),
    "tahoe": Look("Tahoe", ORANGE, "P"),
    "newreno": Look("NewReno", VERMILION, "s"),
    "sack": Look("SACK", GREEN, "^"),
    "vegas": Look("Vegas", BLUE, "o"),
    "tcpap": Look("TCP-AP", BLUE, "o"),
    "reno-f": Look("Reno-F", ORANGE, "P"),
    "tcpf": Look("TCP-F", SKY, "X"),
    "atcp": Look("ATCP", PURPLE, "D"),
    "tcpbus": Look("TCP-BuS", GREY, "p"),
    "lcd": Look("LCD (RFC 6069)", BLACK, "v"),
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
WIDTH_IN = 5.6


def look(variant: str | None, position: int = 0) -> Look:
    """A variant's look; one that is not listed keeps its own name and gets a spare colour by its position."""
    key = variant or ""
    if key in VARIANTS:
        return VARIANTS[key]
    colour, marker = _SPARE[position % len(_SPARE)]
    return Look(key, colour, marker)


def variant_name(variant: str | None) -> str:
    """The variant as a column prints it; empty for none."""
    return variant or ""


@contextmanager
def page(
    out_dir: Path, name: str, height_in: float, width_in: float = WIDTH_IN, **options
) -> Iterator[tuple[list[Axes], list[Path]]]:
    """Axes one above the other to draw on (`options` as plt.subplots takes them), saved when the block ends.

    Yields the axes and the list that holds the written files after the block: PNG for the screen, PDF for print.
    """
    written: list[Path] = []
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(figsize=(width_in, height_in), squeeze=False, **options)
        try:
            yield list(axes[:, 0]), written
            out_dir.mkdir(parents=True, exist_ok=True)
            written += [out_dir / f"{name}.png", out_dir / f"{name}.pdf"]
            with atomic_file(written[0], "wb") as file:
                figure.savefig(file, format="png")
            with atomic_file(written[1], "wb") as file:
                figure.savefig(file, format="pdf", metadata={"CreationDate": None})  # the same figure, the same bytes
        finally:
            plt.close(figure)
