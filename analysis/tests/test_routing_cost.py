"""Behaviour and cost of routing daemons: a run of two stations whose link breaks and returns, written by hand."""

import json
import shutil
from pathlib import Path

import pytest

from analysis.captures.rundir import RunDirectory
from analysis.figures import daemons_chain
from analysis.figures.daemons_chain import statistics, table
from analysis.metrics.routing_cost import RoutingCost, routing_cost
from analysis.tests.drawn import panels
from analysis.tests.test_tables import make_run
from record.errors import RunFileError

ROOT = Path(__file__).resolve().parents[2]
EPOCH_NS = 1_000_000_000_000
AIR = "t_ns,station,event,frame,peer,packet,attempt,bytes,rate_bps,airtime_ns,backoff_slots,fate,receivers"
OVERHEAD = 34  # of ns2-dsss-2m


def tx(t_s: float, frame: str, packet: int, size: int) -> list[str]:
    """A frame of a packet of `size` bytes, from the queue to the air."""
    t_ns = round(t_s * 1e9)
    peer = "*" if frame == "bcast" else "sta2"
    return [
        f"{t_ns},sta1,enqueue,{frame},{peer},{packet},,{size},,,,,",
        f"{t_ns},sta1,tx,{frame},{peer},{packet},1,{size + OVERHEAD},2000000,1000,,,",
    ]


def deliver(t_s: float, size: int) -> str:
    return f"{round(t_s * 1e9)},sta2,deliver,data,sta1,1,,{size},,,,,"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Traffic from 2 to 12 s of model time. sta2 is out of range (250 m, two-ray) from 5 to 8 s: it leaves and returns at 50 m/s
    from 200 m, at 4 s and 7 s. A datagram a second."""
    radio = str(ROOT / "medium" / "radios" / "ns2-dsss-2m.toml")
    stations = [{"name": f"sta{n}", "mac": f"02:00:00:00:00:0{n}", "position": [0, 0, 0]} for n in (1, 2)]
    flow = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 4096, "bytes": 512, "start": 0.0}
    files = {
        "run.json": {"format": "manet-run/1", "epoch_ns": EPOCH_NS, "routing_ns": 500_000_000, "traffic_ns": 2_000_000_000},
        "scenario.json": {"warmup": 0.0, "duration": 10.0, "flows": [flow], "mobility": "static"},
        "medium.json": {"format": "manet-medium/1", "radio": radio, "propagation": {"model": "two-ray"}, "stations": stations},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    legs = ["0,sta1,0,0,0,0", "0,sta2,200,0,0,0", "4,sta2,300,0,0,50", "7,sta2,200,0,0,50"]
    head = "# manet-trace/1\ntime_s,station,x_m,y_m,z_m,speed_mps"
    (tmp_path / "moved.csv").write_text("\n".join([head, *legs]) + "\n")
    rows = [AIR, *tx(1, "bcast", 1, 100)]  # before the traffic
    rows += [*tx(2.5, "bcast", 2, 66), *tx(2.6, "data", 3, 86), *tx(3, "data", 4, 512), deliver(3.1, 512)]
    rows += [f"2600000000,sta1,tx,data,sta2,3,2,{86 + OVERHEAD},2000000,1000,,,"]  # control that is repeated
    rows += ["3000000000,sta1,tx,rts,sta2,4,1,20,1000000,352000,1,,", *tx(9.5, "data", 5, 524), deliver(9.6, 524)]
    (tmp_path / "air.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "datagrams").mkdir()
    records = ["number,bytes,written_ns,sent_ns,received_ns,latency_ms,lost,in_window"]
    for number in range(10):  # written at 2.5, 3.5, ... 11.5; of those at 5.5, 6.5, 7.5 none can arrive
        written, lost = EPOCH_NS + round((2.5 + number) * 1e9), int(number in (0, 3, 4, 5, 6))
        records.append(f"{number},512,{written},,{'' if lost else written + 100_000_000},,{lost},1")
    (tmp_path / "datagrams" / "flow1.csv").write_text("\n".join(records) + "\n")
    return tmp_path


def write_usage(run: Path) -> None:
    def at(model_s: float, cpu_s: float) -> dict:
        used = [{"cpu_s": cpu_s * n, "rss_kb": 900, "peak_rss_kb": 1000 * n, "processes": 1} for n in (1, 2)]
        return {"model_ns": round(model_s * 1e9), "stations": {"sta1": used[0], "sta2": used[1]}}

    (run / "routing").mkdir()
    usage = {"format": "manet-routing-usage/1", "start": at(2, 0.01), "end": at(12, 0.02)}
    (run / "routing" / "usage.json").write_text(json.dumps(usage))


def test_times_delivery_control_and_cost_of_a_run(run: Path) -> None:
    write_usage(run)
    cost = routing_cost(RunDirectory(run))
    assert cost.traffic_s == pytest.approx(2 - 0.5)
    assert cost.first_s == pytest.approx(3.6 - 0.5)
    assert (cost.recovery_s, cost.missed) == (pytest.approx(9.6 - 8, abs=0.01), 0)  # back in range at 8 s
    assert cost.delivery == pytest.approx(5 / 7)  # of 7 that were written while in range, those at 2.5 and 8.5 are lost
    assert cost.control_bps == pytest.approx(8 * (66 + 86 + 86 + 3 * OVERHEAD) / 10)
    assert cost.control_frames_per_s == pytest.approx(0.3)
    assert cost.header_bytes == pytest.approx(6)  # 0 and 12 bytes
    assert cost.cpu_ms_per_s == pytest.approx(1.5)  # 10 and 20 ms in 10 s
    assert cost.peak_rss_mb == pytest.approx(2.048)


def test_a_protocol_without_daemons_has_no_cost_of_them(run: Path) -> None:
    cost = routing_cost(RunDirectory(run))
    assert (cost.cpu_ms_per_s, cost.peak_rss_mb) == (None, None) and cost.first_s == pytest.approx(3.6 - 0.5)


def test_a_path_that_is_never_used_again_counts_as_long_as_it_is_there(run: Path) -> None:
    path = run / "datagrams" / "flow1.csv"
    head, *rows = path.read_text().splitlines()
    # of those that were written after the return none arrives; one that was on its way does
    rows = [row.replace(",0,1", ",1,1") for row in rows[:7]] + [
        f"7,512,{EPOCH_NS + 7_990_000_000},,{EPOCH_NS + 8_010_000_000},,0,1"
    ]
    path.write_text("\n".join([head, *rows]) + "\n")
    cost = routing_cost(RunDirectory(run))
    assert (cost.recovery_s, cost.missed) == (pytest.approx(12 - 8, abs=0.01), 1)  # to the end of the traffic


def test_the_figure_draws_each_daemon_in_the_experiments_order(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("daemons-chain")
    write_usage(run)
    for variant, verdict in (("aodv", "valid"), ("batman-adv", "valid"), ("dsr", "void")):
        make_run(folder, variant, 4, 1, 1.0, verdict=verdict)
        made = folder / f"{variant}-hops4" / "seed-1"
        there = json.loads((made / "run.json").read_text())
        shutil.copytree(run, made, dirs_exist_ok=True)
        (made / "run.json").write_text(json.dumps(there | json.loads((run / "run.json").read_text())))
    shutil.rmtree(folder / "batman-adv-hops4" / "seed-1" / "routing")
    (folder / "experiment.json").write_text(json.dumps({"variants": ["batman-adv", "aodv"]}))
    drawn = panels(daemons_chain.draw, folder)
    assert [panel.yticks for panel in drawn] == [["batman-adv", "AODV"]] * 5
    recovery, delivery, control, cpu, memory = ([one.x for one in panel.series if one.marker == "o"] for panel in drawn)
    assert recovery == [[pytest.approx(1.6, abs=0.01)]] * 2 and delivery == [[pytest.approx(500 / 7)]] * 2
    assert control == [[pytest.approx(0.272)]] * 2 and (cpu, memory) == ([[pytest.approx(1.5)]], [[pytest.approx(2.048)]])
    assert (folder / "daemons.md").read_text().splitlines()[2].startswith("| batman-adv | 1.5 | 3.1 | 1.6 |")
    assert "aodv,cpu_ms_per_s,1.5,,1,1" in (folder / "daemons.csv").read_text()


def test_the_table_names_missed_changes_and_runs_without_a_figure() -> None:
    def cost(first_s: float | None, recovery_s: float, missed: int) -> RoutingCost:
        return RoutingCost(1.5, first_s, recovery_s, missed, 0.98, 250.0, 1.0, 0.0, None, None)

    # of 1 and 3: t(0.975, 1 degree of freedom) = 12.706, times s / sqrt(n) = 1
    (line,) = table(statistics("x", [cost(2.0, 1.0, 0), cost(2.0, 3.0, 2)])).splitlines()[2:]
    assert line.split(" | ") == [
        "| x", "1.5 ± 0.0", "2.0 ± 0.0", "2.0 ± 12.7 (2 missed)", "98.0 ± 0.0", "0.25 ± 0.00", "0 ± 0", "-", "-", "2 |",
    ]  # fmt: skip
    (line,) = table(statistics("x", [cost(None, 1.0, 0), cost(2.0, 1.0, 0)])).splitlines()[2:]
    assert line.split(" | ")[2:4] == ["2.0 (1 of 2)", "1.0 ± 0.0"]


def test_a_damaged_record_of_use_is_an_error_that_names_it(run: Path) -> None:
    """Empty values would look like those of a run without daemons."""
    (run / "routing").mkdir()
    (run / "routing" / "usage.json").write_text("{")
    with pytest.raises(RunFileError, match=r"usage\.json: not JSON"):
        routing_cost(RunDirectory(run))
