"""`manet doctor`: an answer to each question, and a remedy for each no."""

from pathlib import Path

import pytest

from testbed.host.doctor import Check, _load, _timers, doctor, timer_lateness_us
from testbed.programs import Programs


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    """A machine that has nothing."""
    nothing = tmp_path_factory.mktemp("nothing")
    programs = Programs(nothing / "manet-medium", nothing / "manet-tcp")
    checks = doctor(tun=nothing / "tun", btf=nothing / "vmlinux", path=str(nothing), programs=programs, user=1000)
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("root", "sudo"),
        ("TUN", "modprobe tun"),
        ("BTF", "CONFIG_DEBUG_INFO_BTF"),
        ("medium", "setup.sh"),
        ("kernel-tcp", "setup.sh"),
        ("iperf3", "apt-get install iperf3"),
        ("tcpdump", "apt-get install tcpdump"),
        ("mnexec", "apt-get install mininet"),
    ],
)
def test_what_is_missing_has_a_remedy(bare: dict[str, Check], name: str, remedy: str) -> None:
    assert not bare[name].ok and bare[name].needed
    assert remedy in bare[name].remedy


@pytest.mark.parametrize("name", ["olsrd", "AODV-UU", "babeld"])
def test_software_of_others_is_never_needed_but_one_is_told_where_it_is(bare: dict[str, Check], name: str) -> None:
    assert not bare[name].ok and not bare[name].needed
    assert "http" in bare[name].remedy or "apt-get" in bare[name].remedy


def test_every_no_has_a_remedy_and_every_line_is_one_line(bare: dict[str, Check]) -> None:
    for check in bare.values():
        assert check.ok or check.remedy, check.name
        assert "\n" not in check.detail + check.remedy


def test_timer_lateness_is_sorted_and_positive() -> None:
    late_us = timer_lateness_us(20)
    assert late_us == sorted(late_us) and len(late_us) == 20 and late_us[0] >= 0


def test_timers_as_late_as_would_make_a_run_suspect_are_a_no_with_no_safe_load() -> None:
    mostly_in_time, late = [50.0] * 96 + [9000.0] * 4, [50.0] * 94 + [9000.0] * 6
    assert _timers(mostly_in_time).ok
    assert not _timers(late).ok and "suspect" in _timers(late).remedy
    assert not _load(late).ok and "about 0 runs" in _load(late).detail


def test_a_tool_that_is_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "olsrd").write_text("")
    (tmp_path / "olsrd").chmod(0o755)
    found = {check.name: check for check in doctor(path=str(tmp_path))}
    assert found["olsrd"].ok and str(tmp_path) in found["olsrd"].detail
