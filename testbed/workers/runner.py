"""The runner of a set of scenarios: what carries out each run by its scenario's clock, after the checks of all of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.programs import BUILT

Say = Callable[[str], None]


def max_guests() -> int:
    """The number of guests for which this machine has memory."""
    from testbed.guests import virtual_time  # its imports are for runs in virtual time alone

    return virtual_time.max_guests()


def runner_for(
    scenarios: Mapping[str, Scenario],
    seeds: Sequence[int],
    *,
    say: Say,
    tcp_place: str,
    kernel: str | None = None,
    allow_internet: bool = False,
) -> Callable[..., Any]:
    """The runner of each run, by its scenario's clock. UsageError, which names the scenario as it is called in `scenarios`, for
    what this machine lacks for one of the runs or a program would refuse. `tcp_place`: the place that an error about a TCP names;
    `kernel`: of the guests of a virtual clock, about which `say` gets lines."""
    from testbed.host.requirements import require_for_runs
    from testbed.runs import preflight
    from testbed.runs.run import run_scenario

    by_clock: dict[str, Callable[..., Any]] = {}
    if real := [scenario for scenario in scenarios.values() if scenario.clock == "real"]:
        require_for_runs()
        preflight.check_machine(real, BUILT, tcp_place, allow_internet=allow_internet)
        by_clock["real"] = partial(run_scenario, allow_internet=allow_internet)
    if len(real) < len(scenarios):
        from testbed.guests.virtual_time import Guests

        in_guests = [scenario for scenario in scenarios.values() if scenario.clock == "virtual"]
        preflight.check_protocols(in_guests, BUILT, own_kernel=False)
        by_clock["virtual"] = Guests(kernel, say=say).run
    elif kernel is not None:
        raise UsageError(f"--kernel {kernel}: no run is in a guest; add --clock virtual, or leave it out")
    preflight.check_programs(scenarios, seeds[0], BUILT)
    preflight.check_paths(scenarios, seeds, BUILT)
    return lambda scenario, *arguments, **options: by_clock[scenario.clock](scenario, *arguments, **options)
