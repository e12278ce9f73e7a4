"""What only the medium can judge (radio profile and its overrides, propagation, trace), asked before anything is started."""

import json
import subprocess
import tempfile
from pathlib import Path

from testbed.errors import UsageError
from testbed.programs import Programs
from testbed.scenarios.scenario import Scenario
from testbed.stages.medium import medium_config, write_trace
from testbed.stages.site import Site


def check_medium(scenario: Scenario, seed: int, programs: Programs) -> None:
    """UsageError with the medium's own words (`manet-medium check`) if it would refuse the scenario."""
    with tempfile.TemporaryDirectory(prefix="manet-check-") as folder:
        site = Site(scenario, seed, Path(folder), cgroup=Path("/"), programs=programs)
        write_trace(site)
        config = {**medium_config(site, {}), "duration_s": scenario.traffic_seconds()}
        path = site.directory / "medium.json"
        path.write_text(json.dumps(config))
        done = subprocess.run([programs.medium, "check", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["refused without a word"]
        words = lines[-1].removeprefix("manet-medium: ").replace(f"{path}: ", "").replace(f"{folder}/", "")
        raise UsageError(f"scenario: {words}")
