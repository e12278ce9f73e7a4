"""`manet rates` on air logs of `manet-medium sim`: the medium's own tables and counters agree with it; its errors."""

import json
import subprocess

import pytest

from testbed import __main__ as manet
from testbed.programs import BUILT, ROOT


def simulated(folder, **overrides):
    """Two hops of a saturated source; returns the printed result."""
    config = {
        "format": "manet-medium/1",
        "radio": str(ROOT / "medium/radios/dot11n-ht20.toml"),
        "radio_overrides": overrides,
        "queue": {"packets": 200},
        "stations": [
            {"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}", "position": [x, 0, 0]} for n, x in ((1, 0), (2, 120), (3, 330))
        ],
        "traffic": [{"from": "sta1", "to": "sta3", "kind": "saturated", "bytes": 1500, "route": ["sta1", "sta2", "sta3"]}],
        "outputs": {"air_log": "air.csv", "counters": "counters.json", "rates": "rates.json"},
        "duration_s": 0.5,
    }
    (folder / "sim.json").write_text(json.dumps(config))
    done = subprocess.run([BUILT.medium, "sim", "sim.json"], cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


def rates_of(capsys, *words):
    assert manet.main(["rates", *map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_counts_are_those_of_the_counters_and_of_the_rate_control(tmp_path, capsys):
    result = simulated(tmp_path, rate_control="minstrel-ht")
    answer = rates_of(capsys, tmp_path / "air.csv")
    assert answer["rate_control"] == "minstrel-ht"
    assert {(link["from"], link["to"]) for link in answer["links"]} == {("sta1", "sta2"), ("sta2", "sta3")}
    assert json.loads((tmp_path / "rates.json").read_text())["stations"] == result["rates"]
    counters = json.loads((tmp_path / "counters.json").read_text())["stations"]
    for link in answer["links"]:
        # the A-MPDU on the air at the end has no row yet
        assert 0 <= counters[link["from"]]["tx_data"] - link["frames"] <= 64 and link["frames"] > 500
        known = {row["mode"]: row for row in result["rates"][link["from"]][link["to"]]}
        for row in link["rates"]:
            # an exchange still under way at the end is not reported: at most one A-MPDU and its repetitions
            assert abs(row["frames"] - known[row["mode"]]["mpdus"]) <= 64 * 7
            assert row["acknowledged"] <= row["delivered"] <= row["frames"]
        assert "".join(sorted("".join(row["roles"] for row in link["rates"]))) == "ABCDP"
        assert link["mean_mpdus"] > 10


def test_at_a_fixed_rate_there_are_counts_alone(tmp_path, capsys):
    assert "rates" not in simulated(tmp_path, aggregation=False)
    assert not (tmp_path / "rates.json").exists()
    assert manet.main(["rates", str(tmp_path / "air.csv"), "sta2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("sta2 to sta3: ") and len(lines) == 3
    assert lines[2].split()[0] == "ht-mcs7-20" and lines[2].split()[3] == "100.0%"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["nowhere"], "manet rates: nowhere: no such folder; name the directory of a run"),
        (["air.csv", "sta9"], 'manet rates: no station "sta9" sent data to a single one; '),
    ],
)
def test_a_mistake_is_one_line(tmp_path, monkeypatch, capsys, words, wanted):
    simulated(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert manet.main(["rates", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert error.startswith(wanted) and error.count("\n") == 1
