"""`manet doctor`: an answer to each question, and a remedy for each no."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host.doctor import Check, _load, _mininet_wifi, _timers, _wireless, doctor, timer_lateness_us
from testbed.host.protocols import require_protocol
from testbed.programs import BUILT, ROOT, Programs


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Check]:
    """A machine that has nothing."""
    nothing = tmp_path_factory.mktemp("nothing")
    programs = Programs(nothing / "manet-medium", nothing / "manet-tcp", nothing, nothing / "manet-capture")
    checks = doctor(tun=nothing / "tun", btf=nothing / "vmlinux", path=str(nothing), programs=programs, user=1000)
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("root", "sudo"),
        ("TUN", "modprobe tun"),
        ("BTF", "CONFIG_DEBUG_INFO_BTF"),
        ("medium", "setup.sh"),
        ("capture", "setup.sh"),
        ("kernel-tcp", "setup.sh"),
        ("iperf3", "apt-get install iperf3"),
        ("mnexec", "apt-get install mininet"),
    ],
)
def test_each_missing_requirement_has_a_remedy(bare: dict[str, Check], name: str, remedy: str) -> None:
    assert not bare[name].ok and bare[name].needed
    assert remedy in bare[name].remedy


@pytest.mark.parametrize(
    ("name", "detail", "remedy"),
    [
        ("aodv", "manet-aodv: not built", "run ./setup.sh"),
        ("babeld", "babeld: not found", "apt-get install babeld"),
        ("batmand", "batmand: not found", "apt-get install batmand"),
        ("olsrd", "olsrd: not found", "https://github.com/OLSR/olsrd"),
        ("aodv-uu", "this kernel has no module kaodv", "https://github.com/ramonfontes/aodv-uu"),
        ("batman-adv", "batctl: not found", "CONFIG_BATMAN_ADV"),
    ],
)
def test_each_unusable_routing_protocol_has_a_reason_and_a_remedy(
    bare: dict[str, Check], name: str, detail: str, remedy: str
) -> None:
    check = bare[f"routing {name}"]
    assert not check.ok and not check.needed
    assert detail in check.detail and remedy in check.remedy


def test_mininet_wifi_is_not_needed_and_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANET_MININET_WIFI", "/proc/absent/python")
    check = _mininet_wifi(None)
    assert not check.ok and not check.needed
    assert check.detail == "/proc/absent/python: not found" and "https://github.com/intrig-unicamp/mininet-wifi" in check.remedy


def test_a_protocol_that_this_machine_cannot_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'^routing "dsr": .*/manet-dsr: not built; run ./setup.sh$'):
        require_protocol("dsr", programs=Programs(daemons=tmp_path))
    require_protocol("static", programs=Programs(daemons=tmp_path))


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
    assert not _load(late).ok and "about 0 more runs" in _load(late).detail


def test_safe_load_says_whose_name_it_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "vm")
    assert "vm has room for about " in _load([0.0] * 100).detail


def test_a_tool_that_is_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "olsrd").write_text("")
    (tmp_path / "olsrd").chmod(0o755)
    found = {check.name: check for check in doctor(path=str(tmp_path))}
    assert found["routing olsrd"].ok and str(tmp_path) in found["routing olsrd"].detail


def test_wireless_that_waits_to_be_loaded_counts_as_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.host.doctor.modules.is_available", lambda name: name == "mac80211_hwsim")
    assert _wireless("6.12.107+deb13-amd64").ok


def test_on_debians_cloud_kernel_the_remedy_is_the_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.host.doctor.modules.is_available", lambda _name: False)
    whole, cloud = _wireless("6.12.107+deb13-amd64"), _wireless("6.12.107+deb13-cloud-amd64")
    assert not whole.ok and not cloud.ok and not cloud.needed
    assert "linux-image-amd64" in cloud.remedy and "linux-image-amd64" not in whole.remedy


def checks_by(*words: str) -> dict[str, dict]:
    """The doctor's answer as a process that `words` start."""
    argv = [*words, sys.executable, "-P", "-m", "testbed", "doctor", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)}


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(not BUILT.kernel_tcp.exists(), reason="manet-tcp is not built; run ./setup.sh")
@pytest.mark.parametrize(
    ("words", "missing", "remedy"),
    [
        (["unshare", "--user", "--map-root-user"], "root of a user namespace alone", "run it as root of the machine"),
        (["setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon"], "without CAP_SYS_ADMIN", "--cap-add SYS_ADMIN"),
    ],
    ids=["user namespace", "container without capabilities"],
)
def test_a_missing_privilege_is_named_and_no_newer_kernel(words: list[str], missing: str, remedy: str) -> None:
    checks = checks_by(*words)
    assert missing in checks["privileges"]["detail"] and remedy in checks["privileges"]["remedy"]
    assert not checks["kernel-tcp"]["ok"] and missing in checks["kernel-tcp"]["remedy"]
    assert [check["name"] for check in checks.values() if "newer kernel" in check["remedy"]] == []


def test_a_filter_of_system_calls_is_named(tmp_path: Path) -> None:
    """As of a container with capabilities, whose profile refuses bpf(2)."""
    (tmp_path / "status").write_text("Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n")
    (tmp_path / "uid_map").write_text("         0          0 4294967295\n")
    refuses = tmp_path / "manet-tcp"
    refuses.write_text("#!/bin/sh\necho '{}'\nexit 1\n")
    refuses.chmod(0o755)
    checks = {check.name: check for check in doctor(programs=Programs(refuses, refuses, daemons=tmp_path), proc=tmp_path)}
    assert checks["privileges"].ok
    assert checks["kernel-tcp"].remedy.startswith("use a newer kernel; a filter of system calls may refuse it: --security-opt")
