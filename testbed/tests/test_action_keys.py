"""Actions of a page, as they are checked before they are carried out."""

from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.stages.actions import Actions
from testbed.stages.event_log import EventLog
from testbed.stages.site import Site
from testbed.tests.running import chain
from testbed.view import actions as view_actions
from testbed.view import site as view_site


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"op": "move", "station": "sta1", "position": [1, 2], "speed": 5}, "speed: is no key of an action move, which has st"),
        ({"op": "power", "station": "sta1", "on": True, "at": 3}, "at: is no key of an action power, which has station, on"),
        ({"op": "link", "from": "sta1", "to": "sta2", "error_rate": 1, "loss": 1}, "loss: is no key of an action link, which"),
        ({"op": "move", "station": "sta1", "position": [1, 2], "\x1b[2J": 1}, "is no key of an action move"),
    ],
)
def test_an_unknown_key_of_an_action_is_refused(tmp_path: Path, wanted: dict, error: str) -> None:
    """`"speed": 5` of a move was ignored: the station jumped."""
    actions = Actions(Site(chain(), 1, tmp_path, cgroup=tmp_path), EventLog(tmp_path))
    with pytest.raises(UsageError) as refused:
        actions._event(wanted)
    assert error in str(refused.value) and str(refused.value).isprintable()


def test_an_action_with_its_own_keys_is_an_event(tmp_path: Path) -> None:
    actions = Actions(Site(chain(), 1, tmp_path, cgroup=tmp_path), EventLog(tmp_path))
    assert actions._event({"op": "move", "station": "sta1", "position": [1, 2]}).kind == "move"


def test_an_action_on_another_run_than_the_view_s_is_refused(tmp_path: Path) -> None:
    """`POST /api/control?run=other` acted on the run of the view."""
    shown = view_site.Site("run", tmp_path, [tmp_path], view_actions.Actions(tmp_path))
    for name in ("other", "../other", "", "/"):
        with pytest.raises(UsageError, match="is not one of this view's runs"):
            shown.act(name, {"op": "move", "station": "sta1", "position": [1, 2]})
