"""EMANE's pathloss events as an Emulation Event Log (EEL), the text format of its event service:

    TIME nem:FROM pathloss nem:TO,DB[,DB_BACK] ...

The loss is that of frames from FROM to TO; of frames back it is DB_BACK, or the same (EMANE's `eelloaderpathloss`). It holds from
TIME (s) until the next event of the link: here a step. Before its first event a link does not exist (EMANE's `precomputed`
propagation). A time before 0, `-Inf` too, is 0. Losses above 300 dB, which are written for "no link", are none.

The NEMs become `sta1`, `sta2`, ... in the order of their numbers, or the scenario's stations in their order. Sentences of other
kinds (location, antenna profiles, `pathlossex`, `commeffect`, fading) are left out.
"""

import math
import re
from collections.abc import Iterator, Sequence

from mobility.measured.table import COLUMNS, Links, LinksError, Row, made

KEYWORD = "pathloss"
_SENTENCE = re.compile(r"^\s*[-+.\w]+\s+nem:\d+\s+\w+", re.MULTILINE)
_NEM = re.compile(r"nem:(\d{1,5})")
HIGHEST_DB = COLUMNS["loss_db"][1]
Event = tuple[float, int, int, float]  # time, from, to, loss


def is_log(text: str) -> bool:
    """Whether a text has sentences of an EEL."""
    return _SENTENCE.search(text) is not None


def parse(text: str, name: str, stations: Sequence[str] | None = None) -> Links:
    """The links of a log. LinksError names the line."""
    events = sorted(_events(text, name), key=lambda event: event[0])
    nems = sorted({nem for event in events for nem in event[1:3]})
    if stations is not None and len(nems) > len(stations):
        raise LinksError(f"{name}: has {len(nems)} NEMs and the scenario {len(stations)} stations; give it as many")
    names = dict(zip(nems, stations or [f"sta{number}" for number in range(1, len(nems) + 1)], strict=False))
    last: dict[tuple[str, str], float | None] = {}
    rows: list[Row] = []
    for time_s, source, target, loss_db in events:
        ends = names[source], names[target]
        value = loss_db if loss_db <= HIGHEST_DB else None
        if ends not in last and time_s > 0:
            rows.append(Row(0.0, *ends, None))
        elif last.get(ends) is not None and value is not None:
            rows.append(Row(time_s, *ends, last[ends]))
        rows.append(Row(time_s, *ends, value))
        last[ends] = value
    notes = [f"{station} is nem:{nem}" for nem, station in names.items() if station != f"sta{nem}"]
    return made(name, "loss_db", rows, stations, notes)


def _events(text: str, name: str) -> Iterator[Event]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if len(words) < 3 or words[2].lower() != KEYWORD:
            continue
        place = f"{name}:{number}"
        time_s = max(0.0, _number(words[0], place, infinite=True))
        source = _nem(words[1], place)
        for word in words[3:]:
            end, *losses = word.split(",")
            if len(losses) not in (1, 2):
                raise LinksError(f"{place}: `{word[:40]}` is not nem:ID,DB or nem:ID,DB,DB; correct it")
            there, back = (_number(losses[place_], place) for place_ in (0, -1))
            if min(there, back) < 0:
                raise LinksError(f"{place}: `{word[:40]}` has a loss below 0 dB; correct it")
            target = _nem(end, place)
            yield time_s, source, target, there
            yield time_s, target, source, back


def _nem(word: str, place: str) -> int:
    found = _NEM.fullmatch(word)
    if found is None:
        raise LinksError(f"{place}: `{word[:40]}` is no NEM; write nem:1")
    return int(found[1])


def _number(word: str, place: str, *, infinite: bool = False) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) or (infinite and value == -math.inf)):
        raise LinksError(f"{place}: `{word[:40]}` is no number; correct it")
    return value
