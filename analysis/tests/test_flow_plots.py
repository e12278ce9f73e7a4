"""`manet plot`'s figures: every mark that the story has is in them, at its place."""

import matplotlib.pyplot as plt
import pytest

from analysis.captures.rundir import RunDirectory
from analysis.drawing import flow_plots
from analysis.story.story import Story, read_story
from analysis.tests.crafted_chain import BACKWARD, FORWARD, Chain
from analysis.tests.drawn import page, panels
from record.errors import RunFileError


@pytest.fixture
def story(tmp_path) -> Story:
    """Two segments come through; the third is lost twice, for two reasons; stand-by, probe, repair; its ACK is lost."""
    chain = Chain()
    for number in (1, 2):
        chain.travel(chain.data(number), 100 * number, FORWARD)
        chain.travel(chain.ack(number), 100 * number + 30, BACKWARD)
        chain.sample(100 * number + 50, cwnd=number + 1, ssthresh=0x7FFFFFFF if number == 1 else 4)
    lost = chain.data(3)
    chain.travel(lost, 300, FORWARD[:2])
    chain.lose(lost, 310, 2, 3)
    chain.sample(330, event="notice", detail="unreachable seq=3001")
    chain.sample(331, event="stand-by", detail="unreachable")
    chain.sample(700, event="timeout", detail="1")
    chain.lose(chain.data(3), 800, 1, 2, reason="queue-full")
    chain.power(0.3, 3, False)
    chain.power(1.5, 3, True)
    chain.sample(2000, event="probe", detail="seq=3001")
    chain.travel(chain.data(3), 2001, FORWARD)
    chain.lose(chain.ack(3), 2025, 3, 2)
    chain.sample(2100, event="repair", detail="ack")
    chain.sample(2101, cwnd=1, ssthresh=4, event="window", detail="cwnd=1 ssthresh=4")
    run = RunDirectory(chain.write(tmp_path / "seed-1"))
    return read_story(run, run.flows[0])


@pytest.mark.parametrize(
    ("what", "labels"),
    [("window", ["segments"]), ("packets", ["segment"]), ("story", ["segments", "segment"])],
)
def test_a_figure_is_a_png_and_a_pdf_with_the_requested_panels(story, tmp_path, what, labels):
    drawn = page(flow_plots.draw, story, what, tmp_path / "new" / "a.png")
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["a.pdf", "a.png", "a.svg"]
    assert [panel.ylabel for panel in drawn.panels] == labels
    assert drawn.panels[-1].xlabel == "time since the start of the traffic (s)"
    assert {"cwnd", "ssthresh"} <= set(drawn.legend) or what == "packets"
    assert {"sent", "received", "ACKed"} <= set(drawn.legend) or what == "window"
    assert plt.get_fignums() == []


def test_packets_are_at_their_times_and_segments(story, tmp_path):
    (panel,) = panels(flow_plots.draw, story, "packets", tmp_path / "a.png")
    assert {name: one.points for name, one in panel.named.items() if name != "notice"} == {
        "sent": [(0.1, 1), (0.2, 2), (0.3, 3)], "sent again": [(0.8, 3)], "probe": [(2.001, 3)],
        "received": [(0.12, 1), (0.22, 2), (2.021, 3)], "ACKed": [(0.15, 1), (0.25, 2)],
        "dropped: retry-short": [(0.318, 3)], "dropped: queue-full": [(0.801, 3)], "ACK dropped: retry-short": [(2.033, 3)],
    }  # fmt: skip
    assert {"sta1", "sta2", "sta3"} <= set(panel.texts), "who dropped them"
    assert panel.named["notice"].x == [0.33, 0.33]
    assert [box.x for box in panel.boxes] == [(0.331, 2.1)], "stand-by"
    assert [one.x[0] for one in panel.series if one.line == ":"] == [0.3, 1.5], "the scenario's events"


def test_the_window_has_its_thresholds_and_the_events_of_its_tcp(story, tmp_path):
    (panel,) = panels(flow_plots.draw, story, "window", tmp_path / "a.png")
    # samples at 0.15 and 0.25, timeout, repair (4, the state before them), then what a layer set at 2.101
    assert panel.named["cwnd"].points == [(0.15, 2), (0.15, 3), (0.25, 4), (0.7, 4), (2.101, 1), (2.101, 1)]
    thresholds = panel.named["ssthresh"].points
    assert next(point for point in thresholds if point[1] == point[1]) == (0.15, 4), "no threshold is not drawn"
    at_s = {name: panel.named[name].x for name in ("notice", "time-out", "probe", "repair", "window set")}
    assert at_s == {"notice": [0.33], "time-out": [0.7], "probe": [2.0], "repair": [2.1], "window set": [2.101]}
    assert {"sta3 off", "sta3 on"} <= set(panel.texts)
    assert [box.x for box in panel.boxes] == [(0.331, 2.1)], "stand-by"


def test_the_window_falls_at_the_first_of_several_timeouts(tmp_path):
    """A row has the state before its ACK or timeout is processed (formats/tcp.md): 8 until the first, 1 from then on."""
    chain = Chain()
    chain.travel(chain.data(1), 100, FORWARD)
    chain.travel(chain.ack(1), 130, BACKWARD)
    chain.sample(150, cwnd=7, ssthresh=8)
    chain.sample(250, cwnd=8, ssthresh=8)
    for number, at_ms in enumerate((700, 1300, 2500, 4900), start=1):
        cwnd, ssthresh = (8, 8) if number == 1 else (1, 4)
        chain.sample(at_ms, cwnd=cwnd, ssthresh=ssthresh, event="timeout", detail=str(number))
    chain.sample(5000, cwnd=1, ssthresh=4)
    chain.sample(5100, cwnd=2, ssthresh=4)
    run = RunDirectory(chain.write(tmp_path / "seed-1"))
    (panel,) = panels(flow_plots.draw, read_story(run, run.flows[0]), "window", tmp_path / "a.png")
    cwnd = panel.named["cwnd"]
    assert cwnd.steps == "steps-post"
    assert cwnd.points == [
        (0.15, 7), (0.15, 8), (0.25, 8), (0.7, 1), (1.3, 1), (2.5, 1), (4.9, 1), (5.0, 2), (5.1, 2),
    ]  # fmt: skip
    assert panel.named["ssthresh"].points[3:5] == [(0.7, 4), (1.3, 4)]
    assert panel.named["time-out"].x == [0.7, 1.3, 2.5, 4.9]


def test_stand_by_is_from_its_event_to_the_repair(story):
    ((begin_s, end_s),) = story.stand_bys_s
    assert (round(begin_s, 3), round(end_s, 3)) == (0.331, 2.1)
    story.stand_bys = [(story.stand_bys[0][0], None)]
    ((begin_s, end_s),) = story.stand_bys_s
    assert end_s > 2.0, "one that never ended goes on to the last packet"


def test_a_figure_that_cannot_be_drawn_is_an_error(story, tmp_path):
    with pytest.raises(RunFileError, match=r"give a name that ends in \.png"):
        flow_plots.draw(story, "window", tmp_path / "a.jpeg")


@pytest.mark.parametrize(
    ("begin_s", "end_s", "wanted"),
    [
        (7, None, "there is nothing from 7 s on; give an earlier --from"),
        (100, 200, "there is nothing from 100 s on; give an earlier --from"),
        (2, 1, "there is nothing from 2 to 1 s; give a --to that is later than --from"),
        (None, -5, "there is nothing from 0 to -5 s; give a --to"),
        (1, float("inf"), "there is nothing from 1 to inf s"),
        (float("nan"), None, "there is nothing from nan s on"),
    ],
)
def test_a_time_without_the_flow_is_an_error_and_overwrites_nothing(story, tmp_path, begin_s, end_s, wanted):
    (tmp_path / "a.png").write_bytes(b"the good one")
    with pytest.raises(RunFileError, match=rf"flow1 ends at 2\.\d s, and {wanted}"):
        flow_plots.draw(story, "window", tmp_path / "a.png", begin_s, end_s)
    assert (tmp_path / "a.png").read_bytes() == b"the good one"
    assert not (tmp_path / "a.pdf").exists()
