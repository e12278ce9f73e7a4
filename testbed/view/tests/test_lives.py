"""The packets at each station: those of a log that is complete, and those of one that grows; who is stalled."""

from collections import Counter

import pytest

from testbed.view.frames import Frames, parse_rows
from testbed.view.lives import STALLED_NS, Lives, Queue, Waiting

STATIONS = ("sta1", "sta2", "sta3")
S = 1_000_000_000
LOG = f"""\
{S},sta1,enqueue,data,sta2,1,,1000,,,,,
{S + 100},sta1,enqueue,data,sta2,2,,1000,,,,,
{S + 200},sta1,tx,data,sta2,1,1,1034,2000000,1000,3,delivered,,-60
{S + 2000},sta2,deliver,data,sta1,1,,1000,,,,,,-60
{S + 3000},sta2,enqueue,bcast,*,3,,100,,,,,
{S + 4000},sta2,tx,bcast,*,3,1,134,1000000,500,0,,2,
{S + 5000},sta1,drop,data,sta2,2,,1000,,,,retry-short,,
{9 * S},sta3,enqueue,data,sta1,4,,1000,,,,,
""".encode()


@pytest.fixture(scope="module")
def frames() -> Frames:
    return parse_rows(LOG, STATIONS)


@pytest.mark.parametrize(
    ("at_ns", "wanted"),
    [(S - 1, {}), (S, {"sta1": 1}), (S + 150, {"sta1": 2}), (S + 1999, {"sta1": 2}), (S + 2500, {"sta1": 1}),
     (S + 3500, {"sta1": 1, "sta2": 1}), (S + 4600, {"sta1": 1}), (S + 6000, {}), (9 * S, {"sta3": 1})],
)  # fmt: skip
def test_a_packet_is_at_its_station_from_enqueue_to_its_last_row(frames, at_ns, wanted):
    assert {name: queue.packets for name, queue in Lives(frames).queues(at_ns, STATIONS).items()} == wanted


def test_the_queue_of_a_station_has_as_many_packets_as_its_list(frames):
    lives = Lives(frames)
    for at_ns in range(S, S + 6000, 250):
        found = {name: queue.packets for name, queue in lives.queues(at_ns, STATIONS).items()}
        assert found == Counter(name for number, name in enumerate(STATIONS) for _ in lives.at(number, at_ns))


def test_rows_as_they_come_give_the_same_queues():
    waiting, lines = Waiting(STATIONS), LOG.splitlines(keepends=True)
    found = []
    for line in lines:
        waiting.take(parse_rows(line, STATIONS))
        found.append({name: queue.packets for name, queue in waiting.queues(0).items()})
    assert found == [{"sta1": 1}, {"sta1": 2}, {"sta1": 2}, {"sta1": 1}, {"sta1": 1, "sta2": 1}, {"sta1": 1}, {}, {"sta3": 1}]
    waiting.forget()
    assert waiting.queues(0) == {}


def test_a_station_that_has_packets_and_sends_nothing_is_stalled():
    line = f"{S},sta1,enqueue,data,sta2,1,,1000,,,,,\n"
    sent = f"{S + 500},sta1,tx,rts,sta2,1,1,44,1000000,300,3,hidden,,-60\n{9 * S},sta1,drop,data,sta2,1,,1000,,,,stopped,,\n"
    waiting = Waiting(STATIONS)
    waiting.take(parse_rows((line + sent.splitlines()[0] + "\n").encode(), STATIONS))
    for at_ns, stalled in ((S + 600, False), (S + STALLED_NS + 499, False), (S + STALLED_NS + 501, True)):
        wanted = {"sta1": Queue(1, stalled)}
        assert Lives(parse_rows((line + sent).encode(), STATIONS)).queues(at_ns, STATIONS) == wanted, at_ns
        assert waiting.queues(at_ns) == wanted, at_ns


@pytest.mark.parametrize("reason", ["queue-full", "too-long", "off"])
def test_a_packet_dropped_as_it_comes_never_waits(reason):
    log = f"{S},sta1,enqueue,data,sta2,1,,5000,,,,,\n{S},sta1,drop,data,sta2,1,,5000,,,,{reason},,\n"
    assert Lives(parse_rows(log.encode(), STATIONS)).queues(S, STATIONS) == {}
