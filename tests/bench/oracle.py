"""How long the connectivity oracle takes for a pattern: from its text to links, hops between two stations and path changes.

Random waypoint at 10 m/s for 900 s, 250 m. The median of five patterns.
"""

import statistics
import time

from mobility import connectivity, trace
from mobility.models import MODELS
from tests.bench import Table

SIZES = [(30, (1500.0, 300.0)), (50, (1000.0, 1000.0)), (100, (2200.0, 600.0))]
LENGTH_S = 900.0
SEEDS = range(1, 6)


def measure() -> Table:
    columns = ["stations", "area (m)", "link changes", "median s", "max s"]
    table = Table("Connectivity of a pattern of 900 s", columns, "100 stations in less than 1 s")
    for stations, area in SIZES:
        taken, changes = [], []
        for seed in SEEDS:
            text = _pattern(stations, area, seed)
            began = time.perf_counter()
            found = connectivity.links(trace.parse(text.encode(), "pattern"))
            found.hops("sta1", "sta2")
            taken.append(time.perf_counter() - began)
            changes.append(found.changes)
        shown = f"{area[0]:g} x {area[1]:g}"
        table.rows.append([stations, shown, round(statistics.median(changes)), statistics.median(taken), max(taken)])
    return table


def _pattern(stations: int, area: tuple[float, float], seed: int) -> str:
    places = [(f"sta{i}", area[0] * i / (stations + 1), area[1] / 2, 0.0) for i in range(1, stations + 1)]
    model = MODELS["random-waypoint"]
    return trace.write(model(places, area, begin_s=0.0, end_s=LENGTH_S, seed=seed, speed=10.0, start="steady"), LENGTH_S)
