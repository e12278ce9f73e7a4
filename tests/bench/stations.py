"""How long it takes to start and to stop 10, 50 and 100 stations: a whole run, whose traffic lasts a moment.

`up`: stations, medium, addresses and routes are there. `ready`: TCP settings and a capture on every station too.
`stop`: from the end of the traffic until nothing is left.
"""

from scenarios.scenario import Scenario
from tests.bench import Table
from tests.bench.runs import bench_folder, timed_run

COUNTS = (10, 50, 100)


def measure() -> Table:
    table = Table("Start and stop of a chain", ["stations", "up s", "ready s", "stop s"], "50 stations up in less than 3 s")
    for count in COUNTS:
        with bench_folder() as folder:
            run = timed_run(_brief(count), folder / f"chain{count}")
        table.rows.append([count, run.stages["kernel-tcp"], run.stages["traffic"], run.seconds - run.stages["stop"]])
    return table


def _brief(stations: int) -> Scenario:
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000.0, "bytes": 512}
    return Scenario.model_validate({"topology": "chain", "nodes": stations, "warmup": 0.0, "duration": 0.5, "flows": [flow]})
