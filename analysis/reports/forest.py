"""The answers of an experiment as a forest plot: each difference with its repeated interval, in units of the smallest difference
that matters, which is the grey band from -1 to 1."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from analysis.drawing import style
from analysis.reports.answers import AnswerEntry

NAME = "answers"
LABEL_COLUMNS = 34
LINEAR = 3  # times the smallest difference that matters; beyond, the axis is logarithmic if it must reach far
FAR = 12
COLOURS = {"good": style.BLUE, "bad": style.VERMILION, "even": style.BLACK, "open": style.GREY}
MARKERS = {"good": "o", "bad": "s", "even": "D", "open": "o"}


def draw(out_dir: Path, answers: Sequence[AnswerEntry]) -> list[Path]:
    """Draw the answers that have a difference, numbered as in `answers`; returns the files written, none without any."""
    numbered = enumerate(answers, start=1)
    known = [
        (number, answer) for number, answer in numbered
        if None not in (answer.low, answer.difference, answer.high) and answer.matters > 0
    ]  # fmt: skip
    if not known:
        return []
    with style.page(out_dir, NAME, 0.9 + 0.42 * len(known)) as (axes, written):
        (panel,) = axes
        panel.axvspan(-1, 1, color="#e6e6e6", linewidth=0)
        panel.axvline(0, color=style.BLACK, linewidth=0.6)
        for place, (_, answer) in enumerate(known):
            low, mean, high = _scaled(answer)
            panel.plot([low, high], [place, place], color=COLOURS[answer.tone], linewidth=1.6, solid_capstyle="butt")
            panel.plot([mean], [place], color=COLOURS[answer.tone], marker=MARKERS[answer.tone], markersize=6, linestyle="",
                       markerfacecolor="white" if answer.tone == "open" else COLOURS[answer.tone])  # fmt: skip
        reach = max(abs(value) for _, answer in known for value in _scaled(answer))
        if reach > FAR:
            panel.set_xscale("symlog", linthresh=LINEAR)
            panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.set_xlim(-1.1 * max(reach, 1.5), 1.1 * max(reach, 1.5))
        panel.set_yticks(range(len(known)), [_label(number, answer) for number, answer in known])
        for label in panel.get_yticklabels():
            label.set_parse_math(False)  # a name may have dollar signs
        panel.set_ylim(len(known) - 0.4, -0.6)
        panel.grid(axis="y", visible=False)
        panel.set_xlabel("difference / smallest that matters (grey: does not matter)")
    return written


def _scaled(answer: AnswerEntry) -> tuple[float, float, float]:
    """Low end, mean and high end of the interval in units of the smallest difference that matters."""
    low, mean, high = (value or 0.0 for value in (answer.low, answer.difference, answer.high))
    return low / answer.matters, mean / answer.matters, high / answer.matters


def _label(number: int, answer: AnswerEntry) -> str:
    return "\n".join(textwrap.wrap(f"{number}. {answer.comparison}", LABEL_COLUMNS)[:2])
