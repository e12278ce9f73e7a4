"""`stop` and `start`: a movement goes on from where it was interrupted."""

import pytest

from mobility.trace import Leg, Trace
from testbed.stages.pause import LEAD_S, LiveMovement, rest

INF = float("inf")


class Medium:
    """Answers like the medium's control socket."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict]] = []
        self.now_ns, self.places = 10_000_000_000, {}

    def ask(self, op: str, **arguments: object) -> dict:
        self.requests.append((op, arguments))
        return {"model_ns": self.now_ns, "positions": self.places}


WALK = Trace(
    "walk",
    [
        Leg(0.0, "sta1", (0, 0, 0), INF), Leg(0.0, "sta1", (100, 0, 0), 10), Leg(20.0, "sta1", (100, 50, 0), 5),
        Leg(0.0, "sta2", (7, 7, 0), INF), Leg(30.0, "sta2", (9, 9, 0), INF),
    ],
)  # fmt: skip


def test_what_is_left_begins_at_the_present_places_and_keeps_its_speeds():
    left = rest(WALK, 4.0, {"sta1": [40, 0, 0], "sta2": [7, 7, 0]})
    # 4 s at 10 m/s are 40 m; 60 m are left, then the leg of 20 s, now at 16 s
    assert left.position("sta1", 3.0) == (70, 0, 0)
    assert left.position("sta1", 10.0) == (100, 0, 0)
    assert left.position("sta1", 18.0) == pytest.approx((100, 10, 0))
    assert (left.position("sta2", 25.9), left.position("sta2", 26.0)) == ((7, 7, 0), (9, 9, 0))


def test_a_station_that_was_moved_meanwhile_goes_on_from_there():
    left = rest(WALK, 4.0, {"sta1": [100, 60, 0], "sta2": [7, 7, 0]})
    assert left.position("sta1", 6.0) == pytest.approx((100, 0, 0)), "60 m at 10 m/s to its old destination"


def test_a_movement_is_interrupted_once_and_continued_once():
    medium = Medium()
    movement = LiveMovement(medium)
    assert not movement.pause() and not movement.resume(), "there is none"
    playing = movement.play(WALK)
    medium.now_ns = playing.begin_ns + 4_000_000_000
    assert movement.pause() and not movement.pause()
    assert medium.requests[-1] == ("halt", {"at_ns": medium.now_ns + round(LEAD_S * 1e9)})
    medium.places = {"sta1": [41, 0, 0], "sta2": [7, 7, 0]}
    assert movement.resume() and not movement.resume()
    legs = [leg for op, given in medium.requests if op == "follow" for leg in given["legs"]][5:]
    assert [(leg["station"], leg["position"]) for leg in legs][:3] == [
        ("sta1", [41, 0, 0]), ("sta1", [100, 0, 0]), ("sta2", [7, 7, 0]),
    ]  # fmt: skip


def test_some_stations_change_their_movement_and_the_others_go_on():
    """The change counts LEADS_S[0] = 0.3 s after 4 s: sta1 has gone 43 m at 10 m/s. sta2 stands where a hand has put it."""
    medium = Medium()
    movement = LiveMovement(medium)
    playing = movement.play(WALK)
    medium.now_ns = playing.begin_ns + 4_000_000_000
    medium.places = {"sta1": [40, 0, 0], "sta2": [8, 8, 0], "sta3": [1, 1, 0]}
    asked: list[tuple] = []

    def legs_from(time_s: float, here: tuple) -> list[Leg]:
        asked.append((round(time_s, 6), here))
        return [Leg(0.0, "sta3", (1, 5, 0), 2)]

    movement.change({"sta3": legs_from})
    halted = [given["at_ns"] for op, given in medium.requests if op == "halt"][-1]
    assert halted == playing.begin_ns + 4_300_000_000 and asked == [(4.3, (1, 1, 0))]
    legs = medium.requests[-1][1]["legs"]
    assert [(leg["at_ns"] - halted, leg["station"], leg["position"], leg.get("speed_mps")) for leg in legs] == [
        (0, "sta1", [43, 0, 0], None), (0, "sta1", [100, 0, 0], 10), (0, "sta2", [8, 8, 0], None),
        (0, "sta3", [1, 1, 0], None), (0, "sta3", [1, 5, 0], 2),
        (15_700_000_000, "sta1", [100, 50, 0], 5), (25_700_000_000, "sta2", [9, 9, 0], None),
    ]  # fmt: skip
    medium.now_ns = halted + 1_000_000_000
    assert movement.time_s() == pytest.approx(5.3) and movement.played == 1
    assert movement.pause() and movement.time_s() is None
