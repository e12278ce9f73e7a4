"""This kernel accepts the sysctls of the profiles, and manet-tcp accepts their settings."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MSS, highest_outstanding

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
TABLES = {"sysctl", "offload", "socket"}
SOCKET_KEYS = {
    *("algorithm", "window_segments", "initial_window_segments"),
    *("rto_min_us", "rto_max_ms", "rto_initial_ms", "delayed_ack"),
}
# Newer than Debian 12's 6.1, where they are skipped (README.md).
MAY_BE_ABSENT = {"tcp_syn_linear_timeouts", "tcp_backlog_ack_defer", "tcp_rto_min_us", "tcp_shrink_window", "tcp_plb_enabled"}


def load(name: str) -> dict:
    return tomllib.loads((PROFILES / f"{name}.toml").read_text())


@pytest.mark.parametrize("name", ["period", "modern"])
def test_tables_and_keys(name):
    profile = load(name)
    assert set(profile) == TABLES
    assert set(profile["socket"]) <= SOCKET_KEYS
    assert all(key.startswith("net.") and isinstance(value, int | str) for key, value in profile["sysctl"].items())
    assert set(profile["offload"]) <= {"tso", "gso", "gro", "gso_max_segs"}


def test_modern_sets_nothing():
    assert load("modern") == {"sysctl": {}, "offload": {}, "socket": {}}


def set_sysctls(station) -> None:
    for key, value in load("period")["sysctl"].items():
        path = "/proc/sys/" + key.replace(".", "/")
        done = station.start("sysctl", "-qw", f"{key}={value}", in_cgroup=False)
        _, error = done.communicate(timeout=DEADLINE_S)
        if done.returncode:
            # A sysctl that this kernel lacks is skipped; any other refusal is an error in the profile.
            assert key.rsplit(".", 1)[1] in MAY_BE_ABSENT, error
            assert station.start("test", "-e", path, in_cgroup=False).wait(DEADLINE_S) != 0, error
            continue
        read = station.run("sysctl", "-n", key, in_cgroup=False)
        assert read.split() == str(value).split(), key


@pytest.mark.root
def test_the_kernel_takes_every_sysctl_of_period(lab):
    set_sysctls(lab.a)


@pytest.mark.root
def test_sysctls_of_a_station_leave_the_hosts_alone(lab):
    keys = [*load("period")["sysctl"]]
    command = ["sysctl", "-e", *keys]
    before = subprocess.run(command, capture_output=True, text=True).stdout
    set_sysctls(lab.a)
    assert subprocess.run(command, capture_output=True, text=True).stdout == before
    assert lab.b.run("sysctl", "-n", "net.ipv4.tcp_frto", in_cgroup=False) == "2\n"


@pytest.mark.root
@pytest.mark.parametrize("slow_lab", ["50"], indirect=True)
def test_period_segments_carry_no_options_and_one_loss_costs_one_retransmission(slow_lab):
    """NewReno as in RFC 6582: three duplicate ACKs, one fast retransmission, no timeout, no other retransmission."""
    lab = slow_lab
    for station in (lab.a, lab.b):
        set_sysctls(station)
    with lab.manet_tcp(both=load("period")["socket"]), lab.capture(lab.a) as packets:
        lab.transfer(120 * MSS)
    data = [p for p in packets if p.payload]
    assert all(p.options == b"" for p in data)
    assert {p.payload for p in data} == {MSS}
    again = [p for n, p in enumerate(data) if p.seq in {q.seq for q in data[:n]}]
    assert len(again) == 1
    assert again[0].seq == data[49].seq
    duplicates = [p for p in packets if p.source == "10.9.0.2" and p.ack == again[0].seq and not p.is_syn]
    # The ACK that requested it, then at most seven more, for the rest of the window of eight.
    before = [p for p in duplicates if p.time < again[0].time]
    assert len(before) == 1 + 3
    assert len(duplicates) <= 1 + 7
    assert highest_outstanding(packets) == 8 * MSS
