"""The tables of docs/eras.md: shares of the switches, and answers, of hv-eras at quick size, from its kept rows
(`manet report --claims`). They stand between two lines of the page; the rest is written by hand."""

from collections.abc import Iterable
from pathlib import Path

from analysis.decisions import eras
from analysis.decisions.eras import FIRST, LAST, TCPS, WITH, WITHOUT, Shares
from analysis.decisions.question import ENOUGH, VARIANT
from analysis.decisions.rule import Outcome
from analysis.tables.digits import with_interval
from testbed.claims import marked
from testbed.claims.numbers import Numbers, Sized
from testbed.claims.source import Size
from testbed.claims.verdicts import needed_of
from testbed.programs import ROOT

PAGE = ROOT / "docs" / "eras.md"
PART = "shares"
BEGIN, END = marked.lines(PART)
NAME = "hv-eras"
SIZE: Size = "quick"
RUN, KEEP = "./manet campaign hv-eras --quick", "./manet report --html --rows results/campaign-hv-eras-quick"
NO_ROWS = f"No rows are kept yet: `{RUN}`, then `{KEEP}`."
EMPHASIS = {Outcome.MORE: "**", Outcome.LESS: "**", Outcome.SAME: "*", Outcome.UNDECIDED: ""}
LEGEND = (
    f"**bold**: more or less; *italic*: no difference that matters; plain: undecided, of fewer than {ENOUGH} pairs also if the "
    "interval has no zero"
)


def text(page: Path, numbers: Numbers) -> str:
    """The page with its tables. UsageError for a page without the lines of their place."""
    return marked.with_part(page, PART, tables(numbers))


def write() -> str:
    """Write the page if its tables changed; returns the number of its rows, in words."""
    numbers = Numbers()
    marked.write(PAGE, text(PAGE, numbers))
    return f"{len(numbers.load(NAME, SIZE).counted({}))} kept rows of {NAME}"


def tables(numbers: Numbers) -> str:
    """The tables by the kept rows."""
    sized = numbers.load(NAME, SIZE)
    variants = list(dict.fromkeys(str(cell[VARIANT]) for cell in sized.cells))
    shares = eras.shares(variants, sized.runs, sized.answers)
    if not shares.pairs:
        return NO_ROWS
    counted = sorted({pair.seeds for pair in shares.pairs.values()})
    seeds = f"{counted[0]}" if len(counted) == 1 else f"{counted[0]} to {counted[-1]}"
    head = f"kbit/s, over {seeds} pairs of runs; {LEGEND}."
    return "\n\n".join([head, _ways(shares), _gains(shares), _answers(sized, shares.speeds)])


def _ways(shares: Shares) -> str:
    columns = [(way, speed) for way in shares.ways for speed in shares.speeds]
    longest = max(shares.ways, key=lambda way: len(way.path))
    turned = dict.fromkeys(eras.station(variant) for way in shares.ways for variant in way.turned)
    lines = [_line(FIRST, (_level(shares, way.path[0], speed) for way, speed in columns))]
    for variant in longest.path[1:]:
        steps = [(speed, _of(way.steps, eras.station(variant))) for way, speed in columns]
        lines.append(_line(eras.name(variant), (_share(shares, *step) for step in steps)))
    lines.append(_line(LAST, (_level(shares, way.path[-1], speed) for way, speed in columns)))
    lines.append(_line("**the whole way**", (_share(shares, speed, way.whole) for way, speed in columns)))
    for station in turned:
        steps = [(speed, _of(way.of_turned, station)) for way, speed in columns]
        lines.append(_line(f"{FIRST}, but {eras.SWITCHES.get(station, station)}", (_share(shares, *step) for step in steps)))
    return marked.table(["switch", *(f"{TCPS.get(way.tcp, way.tcp)}, {speed} m/s" for way, speed in columns)], lines)


def _gains(shares: Shares) -> str:
    lines = [_line(eras.name(gain[0]), (_share(shares, speed, gain) for speed in shares.speeds)) for gain in shares.gains]
    return marked.table([f"{TCPS[WITH]} minus {TCPS[WITHOUT]} at", *(f"{speed} m/s" for speed in shares.speeds)], lines)


def _answers(sized: Sized, speeds: list[str]) -> str:
    questions = dict.fromkeys(each.asked.question.question for each in sized.answers)
    by_place = {(each.asked.question.question, str(each.asked.where["speed"])): each for each in sized.answers}
    lines = []
    for question in questions:
        cells = []
        for speed in speeds:
            each = by_place[question, speed]
            cells.append(f"{each.verdict}, {each.answer.pairs} pairs{needed_of(each)}")
        lines.append(_line(question, cells))
    return marked.table(["question", *(f"{speed} m/s" for speed in speeds)], lines)


def _of(steps: list[tuple[str, str]], station: str) -> tuple[str, str] | None:
    return next((step for step in steps if eras.station(step[0]) == station), None)


def _share(shares: Shares, speed: str, compared: tuple[str, str] | None) -> str:
    if compared is None:
        return ""
    pair = shares.pairs.get((speed, *compared))
    if pair is None:
        return "no runs"
    mark = EMPHASIS[pair.answer.outcome]
    return f"{mark}{eras.in_words(pair)}{mark}"


def _level(shares: Shares, variant: str, speed: str) -> str:
    spread = shares.means[speed, variant]
    return "no runs" if spread["mean"] is None else with_interval(spread)


def _line(label: str, cells: Iterable[str]) -> str:
    return marked.row([label, *cells])
