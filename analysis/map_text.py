"""The map as lines of text: where stations are, as far as characters go, and how each flow's packets go."""

from analysis.moment import Moment, Way

COLUMNS, MAX_ROWS = 64, 20
CELL = 2.0  # a character is twice as high as wide


def lines(moment: Moment) -> list[str]:
    """The title, the map, a line a flow."""
    both, single = len(moment.both_ways), len(moment.one_way)
    links = f"{both} link{'' if both == 1 else 's'}" + (f", {single} one way" if single else "")
    said = ", ".join(part for part in (f"{len(moment.places)} stations", links, moment.ranges) if part)
    away = [f"nobody hears {', '.join(sorted(moment.off))}"] if moment.off else []
    wires = [f"{station} -- {host} (wire)" for station, host in moment.wires]
    ways = [f"{way.flow:<6} {path(way)}   {way.told}" for way in moment.ways]
    note = [moment.note] if moment.note else []
    return [moment.title, said, *_grid(moment), *away, *wires, *ways, *note]


def path(way: Way) -> str:
    """`sta1 > sta2 > sta3`, and after an x where it was to go on."""
    text = " > ".join(way.nodes or (way.source,))
    if not way.stop:
        return text
    return f"{text} x {way.towards or '...'}" + ("" if way.towards == way.target else f" (to {way.target})")


def _grid(moment: Moment) -> list[str]:
    x0, x1, y0, y1 = moment.bounds()
    wide, high = max(x1 - x0, 1e-9), y1 - y0
    rows = min(max(round(COLUMNS / CELL * high / wide) + 1, 1), MAX_ROWS)
    cells = [[" "] * COLUMNS for _ in range(rows)]
    names = {name: name.removeprefix("sta") for name in moment.places}
    # from the left, so that of two that meet the right one makes way
    for name, (x, y) in sorted(moment.places.items(), key=lambda item: item[1]):
        row = rows - 1 - (round((y - y0) / high * (rows - 1)) if high else 0)
        column = round((x - x0) / wide * (COLUMNS - 1)) if x1 > x0 else 0
        _write(cells[row], column, names[name])
    edge = "+" + "-" * COLUMNS + "+"
    ends = f"{x0:.0f} m", f"{x1:.0f} m"
    scale = f" {ends[0]}{ends[1]:>{COLUMNS - len(ends[0])}}   y {y0:.0f} to {y1:.0f} m"
    return [edge, *("|" + "".join(row) + "|" for row in cells), edge, scale]


def _write(row: list[str], column: int, text: str) -> None:
    """At the column, or as near to it as there is room with a blank on both sides; `*` where there is none."""
    size = len(text)

    def free(start: int) -> bool:
        return all(cell == " " for cell in row[max(0, start - 1) : start + size + 1])

    starts = sorted(range(len(row) - size + 1), key=lambda start: abs(start - column))
    place = next((start for start in starts if abs(start - column) <= 3 * size and free(start)), None)
    if place is None:
        row[min(column, len(row) - 1)] = "*"
    else:
        row[place : place + size] = text
