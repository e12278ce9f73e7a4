"""DSR's own address resolution (`routing.arp`) in a run: frames on the air, counters, and displaced packets in the story.

A diamond: sta1 reaches sta4 over sta2, and over sta3 as it overhears. sta3 decodes no data frame of sta1, so sta1's requests
for sta3's address have no answer when sta2 leaves.
"""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.captures.rundir import RunDirectory
from analysis.story.journeys import BROADCAST, GAVE_UP, RESOLVING
from analysis.story.story import read_story
from scenarios.scenario import Scenario
from testbed.programs import BUILT
from testbed.runs.run import run_scenario
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, pytest.mark.slow, needs_runs]

ARP_BYTES = 28  # RFC 826; no other packet here is so short
STATIONS = ("sta1", "sta2", "sta3", "sta4")
CBR = {"from": "sta3", "to": "sta4", "traffic": "cbr", "rate": 40960, "bytes": 512, "start": 3}
DIAMOND: dict[str, Any] = {
    "topology": "positions", "positions": [[0, 150], [200, 290], [200, 10], [400, 150]], "warmup": 0, "duration": 14, "window": 8,
    "flows": [{"from": "sta1", "to": "sta4"}, CBR],
    "links": [{"from": "sta1", "to": "sta3", "error_rate": 1.0}],
    "events": [{"at": 5, "power": "sta2", "on": False}],
}  # fmt: skip


def run_with(arp: str, directory: Path) -> RunDirectory:
    scenario = Scenario.model_validate({**DIAMOND, "routing": {"protocol": "dsr", "arp": arp}})
    result = run_scenario(scenario, 1, directory, programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    return RunDirectory(directory)


def counters(run: RunDirectory, station: str) -> dict[str, int]:
    status = json.loads((run.path / "routing" / f"{station}.status.json").read_text())
    found: dict[str, int] = status["end"]["counters"]
    return found


def notes(run: RunDirectory, station: str, event: str) -> list[dict]:
    lines = (run.path / "routing" / f"{station}.jsonl").read_text().splitlines()
    return [note for note in map(json.loads, lines) if note["event"] == event]


def arp_frames(run: RunDirectory, station: str) -> tuple[int, int, int]:
    """ARP frames of the station: requests and replies in its capture, and all in the air log, which ends last."""
    (captured,) = [one for one in run.captured if one.radio and one.node == station]
    packets = run.capture(captured.file)
    sent = packets.filter((packets["protocol"] == "arp") & (packets["eth_src"] == captured.mac))
    requests = len(sent.filter(pl.col("eth_dst") == BROADCAST))
    air = run.air.filter((pl.col("station") == station) & (pl.col("event") == "enqueue") & (pl.col("bytes") == ARP_BYTES))
    return requests, len(sent) - requests, len(air)


def test_a_silent_table_displaces_packets_that_the_story_shows(tmp_path: Path) -> None:
    run = run_with("silent", tmp_path / "run")
    for station in STATIONS:  # the daemon's, and no others: the kernel of a station answers no request
        own = counters(run, station)
        requests, replies, on_air = arp_frames(run, station)
        assert replies == own.get("arp-replies", 0)
        assert own.get("arp-requests", 0) <= requests <= on_air - replies  # the status, the capture and the log end in this order
    own, displaced = counters(run, "sta1"), notes(run, "sta1", "displaced")
    assert 0 == own.get("arp-failed", 0) < own["arp-displaced"] <= len(displaced)
    assert counters(run, "sta2")["arp-replies"] > 0
    assert {note["via"] for note in displaced} == {"10.0.0.3"}
    story = read_story(run, run.flows[0])
    lost = [sent.journey for sent in story.data if sent.journey.fate == "displaced"]
    assert lost and {journey.node for journey in lost} == {"sta1"}
    steps = [step for journey in lost for step in journey.steps]
    assert {step.reason for step in steps if step.kind == RESOLVING} == {"10.0.0.3"}
    assert "displaced" in {step.reason for step in steps if step.kind == GAVE_UP}


def test_a_table_that_reports_failures_breaks_the_link(tmp_path: Path) -> None:
    run = run_with("cmu", tmp_path / "run")
    broken = [note["about"] for note in notes(run, "sta1", "link-broken") if note["value"] == 3]
    own = counters(run, "sta1")
    assert set(broken) == {"10.0.0.3"} and 0 < own["arp-failed"] <= 2 * len(broken)


def test_without_the_option_no_frame_is_arp(tmp_path: Path) -> None:
    run = run_with("none", tmp_path / "run")
    assert {station: arp_frames(run, station) for station in STATIONS} == dict.fromkeys(STATIONS, (0, 0, 0))
    assert not any(name.startswith("arp") for station in STATIONS for name in counters(run, station))
