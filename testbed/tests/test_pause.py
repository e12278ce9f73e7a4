"""`stop` and `start`: a movement goes on from where it was interrupted."""

import pytest

from mobility.trace import Leg, Trace
from testbed.stages.pause import LEAD_S, Movement, rest

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
    movement = Movement(medium)
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
