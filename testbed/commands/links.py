"""`manet links`: measured links as numbers, or converted to a table that a scenario reads (mobility/measured)."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mobility.measured.rssi import GAP_S, WINDOW_S
from testbed.commands.options import add_verb, new_file, seconds, written

if TYPE_CHECKING:
    from mobility.measured import Links

EXAMPLES = """
  ./manet links formats/examples/links.csv    how many links, when, how strong
  ./manet links rssi.csv --window 5 --convert links.csv
                                    samples of receivers, as means over 5 s
  ./manet links mesh.json --convert links.csv
                                    a NetJSON NetworkGraph
  ./manet links scenario.eel --shift 10 --convert links.parquet
                                    EMANE's pathloss events, 10 s later

A scenario reads each of them: propagation = { model = "trace", file = "..." }
(formats/links.md).
"""


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "links", "summarise measured links: RSSI, losses, delivery rates; convert them", EXAMPLES)
    parser.add_argument("file", metavar="FILE", type=Path, help="a table of links, a log of RSSI samples, NetJSON or EMANE's EEL")
    parser.add_argument(
        "--window", metavar="SECONDS", type=_above_0, default=WINDOW_S, dest="window_s",
        help=f"of a log of samples: time over which they are averaged (default: {WINDOW_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--gap", metavar="SECONDS", type=_above_0, default=GAP_S, dest="gap_s",
        help=f"of a log of samples: a link ends after this time without one (default: {GAP_S:g})",
    )  # fmt: skip
    parser.add_argument(
        "--shift", metavar="SECONDS", type=seconds, default=0.0, dest="shift_s",
        help="add this to all times; time 0 is the medium's start (default: 0)",
    )  # fmt: skip
    parser.add_argument("--convert", metavar="FILE", type=new_file, help="write them as .csv or .parquet")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")


def _above_0(text: str) -> float:
    value = seconds(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not a time above 0 s')
    return value


def run(options: argparse.Namespace) -> int:
    """Print the summary of the links, and write what the options ask for."""
    import json

    from mobility import measured
    from mobility.measured import LinksError
    from mobility.measured.table import shifted
    from testbed.errors import UsageError

    try:
        links = shifted(measured.read(options.file, window_s=options.window_s, gap_s=options.gap_s), options.shift_s)
        answer = _answer(links)
        if options.convert:
            _convert(links, options.convert)
            answer["written"] = [str(options.convert)]
    except LinksError as problem:
        raise UsageError(str(problem)) from None
    except OSError as problem:
        where = f"{options.convert}: cannot be written ({problem.strerror})"
        raise UsageError(f"{where}; give a name in an existing folder") from None
    print(json.dumps(answer, indent=1) if options.json else "\n".join(_lines(answer)))
    return 0


def _convert(links: "Links", path: Path) -> None:
    from mobility.measured import write
    from mobility.measured.table import parquet
    from record.files import atomic_file, write_atomic
    from testbed.errors import UsageError

    if path.suffix == ".csv":
        write_atomic(path, write(links))
    elif path.suffix == ".parquet":
        with atomic_file(path, "wb") as file:
            file.write(parquet(links))
    else:
        raise UsageError(f"{path}: unknown format; give a name that ends in .csv or .parquet")


def _answer(links: "Links") -> dict[str, Any]:
    from statistics import median

    pairs = links.pairs()
    values = [row.value for row in links.rows if row.value is not None]
    both = {frozenset(ends) for ends in pairs if ends[::-1] in pairs}
    return {
        "name": links.name, "stations": len(links.stations), "links": len(pairs), "both_ways": len(both),
        "rows": len(links.rows), "begin_s": links.rows[0].time_s, "end_s": links.rows[-1].time_s, "column": links.column,
        "rates_bps": sorted({row.rate_bps for row in links.rows if row.rate_bps is not None}),
        "least": min(values, default=None), "median": median(values) if values else None, "most": max(values, default=None),
        "notes": list(links.notes),
    }  # fmt: skip


def _lines(answer: dict[str, Any]) -> list[str]:
    from testbed.columns import hanging

    def line(name: str, text: str) -> str:
        return hanging(f"  {name:<16} ", text)

    span = f"{answer['begin_s']:g} to {answer['end_s']:g} s"
    lines = [f"{answer['name']}: {answer['stations']} stations, {answer['rows']} rows, {span}"]
    one_way = answer["links"] - 2 * answer["both_ways"]
    lines.append(line("links", f"{answer['links']} directed: {answer['both_ways']} both ways, {one_way} one way"))
    if answer["median"] is not None:
        values = f"{answer['least']:.4g} to {answer['most']:.4g}, half of the rows below {answer['median']:.4g}"
        lines.append(line(answer["column"], values))
    if answer["rates_bps"]:
        lines.append(line("rates", ", ".join(f"{rate / 1e6:g}" for rate in answer["rates_bps"]) + " Mbit/s"))
    lines += [line("note", note) for note in answer["notes"]]
    return lines + ([written(answer["written"])] if answer.get("written") else [])
