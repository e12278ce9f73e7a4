"""The records of one real run in Python, compared with its files and with the output of the commands: TCP over a diamond whose
relay dies."""

import contextlib
import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from analysis.drawing import style
from manet_testbed import Results, Run, Scenario, UnreadableResults, WrongRequest
from testbed.__main__ import main
from testbed.tests.running import needs_runs

pytestmark = [pytest.mark.root, needs_runs]
BREAK_S = 2
KEYS = {
    "topology": "positions", "positions": [[0, 150], [200, 290], [200, 10], [400, 150]], "routing": "aodv", "warmup": 0,
    "duration": 5, "flows": [
        {"from": "sta1", "to": "sta4"}, {"from": "sta4", "to": "sta1", "traffic": "cbr", "rate": 8000, "bytes": 100},
    ],
    "events": [{"at": BREAK_S, "cut": "next-hop", "from": "sta1", "to": "sta4"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, watched_host: Any) -> Iterator[Results]:
    with watched_host() as host:
        found = Scenario(KEYS, name="break").run(out=tmp_path_factory.mktemp("lab") / "out")
        if found.run().verdict == "void":
            host.void(found.verdict)
        yield found


@pytest.fixture
def run(results: Results) -> Run:
    return results.run()


def printed(*words: str) -> str:
    """The standard output of a verb that succeeds."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(list(words)) == 0
    return output.getvalue()


def in_file(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_names_its_profile_seed_and_verdict(run: Run) -> None:
    assert (run.cell, run.variant, run.axes, run.seed, run.profile, run.status) == ("all", "", {}, 1, "period", "complete")
    assert repr(run) == f"<Run all seed 1, profile period: {run.verdict}; {run.directory}>"
    assert run.scenario["routing"]["protocol"] == "aodv" and run.metrics["flows"]["flow1"]["acked_bps"] > 0
    assert (run.doubt is None) == (run.verdict == "valid")


def test_the_air_log_is_the_file_with_seconds_of_the_traffic(run: Run) -> None:
    air, rows = run.air(), in_file(run.directory / "air.csv")
    assert air.columns == ["t_s", *rows[0]]
    assert [str(t_ns) for t_ns in air["t_ns"]] == [row["t_ns"] for row in rows]
    assert [fate or "" for fate in air["fate"]] == [row["fate"] for row in rows]
    record = json.loads((run.directory / "run.json").read_text())
    assert air["t_s"][0] == pytest.approx((air["t_ns"][0] - record["traffic_ns"]) / 1e9)


def test_a_flow_is_its_number_or_its_name(run: Run) -> None:
    assert run.tcp("flow1").equals(run.tcp(1)) and run.story("flow1").equals(run.story())
    with pytest.raises(WrongRequest, match=r"flow='flow9': is not in this run"):
        run.tcp("flow9")


def test_the_samples_of_tcp_are_those_of_the_senders_socket(run: Run) -> None:
    samples = run.tcp()
    ports = (str(run.metrics["flows"]["flow1"]["source_port"]), str(run.metrics["flows"]["flow1"]["destination_port"]))
    rows = [
        row for row in in_file(run.directory / "tcp.csv") if (row["sport"], row["dport"]) == ports and row["station"] == "sta1"
    ]
    assert [str(value) for value in samples["snd_una"].drop_nulls()] == [row["snd_una"] for row in rows if row["snd_una"]]
    assert samples["t_s"].is_sorted() and samples["t_s"].min() > 0
    window = run.window()
    assert window["t_s"].is_sorted() and set(window["snd_cwnd"]) <= set(samples["snd_cwnd"].drop_nulls())


def test_the_story_is_that_of_the_command(run: Run) -> None:
    """Of all transmissions and of the steps of one segment."""
    answer = json.loads(printed("story", str(run.directory), "--json"))
    story = run.story()
    assert story.height == len(answer["transmissions"]) > 50
    for row, sent in zip(story.iter_rows(named=True), answer["transmissions"], strict=True):
        assert (row["segment"], row["label"], row["kind"], [row["start"], row["end"]]) == (
            sent["segment"], sent["label"], sent["kind"], sent["bytes"],
        )  # fmt: skip
        assert (row["sent_s"], row["fate"], row["node"], row["at_s"], row["acked_s"]) == (
            sent["sent_s"], sent["fate"], sent["node"], sent["at_s"], sent["acked_s"],
        )  # fmt: skip
    lines = printed("story", str(run.directory)).splitlines()
    assert [row["outcome"] for row in story.iter_rows(named=True) if f"  {row['outcome']}" not in "\n".join(lines)
            and not any(line.endswith(row["outcome"]) for line in lines)] == []  # fmt: skip


def test_the_steps_of_a_segment_are_those_of_the_command(run: Run) -> None:
    sent = run.story().filter(pl.col("label") == "").group_by("segment").len().sort("len", "segment")
    segment = sent["segment"][-1]  # sent most often
    lines = printed("story", str(run.directory), "--segment", str(segment)).splitlines()
    steps = [
        f"{row['event']:<10} {row['t_s']:11.6f}  {row['node']:<8} {row['packet']:<11} {row['details']}".rstrip()
        for row in run.story(segment=segment).iter_rows(named=True)
    ]
    assert len(steps) >= 3 and lines[-len(steps) :] == steps
    assert {"sent", "attempt"} <= {step.split()[0] for step in steps}


def test_the_story_of_an_interval_is_a_part_of_the_whole(run: Run) -> None:
    part = run.story(begin_s=1, end_s=1.5)
    whole = run.story().filter(pl.col("sent_s").is_between(1, 1.5, closed="left"))
    assert part.equals(whole) and part.height > 3
    with pytest.raises(WrongRequest, match=r"^segment and begin_s or end_s exclude each other; give one$"):
        run.story(segment=1, begin_s=1)


def test_routes_change_at_the_break(run: Run) -> None:
    routes = run.routes()
    assert routes.columns == ["t_s", "hops", "via", "to"] and routes["t_s"].is_sorted()
    relays = routes.filter(pl.col("hops") == 2)
    assert set(relays["via"]) == {"sta2", "sta3"} and set(relays["to"]) == {"sta4"}
    assert relays["t_s"][-1] > BREAK_S > relays["t_s"][0]


def test_events_are_those_of_the_file_and_of_the_flow(run: Run) -> None:
    events = run.events()
    (cut,) = events.filter(pl.col("event") == "cut").rows(named=True)
    (row,) = in_file(run.directory / "events.csv")
    traffic_s = json.loads((run.directory / "run.json").read_text())["traffic_ns"] / 1e9
    assert (cut["node"], cut["detail"]) == (row["station"], row["detail"])
    assert cut["t_s"] == pytest.approx(float(row["t_s"]) - traffic_s, abs=1e-6)


def test_throughput_adds_up_to_the_bytes_of_the_flow(run: Run) -> None:
    by_second, by_tenth = run.throughput(), run.throughput(bin_s=0.1)
    assert by_second["acked_kbps"].sum() == pytest.approx(by_tenth["acked_kbps"].sum() / 10)
    assert by_second["t_s"].to_list() == [0, 1, 2, 3, 4]
    last = run.tcp()["snd_una"].drop_nulls()
    assert by_second["acked_kbps"].sum() * 1e3 / 8 == pytest.approx((last.max() - last.min()), rel=0.2)
    with pytest.raises(WrongRequest, match=r"^bin_s=0: give seconds from 0\.001 on$"):
        run.throughput(bin_s=0)


@pytest.mark.parametrize("what", ["story", "window", "packets"])
def test_the_figure_of_a_flow_is_the_picture_of_the_command(run: Run, what: str, tmp_path: Path) -> None:
    printed("plot", str(run.directory), "--what", what, "--from", "1", "--to", "3", "--out", str(tmp_path / "file.png"))
    with style.settings():
        run.figure(what, begin_s=1, end_s=3).savefig(tmp_path / "object.png", format="png")
    assert (tmp_path / "object.png").read_bytes() == (tmp_path / "file.png").read_bytes()


def test_the_map_is_the_picture_of_the_command(run: Run, tmp_path: Path) -> None:
    printed("map", str(run.directory), "--at", "1.5", "--out", str(tmp_path / "file.png"))
    with style.settings():
        run.map(1.5).savefig(tmp_path / "object.png", format="png", dpi=150)
    assert (tmp_path / "object.png").read_bytes() == (tmp_path / "file.png").read_bytes()


def test_a_record_that_a_flow_lacks_is_one_line(run: Run) -> None:
    for wrong, text in (
        (lambda: run.story(9), r"no flow 9; there is flows 1 to 2"), (lambda: run.story(2), r"flow2 is cbr; only TCP"),
        (lambda: run.throughput(2), r"flow2 is cbr, no TCP"), (lambda: run.story(segment=10**6), r"has no segment 1000000"),
        (lambda: run.figure(begin_s=99), r"nothing from 99 s on; give an earlier"), (lambda: run.capture("sta9"), r"sta9\.pcap"),
    ):  # fmt: skip
        with pytest.raises(UnreadableResults, match=text) as refusal:
            wrong()
        assert "\n" not in str(refusal.value) and "--" not in str(refusal.value)


def test_the_flows_of_a_run_are_in_one_table(results: Results) -> None:
    flows = results.flows
    assert flows.select("flow", "traffic", "from", "to").rows() == [
        ("flow1", "bulk", "sta1", "sta4"),
        ("flow2", "cbr", "sta4", "sta1"),
    ]
    of_run = results.run().metrics["flows"]
    assert flows["acked_kbps"][0] == pytest.approx(of_run["flow1"]["acked_bps"] / 1e3)
    assert math.isclose(flows["loss"][1], of_run["flow2"]["loss"]) and flows["acked_kbps"][1] is None


def test_a_folder_that_is_opened_later_holds_the_same(results: Results, run: Run) -> None:
    later = Results.open(results.directory)
    assert later.runs.equals(results.runs) and later.summary.equals(results.summary) and repr(later) == repr(results)
    assert Run(results.directory).directory == run.directory
