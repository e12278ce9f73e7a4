"""Tahoe, classic Reno, NewReno and SACK on scripted losses: the order of sendings and the windows, event by event.

The scripts are those of Fall & Floyd 1996 (section 5: segment 14; 14 and 28; 14, 24, 26 and 28 of the fourth slow
start round, cwnd 15 at the first loss), and one that loses a retransmission. `timelines/ALGORITHM.toml` holds what is
expected and why, `timelines/ns2.csv` what ns-2.35 does (remade by timelines/remake_ns2.py).

UPDATE=1 prints what was seen in the form of the tables.
"""

from __future__ import annotations

import csv
import functools
import itertools
import os
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from losses import Script, trial
from timeline import Disturbed, Row, parse, render, retransmissions

TIMELINES = Path(__file__).resolve().parent / "timelines"
PAGE = TIMELINES.parents[2] / "docs" / "timelines.md"
ALGORITHMS = ["tahoe", "reno", "newreno", "sack"]
SEGMENTS = 43
RACK_ALONE = (6, 17)  # timelines/sack.toml
TABLES = [*ALGORITHMS, "sack-rfc6675"]  # the last one: `sack` on older kernels
SCRIPTS = {
    "one": Script(5201, ("14:1",)),
    "two": Script(5202, ("14:1", "28:1")),
    "four": Script(5203, ("14:1", "24:1", "26:1", "28:1")),
    "again": Script(5204, ("14:1", "14:2")),
}


def version(kernel: str) -> tuple[int, int]:
    major, minor = re.match(r"(\d+)\.(\d+)", kernel).groups()
    return int(major), int(minor)


@pytest.fixture(scope="module")
def trials(tmp_path_factory, cgroup_root, watched_host):
    """trials(algorithm): the result of its trial, and the probe of the host; run at the first call."""

    @functools.cache
    def run(algorithm: str):
        sack = algorithm == "sack"
        folder = tmp_path_factory.mktemp(algorithm)
        with watched_host() as host:
            seen = trial(folder, cgroup_root, "newreno" if sack else algorithm, SCRIPTS, [SEGMENTS], tcp_sack=int(sack))
        return seen, host

    return run


@functools.cache
def expected(algorithm: str) -> dict[str, dict]:
    table = tomllib.loads((TIMELINES / f"{algorithm}.toml").read_text())
    start = parse(tomllib.loads((TIMELINES / "start.toml").read_text())["timeline"])
    return {script: {**entry, "rows": start + parse(entry["timeline"])} for script, entry in table.items()}


@functools.cache
def ns2() -> dict[tuple[str, str], list[Row]]:
    """(algorithm, script): rows without windows (cwnd_ of ns-2 is a fraction, without the inflation)."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    with (TIMELINES / "ns2.csv").open() as file:
        for row in csv.DictReader(file):
            found[row["algorithm"], row["script"]].append(Row(row["event"], tuple(row["sends"].split())))
    return found


def before_the_first_loss_shows(rows: list[Row]) -> list[tuple]:
    return [(row.event, row.sends) for row in itertools.takewhile(lambda row: not row.event.startswith("dup"), rows)]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("table", TABLES)
def test_retransmissions_equal_ns2_or_the_table_gives_the_reason(table, script):
    entry, simulated = expected(table)[script], ns2()[table.removesuffix("-rfc6675"), script]
    assert before_the_first_loss_shows(entry["rows"]) == before_the_first_loss_shows(simulated)
    if entry["ns2"] == "same":
        assert retransmissions(entry["rows"]) == retransmissions(simulated)
    else:
        assert entry["ns2"].startswith("differs: ")
        assert retransmissions(entry["rows"]) != retransmissions(simulated)


def steps(rows: list[Row]) -> str:
    """The values that ssthresh takes from the first loss on: `7 3`."""
    values = [row.ssthresh for row in rows if row.ssthresh is not None]
    return " ".join(str(value) for value, _ in itertools.groupby(values) if value != values[0])


def page_line(table: str, script: str) -> str:
    entry, algorithm = expected(table)[script], table.removesuffix("-rfc6675")
    sent, simulated = (" ".join(retransmissions(rows)) for rows in (entry["rows"], ns2()[algorithm, script]))
    lost = " ".join(SCRIPTS[script].losses)
    return f"{table:<13}{lost:<22}{sent:<27}{steps(entry['rows']):<9}{'same' if entry['ns2'] == 'same' else simulated}"


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("table", TABLES)
def test_page_agrees_with_the_tables(table, script):
    assert page_line(table, script) in PAGE.read_text().splitlines()


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sendings_and_windows_are_those_of_the_timeline(trials, features, algorithm, script):
    rfc6675 = algorithm == "sack" and version(features["kernel"]) < RACK_ALONE
    wanted = expected("sack-rfc6675" if rfc6675 else algorithm)[script]["rows"]
    trial, host = trials(algorithm)
    rows = trial[script]
    seen = str(rows) if isinstance(rows, Disturbed) else render(rows)
    if os.environ.get("UPDATE"):
        sys.stderr.write(f"\n[{algorithm} {script}]\n{seen}\n")
    elif rows != wanted:
        host.void(f"expected\n{render(wanted)}\nseen\n{seen}")
