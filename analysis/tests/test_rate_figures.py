"""The figures about rate controls: a walk and still links."""

import csv
import json
from pathlib import Path

import pytest

from analysis.figures import rate_links, rate_walk
from analysis.tests.drawn import panels

HEAD = (
    "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers,power_dbm,mode,sinr_db"
)
MCS = {6.5: "ht-mcs0-20", 65.0: "ht-mcs7-20"}


def tx(at_s: float, mbps: float, fate: str, station: str = "sta1", peer: str = "sta2") -> str:
    power_dbm = -60.0 - at_s
    return f"{round(at_s * 1e9)},{station},tx,data,{peer},1,1,1538,{round(mbps * 1e6)},1000,0,{fate},,{power_dbm},{MCS[mbps]},30"


def deliver(at_s: float) -> str:
    return f"{round(at_s * 1e9)},sta2,deliver,data,sta1,1,,1500,,,,,,-60.0,,"


def run(folder: Path, variant: str, rows: list[str], spacing: float | None = None, warmup: float = 0) -> None:
    """A run whose traffic begins 5 s after the medium."""
    axes = {} if spacing is None else {"spacing": spacing}
    directory = folder / "-".join([variant, *(f"{name}{value:g}" for name, value in axes.items())]) / "seed-1"
    directory.mkdir(parents=True)
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr"}
    scenario = {"hops": 1, "flows": [flow], "warmup": warmup, "duration": 2, **axes}
    about = {"format": "manet-run/1", "variant": variant, "axes": axes, "seed": 1, "status": "complete", "epoch_ns": 10**18}
    for name, content in {
        "run.json": about | {"traffic_ns": 5 * 10**9},
        "scenario.json": scenario,
        "verdict.json": {"verdict": "valid"},
        "metrics.json": {"format": "manet-metrics/1", "flows": {"flow1": {"traffic": "cbr"}}, "checks": []},
    }.items():
        (directory / name).write_text(json.dumps(content))
    (directory / "air.csv").write_text("\n".join([HEAD, *rows]) + "\n")


def test_the_walk_has_the_mean_rate_and_what_arrived_in_each_second(tmp_path):
    before = tx(4.9, 6.5, "delivered")  # before the traffic
    other = tx(5.2, 6.5, "delivered", station="sta2", peer="sta1")
    rows = [
        before,
        tx(5.1, 65.0, "delivered"),
        deliver(5.1),
        other,
        tx(5.9, 6.5, "weak"),
        tx(6.5, 6.5, "delivered"),
        deliver(6.6),
    ]
    run(tmp_path, "hwsim", rows)
    run(tmp_path, "tap", [tx(5.5, 65.0, "delivered"), deliver(5.5)])
    rate, arrived = panels(rate_walk.draw, tmp_path)
    assert {one.label: one.points for one in rate.series} == {"hwsim": [(0.5, 35.75), (1.5, 6.5)], "TAP": [(0.5, 65)]}
    assert {one.label: one.points for one in arrived.series} == {"hwsim": [(0.5, 0.012), (1.5, 0.012)], "TAP": [(0.5, 0.012)]}
    found = list(csv.DictReader((tmp_path / "rate_walk.csv").open()))
    first = found[0]
    assert (first["variant"], first["second"], first["frames"], first["arrived"]) == ("hwsim", "0", "2", "0.5")
    assert float(first["power_dbm"]) == pytest.approx(-65.5)


def test_still_links_have_the_shares_of_the_rates_since_the_warm_up(tmp_path):
    early = tx(5.5, 6.5, "delivered")
    rows = [early, *(tx(6.5, 65.0, fate) for fate in ("delivered", "weak", "delivered")), tx(6.6, 6.5, "delivered"), deliver(6.7)]
    run(tmp_path, "tap", rows, spacing=20, warmup=1)
    run(tmp_path, "hwsim", [tx(6.5, 65.0, "delivered")], spacing=20, warmup=1)
    (panel,) = panels(rate_links.draw, tmp_path)
    widths = [tuple(round(edge, 4) for edge in box.x) for box in panel.boxes]
    assert widths == [(0, 0), (0, 1), (0, 0.25), (0.25, 1)], "6.5 and 65 Mbit/s of hwsim, then of TAP"
    found = {(row["variant"], row["rate"]): row for row in csv.DictReader((tmp_path / "rate_links.csv").open())}
    fast = found["tap", "ht-mcs7-20"]
    assert (fast["frames"], fast["share"], fast["arrived"], fast["delivered_mbps"]) == ("3", "0.75", "0.6667", "0.006")
