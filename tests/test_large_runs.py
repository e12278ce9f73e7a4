"""A large synthetic run of the benchmark, small here: it is one that the story and the analysis accept."""

from analysis.captures.rundir import RunDirectory
from analysis.story.story import flow_named, read_story, totals
from tests.bench.large_runs import LOST, write_run


def test_every_packet_of_a_large_run_has_its_fate(tmp_path):
    rows = write_run(tmp_path / "all" / "seed-1", 20_000, stations=12, flows=2)
    assert 18_000 < rows < 22_000
    run = RunDirectory(tmp_path / "all" / "seed-1", keeps_captures=False)
    story = read_story(run, flow_named(run, 2))
    counts = totals([sent.journey for sent in story.data])
    assert counts["sent"] == len(story.data)
    assert counts["no_record"] == 0
    assert counts["dropped"] == {"retry-short": {"sta6": counts["sent"] // LOST}}
    assert all(sent.acked_ns for sent in story.data if sent.journey.received)
