"""Tables of rates: counts of the air log, and what rates.json adds."""

import json

import pytest

from analysis.metrics import rates
from record.errors import RunFileError

BASE = "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers,power_dbm"


def tx(station, peer, rate_bps, fate, *more, frame="data", airtime_ns=1000):
    return ",".join([f"5,{station},tx,{frame},{peer},1,1,1500,{rate_bps},{airtime_ns},3,{fate},,-60.0", *more])


@pytest.fixture
def minstrel(tmp_path):
    """An A-MPDU of three at MCS 7, one of them lost, a single frame at MCS 0, and frames that are none of unicast data."""
    rows = [
        *(tx("sta1", "sta10", 65_000_000, fate, "ht-mcs7-20", f"{n}/3", "23.4")
          for n, fate in enumerate(("delivered", "weak", "delivered"), start=1)),
        tx("sta1", "sta10", 6_500_000, "delivered", "ht-mcs0-20", "", "23.4"),
        tx("sta1", "sta2", 6_500_000, "", "ht-mcs0-20", "", ""),
        tx("sta10", "sta1", 24_000_000, "delivered", "", "", "23.4", frame="ba"),
        tx("sta1", "*", 6_000_000, "", "", "", "", frame="bcast"),
        "9,sta10,deliver,data,sta1,1,,1500,,,,,,-60.0,,,",
    ]  # fmt: skip
    (tmp_path / "air.csv").write_text("\n".join([f"{BASE},mode,aggregate,sinr_db", *rows]) + "\n")
    known = [
        {"mode": "ht-mcs1-20", "rate_bps": 13_000_000, "roles": "B", "success": None, "throughput_bps": None, "mpdus": 0,
         "acknowledged": 0},
        {"mode": "ht-mcs7-20", "rate_bps": 65_000_000, "roles": "AP", "success": 0.625, "throughput_bps": 3.2e7, "mpdus": 3,
         "acknowledged": 2},
    ]  # fmt: skip
    content = {"format": "manet-rates/1", "rate_control": "minstrel-ht", "stations": {"sta1": {"sta10": known}}}
    (tmp_path / "rates.json").write_text(json.dumps(content))
    return tmp_path


def test_frames_are_counted_by_rate_and_the_rate_controls_table_is_beside_them(minstrel):
    found = rates.read_rates(minstrel)
    assert found.rate_control == "minstrel-ht"
    assert [(link.station, link.peer) for link in found.links] == [("sta1", "sta2"), ("sta1", "sta10")]
    link = found.links[1]
    assert [(row.name, row.attempts, row.delivered, row.ppdus, row.airtime_ns) for row in link.rows] == [
        ("ht-mcs0-20", 1, 1, 1, 1000),
        ("ht-mcs1-20", 0, 0, 0, 0),
        ("ht-mcs7-20", 3, 2, 1, 3000),
    ]
    assert link.rows[2].known == rates.Known("AP", 0.625, 3.2e7, 2)
    assert link.mean_mpdus == 2  # 4 MPDUs in 2 PPDUs
    assert link.mean_rate_bps == (3 * 65e6 + 6.5e6) / 4


def test_the_text_names_share_success_and_roles(minstrel):
    lines = rates.lines(rates.read_rates(minstrel).of("sta1"))
    assert lines[0] == "sta1 to sta2, minstrel-ht: 1 frame, 0.0% arrived, mean rate 6.5 Mbit/s"
    head = lines.index("sta1 to sta10, minstrel-ht: 4 frames, 75.0% arrived, mean rate 50.4 Mbit/s, 2.0 in a PPDU")
    assert lines[head + 3].split() == ["ht-mcs1-20", "13", "0", "B"]
    assert lines[head + 4].split() == ["ht-mcs7-20", "65", "3", "75.0%", "66.7%", "3.0", "AP", "62.5%", "32.0"]
    assert lines[-1] == rates.LEGEND
    assert all(len(line) <= 80 for line in lines if line.startswith("  "))


def test_the_object_has_the_same_figures(minstrel):
    answer = rates.as_json(rates.read_rates(minstrel))
    assert answer["format"] == "manet-rate-tables/1" and answer["rate_control"] == "minstrel-ht"
    fast = answer["links"][1]["rates"][2]
    assert (fast["frames"], fast["share"], fast["delivered"], fast["ppdus"]) == (3, 0.75, 2, 1)
    assert (fast["mode"], fast["roles"], fast["success"], fast["acknowledged"]) == ("ht-mcs7-20", "AP", 0.625, 2)


def test_an_old_log_of_one_rate_has_the_counts_alone(tmp_path):
    rows = [tx("sta1", "sta2", 2_000_000, fate) for fate in ("delivered", "collision")]
    (tmp_path / "air.csv").write_text("\n".join([BASE, *rows]) + "\n")
    found = rates.read_rates(tmp_path)
    assert rates.lines(found) == [
        "sta1 to sta2: 2 frames, 50.0% arrived, mean rate 2.0 Mbit/s",
        rates._COLUMNS,
        "  2                        2       2 100.0%   50.0%    1.0",
    ]
    assert rates.as_json(found)["links"][0]["rates"][0]["success"] is None


def test_mistakes_name_the_file_and_the_remedy(minstrel, tmp_path):
    (minstrel / "rates.json").write_text('{"format": "manet-rates/9"}')
    with pytest.raises(RunFileError, match=r"rates\.json: not what manet-rates/1 says .*; run it again"):
        rates.read_rates(minstrel)
    (minstrel / "air.csv").write_text(f"{BASE}\n{tx('sta1', '*', 1_000_000, '', frame='bcast')}\n")
    with pytest.raises(RunFileError, match=r"air\.csv: no station sent data to a single station, .*run it with a flow"):
        rates.read_rates(minstrel)
    with pytest.raises(RunFileError, match=r"nowhere\.csv: no air log"):
        rates.read_rates(minstrel, "nowhere.csv")
