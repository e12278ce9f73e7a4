"""How many frame receptions a second the medium computes on one core: 50 saturated stations that all hear each other.

Virtual time, no log (`manet-medium sim`, formats/medium.md), so this is the channel and the DCF machines and
nothing else. A reception is one station's view of one frame: a frame on the air of 50 stations is 49 of them.
"""

import json
import math
import os
import subprocess

from scenarios.profiles import RADIOS
from testbed.errors import RunError
from testbed.programs import BUILT
from tests.bench import Table
from tests.bench.runs import bench_folder
from topologies.addresses import mac_address

STATIONS = 50
CIRCLE_RADIUS_M = 10.0
# radio: seconds to simulate, about two seconds of work each
RADIOS_TRIED = {"ns2-dsss-2m": 600.0, "dot11g-54m": 30.0}


def measure() -> Table:
    table = Table(
        f"Medium in virtual time, {STATIONS} saturated stations, one core",
        ["radio", "simulated s", "wall s", "CPU s", "receptions", "receptions/CPU s"],
        "at least 300,000 receptions a second and core",
    )
    for radio, simulated_s in RADIOS_TRIED.items():
        seen, cpu_s = _simulate(radio, simulated_s)
        table.rows.append(
            [radio, seen["simulated_s"], seen["wall_s"], cpu_s, float(seen["receptions"]), seen["receptions"] / cpu_s]
        )
    return table


def _simulate(radio: str, simulated_s: float) -> tuple[dict, float]:
    """The output of `sim`, and its processor time."""
    with bench_folder() as folder:
        config = folder / "medium.json"
        config.write_text(json.dumps(_configuration(radio, simulated_s)))
        before = os.times()
        done = subprocess.run([BUILT.medium, "sim", config], capture_output=True, text=True, check=False)
        after = os.times()
    if done.returncode != 0:
        raise RunError(f"manet-medium sim: {done.stderr.strip()}")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout), cpu_s


def _configuration(radio: str, simulated_s: float) -> dict:
    angle = 2 * math.pi / STATIONS
    stations = [
        {
            "name": f"sta{number}",
            "mac": mac_address(number),
            "position": [
                CIRCLE_RADIUS_M * (1 + math.cos(angle * number)),
                CIRCLE_RADIUS_M * (1 + math.sin(angle * number)),
                0.0,
            ],
        }
        for number in range(1, STATIONS + 1)
    ]
    traffic = [
        {"from": f"sta{number}", "to": f"sta{number % STATIONS + 1}", "kind": "saturated", "bytes": 1500}
        for number in range(1, STATIONS + 1)
    ]
    return {
        "format": "manet-medium/1",
        "seed": 1,
        "radio": str(RADIOS / f"{radio}.toml"),
        "stations": stations,
        "traffic": traffic,
        "duration_s": simulated_s,
    }
