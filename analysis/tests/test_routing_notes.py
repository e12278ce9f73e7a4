"""Segments a routing daemon gave up, from its notes."""

import json

from analysis.captures.connections import Connection
from analysis.captures.routing_notes import segments_given_up, too_big

CONNECTION = Connection("tcp", "10.0.0.1", 40000, "10.0.0.2", 5201)


def test_only_this_connection_s_segments_of_this_station_count(tmp_path):
    dead = {"t_ns": 1, "event": "unreachable", "about": "10.0.0.2", "value": 6, "source": "10.0.0.1", "ports": [40000, 5201]}
    notes = [dead, dead, dead | {"ports": [40001, 5201]}, dead | {"source": "10.0.0.9"}, {"t_ns": 2, "event": "route"}]
    (tmp_path / "routing").mkdir()
    text = "".join(json.dumps(note) + "\n" for note in notes) + '{"t_ns": 3, "ev'
    (tmp_path / "routing" / "sta1.jsonl").write_text(text)
    assert segments_given_up(tmp_path, "sta1", CONNECTION) == 2


def test_displaced_segments_count_and_those_that_only_wait_do_not(tmp_path):
    displaced = {"t_ns": 1, "event": "displaced", "about": "10.0.0.2", "value": 6, "source": "10.0.0.1", "ports": [40000, 5201]}
    (tmp_path / "routing").mkdir()
    text = "".join(json.dumps(note) + "\n" for note in (displaced, displaced | {"event": "resolving"}))
    (tmp_path / "routing" / "sta1.jsonl").write_text(text)
    assert segments_given_up(tmp_path, "sta1", CONNECTION) == 1


def test_without_a_daemon_there_are_none(tmp_path):
    assert segments_given_up(tmp_path, "sta1", CONNECTION) == 0
    assert too_big(tmp_path, "sta1") == 0


def test_packets_too_big_for_the_tunnel_are_in_the_status_at_the_end(tmp_path):
    (tmp_path / "routing").mkdir()
    status = {"start": {"counters": {}}, "end": {"counters": {"tunnelled": 800, "too-big": 8}}}
    (tmp_path / "routing" / "sta1.status.json").write_text(json.dumps(status))
    assert too_big(tmp_path, "sta1") == 8
