"""The default of `--jobs`: the number of parallel runs that this machine can run with valid verdicts.

The cost of a run depends on its frames, stations and flows. On two loaded cores thirty moving stations with DSR and one flow at
2 Mbit/s took 0.05 of a core, and 0.15 with daemons that process all overheard frames (and a medium that woke more often). Runs
that begin together are all in their traffic at the same time: of fifty moving stations with twenty flows each (ten web sessions,
ten streams) four at once were `valid`, five `suspect` and six `void`, although five that began one after the other used 1.2 cores
in the mean. Runs may use SHARE of the cores; above that lateness becomes visible.
A run in virtual time is a guest, whose one CPU uses a core and is never late: one per core. Inside a guest, whose emulated CPUs
are ten to twenty times slower, at most one run per CPU.
"""

import os
import tomllib
from collections.abc import Callable, Iterable

from scenarios import profiles
from scenarios.scenario import Scenario

SHARE = 0.6
MAX_JOBS = 64
RUN_CORES = 0.03  # a saturated channel at REFERENCE_BPS
STATION_CORES = 0.0007
FLOW_CORES = 0.012  # programs and packets of each flow after the first
LISTENING_CORES = 0.0025  # added for a DSR daemon that processes all overheard frames (routing/dsr/src/overheard_filter.rs)
REFERENCE_BPS = 2e6


def usable_cores() -> int:
    """The cores that this process may use, at least 1."""
    return max(1, len(os.sched_getaffinity(0)))


def cost_cores(scenario: Scenario) -> float:
    """The share of one core that a run of this scenario uses."""
    try:
        rate_bps = tomllib.loads(profiles.path_of(scenario.radio).read_text())["data_rate_bps"]
    except (OSError, KeyError):  # a radio with an MCS: assumed to be fast
        rate_bps = 54e6
    # Preambles and contention do not scale with the rate: the frame rate grows more slowly than the bit rate.
    run = RUN_CORES * max(1.0, (rate_bps / REFERENCE_BPS) ** 0.75)
    listens = getattr(scenario.routing, "learn_from_data", False)
    flows = FLOW_CORES * max(0, len(scenario.flows) - 1)
    return run + flows + (STATION_CORES + listens * LISTENING_CORES) * len(scenario.station_names())


def jobs_of_cost(cores: float) -> int:
    """The number of parallel runs of this cost."""
    jobs = max(1, min(MAX_JOBS, int(SHARE * usable_cores() / cores)))
    return min(jobs, usable_cores()) if "MANET_GUEST" in os.environ else jobs  # set by `manet vm`


def default_jobs(scenarios: Iterable[Scenario], max_guests: Callable[[], int] = lambda: MAX_JOBS) -> int:
    """The number of parallel runs, limited by the most expensive scenario. `max_guests`: limit by memory, for virtual time."""
    scenarios = list(scenarios)
    jobs = jobs_of_cost(max(cost_cores(scenario) for scenario in scenarios))
    virtual = [scenario for scenario in scenarios if scenario.clock == "virtual"]
    if not virtual:
        return jobs
    guests = max(1, min(usable_cores(), max_guests()))
    return guests if len(virtual) == len(scenarios) else min(jobs, guests)
