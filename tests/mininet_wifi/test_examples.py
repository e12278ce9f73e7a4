"""Mininet-WiFi's own examples run unchanged, or are refused in one line; none is silently different.

The 49 examples run where MANET_MININET_WIFI_EXAMPLES names a checkout of Mininet-WiFi (docs/mininet-wifi.md has the commit and
the table); the judgement of an example is tested without one.
"""

import json
import os
from pathlib import Path

import pytest

from testbed.tests.running import needs_runs
from tests.mininet_wifi import examples
from tests.mininet_wifi.examples import BEGIN, DIFFERS, END, FAILS, REFUSED, RUNS, Outcome

CHECKOUT = os.environ.get("MANET_MININET_WIFI_EXAMPLES", "")
SOURCE = """
def topology():
    net = Mininet_wifi()
    sta1 = net.addStation('sta1', ip='10.0.0.9/8', position='10,20,0')
    if x:
        sta1 = net.addStation('sta2', position='1,1,0')
"""


def station(**changed: object) -> dict:
    return {"ip": "10.0.0.9", "wlan": ["sta1-wlan0"], "intfs": ["sta1-wlan0"], "position": [10.0, 20.0, 0.0], **changed}


def judged(status: int, printed: str = "", errors: str = "", source: str = SOURCE) -> Outcome:
    return examples.outcome_of("a/x.py", source, status, printed, errors)


def printed(**stations: dict) -> str:
    return f"*** note: addStation: mac='00': it has no effect\nFACTS {json.dumps(stations)}\n"


def test_an_example_runs_if_its_network_is_what_its_text_says():
    outcome = judged(0, printed(sta1=station()))
    assert (outcome.result, outcome.notes) == (RUNS, ("addStation: mac",))
    assert (
        judged(1, printed(sta1=station()), "manet script: x.py: void (r), so that its figures do not count; rerun").result == RUNS
    )


@pytest.mark.parametrize(
    ("stations", "difference"),
    [
        ({}, "sta1 is missing"),
        ({"sta1": station(ip="10.0.0.1")}, "sta1 has 10.0.0.1, not 10.0.0.9/8"),
        ({"sta1": station(position=[0.0, 20.0, 0.0])}, "sta1 is at [0.0, 20.0, 0.0], not 10,20,0"),
        ({"sta1": station(intfs=["wlan0"])}, "sta1 has the interfaces ['wlan0'], not ['sta1-wlan0']"),
    ],
)
def test_a_network_that_is_not_what_the_text_says_differs(stations, difference):
    outcome = judged(0, printed(**stations))
    assert (outcome.result, outcome.differences) == (DIFFERS, (difference,))
    assert judged(0, "").result == DIFFERS, "a network that answers nothing is not known to be the same"


def test_a_moving_station_may_be_anywhere():
    source = SOURCE + "    net.setMobilityModel(model='RandomWalk')\n"
    assert judged(0, printed(sta1=station(position=[3.0, 4.0, 0.0])), source=source).result == RUNS


def test_a_refusal_is_told_from_a_failure():
    refused = judged(2, errors="manet: stations\nmanet script: x.py: line 5: addAccessPoint: there are none\n")
    assert (refused.result, refused.why) == (REFUSED, "addAccessPoint: there are none")
    moved = judged(2, errors="manet script: ap1 is an access point: the script begins anew\nmanet script: x.py: no such mode\n")
    assert (moved.result, moved.why) == (REFUSED, "no such mode")
    failed = judged(1, errors="Traceback (most recent call last):\nModuleNotFoundError: No module named 'requests'\n")
    assert (failed.result, failed.why) == (FAILS, "ModuleNotFoundError: No module named 'requests'")


def test_the_table_replaces_the_one_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    examples.write(examples.table([Outcome("x.py", RUNS, notes=("addStation: mac",)), Outcome("y.py", REFUSED, "a | b")]), page)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n2 examples: 1 run, 1 refused") and text.endswith(f"{END}\nafter\n")
    assert "| `x.py` | runs | notes: addStation: mac |" in text and "| `y.py` | refused | a \\| b |" in text and "old" not in text


def test_the_page_has_the_marks_of_the_table():
    text = examples.PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1 and " 0 silently different." in text


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.skipif(not CHECKOUT, reason="MANET_MININET_WIFI_EXAMPLES names no checkout of Mininet-WiFi (docs/mininet-wifi.md)")
def test_no_example_is_silently_different(tmp_path):
    scripts = examples.examples(Path(CHECKOUT).resolve())
    assert len(scripts) == 49
    outcomes = [examples.run(script, Path(CHECKOUT).resolve(), tmp_path / script.stem) for script in scripts]
    print(examples.table(outcomes))
    assert [outcome for outcome in outcomes if outcome.result == DIFFERS] == []
    assert [outcome for outcome in outcomes if outcome.result == REFUSED and not outcome.why] == []
    assert "adhoc.py" in [outcome.name for outcome in outcomes if outcome.result == RUNS]
