"""Links between the initial positions, computed by the medium before a run: each station sends one broadcast, in virtual time."""

import csv
import json
import tempfile
from pathlib import Path

from scenarios.scenario import Scenario
from testbed.errors import UsageError
from testbed.programs import Programs
from testbed.runs.questions import refusal
from testbed.stages.medium import medium_config
from testbed.stages.site import Site

# Of medium.json, what decides who is in range: not the links' error rates, nor interference, since no two send at once.
LINK_KEYS = ("format", "seed", "radio", "radio_overrides", "propagation", "stations")
SLOT_S = 1.0  # for each broadcast; the slowest profile takes a hundredth of it
IP_BYTES = 29  # the smallest packet that the medium takes


def question(scenario: Scenario, seed: int) -> str:
    """The medium.json to simulate; equal for scenarios with the same links."""
    config = medium_config(Site(scenario, seed, Path("/"), cgroup=Path("/")), {})
    begins = [(station["name"], index * SLOT_S) for index, station in enumerate(config["stations"])]
    traffic = [
        {"from": name, "to": "*", "kind": "cbr", "bytes": IP_BYTES, "rate_bps": 8 * IP_BYTES / SLOT_S, "start_s": begin_s,
         "stop_s": begin_s + SLOT_S / 2}
        for name, begin_s in begins
    ]  # fmt: skip
    about_links = {key: config[key] for key in LINK_KEYS} | {"traffic": traffic, "outputs": {"air_log": "air.csv"}}
    return json.dumps(about_links | {"duration_s": len(begins) * SLOT_S})


def answer(question: str, programs: Programs) -> list[tuple[str, str]]:
    """Directed pairs: the second receives what the first sends."""
    with tempfile.TemporaryDirectory(prefix="manet-links-") as folder:
        path = Path(folder) / "medium.json"
        path.write_text(question)
        words = refusal(programs.medium, "sim", path)
        if words is not None:
            raise UsageError(f"scenario: {words}")
        with (Path(folder) / "air.csv").open(newline="") as file:
            return [(row["peer"], row["station"]) for row in csv.DictReader(file) if row["event"] == "deliver"]
