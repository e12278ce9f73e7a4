"""The map as lines of text: stations on a grid of characters, and the path of each flow."""

from analysis.maps.snapshot import FlowPath, Snapshot

COLUMNS, MAX_ROWS = 64, 20
CELL = 2.0  # a character is twice as high as wide
UNKNOWN = "links unknown"
MAX_WALLS = 12  # listed


def lines(snapshot: Snapshot) -> list[str]:
    """The title, the map, and a line for each flow."""
    both, single = len(snapshot.bidirectional), len(snapshot.unidirectional)
    links = f"{both} link{'' if both == 1 else 's'}" + (f", {single} one way" if single else "")
    links = links if snapshot.links_known else UNKNOWN
    walls = f"{len(snapshot.walls)} wall{'' if len(snapshot.walls) == 1 else 's'}" if snapshot.walls else ""
    counts = ", ".join(part for part in (f"{len(snapshot.places)} stations", links, snapshot.ranges, walls) if part)
    off = [f"switched off: {', '.join(sorted(snapshot.off))}"] if snapshot.off else []
    wires = [f"{station} -- {host} (wire)" for station, host in snapshot.wires]
    paths = [f"{flow_path.flow:<6} {path_text(flow_path)}   {flow_path.summary}" for flow_path in snapshot.paths]
    note = [snapshot.note] if snapshot.note else []
    return [snapshot.title, counts, *_grid(snapshot), *_wall_lines(snapshot), *off, *wires, *paths, *note]


def _wall_lines(snapshot: Snapshot) -> list[str]:
    """The ends of each wall (m), which the grid of characters is too coarse to show."""
    ends = [f"({x0:g}, {y0:g}) to ({x1:g}, {y1:g})" for (x0, y0), (x1, y1) in snapshot.walls[:MAX_WALLS]]
    more = len(snapshot.walls) - len(ends)
    return [f"wall   {each}" for each in ends] + ([f"and {more} more walls; the picture shows all"] if more else [])


def path_text(flow_path: FlowPath) -> str:
    """`sta1 > sta2 > sta3`; after an `x` the next hop that does not receive."""
    text = " > ".join(flow_path.nodes or (flow_path.source,))
    if not flow_path.stop:
        return text
    return f"{text} x {flow_path.towards or '...'}" + (
        "" if flow_path.towards == flow_path.target else f" (to {flow_path.target})"
    )


def _grid(snapshot: Snapshot) -> list[str]:
    x0, x1, y0, y1 = snapshot.bounds()
    wide, high = max(x1 - x0, 1e-9), y1 - y0
    rows = min(max(round(COLUMNS / CELL * high / wide) + 1, 1), MAX_ROWS)
    cells = [[" "] * COLUMNS for _ in range(rows)]
    places = {**snapshot.places, **snapshot.jammers}
    names = {name: name.removeprefix("sta") for name in places}
    # from the left: if two names overlap, the right one moves
    for name, (x, y) in sorted(places.items(), key=lambda item: item[1]):
        row = rows - 1 - (round((y - y0) / high * (rows - 1)) if high else 0)
        column = round((x - x0) / wide * (COLUMNS - 1)) if x1 > x0 else 0
        _write(cells[row], column, names[name])
    edge = "+" + "-" * COLUMNS + "+"
    ends = f"{x0:.0f} m", f"{x1:.0f} m"
    scale = f" {ends[0]}{ends[1]:>{COLUMNS - len(ends[0])}}   y {y0:.0f} to {y1:.0f} m"
    return [edge, *("|" + "".join(row) + "|" for row in cells), edge, scale]


def _write(row: list[str], column: int, text: str) -> None:
    """Write at the column, or the nearest place with a blank on both sides; `*` if there is none."""
    size = len(text)

    def free(start: int) -> bool:
        return all(cell == " " for cell in row[max(0, start - 1) : start + size + 1])

    starts = sorted(range(len(row) - size + 1), key=lambda start: abs(start - column))
    place = next((start for start in starts if abs(start - column) <= 3 * size and free(start)), None)
    if place is None:
        row[min(column, len(row) - 1)] = "*"
    else:
        row[place : place + size] = text
