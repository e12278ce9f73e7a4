"""The time a cut of the path costs, from an air log and events made up."""

import json
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.metrics.reaction import Reaction, reaction_s

HEADER = "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers\n"


def reaction_with(folder: Path, deliveries: list[tuple], cut: str | None = "10.0,5,cut,sta2,off") -> Reaction | None:
    """`deliveries` are (seconds, last relay, bytes) at sta4."""
    rows = [f"{round(t * 1e9)},sta4,deliver,data,{relay},7,,{size},,,,," for t, relay, size in deliveries]
    (folder / "air.csv").write_text(HEADER + "".join(f"{row}\n" for row in rows))
    (folder / "scenario.json").write_text(json.dumps({"flows": [{"from": "sta1", "to": "sta4", "traffic": "cbr", "bytes": 512}]}))
    if cut is not None:
        (folder / "events.csv").write_text(f"t_s,at_s,event,station,detail\n1,1,move,sta3,to 1 2\n{cut}\n")
    run = RunDirectory(folder)
    return reaction_s(run, *run.flows)


def test_it_is_the_time_between_the_last_of_the_old_relay_and_the_first_of_the_new(tmp_path):
    log = [
        (9.5, "sta3", 512),  # before: the relay changed once already
        (9.90, "sta2", 512),
        (9.95, "sta2", 60),  # too short for a datagram
        (10.1, "sta3", 60),
        (10.25, "sta3", 532),  # a source route makes it longer
        (10.27, "sta3", 532),
    ]
    found = reaction_with(tmp_path, log)
    assert found.seconds == pytest.approx(0.35)
    assert found.check.ok and "sta2 cut off at 10.0 s; 0.350 s" in found.check.detail


def test_a_flow_that_never_recovered_has_null_and_a_reason(tmp_path):
    found = reaction_with(tmp_path, [(9.9, "sta2", 512), (10.2, "sta2", 512)])
    assert (found.seconds, found.check.ok) == (None, False)
    assert found.check.detail == "no delivery after sta2 was cut off"
    found = reaction_with(tmp_path, [(10.2, "sta3", 512)])
    assert (found.seconds, found.check.detail) == (None, "sta2 delivered nothing before it was cut off")


def test_without_a_cut_there_is_nothing_to_measure(tmp_path):
    assert reaction_with(tmp_path, [(9.9, "sta2", 512)], cut=None) is None
    assert reaction_with(tmp_path, [(9.9, "sta2", 512)], cut="10,5,power,sta2,off") is None
