"""`manet story` on a run of this machine: every transmission is accounted for, whoever dropped it."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from analysis.tests.crafted_chain import BACKWARD, FORWARD, Chain
from record import manifest
from testbed import __main__ as manet
from testbed.runs import under_way
from testbed.tests.running import Background, chain, needs_runs

# All data frames of the first link are lost for a while, those with ACKs too, which the radio gives up at its long retry limit;
# later a relay is gone, which answers no RTS: the short one. In between TCP has time to find its feet again.
LOSSY = {
    "hops": 3, "window": 8, "duration": 11, "tcp": "newreno",
    "events": [
        {"at": 1.5, "link": ["sta1", "sta2"], "error_rate": 1.0}, {"at": 2, "link": ["sta1", "sta2"], "error_rate": 0.0},
        {"at": 6, "power": "sta3", "on": False}, {"at": 8, "power": "sta3", "on": True},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """One run for all tests of this file; where its host was too busy, its records still agree with each other."""
    directory = tmp_path_factory.mktemp("story") / "run"
    assert Background(chain(**LOSSY), directory).result().status == "complete"
    return directory


def story_of(capsys, *arguments: str) -> dict:
    assert manet.main(["story", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.root
@needs_runs
def test_every_transmission_is_received_or_dropped_at_a_station_for_a_reason(run_dir, capsys):
    for found in story_of(capsys, str(run_dir))["totals"].values():
        dropped = sum(count for nodes in found["dropped"].values() for count in nodes.values())
        assert found["no_record"] == 0
        assert found["sent"] == found["received"] + dropped > 20


@pytest.mark.root
@needs_runs
def test_the_drops_are_those_of_the_air_log(run_dir, capsys):
    """With static routes nobody but the radios drops anything, and each drop of a full data packet is a story's end."""
    answer = story_of(capsys, str(run_dir))
    dropped, acks_dropped = (answer["totals"][kind]["dropped"] for kind in ("data", "acks"))
    assert {"retry-long", "retry-short"} <= {*dropped, *acks_dropped}, "frames lost to errors, and a relay that was not there"
    ends = Counter((sent["fate"], sent["node"]) for sent in answer["transmissions"] if not sent["label"])
    assert {key: count for key, count in ends.items() if key[0] != "received"} == {
        (reason, node): count for reason, nodes in dropped.items() for node, count in nodes.items()
    }


@pytest.mark.root
@needs_runs
def test_a_dropped_segment_shows_the_attempts_that_failed(run_dir, capsys):
    answer = story_of(capsys, str(run_dir))
    lost = next(sent for sent in answer["transmissions"] if sent["fate"] == "retry-short")
    assert manet.main(["story", str(run_dir), "--segment", str(lost["segment"])]) == 0
    table = capsys.readouterr().out
    assert "rts 7 to" in table and "retry-short" in table
    assert [event["event"] for event in answer["events"]] == ["link", "link", "power", "power"]
    assert [event["at_s"] for event in answer["events"]] == pytest.approx([1.5, 2, 6, 8], abs=0.5)


@pytest.mark.parametrize("verb", ["story", "plot"])
def test_a_run_under_way_is_waited_for(verb, tmp_path, monkeypatch, capsys):
    chain = Chain()
    chain.travel(chain.data(1), 0, FORWARD)
    directory = chain.write(tmp_path / "seed-1")
    with (directory / "captures" / "sta1.pcap").open("ab") as capture:
        capture.write(b"cut")
    state = SimpleNamespace(directory=str(directory), owner_alive=lambda: True)
    monkeypatch.setattr(under_way, "recorded_runs", lambda: [state])
    assert manet.main([verb, str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"manet {verb}: {directory}: the run is under way; wait for its end") and error.count("\n") == 1
    monkeypatch.setattr(under_way, "recorded_runs", list)
    assert manet.main([verb, str(tmp_path)]) == 1
    assert "sta1.pcap: cut short" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["story", "plot"])
@pytest.mark.parametrize(
    ("run", "verdict", "wanted"),
    [
        ({"status": "complete"}, {"verdict": "valid", "reasons": []}, None),
        (
            {"status": "complete"},
            {"verdict": "suspect", "reasons": ["the medium stood still"], "lateness": {"max_us": 109_300}},
            "suspect: the medium stood still; captures up to 109 ms behind the air",
        ),
        ({"status": "failed", "error": "iperf3: killed"}, {}, "failed: iperf3: killed"),
        (
            {"status": "interrupted", "error": "interrupted; kept"}, {"verdict": "void", "reasons": ["one", "two"]},
            "interrupted: interrupted; kept; void: one; two",
        ),
    ],
)  # fmt: skip
def test_a_run_that_is_not_valid_is_headed_by_its_verdict_and_the_reason(verb, run, verdict, wanted, tmp_path, capsys):
    chain = Chain()
    for number in (1, 2):
        chain.travel(chain.data(number), 3000 * number, FORWARD)
        chain.travel(chain.ack(number), 3000 * number + 30, BACKWARD)
    directory = chain.write(tmp_path / "seed-1")
    record = json.loads((directory / "run.json").read_text())
    (directory / "run.json").write_text(json.dumps(record | run))
    (directory / "verdict.json").write_text(json.dumps({"format": "manet-verdict/1"} | verdict))
    assert manet.main([verb, str(directory)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == wanted if wanted else first.startswith(("flow1, ", "written "))
    if verb == "story":
        assert story_of(capsys, str(directory))["doubt"] == wanted


@pytest.mark.parametrize("verb", ["story", "plot"])
def test_a_capture_that_was_deleted_is_called_so(verb, tmp_path, capsys):
    chain = Chain()
    chain.travel(chain.data(1), 0, FORWARD)
    directory = chain.write(tmp_path / "seed-1")
    manifest.write(directory)
    capture = directory / "captures" / "sta1.pcap"
    capture.unlink()
    assert manet.main([verb, str(directory)]) == 1
    error = capsys.readouterr().err
    assert f"{capture}: was deleted after the run; put it back, or run it again: manet run " in error
    (directory / "manifest.json").unlink()
    assert manet.main([verb, str(directory)]) == 1
    assert "did the capture start?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["story", "plot"])
@pytest.mark.parametrize("times", [("--from", "100", "--to", "200"), ("--from", "5", "--to", "4"), ("--to", "-1")])
def test_times_without_anything_of_the_flow_are_one_line(verb, times, tmp_path, capsys):
    chain = Chain()
    for number in (1, 2):
        chain.travel(chain.data(number), 3000 * number, FORWARD)
        chain.travel(chain.ack(number), 3000 * number + 30, BACKWARD)
    directory = chain.write(tmp_path / "seed-1")
    assert manet.main([verb, str(directory), *times]) == 1
    error = capsys.readouterr().err
    assert f"{directory}: flow1 ends at 6.0 s, and there is nothing from " in error and error.count("\n") == 1
    assert not list(directory.glob("plot-*"))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["nowhere"], "manet story: nowhere: no such folder; name the directory of a run"),
        (["/proc/self/fdinfo"], "manet story: /proc/self/fdinfo: no run in it (no run.json)"),
        ([".", "--segment", "1", "--from", "2"], "manet story: --segment and --from/--to exclude each other; give one"),
    ],
)
def test_a_story_that_cannot_be_made_is_one_line(arguments, wanted, capsys):
    assert manet.main(["story", *arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith(wanted) and error.count("\n") == 1
