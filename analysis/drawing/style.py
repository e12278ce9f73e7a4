"""Colours, markers and display names of every figure.

The colours are those of Okabe and Ito (Color Universal Design, 2008), which can be distinguished with every kind of colour
blindness. Markers and lines differ as well, so that a grey print is legible.
"""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from record.files import atomic_file

BLACK, GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#7f7f7f", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip


@dataclass(frozen=True)
class VariantStyle:
    """Display name, colour (`#rrggbb`) and marker (matplotlib) of a variant."""

    name: str
    colour: str
    marker: str


VARIANTS = {
    "ns2": VariantStyle("ns2: data at 2, control at 1 Mbit/s, 200 m", BLUE, "o"),
    "hv": VariantStyle("hv: all at 2 Mbit/s, 180 m", VERMILION, "s"),
    "hv-alt": VariantStyle("hv-alt: control at 1 Mbit/s, delayed ACK, 180 m", GREEN, "^"),
    "aodv": VariantStyle("AODV", VERMILION, "o"),
    "aodv-silence": VariantStyle("AODV, by hellos alone", ORANGE, "P"),
    "aodv-ns2": VariantStyle("AODV, ns-2's waits", ORANGE, "P"),
    "dsdv": VariantStyle("DSDV", BLUE, "s"),
    "dsdv-feedback": VariantStyle("DSDV, link feedback", SKY, "X"),
    "adv": VariantStyle("ADV", SKY, "D"),
    "adv-30-30": VariantStyle("ADV, holds 30 s", SKY, "D"),
    "aodv-ns2-real-arp": VariantStyle("AODV, ns-2's waits, real ARP", ORANGE, "X"),
    "adv-30-30-real-arp": VariantStyle("ADV, holds 30 s, real ARP", SKY, "X"),
    "adv-30-1": VariantStyle("ADV, holds UDP 1 s", BLUE, "D"),
    "adv-silence": VariantStyle("ADV, by silence alone", SKY, "P"),
    "dsr": VariantStyle("DSR", GREEN, "^"),
    "dsr-no-cache-replies": VariantStyle("DSR, no cache replies", GREEN, "v"),
    "dsr-arp": VariantStyle("DSR with ARP", BLACK, "v"),
    "dsr-ns2": VariantStyle("DSR as ns-2's", GREY, "p"),
    "olsr": VariantStyle("OLSR", PURPLE, "D"),
    "olsr-feedback": VariantStyle("OLSR, link feedback", PURPLE, "P"),
    "olsr-silence": VariantStyle("OLSR, by hellos alone", BLUE, "P"),
    "tora": VariantStyle("TORA", SKY, "h"),
    "tora-silence": VariantStyle("TORA, by beacons alone", BLUE, "P"),
    "tora-feedback": VariantStyle("TORA, link feedback", ORANGE, "X"),
    "batman-adv": VariantStyle("batman-adv", GREEN, "^"),
    "batman-adv-fast": VariantStyle("batman-adv, 5 messages a second", SKY, "X"),
    "babeld": VariantStyle("Babel", GREY, "p"),
    "bird-babel": VariantStyle("Babel, BIRD", SKY, "P"),
    "frr-babel": VariantStyle("Babel, FRR", ORANGE, "X"),
    "static": VariantStyle("static routes", BLACK, "v"),
    "as-printed": VariantStyle("positions as printed", BLUE, "o"),
    "rearranged": VariantStyle("rearranged", VERMILION, "s"),
    "rearranged-diameter-6": VariantStyle("rearranged, NET_DIAMETER 6", GREEN, "^"),
    "n2-leaves": VariantStyle("n2 leaves", PURPLE, "D"),
    "n2-leaves-tora": VariantStyle("n2 leaves, TORA", SKY, "h"),
    "n2-leaves-rearranged": VariantStyle("n2 leaves, rearranged", ORANGE, "v"),
    "cache-replies": VariantStyle("DSR, replies from caches", VERMILION, "o"),
    "no-cache-replies": VariantStyle("DSR, replies by the target alone", BLUE, "s"),
    "reno": VariantStyle("Reno", BLACK, "v"),
    "elfn-200ms": VariantStyle("ELFN, probes every 0.2 s", PURPLE, "v"),
    "elfn-2rtt": VariantStyle("ELFN, every two round-trip times", GREY, "p"),
    "elfn-2s": VariantStyle("ELFN, probes every 2 s", BLUE, "o"),
    "elfn-4s": VariantStyle("ELFN, 4 s", SKY, "P"),
    "elfn-6s": VariantStyle("ELFN, 6 s", GREEN, "^"),
    "elfn-15s": VariantStyle("ELFN, 15 s", ORANGE, "D"),
    "elfn-30s": VariantStyle("ELFN, 30 s", VERMILION, "s"),
    "elfn": VariantStyle("ELFN, state unchanged", BLUE, "o"),
    "elfn-any-ack": VariantStyle("ELFN, any ACK ends stand-by", BLUE, "o"),
    "elfn-probe-ack": VariantStyle("ELFN, an ACK after a probe does", GREEN, "^"),
    "elfn-window": VariantStyle("ELFN, window of one", GREEN, "^"),
    "elfn-initial": VariantStyle("ELFN, window of one, initial RTO", VERMILION, "s"),
    "elfn-first": VariantStyle("ELFN, probes with the first of the window", BLUE, "o"),
    "elfn-lost": VariantStyle("ELFN, with the lowest reported lost", VERMILION, "s"),
    "tahoe": VariantStyle("Tahoe", ORANGE, "P"),
    "newreno": VariantStyle("NewReno", VERMILION, "s"),
    "sack": VariantStyle("Reno with SACK", GREEN, "^"),
    "cubic": VariantStyle("CUBIC", PURPLE, "D"),
    "bbr": VariantStyle("BBR", SKY, "P"),
    "vegas": VariantStyle("Vegas", BLUE, "o"),
    "tcpap": VariantStyle("TCP-AP", GREEN, "D"),
    "reno-f": VariantStyle("Reno-F", ORANGE, "P"),
    "tcpf": VariantStyle("TCP-F", SKY, "X"),
    "atcp": VariantStyle("ATCP", PURPLE, "D"),
    "tcpbus": VariantStyle("TCP-BuS", GREY, "p"),
    "lcd": VariantStyle("LCD (RFC 6069)", BLACK, "v"),
    "drop-tail-50": VariantStyle("drop-tail, 50 packets", BLUE, "o"),
    "drop-tail-1000": VariantStyle("drop-tail, 1000 packets", VERMILION, "s"),
    "fq-codel": VariantStyle("FQ-CoDel", GREEN, "^"),
    "tap": VariantStyle("TAP", BLUE, "o"),
    "hwsim": VariantStyle("hwsim", VERMILION, "s"),
    "": VariantStyle("this testbed", BLUE, "o"),
}
_SPARE = [(PURPLE, "D"), (ORANGE, "v"), (SKY, "P")]
PUBLISHED = VariantStyle("published", BLACK, "x")
PEER = VariantStyle("Mininet-WiFi + wmediumd", GREY, "+")

SETTINGS: dict[RcKeyType, Any] = {
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
    "svg.fonttype": "none",
    "svg.hashsalt": "manet",  # the same figure, the same ids
}
# The same figure, the same bytes: a file without the date at which it was written.
FORMATS: dict[str, dict[str, None]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
WIDTH_IN = 5.6
SCREEN_DPI = 120  # of a page in a notebook


def of_variant(variant: str | None, position: int = 0) -> VariantStyle:
    """The style of a variant. An unlisted variant keeps its own name and gets a spare colour by its position."""
    key = variant or ""
    if key in VARIANTS:
        return VARIANTS[key]
    colour, marker = _SPARE[position % len(_SPARE)]
    return VariantStyle(key, colour, marker)


class FigurePage(Figure):
    """A figure in this style; a notebook shows it as PNG."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with settings():
            self.savefig(buffer, format="png", dpi=SCREEN_DPI)
        return buffer.getvalue()


_settings_lock = threading.RLock()  # matplotlib's settings are global
_kept: ContextVar[list[FigurePage] | None] = ContextVar("kept", default=None)


@contextmanager
def settings() -> Iterator[None]:
    """SETTINGS within the block, in one thread at a time."""
    with _settings_lock, mpl.rc_context(SETTINGS):
        yield


@contextmanager
def kept() -> Iterator[list[FigurePage]]:
    """Pages within the block are not saved; the list that this yields has them."""
    pages: list[FigurePage] = []
    token = _kept.set(pages)
    try:
        yield pages
    finally:
        _kept.reset(token)


@contextmanager
def page(
    out_dir: Path, name: str, height_in: float, width_in: float = WIDTH_IN, **options: Any
) -> Iterator[tuple[list[Axes], list[Path]]]:
    """Axes to draw on (`options` as Figure.subplots and GridSpec take them), saved when the block ends.

    Yields the axes, row by row, and the list that holds the written files after the block: PNG for the screen, PDF for print,
    SVG for the report's page. Within `kept` nothing is written.
    """
    written: list[Path] = []
    with settings():
        figure = FigurePage(figsize=(width_in, height_in))
        yield list(figure.subplots(squeeze=False, **options).flat), written
        if (pages := _kept.get()) is not None:
            pages.append(figure)
            return
        out_dir.mkdir(parents=True, exist_ok=True)
        for kind, metadata in FORMATS.items():
            written.append(out_dir / f"{name}.{kind}")
            with atomic_file(written[-1], "wb") as file:
                figure.savefig(file, format=kind, metadata=metadata)
