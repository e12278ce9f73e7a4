"""The judge on made-up samples, and the whole thing once for seconds: an hour is `make soak`'s."""

import csv
import os
import subprocess
import sys

import numpy
import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs
from tests.soak import __main__ as soak
from tests.soak.flat import min_duration_s, trends

HOUR = range(0, 3601, 60)


@pytest.fixture
def grown(tmp_path):
    """The measures that are not flat, of one class's readings at the minutes of an hour."""

    def of(measure, value, name="manet-medium"):
        path = tmp_path / "samples.csv"
        with path.open("w", newline="") as lines:
            csv.writer(lines).writerows([("t_s", "of", "measure", "value"), *((t, name, measure, round(value(t))) for t in HOUR)])
        return [trend.measure for trend in trends(path, 1200, 3600) if not trend.flat]

    return of


def test_a_leak_of_a_hundred_bytes_a_packet_is_found(grown):
    assert grown("rss_kib", lambda t: 5000 + t * 40 * 100 / 1024) == ["rss_kib"]  # 40 packets a second


def test_a_heap_that_is_extended_by_some_pages_late_is_no_leak(grown):
    assert not grown("rss_kib", lambda t: 5000 + (40 if t > 2400 else 0))


def test_growth_in_the_warm_up_is_not_judged(grown):
    assert not grown("rss_kib", lambda t: 5000 + min(t, 1200) * 10)


def test_a_descriptor_every_quarter_of_an_hour_is_a_leak_and_a_socket_that_comes_and_goes_is_not(grown):
    assert grown("descriptors", lambda t: 130 + t // 900) == ["descriptors"]
    assert not grown("sockets", lambda t: 490 + (t // 60) % 2)


def test_the_memory_of_iperf3_is_shown_and_not_judged(grown):
    assert not grown("rss_kib", lambda t: 4000 + t, "iperf3")
    assert grown("descriptors", lambda t: 15 + t // 900, "iperf3")


def test_too_few_samples_are_an_error_that_names_the_remedy(tmp_path):
    (tmp_path / "samples.csv").write_text("t_s,of,measure,value\n0,manet,rss_kib,1\n")
    with pytest.raises(ValueError, match="let it run longer"):
        trends(tmp_path / "samples.csv", 0, 100)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["--duration=60"], '--duration "60": give seconds from 540 to 86400 (5 samples are judged, one every 60 s, after the'),
        *((["--duration", text], f'--duration "{text}": give seconds from 540 to 86400') for text in ("0", "-5", "x", "", "1e9")),
        (["--duration=89", "--every=10"], '--duration "89": give seconds from 90 to'),
        (["--duration=60", "--every=5", "--warm-up=40"], '--duration "60": give seconds from 70 to'),
        (["--every=0"], "--every 0: give seconds above 0"),
    ],
)
def test_a_soak_that_cannot_be_judged_is_refused_before_it_starts(tmp_path, monkeypatch, capsys, arguments, wanted):
    monkeypatch.setattr(sys, "argv", ["soak", *arguments, "--out", str(tmp_path / "soak")])
    assert soak.main() == 2
    error = capsys.readouterr().err
    assert error.startswith(f"soak: {wanted}") and error.count("\n") == 1
    assert not (tmp_path / "soak").exists()


def test_the_least_duration_has_enough_samples_wherever_they_fall(tmp_path):
    for warm_up_s, begin_s in ((None, 180), (60.0, 60)):
        end_s = min_duration_s(60, warm_up_s)
        for first_s in (0, 1, 59.9):
            lines = "".join(f"{t},manet,threads,1\n" for t in numpy.arange(first_s, end_s + 60, 60))
            (tmp_path / "samples.csv").write_text("t_s,of,measure,value\n" + lines)
            assert trends(tmp_path / "samples.csv", begin_s, end_s)


@pytest.mark.root
@needs_runs
@pytest.mark.slow
def test_a_short_soak_runs_samples_and_judges(tmp_path):
    options = ["--duration", "8", "--every", "0.5", "--stations", "5", "--out", str(tmp_path / "soak")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, "-P", "-m", "tests.soak", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    # whether seconds are flat is chance: that every class was seen and judged, and the run complete, is not
    for name in ("manet", "manet-medium", "manet-tcp", "manet-aodv", "manet-capture", "iperf3", "kernel", "disk"):
        assert f"\n{name} " in "\n" + answer.stdout, answer.stdout + answer.stderr
    assert answer.stdout.splitlines()[-1].startswith("complete, 8 s of traffic"), answer.stdout + answer.stderr
