"""Every TCP under one outage of 20 s: what plain Reno, reno-f, elfn, tcpf, atcp, tcpbus and lcd send, and when."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from outage_run import PERIOD, Connection, layer, layered, run_outage
from tcplab import MSS

pytestmark = pytest.mark.root

OUTAGE_S = 20.0
PROBE_S = 2.0
EXACT_S = 0.05  # probes every 2 s within 50 ms
TICK_S = 0.02  # of the kernel's timers, and this host's lateness
SEGMENTS = 250

ELFN = {"probe_us": int(PROBE_S * 1e6)}
TCPS = {
    "reno": PERIOD,
    "reno-f": layered(layer("reno-f")),
    "elfn": layered(layer("elfn", **ELFN)),
    "elfn-window": layered(layer("elfn", repair="window", **ELFN)),
    "elfn-initial": layered(layer("elfn", repair="initial", **ELFN)),
    "elfn-lost": layered(layer("elfn", packet="lost", **ELFN)),
    "elfn-reno-f": layered(layer("elfn", **ELFN), layer("reno-f")),
    "atcp": layered(layer("atcp", **ELFN)),
    "lcd": layered(layer("lcd")),
    "tcpf": layered(layer("tcpf", failure_us=60000000)),
    "tcpbus": layered(layer("tcpbus", factor=2)),
}
HELD = ("tcpf", "tcpbus")  # of these the relay keeps the segments, and says so
SILENT = ("reno", "reno-f")  # of these it says nothing: Linux would take back backoffs (RFC 6069)


@dataclass(frozen=True)
class Run:
    """All of them in one outage, and whether the host was idle enough for it."""

    connections: dict[str, Connection]
    repair: float
    host: Any  # its `void`


@pytest.fixture(scope="module")
def outage(tmp_path_factory, cgroup_root, watched_host) -> Run:
    kept = " ".join(f"{'-' if name in SILENT else ''}{5201 + list(TCPS).index(name)}" for name in HELD + SILENT)
    folder = tmp_path_factory.mktemp("outage")
    with watched_host() as host:
        outage = run_outage(folder, cgroup_root, list(TCPS.values()), OUTAGE_S, f"broken {kept}", SEGMENTS)
    return Run(dict(zip(TCPS, outage.connections, strict=True)), outage.repair, host)


def in_time(outage: Run, check) -> None:
    """`check` of the run; times that are out of bounds are void where the host was too busy for them."""
    run = outage.connections | {"repair": outage.repair}
    try:
        check(run)
    except AssertionError as late:
        outage.host.void(str(late))


def gaps(times: list[float]) -> list[float]:
    return [round(after - before, 3) for before, after in pairwise(times)]


def in_outage(connection: Connection, repair: float) -> list[float]:
    """When it sent, once what was on its way at the break had been sent."""
    return [at for at, _ in connection.sent(0.1, repair)]


def test_everything_arrives_whole(outage):
    assert {name: connection.received for name, connection in outage.connections.items()} == dict.fromkeys(TCPS, SEGMENTS * MSS)


def test_plain_reno_backs_off(outage):
    def check(run):
        spaces = gaps(in_outage(run["reno"], run["repair"]))
        ratios = [after / before for before, after in pairwise(spaces)]
        assert len(spaces) >= 3, spaces
        assert all(1.8 < ratio < 2.2 for ratio in ratios), spaces

    in_time(outage, check)


def test_reno_f_retransmits_evenly_from_the_second_timeout_on(outage):
    def check(run):
        times = in_outage(run["reno-f"], run["repair"])
        spaces = gaps(times)
        assert len(spaces) >= 10, times
        assert max(spaces) - min(spaces) <= EXACT_S, spaces  # the first of them follows the first timeout

    in_time(outage, check)


@pytest.mark.parametrize("name", ["elfn", "elfn-window", "elfn-initial", "elfn-lost", "elfn-reno-f"])
def test_elfn_probes_every_two_seconds(outage, name):
    def check(run):
        connection, repair = run[name], run["repair"]
        began = connection.named("stand-by")[-1]["time"]
        times = [at for at, _ in connection.sent(began + 0.01, repair)]
        assert len(times) == int((repair - began) / PROBE_S), times
        late = [round(at - began - PROBE_S * (i + 1), 3) for i, at in enumerate(times)]
        assert all(abs(one) <= EXACT_S for one in late), late
        probes = [row["time"] for row in connection.named("probe")]
        assert all(min(abs(at - probe) for probe in probes) <= EXACT_S for at in times)

    in_time(outage, check)


@pytest.mark.parametrize("name", ["elfn", "elfn-window", "elfn-initial", "elfn-lost", "elfn-reno-f"])
def test_elfn_sends_within_a_probe_interval_of_the_repair(outage, name):
    def check(run):
        first = run[name].sent(run["repair"], run["repair"] + 10)[0][0]
        assert first - run["repair"] <= PROBE_S + EXACT_S

    in_time(outage, check)


@pytest.mark.parametrize("name", ["elfn", "elfn-window", "elfn-initial", "atcp", "tcpf", "tcpbus"])
def test_stand_by_keeps_the_windows_and_the_timeout(outage, name):
    """The RTO within 10 %: ACKs that come after the first question, and before the break, still move it. Backoff doubles it."""
    connection = outage.connections[name]
    kept = ("cwnd", "ssthresh", "backoff")
    assert {key: connection.during.get(key) for key in kept} == {key: connection.before.get(key) for key in kept}
    assert float(connection.during["rto"]) == pytest.approx(float(connection.before["rto"]), rel=0.1)


def test_plain_reno_loses_both(outage):
    connection = outage.connections["reno"]
    assert connection.during["cwnd"] == "1"
    assert int(connection.during["backoff"]) >= 4


def windows(connection: Connection) -> list[tuple[int, int]]:
    return [(int(row["snd_cwnd"]), int(row["ssthresh"])) for row in connection.named("window")]


def first_flight(connection: Connection) -> int:
    """How many segments go out together after the repair's acknowledgement."""
    repair = connection.named("repair")[-1]["time"]
    return len(connection.sent(repair, repair + 0.025))


def test_unchanged_goes_on_with_the_window_it_had(outage):
    def check(run):
        before = (int(run["elfn"].before["cwnd"]), int(run["elfn"].before["ssthresh"]))
        assert windows(run["elfn"])[-1] == before
        assert first_flight(run["elfn"]) > 4

    in_time(outage, check)


@pytest.mark.parametrize("name", ["elfn-window", "elfn-initial"])
def test_window_goes_on_with_one_segment(outage, name):
    def check(run):
        assert windows(run[name])[-1] == (1, int(run[name].before["ssthresh"]))
        assert first_flight(run[name]) == 1

    in_time(outage, check)


def test_lost_probes_with_the_lowest_segment_reported(outage):
    connection = outage.connections["elfn-lost"]
    reported = [int(row["detail"].split("seq=")[1]) for row in connection.named("notice")]
    began = connection.named("stand-by")[-1]["time"]
    lowest = min(int(row["detail"].split("seq=")[1]) for row in connection.named("notice") if row["time"] >= began)
    assert reported
    assert {int(row["detail"].split("=")[1]) for row in connection.named("probe")} == {lowest}


def test_lcd_takes_back_one_backoff_for_each_notice(outage):
    """RFC 6069: the retransmissions that a notice answers follow at even distances, as the kernel does it alone."""

    def check(run):
        spaces = gaps(in_outage(run["lcd"], run["repair"]))
        assert len(spaces) >= 10
        assert max(spaces) <= 2.2 * min(spaces), spaces

    in_time(outage, check)
    assert outage.connections["lcd"].named("notice", "stand-by", "probe") == []


def test_atcp_probes_by_a_persist_timer_that_doubles(outage):
    def check(run):
        connection = run["atcp"]
        began = connection.named("stand-by")[-1]["time"]
        times = [at - began for at, _ in connection.sent(began + 0.01, run["repair"])]
        assert times == pytest.approx([2, 4, 8, 16][: len(times)], abs=EXACT_S)
        assert len(times) >= 3

    in_time(outage, check)


@pytest.mark.parametrize("name", HELD)
def test_restored_is_answered_within_a_round_trip(outage, name):
    def check(run):
        connection, repair = run[name], run["repair"]
        told = connection.named("repair")[0]
        assert told["detail"] == "restored"
        assert told["time"] - repair <= EXACT_S
        if name == "tcpf":
            assert connection.sent(0.3, repair) == []
        assert connection.sent(repair, repair + 10)[0][0] - told["time"] <= 0.1

    in_time(outage, check)


def test_tcpbus_waits_longer_and_doubles(outage):
    """From the notice: twice the RTO, and then as a timer does."""

    def check(run):
        connection = run["tcpbus"]
        began = connection.named("stand-by")[0]["time"]
        rto_s = float(connection.before["rto"]) / 1000
        times = [at - began for at, _ in connection.sent(began + 0.01, run["repair"])]
        assert times[0] == pytest.approx(2 * rto_s, abs=EXACT_S)
        assert all(1.9 < after / before < 2.1 for before, after in pairwise(gaps(times))), times
        assert len(times) >= 4

    in_time(outage, check)
