"""Actions of a page, as they are checked before they are carried out."""

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.stages.actions import Actions
from testbed.view import actions as view_actions
from testbed.view import site as view_site


class Asked:
    """A running network that keeps what it is asked to do."""

    def __init__(self) -> None:
        self.asked: list[tuple] = []

    def do(self, *wanted: object) -> None:
        self.asked.append(wanted)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"op": "move", "station": "sta1", "position": [1, 2], "speed": 5}, "speed: is no key of an action move, which has st"),
        ({"op": "power", "station": "sta1", "on": True, "at": 3}, "at: is no key of an action power, which has station, on"),
        ({"op": "link", "from": "sta1", "to": "sta2", "error_rate": 1, "loss": 1}, "loss: is no key of an action link, which"),
        ({"op": "move", "station": "sta1", "position": [1, 2], "\x1b[2J": 1}, "is no key of an action move"),
    ],
)
def test_an_unknown_key_of_an_action_is_refused(wanted: dict, error: str) -> None:
    """`"speed": 5` of a move was ignored: the station jumped."""
    with pytest.raises(UsageError) as refused:
        Actions(Asked()).do(wanted)
    assert error in str(refused.value) and str(refused.value).isprintable()


def test_an_action_with_its_own_keys_is_an_event() -> None:
    live = Asked()
    Actions(live).do({"op": "move", "station": "sta1", "position": [1, 2]})
    Actions(live).do({"op": "link", "from": "sta1", "to": "sta2", "error_rate": 1})
    assert live.asked == [
        ({"move": "sta1", "to": [1, 2]}, "view", {"move": "station", "to": "position"}),
        ({"link": ["sta1", "sta2"], "error_rate": 1}, "view", {"link": "to", "error_rate": "error_rate"}),
    ]


def test_an_action_on_another_run_than_the_view_s_is_refused(tmp_path: Path) -> None:
    """`POST /api/control?run=other` acted on the run of the view."""
    shown = view_site.Site("run", tmp_path, [tmp_path], view_actions.Actions(tmp_path))
    for name in ("other", "../other", "", "/"):
        with pytest.raises(UsageError, match="is not one of this view's runs"):
            shown.act(name, {"op": "move", "station": "sta1", "position": [1, 2]})
