"""How many runs this machine can take side by side with valid verdicts, where `--jobs` does not say.

A run's cost is that of its frames and its stations: measured on two cores that others kept busy, thirty stations that move, DSR
and one flow at 2 Mbit/s took 0.05 of a core, and 0.15 where daemons look at all that they overhear (and the medium woke oftener).
The figures here leave room for starting and stopping. Runs may fill SHARE of the cores; above that lateness begins to show.
A run in virtual time is a guest, whose one CPU takes a core and is never late: as many as there are cores. Inside a guest, whose
CPUs are emulated ten to twenty times slower, no more than it has CPUs.
"""

import os
import tomllib
from collections.abc import Iterable

from scenarios.scenario import Scenario
from testbed.programs import ROOT

SHARE = 0.6
MAX_JOBS = 64
RUN_CORES = 0.044  # a saturated channel at REFERENCE_BPS
STATION_CORES = 0.001
LISTENING_CORES = 0.0025  # a DSR daemon that looks at all it overhears (routing/dsr/src/dull.rs), on top of that
REFERENCE_BPS = 2e6
RADIOS = ROOT / "medium" / "radios"


def usable_cores() -> int:
    """The cores that this process may use, at least 1."""
    return max(1, len(os.sched_getaffinity(0)))


def cost_cores(scenario: Scenario) -> float:
    """What share of one core a run of this scenario takes."""
    try:
        rate_bps = tomllib.loads((RADIOS / f"{scenario.radio}.toml").read_text())["data_rate_bps"]
    except (OSError, KeyError):  # a radio of the user's own: taken for a fast one
        rate_bps = 54e6
    # Preambles and contention do not get faster with the rate, so that frames a second grow less than it does.
    run = RUN_CORES * max(1.0, (rate_bps / REFERENCE_BPS) ** 0.75)
    listens = getattr(scenario.routing, "learn_from_data", False)
    return run + (STATION_CORES + listens * LISTENING_CORES) * len(scenario.station_names())


def default_jobs(scenarios: Iterable[Scenario], max_guests: int = MAX_JOBS) -> int:
    """Runs side by side, so that the dearest of them still fit. `max_guests`: how many there is memory for."""
    scenarios = list(scenarios)
    dearest = max(cost_cores(scenario) for scenario in scenarios)
    jobs = max(1, min(MAX_JOBS, int(SHARE * usable_cores() / dearest)))
    if "MANET_GUEST" in os.environ:  # `manet vm` says so
        jobs = min(jobs, usable_cores())
    virtual = [scenario for scenario in scenarios if scenario.clock == "virtual"]
    if not virtual:
        return jobs
    guests = max(1, min(usable_cores(), max_guests))
    return guests if len(virtual) == len(scenarios) else min(jobs, guests)
