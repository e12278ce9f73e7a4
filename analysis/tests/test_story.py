"""The fate of each packet in a story, on crafted chains in which it is known."""

import json

import pytest

from analysis.captures.icmp import quoted_segment
from analysis.captures.rundir import RunDirectory
from analysis.story import story_text
from analysis.story.story import AGAIN, FIRST, PROBE, flow_named, of_segment, read_story, sent_between, totals
from analysis.tests.craft import MS, T0_NS, dsr_source_route, in_dsr, in_minimal
from analysis.tests.crafted_chain import BACKWARD, FORWARD, HOP_MS, Chain, Chain6
from record.errors import RunFileError
from record.found_runs import find_run

UNREACHABLE, TTL_EXCEEDED = (3, 1), (11, 0)
NO_ROUTE6, HOP_LIMIT6 = (1, 0), (3, 0)  # RFC 4443, 3.1 and 3.3


@pytest.fixture
def chain() -> Chain:
    """Segment 1 and its ACK have gone over both hops when a test begins, at 100 ms."""
    chain = Chain()
    chain.travel(chain.data(1), 0, FORWARD)
    chain.travel(chain.ack(1), 30, BACKWARD)
    return chain


def story_of(chain: Chain, tmp_path):
    run = RunDirectory(chain.write(tmp_path / "seed-1"))
    return read_story(run, flow_named(run, 1))


def fate_of(chain: Chain, tmp_path, number: int) -> tuple[str, str]:
    """Of the last transmission of a segment."""
    journey = of_segment(story_of(chain, tmp_path), number)[-1].journey
    return journey.fate, journey.node


def test_a_segment_is_followed_over_every_hop_and_its_ack_back(chain, tmp_path):
    story = story_of(chain, tmp_path)
    (sent,) = story.transmissions
    steps = [(step.kind, step.node, round(story.seconds(step.t_ns) * 1000)) for step in sent.journey.steps]
    assert steps == [("sent", "sta1", 0), ("arrived", "sta2", 10), ("forwarded", "sta2", 10), ("received", "sta3", 20)]
    assert sent.journey.fates_of_attempts == ["delivered"] * 4  # RTS and data on either hop
    assert (sent.segment, sent.start, sent.end, sent.kind) == (1, 0, 1000, FIRST)
    assert story.seconds(sent.acked_ns) == pytest.approx(0.050)  # sent at 30 ms, two hops


def test_the_power_of_a_reception_is_shown_if_the_air_log_has_it(chain, tmp_path):
    log = chain.write(tmp_path / "seed-1") / "air.csv"
    head, *rows = log.read_text().splitlines()
    log.write_text("\n".join([f"{head},power_dbm", *(f"{row},{'-64.25' if ',deliver,' in row else ''}" for row in rows)]) + "\n")
    run = RunDirectory(log.parent)
    story = read_story(run, flow_named(run, 1))
    lines = story_text.table_lines(story, of_segment(story, 1))
    assert sum("data 1 to sta2: delivered at -64.2 dBm" in line for line in lines) == 2, "the segment and its ACK"
    assert not any("rts" in line and "dBm" in line for line in lines)


def test_an_attempt_of_data_has_its_mcs_its_place_in_the_a_mpdu_and_its_sinr(chain, tmp_path):
    log = chain.write(tmp_path / "seed-1") / "air.csv"
    head, *rows = log.read_text().splitlines()
    more = {row: ",ht-mcs7-20,2/28,23.4" if ",tx,data," in row else ",,," for row in rows}
    log.write_text("\n".join([f"{head},mode,aggregate,sinr_db", *(f"{row}{more[row]}" for row in rows)]) + "\n")
    run = RunDirectory(log.parent)
    story = read_story(run, flow_named(run, 1))
    chosen = of_segment(story, 1)
    lines = story_text.table_lines(story, chosen)
    wanted = "data 1 to sta2, ht-mcs7-20, 2/28 of an A-MPDU: delivered, SINR 23.4 dB"
    assert sum(wanted in line for line in lines) == 2, lines
    assert not any("rts" in line and "mcs" in line for line in lines)
    (_rts, data) = story_text.as_json(story, chosen)["transmissions"][0]["steps"][0]["attempts"]
    assert (data["mode"], data["aggregate"], data["sinr_db"]) == ("ht-mcs7-20", "2/28", 23.4)


def test_several_rates_without_an_mcs_are_told_in_mbit_per_s(chain, tmp_path):
    log = chain.write(tmp_path / "seed-1") / "air.csv"
    head, *rows = [line.split(",") for line in log.read_text().splitlines()]
    rate = head.index("rate_bps")
    told = []
    for first_hop in ("2000000", "11000000"):
        for row in rows:
            row[rate] = first_hop if row[1] == "sta1" else "2000000"
        log.write_text("".join(f"{','.join(row)}\n" for row in (head, *rows)))
        run = RunDirectory(log.parent)
        story = read_story(run, flow_named(run, 1))
        lines = story_text.table_lines(story, of_segment(story, 1))
        told += [line.split("data 1 ")[1] for line in lines if "tcp 1 " in line and "data 1 " in line]
    assert told == ["to sta2: delivered", "to sta3: delivered", "to sta2, 11 Mbit/s: delivered", "to sta3, 2 Mbit/s: delivered"]


def test_a_packet_that_the_radio_gave_up_is_dropped_by_that_station_for_that_reason(chain, tmp_path):
    lost = chain.data(2)
    chain.travel(lost, 100, FORWARD[:2])
    chain.lose(lost, 110, 2, 3)
    assert fate_of(chain, tmp_path, 2) == ("retry-short", "sta2")


def test_a_medium_that_is_late_queues_an_answer_before_it_was_captured_and_all_are_still_followed(chain, tmp_path):
    """It enters at the instant of its cause. Taken for a frame that the capture lost it would shift all after it by one."""
    chain.late_ms = 8
    late = chain.data(2)
    chain.travel(late, 100, FORWARD[:2])
    chain.leave(late, 117, 2, 3, queued_after_ms=-7)
    chain.arrive(late, 117, 2, 3)
    chain.travel(chain.data(3), 150, FORWARD)
    chain.travel(chain.data(4), 200, FORWARD)
    story = story_of(chain, tmp_path)
    assert [(sent.segment, sent.journey.fate) for sent in story.transmissions] == [(n, "received") for n in (1, 2, 3, 4)]
    assert all(sent.journey.fates_of_attempts == ["delivered"] * 4 for sent in story.transmissions)


def test_a_full_queue_drops_at_its_station(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2, reason="queue-full")
    assert fate_of(chain, tmp_path, 2) == ("queue-full", "sta1")


def test_a_packet_that_a_daemon_gave_up_after_the_radio_has_no_route(chain, tmp_path):
    lost = chain.data(2)
    chain.travel(lost, 100, FORWARD[:2])
    chain.lose(lost, 110, 2, 3)
    chain.give_up(150, 2, 2)
    chain.icmp(150.1, lost, 2, *UNREACHABLE)
    story = story_of(chain, tmp_path)
    (sent,) = of_segment(story, 2)
    assert (sent.journey.fate, sent.journey.node) == ("no-route", "sta2")
    assert [(step.kind, step.node, step.reason) for step in sent.journey.steps][-4:] == [
        ("dropped", "sta2", "retry-short"),
        ("gave up", "sta2", "no-route"),
        ("said", "sta2", "host unreachable"),
        ("told", "sta1", "host unreachable"),
    ]


def test_a_packet_returned_by_a_broken_link_and_resent_is_one_transmission(chain, tmp_path):
    packet = chain.data(2)
    chain.lose(packet, 100, 1, 2)
    chain.travel(packet, 300, FORWARD)
    story = story_of(chain, tmp_path)
    (sent,) = of_segment(story, 2)
    assert [step.kind for step in sent.journey.steps] == ["sent", "dropped", "resent", "arrived", "forwarded", "received"]
    assert sent.journey.received


def test_a_retransmission_is_another_packet_of_the_same_segment(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    chain.travel(chain.data(2), 400, FORWARD)
    sent = of_segment(story_of(chain, tmp_path), 2)
    assert [(one.kind, one.journey.fate) for one in sent] == [(FIRST, "retry-short"), (AGAIN, "received")]


def test_a_probe_is_a_transmission_of_its_own_though_it_is_a_copy(chain, tmp_path):
    original = chain.data(2)
    chain.lose(original, 100, 1, 2)
    chain.sample(2000, event="probe", detail="seq=2001")
    chain.travel(chain.data(2, chain.identification_of(original)), 2001, FORWARD)
    sent = of_segment(story_of(chain, tmp_path), 2)
    assert [(one.kind, one.journey.received) for one in sent] == [(FIRST, False), (PROBE, True)]


def test_a_probe_that_a_broken_link_returned_is_not_another_when_routing_sends_it_again(chain, tmp_path):
    probe = chain.data(2, identification=0)  # as the kernel leaves it in a raw packet
    chain.sample(100, event="probe", detail="seq=2001")
    chain.lose(probe, 101, 1, 2)
    chain.travel(probe, 600, FORWARD)
    (sent,) = of_segment(story_of(chain, tmp_path), 2)
    assert [step.kind for step in sent.journey.steps][:3] == ["sent", "dropped", "resent"]
    assert sent.journey.received


def test_a_packet_given_up_by_the_sources_daemon_counts_as_sent_and_dropped(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    chain.give_up(110, 1, 2)  # the first one, which the radio returned
    chain.give_up(900, 1, 2)  # a retransmission that never came to the radio
    sent = of_segment(story_of(chain, tmp_path), 2)
    assert [(one.journey.fate, one.journey.captured) for one in sent] == [("no-route", True), ("no-route", False)]
    assert sent[1].end - sent[1].start == 1000


def test_a_packet_held_at_the_source_was_sent_when_tcp_sent_it(chain, tmp_path):
    held, given_up = chain.data(2), chain.data(2)
    chain.take_over(100, held, 1)
    chain.take_over(700, given_up, 1)
    chain.travel(held, 900, FORWARD)
    chain.give_up(950, 1, 2)
    first, second = of_segment(story_of(chain, tmp_path), 2)
    assert [(step.kind, step.node) for step in first.journey.steps][:2] == [("held", "sta1"), ("sent", "sta1")]
    assert first.journey.sent_ns == T0_NS + 100 * MS and first.journey.received
    assert second.journey.sent_ns == T0_NS + 700 * MS
    assert (second.kind, second.journey.fate, second.journey.captured) == (AGAIN, "no-route", False)


def test_a_relays_routing_holds_a_packet_until_there_is_a_route(chain, tmp_path):
    packet = chain.data(2)
    at_ms = chain.travel(packet, 100, FORWARD[:2])
    chain.take_over(at_ms + 0.1, packet, 2)
    chain.travel(packet, 400, FORWARD[1:])
    kinds = [step.kind for step in of_segment(story_of(chain, tmp_path), 2)[0].journey.steps]
    assert kinds == ["sent", "arrived", "held", "forwarded", "received"]


def test_the_capture_of_held_packets_gives_the_time_that_a_daemon_held_a_segment(chain, tmp_path):
    """Without an event log: its own one at the source, at the relay what a broken link returned."""
    chain.folder.scenario["routing"] = {"protocol": "aodv"}
    packet = chain.data(2)
    chain.hold(100, packet, 1)
    chain.hold(519, packet, 1, "sent on after 0.419000 s")
    chain.travel(packet, 520, FORWARD[:2])
    at_ms = chain.lose(packet, 531, 2, 3)
    chain.hold(at_ms + 1, packet, 2)
    chain.travel(packet, at_ms + 301, FORWARD[1:])
    story = story_of(chain, tmp_path)
    (sent,) = of_segment(story, 2)
    kinds = [(step.kind, step.node) for step in sent.journey.steps]
    assert kinds == [
        ("held", "sta1"), ("sent", "sta1"), ("arrived", "sta2"), ("forwarded", "sta2"), ("dropped", "sta2"), ("held", "sta2"),
        ("resent", "sta2"), ("received", "sta3"),
    ]  # fmt: skip
    assert sent.journey.sent_ns == T0_NS + 100 * MS
    lines = "\n".join(story_text.table_lines(story, [sent]))
    assert "held by sta1's AODV for 0.42 s" in lines and "held by sta2's AODV for 0.30 s" in lines
    assert "; held by sta1's AODV for 0.42 s; held by sta2's AODV for 0.30 s" in story_text.summary_lines(story, [sent])[1]


def test_a_packet_of_the_event_log_and_of_the_capture_is_one(chain, tmp_path):
    packet = chain.data(2)
    chain.take_over(100, packet, 1)
    chain.hold(100.1, packet, 1)
    chain.travel(packet, 900, FORWARD)
    (sent,) = of_segment(story_of(chain, tmp_path), 2)
    assert [step.kind for step in sent.journey.steps][:2] == ["held", "sent"]


def test_a_held_packet_that_another_pushed_out_has_a_record(chain, tmp_path):
    """AODV's full buffer gives up its oldest packet without a note; one with a note is counted once."""
    for number, note in ((2, False), (3, True)):
        packet = chain.data(number)
        chain.hold(100 * number, packet, 1)
        if note:
            chain.give_up(100 * number + 50, 1, number)
        chain.hold(100 * number + 50.1, packet, 1, "given up after 0.050100 s")
    story = story_of(chain, tmp_path)
    fates = [[(one.journey.fate, one.journey.node) for one in of_segment(story, number)] for number in (2, 3)]
    assert fates == [[("held-full", "sta1")], [("no-route", "sta1")]]


def test_a_repairing_daemons_host_unreachable_drops_nothing(chain, tmp_path):
    """AODV tells the source at once, and keeps the packet (formats/routing.md, unreachable_during_repair)."""
    packet = chain.data(2)
    at_ms = chain.travel(packet, 100, FORWARD[:2])
    at_ms = chain.lose(packet, at_ms + 1, 2, 3)
    chain.hold(at_ms + 1, packet, 2)
    chain.icmp(at_ms + 2, packet, 2, *UNREACHABLE)
    chain.travel(packet, 400, FORWARD[1:])
    (sent,) = of_segment(story_of(chain, tmp_path), 2)
    kinds = [step.kind for step in sent.journey.steps]
    assert "gave up" not in kinds and "told" in kinds and sent.journey.received


def test_routing_that_only_forwards_a_packet_is_not_shown(chain, tmp_path):
    packet = chain.data(2)
    chain.take_over(99, packet, 1)
    chain.travel(packet, 100, FORWARD)
    assert of_segment(story_of(chain, tmp_path), 2)[0].journey.steps[0].kind == "sent"


def test_packets_held_at_the_end_are_reported(chain, tmp_path):
    chain.take_over(100, chain.data(2), 1)
    assert fate_of(chain, tmp_path, 2) == ("held-at-end", "sta1")


def test_a_probe_that_routing_held_is_still_a_probe(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    for at_ms in (2000, 4000):
        chain.sample(at_ms, event="probe", detail="seq=2001")
        chain.take_over(at_ms + 1, chain.data(2, identification=0), 1)
    for at_ms in (4030, 4031):  # both are let go, when a route was found right after the second
        chain.travel(chain.data(2, identification=0), at_ms, FORWARD)
    sent = of_segment(story_of(chain, tmp_path), 2)
    assert [(one.kind, round((one.journey.sent_ns - T0_NS) / MS), one.journey.received) for one in sent] == [
        (FIRST, 100, False), (PROBE, 2001, True), (PROBE, 4001, True),
    ]  # fmt: skip


def test_a_kernels_icmp_error_is_the_reason_of_a_drop_at_a_relay(chain, tmp_path):
    for number, error in ((2, TTL_EXCEEDED), (3, UNREACHABLE)):
        packet = chain.data(number)
        chain.travel(packet, 100 * number, FORWARD[:2])
        chain.icmp(100 * number + 12, packet, 2, *error)
    story = story_of(chain, tmp_path)
    assert of_segment(story, 2)[0].journey.fate == "TTL-exceeded"
    assert of_segment(story, 3)[0].journey.fate == "no-route"


def test_a_daemons_notice_held_is_not_a_drop(chain, tmp_path):
    packet = chain.data(2)
    at_ms = chain.travel(packet, 100, FORWARD[:2])
    chain.icmp(at_ms + 1, packet, 2, 253, 0)
    chain.travel(packet, 400, FORWARD[1:])
    story = story_of(chain, tmp_path)
    assert of_segment(story, 2)[0].journey.received
    assert "receives: held" in "\n".join(story_text.table_lines(story, of_segment(story, 2)))


def test_a_packet_that_vanished_at_a_relay_has_no_record_and_none_is_invented(chain, tmp_path):
    chain.travel(chain.data(2), 100, FORWARD[:2])
    assert fate_of(chain, tmp_path, 2) == ("no record", "sta2")


def test_a_relay_with_a_failed_arp_resolution_is_named(chain, tmp_path):
    chain.travel(chain.data(2), 100, FORWARD[:2])
    chain.arp_request(111, 2)
    assert fate_of(chain, tmp_path, 2) == ("no-neighbour", "sta2")


def test_a_packet_that_the_next_one_displaced_at_a_relays_arp_is_dropped_for_that_reason(chain, tmp_path):
    """`routing.arp`: segment 2 waits for the address of sta3 until segment 3 takes its place and waits to the end."""
    chain.travel(chain.data(2), 100, FORWARD[:2])
    chain.give_up(110, 2, 2, "resolving")
    chain.travel(chain.data(3), 150, FORWARD[:2])
    chain.give_up(160, 2, 2, "displaced")
    chain.give_up(160, 2, 3, "resolving")
    story = story_of(chain, tmp_path)
    (second,), (third,) = of_segment(story, 2), of_segment(story, 3)
    assert [(step.kind, step.node, step.reason) for step in second.journey.steps][-2:] == [
        ("resolving", "sta2", "10.0.0.3"),
        ("gave up", "sta2", "displaced"),
    ]
    assert (second.journey.fate, third.journey.fate, third.journey.node) == ("displaced", "no-neighbour", "sta2")
    table = "\n".join(story_text.table_lines(story, [second]))
    assert "asks for 10.0.0.3 by ARP" in table and "displaced" in table
    assert "dropped by sta2 0.160000: displaced" in story_text.outcome(story, second)


def test_a_packet_that_waited_for_an_address_is_forwarded(chain, tmp_path):
    packet = chain.data(2)
    chain.travel(packet, 100, FORWARD[:2])
    chain.give_up(110, 2, 2, "resolving")
    chain.travel(packet, 130, FORWARD[1:])
    (sent,) = of_segment(story_of(chain, tmp_path), 2)
    assert [step.kind for step in sent.journey.steps] == ["sent", "arrived", "resolving", "forwarded", "received"]
    assert sent.journey.received


def test_a_packet_displaced_at_its_source_was_sent_when_its_address_was_requested(chain, tmp_path):
    chain.give_up(100, 1, 2, "resolving")
    chain.give_up(130, 1, 2, "displaced")
    chain.travel(chain.data(2), 400, FORWARD)
    sent, again = of_segment(story_of(chain, tmp_path), 2)
    assert (sent.kind, again.kind, sent.end - sent.start, again.journey.received) == (FIRST, AGAIN, 1000, True)
    assert (sent.journey.fate, sent.journey.captured, sent.journey.time_known) == ("displaced", False, True)
    assert sent.journey.sent_ns == T0_NS + 100 * MS


def test_a_packet_may_still_be_held_at_the_end(chain, tmp_path):
    chain.travel(chain.data(2), 100, FORWARD[:2])
    chain.held["sta2"] = 1
    assert fate_of(chain, tmp_path, 2) == ("held-at-end", "sta2")


def test_a_delivery_that_the_capture_lost_is_known_from_the_air(chain, tmp_path):
    packet = chain.data(2)
    chain.leave(packet, 100, 1, 2)
    chain.arrive(packet, 100, 1, 2, captured=False)
    chain.travel(packet, 110, FORWARD[1:])
    assert fate_of(chain, tmp_path, 2) == ("received", "sta3")


@pytest.mark.parametrize(
    "wrap", [lambda frame: in_dsr(frame, dsr_source_route(2)), lambda frame: in_minimal(frame, 3)], ids=["dsr", "half tunnel"]
)
def test_encapsulated_packets_are_followed(chain, tmp_path, wrap):
    packet = wrap(chain.data(2))
    chain.travel(packet, 100, FORWARD[:2])
    chain.lose(packet, 110, 2, 3)
    chain.icmp(130, packet, 2, *UNREACHABLE)
    assert fate_of(chain, tmp_path, 2) == ("no-route", "sta2")


def test_sent_is_received_and_dropped_and_without_a_record(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    chain.lose(chain.data(3), 200, 1, 2, reason="queue-full")
    chain.travel(chain.data(4), 300, FORWARD[:2])
    chain.travel(chain.data(2), 400, FORWARD)
    story = story_of(chain, tmp_path)
    assert totals([sent.journey for sent in story.data]) == {
        "sent": 5,
        "received": 2,
        "dropped": {"queue-full": {"sta1": 1}, "retry-short": {"sta1": 1}},
        "no_record": 1,
    }
    assert "data segments: 5 sent = 2 received + 2 dropped + 1 without a record" in story_text.total_lines(story)


def test_a_copy_of_acknowledged_bytes_is_not_in_flight_at_the_end(chain, tmp_path):
    chain.travel(chain.data(2), 100, FORWARD)
    chain.travel(chain.ack(2), 120, BACKWARD)
    chain.travel(chain.data(2), 400, FORWARD)
    story = story_of(chain, tmp_path)
    first, copy = of_segment(story, 2)
    assert "; acked " in story_text.outcome(story, first)
    assert story_text.outcome(story, copy).endswith("; never acked")


def test_a_lost_ack_is_a_story_too(chain, tmp_path):
    chain.travel(chain.data(2), 100, FORWARD)
    chain.lose(chain.ack(2), 120, 3, 2)
    story = story_of(chain, tmp_path)
    assert of_segment(story, 2)[0].acked_ns is None
    assert "; in flight when the run ended" in story_text.outcome(story, of_segment(story, 2)[0])
    lines = story_text.table_lines(story, of_segment(story, 2))
    assert any(line.startswith("dropped") and "sta3" in line and "ack 2" in line and "retry-short" in line for line in lines)


def test_the_table_is_in_the_order_of_time_with_events_of_tcp_and_scenario(chain, tmp_path):
    lost = chain.data(2)
    chain.lose(lost, 100, 1, 2)
    chain.power(0.2, 2, False)
    chain.sample(300, event="timeout", detail="1")
    chain.travel(chain.data(2), 400, FORWARD)
    chain.travel(chain.ack(2), 430, BACKWARD)
    story = story_of(chain, tmp_path)
    lines = story_text.table_lines(story, of_segment(story, 2))
    times = [float(line.split()[1]) for line in lines[1:]]
    assert times == sorted(times)
    events = [line.split()[0] for line in lines[1:]]
    assert events.index("dropped") < events.index("power") < events.index("timeout") < events.index("received")
    assert events.count("received") == 2  # the segment, and its ACK


def test_the_summary_has_a_line_a_transmission_and_the_events_between(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    chain.sample(300, event="stand-by", detail="unreachable")
    chain.travel(chain.data(2), 400, FORWARD)
    story = story_of(chain, tmp_path)
    lines = story_text.summary_lines(story, story.transmissions)[1:]
    assert [line.split()[1:3] for line in lines] == [["tcp", "1"], ["tcp", "2"], ["*", "stand-by"], ["tcp", "2"]]
    assert "dropped by sta1 0.108000: retry-short; 7 frames for it: 7 hidden" in lines[1]


def test_the_json_has_the_transmissions_and_totals(chain, tmp_path):
    chain.lose(chain.data(2), 100, 1, 2)
    story = story_of(chain, tmp_path)
    answer = json.loads(json.dumps(story_text.as_json(story, of_segment(story, 2))))
    (sent,) = answer["transmissions"]
    assert answer["format"] == "manet-story/1" and answer["totals"]["data"]["sent"] == 2
    assert (sent["fate"], sent["node"], sent["sent_s"]) == ("retry-short", "sta1", 0.1)
    assert len(sent["steps"][0]["attempts"]) == 7


def test_a_stretch_of_time_is_half_open(chain, tmp_path):
    for number, at_ms in ((2, 100), (3, 200), (4, 300)):
        chain.travel(chain.data(number), at_ms, FORWARD)
    story = story_of(chain, tmp_path)
    assert [sent.segment for sent in sent_between(story, 0.1, 0.3)] == [2, 3]
    assert len(sent_between(story, None, None)) == 4


def test_time_counts_from_the_start_of_the_traffic_however_the_run_tells_it(chain, tmp_path):
    chain.power(1.5, 2, False)
    run_dir = chain.write(tmp_path / "seed-1")
    assert RunDirectory(run_dir).traffic_ns == T0_NS
    record = json.loads((run_dir / "run.json").read_text())
    del record["traffic_ns"]
    (run_dir / "run.json").write_text(json.dumps(record))
    assert RunDirectory(run_dir).traffic_ns == T0_NS  # from events.csv
    (run_dir / "events.csv").unlink()
    assert RunDirectory(run_dir).traffic_ns == T0_NS  # from the first packet of the flow, which starts at 0


def test_runs_from_before_the_events_have_a_story(chain, tmp_path):
    chain.sample(50)
    run_dir = chain.write(tmp_path / "seed-1")
    rows = (run_dir / "tcp.csv").read_text().splitlines()
    (run_dir / "tcp.csv").write_text("".join(row.rsplit(",", 2)[0] + "\n" for row in rows))
    run = RunDirectory(run_dir)
    story = read_story(run, run.flows[0])
    assert story.tcp_events == [] and len(story.samples) == 1


@pytest.mark.parametrize("number", [0, 2])
def test_a_missing_flow_is_an_error(chain, tmp_path, number):
    run = RunDirectory(chain.write(tmp_path / "seed-1"))
    with pytest.raises(RunFileError, match=f"no flow {number}; there is flow 1"):
        flow_named(run, number)


def test_the_run_of_a_script_has_no_story(tmp_path):
    chain = Chain()
    chain.folder.scenario["flows"] = []
    run = RunDirectory(chain.write(tmp_path / "seed-1"))
    with pytest.raises(RunFileError, match=r"scenario\.json: the run has no flows; what its script or prompt sent"):
        flow_named(run, 1)


def test_a_missing_segment_is_an_error(chain, tmp_path):
    with pytest.raises(RunFileError, match=r"flow1 has no segment 7; there are 0 \(the SYN\) to 1"):
        of_segment(story_of(chain, tmp_path), 7)


def test_a_folder_stands_for_the_only_run_in_it(chain, tmp_path):
    with pytest.raises(RunFileError, match="no run in it"):
        find_run(tmp_path)
    run_dir = chain.write(tmp_path / "all" / "seed-1")
    assert find_run(tmp_path) == find_run(run_dir) == run_dir
    (tmp_path / "all" / "seed-2").mkdir()
    (tmp_path / "all" / "seed-2" / "run.json").write_text("{}")
    with pytest.raises(RunFileError, match="2 runs are in it; name one of them"):
        find_run(tmp_path)


@pytest.mark.parametrize(("chain", "cut"), [(Chain, 0), (Chain, 10), (Chain, 20), (Chain, 27), (Chain6, 39), (Chain6, 47)])
def test_a_quote_that_is_too_short_names_no_segment(chain, cut):
    assert quoted_segment(chain().data(1).data[14:][:cut]) is None


def test_over_ipv6_segments_and_acks_are_followed_and_a_retransmission_is_new_though_it_looks_the_same(tmp_path):
    chain = Chain6()
    chain.lose(chain.data(1), 0, 1, 2)
    chain.travel(chain.data(1), 200, FORWARD)
    chain.travel(chain.ack(1), 230, BACKWARD)
    story = story_of(chain, tmp_path)
    assert story_text.title(story).startswith(
        "flow1, sta1 to sta3 ([fd6d:616e:6574::1]:40000 > [fd6d:616e:6574::3]:5201), newreno;"
    )
    first, again = story.transmissions
    assert (first.kind, first.journey.fate, first.journey.node) == (FIRST, "retry-short", "sta1")
    assert (again.kind, again.journey.fate, len(again.journey.fates_of_attempts)) == (AGAIN, "received", 4)
    assert story.seconds(again.acked_ns) == pytest.approx(0.250)


def test_over_ipv6_a_relay_forwards_the_retransmission_and_not_what_its_radio_has_dropped(tmp_path):
    chain = Chain6()
    chain.travel(chain.data(1), 0, FORWARD[:2])
    chain.lose(chain.data(1), 10, 2, 3)
    chain.travel(chain.data(1), 300, FORWARD)
    first, again = story_of(chain, tmp_path).transmissions
    assert (first.journey.fate, first.journey.node, len(first.journey.fates_of_attempts)) == ("retry-short", "sta2", 2 + 7)
    assert (again.journey.fate, len(again.journey.fates_of_attempts)) == ("received", 4)


def test_over_ipv6_a_kernels_error_is_the_reason_of_a_drop_at_a_relay(tmp_path):
    chain = Chain6()
    for number, error in ((1, HOP_LIMIT6), (2, NO_ROUTE6)):
        packet = chain.data(number)
        chain.travel(packet, 100 * number, FORWARD[:2])
        chain.icmp(100 * number + 12, packet, 2, *error)
    story = story_of(chain, tmp_path)
    assert [of_segment(story, number)[0].journey.fate for number in (1, 2)] == ["hop-limit-exceeded", "no-route"]
    assert "receives: no route to destination" in "\n".join(story_text.table_lines(story, of_segment(story, 2)))


def test_over_ipv6_a_relay_whose_solicitation_nobody_answers_is_named(tmp_path):
    chain = Chain6()
    chain.travel(chain.data(1), 100, FORWARD[:2])
    chain.solicit(111, 2)
    assert fate_of(chain, tmp_path, 1) == ("no-neighbour", "sta2")


def test_a_hop_of_the_crafted_chain_takes_its_stated_time(chain, tmp_path):
    story = story_of(chain, tmp_path)
    (sent,) = story.transmissions
    assert sent.journey.at_ns - sent.journey.sent_ns == 2 * HOP_MS * MS
