"""The text of /metrics, as Prometheus' own parser reads it, and the tails of files that it is made of."""

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from testbed.programs import ROOT
from testbed.runs.tails import Lines, TcpTail
from testbed.view.frames import DROPS, FATES
from testbed.view.frames import FRAMES as KINDS
from testbed.web.exposition import Family, Samples
from testbed.web.run_metrics import DROPPED, FAMILIES, FRAMES, LOST, RunMetrics

HEAD = "t_ns,station,cookie,saddr,sport,daddr,dport,data_len,snd_nxt,snd_una,snd_cwnd,ssthresh,snd_wnd,srtt_us,rto_us,rcv_wnd,"
HEAD += "ca_state,event,detail\n"


def row(t_ns: int, una: int, cookie: int = 7, sport: int = 40000, cwnd: int = 4) -> str:
    return f"{t_ns},sta1,{cookie},10.0.0.1,{sport},10.0.0.3,5201,0,{una},{una},{cwnd},100,65535,25000,200000,65535,0,,\n"


def test_labels_of_any_text_come_back_as_they_were() -> None:
    names = ["plain", 'a "quote"', "back\\slash", "two\nlines", "größer } 1{", ""]
    samples = Samples([Family("x_total", "counter", "Help.", ("name",)), Family("y", "gauge", "Without a sample.")])
    for number, name in enumerate(names):
        samples.add("x_total", number / 8, name)
    (family,) = text_string_to_metric_families(samples.text())
    assert (family.name, family.type, family.documentation) == ("x", "counter", "Help.")
    assert [(sample.labels["name"], sample.value) for sample in family.samples] == [(n, i / 8) for i, n in enumerate(names)]


def test_a_summary_has_quantiles_and_a_count() -> None:
    samples = Samples([Family("late_seconds", "summary", "Help.", ("run", "quantile"))])
    samples.add("late_seconds", 0.001, "a", "0.5")
    samples.add("late_seconds", 12, "a", suffix="_count")
    (family,) = text_string_to_metric_families(samples.text())
    assert [(sample.name, sample.labels) for sample in family.samples] == [
        ("late_seconds", {"run": "a", "quantile": "0.5"}), ("late_seconds_count", {"run": "a"}),
    ]  # fmt: skip


def test_names_follow_the_conventions_and_are_documented() -> None:
    page = (ROOT / "formats/metrics.md").read_text()
    documented = set(re.findall(r"`(manet_\w+)`(?=[,| ])", page.partition("\nThe throughput")[0]))
    assert documented == {family.name for family in FAMILIES} | {"manet_jobs"}
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert not re.search(r"_(ms|us|ns|kb|bits)\b", family.name) and family.help.endswith(".")


def test_reasons_and_frames_are_those_of_the_air_log() -> None:
    assert [*DROPPED.values(), "stopped"] == list(DROPS)  # `stopped`: at the end of the run
    assert ["", "delivered", *LOST.values()] == list(FATES)
    assert list(FRAMES.values()) == list(KINDS)


def test_without_a_run_there_is_the_version_alone(tmp_path: Path) -> None:
    samples = Samples(FAMILIES)
    RunMetrics(tmp_path).add_to(samples)
    assert [family.name for family in text_string_to_metric_families(samples.text())] == ["manet_build_info"]


def test_acknowledged_bytes_go_on_over_the_wrap_of_sequence_numbers_and_over_connections(tmp_path: Path) -> None:
    file = tmp_path / "tcp.csv"
    tail = TcpTail(file)
    assert tail.latest() == {}
    file.write_text(HEAD + row(1, 2**32 - 1000) + row(2, 2**32 - 400)[:30])  # the last row is being written
    assert tail.latest()["sta1:40000>5201"]["acked"] == 2**32 - 1000 and tail.acked_bytes["sta1", 5201] == 0
    file.write_text(HEAD + row(1, 2**32 - 1000) + row(2, 2**32 - 400) + row(3, 600))
    assert tail.latest()["sta1:40000>5201"]["acked"] == 600 and tail.acked_bytes["sta1", 5201] == 1600
    with file.open("a") as more:
        more.write(row(4, 5000, cookie=8, sport=40001, cwnd=6) + row(5, 7000, cookie=8, sport=40001, cwnd=9))
        more.write("6,sta1,8,,,,,,,,,,,,,,,algorithm,newreno\n")  # an event without a socket's state
    assert tail.latest()["sta1:40001>5201"]["cwnd"] == 9 and tail.acked_bytes["sta1", 5201] == 1600 + 2000


def test_a_tail_of_a_long_file_begins_at_its_end(tmp_path: Path) -> None:
    file = tmp_path / "tcp.csv"
    file.write_text(HEAD + "".join(row(n, n * 100) for n in range(1, 20_001)))
    tail = TcpTail(file)
    assert tail.latest()["sta1:40000>5201"]["acked"] == 2_000_000
    assert 0 < tail.acked_bytes["sta1", 5201] < 200_000, "of the last 64 KiB alone"


def test_rows_are_counted_as_they_come(tmp_path: Path) -> None:
    lines = Lines(tmp_path / "events.csv")
    assert lines.count() == 0
    (tmp_path / "events.csv").write_text("head\n1\n")
    assert lines.count() == 1
    with (tmp_path / "events.csv").open("a") as more:
        more.write("2\n3\n4")  # the last one is being written
    assert [lines.count(), lines.count()] == [3, 3]
