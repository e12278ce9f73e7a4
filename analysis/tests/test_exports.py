"""Exports of crafted runs: series, Flent's file, Perfetto's trace."""

import csv
import gzip
import json
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from analysis.captures.rundir import RunDirectory
from analysis.exports import csv_files, flent, perfetto
from analysis.exports.perfetto import Slice, lanes
from analysis.exports.series import STEP_S, flow_series
from analysis.tests.crafted_chain import BACKWARD, FORWARD, Chain
from analysis.tests.test_metrics import FIXTURE
from record.errors import RunFileError

BEGIN, END, INSTANT, COUNTER = (
    TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END, TrackEvent.TYPE_INSTANT, TrackEvent.TYPE_COUNTER,
)  # fmt: skip


@pytest.fixture
def chain(tmp_path):
    """Two segments of 1000 bytes from sta1 over sta2 to sta3, sent at 0 and 300 ms, each acknowledged 50 ms later."""
    chain = Chain()
    for segment, sent_ms in ((1, 0), (2, 300)):
        chain.travel(chain.data(segment), sent_ms, FORWARD)
        chain.travel(chain.ack(segment), sent_ms + 30, BACKWARD)
    return RunDirectory(chain.write(tmp_path / "seed-1"))


@pytest.fixture
def trace(chain, tmp_path):
    perfetto.write(chain, tmp_path / "run.pftrace")
    return Trace.FromString((tmp_path / "run.pftrace").read_bytes())


def test_throughput_is_that_of_acknowledged_bytes_in_each_step(chain):
    """ACKs of 1000 bytes reach sta1 at 50 and 350 ms: 8000 bit in 0.2 s are 0.04 Mbit/s."""
    (series,) = flow_series(chain)
    assert series.mbps[:4] == pytest.approx([0.04, 0.04, 0, 0])
    assert sum(series.mbps[4:]) == 0 and len(series.mbps) == 10 / STEP_S


def test_a_run_without_flows_has_no_series(chain):
    scenario = chain.path / "scenario.json"
    scenario.write_text(json.dumps(json.loads(scenario.read_text()) | {"flows": []}))
    with pytest.raises(RunFileError, match="there is no series to export"):
        flow_series(RunDirectory(chain.path))


def test_datagrams_have_a_series_without_samples():
    """The fixture's second flow is CBR."""
    tcp, datagrams = flow_series(RunDirectory(FIXTURE))
    assert (tcp.flow.protocol, datagrams.flow.protocol) == ("tcp", "udp")
    assert sum(datagrams.mbps) > 0 and datagrams.samples.is_empty()


def test_the_csv_of_a_run_has_a_row_for_each_step_and_sample(tmp_path):
    run = RunDirectory(FIXTURE)
    csv_files.write_series(run, tmp_path / "run.csv")
    with (tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    series = {one.flow.name: one for one in flow_series(run)}
    counted = Counter((row["flow"], row["metric"], row["unit"]) for row in rows)
    samples = len(series["flow1"].samples)
    assert counted["flow1", "mbps", "Mbit/s"] == len(series["flow1"].mbps)
    assert (counted["flow1", "cwnd", "segments"], counted["flow1", "srtt", "ms"]) == (samples, samples)
    total = sum(float(row["value"]) for row in rows if (row["flow"], row["metric"]) == ("flow2", "mbps"))
    assert total == pytest.approx(sum(series["flow2"].mbps), rel=1e-4)


def test_a_flent_file_has_what_its_reader_requires(tmp_path):
    """Version 4: series as long as x_values; every raw value has a time; TIME, T0 and NAME are there. (Flent 2.3.0's own reader
    was run by hand, docs/archive/validation.md; the project does not depend on it.)"""
    flent.write(RunDirectory(FIXTURE), tmp_path / "run.flent.gz")
    data = json.loads(gzip.decompress((tmp_path / "run.flent.gz").read_bytes()))
    assert data["version"] == 4
    assert {len(values) for values in data["results"].values()} == {len(data["x_values"])}
    assert set(data["results"]) == {"TCP upload::1", "TCP upload::2", "TCP upload sum", "TCP upload avg"}
    assert data["metadata"]["NAME"] == "tcp_nup" and data["metadata"]["TIME"] == data["metadata"]["T0"]
    assert data["metadata"]["TEST_PARAMETERS"] == {"upload_streams": "2"}
    raw = data["raw_values"]["TCP upload::1"]
    assert [row["t"] for row in raw] == sorted(row["t"] for row in raw)
    assert {"tcp_rtt", "tcp_cwnd"} <= {key for row in raw for key in row}


def test_the_sum_is_that_of_the_flows_and_the_average_its_share():
    results = flent.data(RunDirectory(FIXTURE))["results"]
    for step, total in enumerate(results["TCP upload sum"]):
        assert total == pytest.approx(sum(results[f"TCP upload::{flow}"][step] or 0 for flow in (1, 2)))
        assert results["TCP upload avg"][step] == pytest.approx(total / 2)


def test_equal_runs_give_equal_files(tmp_path):
    for writer in (flent, perfetto):
        for name in ("a", "b"):
            writer.write(RunDirectory(FIXTURE), tmp_path / name)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def path_of(trace: Trace) -> dict[int, str]:
    """Each track's names from the top, by its number."""
    found: dict[int, str] = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            above = f"{found[track.parent_uuid]}/" if track.HasField("parent_uuid") else ""
            found[track.uuid] = above + track.name
    return found


def test_a_trace_has_a_track_for_each_station_and_counters_at_the_sender(trace):
    names = set(path_of(trace).values())
    assert {"sta1", "sta2", "sta3", "sta1/air", "sta2/air", "sta3/air", "sta2/flow1 queue"} <= names
    assert {name for name in names if "cwnd" in name or "srtt" in name} == {"sta1/flow1 cwnd", "sta1/flow1 srtt"}


def test_slices_of_a_track_end_before_the_next_begins(trace):
    events: dict[int, list] = defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_event") and packet.track_event.type in (BEGIN, END):
            events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event.type))
    assert events
    for of_track in events.values():
        assert [kind for _, kind in of_track] == [BEGIN, END] * (len(of_track) // 2)
        assert [t_ns for t_ns, _ in of_track] == sorted(t_ns for t_ns, _ in of_track)


def test_the_arrow_of_a_segment_leads_over_every_queue_and_frame_to_its_target(trace):
    tracks, arrows = path_of(trace), defaultdict(list)
    for packet in trace.packet:
        event = packet.track_event
        for arrow in (*event.flow_ids, *event.terminating_flow_ids):
            arrows[arrow].append((packet.timestamp, tracks[event.track_uuid], event.name, bool(event.terminating_flow_ids)))
    first = sorted(arrows[min(arrows)])
    assert [(track, name) for _, track, name, _ in first] == [
        ("sta1/flow1 queue", "tcp 1"), ("sta1/air", "rts"), ("sta1/air", "data"),
        ("sta2/flow1 queue", "tcp 1"), ("sta2/air", "rts"), ("sta2/air", "data"),
        ("sta3/flow1 queue", "tcp 1 received"),
    ]  # fmt: skip
    assert [ends for *_, ends in first] == [False] * 6 + [True]
    assert len(arrows) == 4  # two segments, two ACKs


def test_times_of_a_trace_are_model_time(chain, trace):
    """Traffic begins 2 s after the medium; segment 1 is sent at once."""
    first = min(packet.timestamp for packet in trace.packet if packet.track_event.name == "tcp 1")
    assert first == chain.traffic_ns - chain.epoch_ns == 2_000_000_000


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 30)), max_size=40))
def test_lanes_hold_all_slices_without_overlap_on_as_few_as_possible(given_slices):
    slices = [Slice(begin, begin + length, "") for begin, length in given_slices]
    found = lanes(slices)
    assert Counter(map(id, (one for lane in found for one in lane))) == Counter(map(id, slices))
    assert all(one.end_ns <= after.begin_ns for lane in found for one, after in pairwise(lane))
    depth = max((sum(one.begin_ns <= at.begin_ns < one.end_ns for one in slices) for at in slices), default=0)
    assert len(found) == depth
