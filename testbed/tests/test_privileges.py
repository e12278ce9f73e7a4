"""Whose rights a process has, and where the records of its runs are; no test here needs root or namespaces."""

import os
from pathlib import Path

import pytest

from scenarios.definition import scenario_of
from scenarios.keys import Keys
from scenarios.scenario import Scenario
from testbed.errors import KeyRefused, UsageError
from testbed.host import algorithms, cgroup, privileges
from testbed.runs import preflight
from testbed.stages import kernel_tcp, route_tcp
from testbed.stages.route_tcp import METRIC, Metrics, metrics_of
from testbed.stages.routing.shared.quickack import lines_to_change

ALL_CAPABILITIES, NONE = "000001ffffffffff", "0000000000000000"
MACHINE, OF_USER = "         0          0 4294967295\n", "         0       1000          1\n"


def process(folder: Path, capabilities: str, uid_map: str) -> Path:
    """The folder of a process in proc(5)."""
    (folder / "status").write_text(f"Name:\tx\nCapEff:\t{capabilities}\n")
    (folder / "uid_map").write_text(uid_map)
    return folder


@pytest.mark.parametrize(
    ("user", "capabilities", "uid_map", "root"),
    [
        (0, ALL_CAPABILITIES, MACHINE, True),
        (1000, NONE, MACHINE, False),
        (0, ALL_CAPABILITIES, OF_USER, False),  # in a user namespace
        (0, NONE, MACHINE, False),  # in a container without capabilities
        (0, "000001ffffdfffff", MACHINE, False),  # without CAP_SYS_ADMIN, bit 21
    ],
)
def test_root_of_the_machine_has_all_ids_and_capabilities(
    tmp_path: Path, user: int, capabilities: str, uid_map: str, root: bool
) -> None:
    assert privileges.is_root(user, process(tmp_path, capabilities, uid_map)) is root


def test_roots_records_are_where_they_always_were(tmp_path: Path) -> None:
    assert privileges.state_folder(as_root=True, runtime=str(tmp_path)) == Path("/run/manet")


def test_a_users_records_are_in_the_runtime_folder_else_in_a_private_one(tmp_path: Path) -> None:
    assert privileges.state_folder(as_root=False, runtime=str(tmp_path)) == tmp_path / "manet"
    for absent in ("", "relative", str(tmp_path / "absent")):
        assert privileges.state_folder(as_root=False, runtime=absent, user=1000) == Path("/tmp/manet-1000")


def test_a_records_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "manet"
    privileges.make_state_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    privileges.make_state_folder(folder)
    folder.chmod(0o755)
    with pytest.raises(UsageError, match="is not a private folder of this user"):
        privileges.make_state_folder(folder)
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is not a private folder of this user"):
        privileges.make_state_folder(folder)


@pytest.mark.parametrize("switch", list(privileges.SWITCHES))
def test_a_closed_switch_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str) -> None:
    monkeypatch.setattr(privileges, "ATTEMPT", ["false"])
    closed, remedy = privileges.SWITCHES[switch]
    (tmp_path / switch).parent.mkdir(parents=True)
    (tmp_path / switch).write_text(f"{closed}\n")
    assert privileges.refusal(tmp_path) == (f"{switch.replace('/', '.')} = {closed}", f"as root: {remedy}")
    monkeypatch.setattr(privileges, "ATTEMPT", ["true"])
    assert privileges.refusal(tmp_path) is None


def test_a_refusal_without_a_switch_has_the_programs_words_and_a_containers_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "ATTEMPT", ["sh", "-c", "echo unshare: Operation not permitted >&2; exit 1"])
    words, remedy = privileges.refusal(tmp_path) or ("", "")
    assert words == "unshare: Operation not permitted" and "seccomp=unconfined" in remedy


def test_the_processes_of_a_run_without_a_group_are_all_but_its_first(tmp_path: Path) -> None:
    for name in ("1", "2", "30", "self", "net"):
        (tmp_path / name).mkdir()
    assert sorted(cgroup.processes(tmp_path)) == [2, 30]
    assert os.getpid() in cgroup.members(None)
    assert os.getpid() in cgroup.threads(None)  # the main thread has the process's number


# --- TCP by routes ----------------------------------------------------------------------------------------------------


def scenario(**keys: object) -> Scenario:
    return scenario_of(Keys.of_script({"hops": 2, **keys}, "test"))


@pytest.fixture
def by_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_tcp, "by_routes", lambda: True)


@pytest.fixture
def by_ebpf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_tcp, "by_routes", lambda: False)


def test_with_ebpf_a_route_has_quick_acks_alone(by_ebpf: None) -> None:
    assert kernel_tcp.ack_metric(scenario(), "sta1") == " quickack 1"
    assert kernel_tcp.ack_metric(scenario(delayed_ack=True), "sta1") == ""


def test_without_ebpf_a_route_has_the_profiles_tcp(by_routes: None) -> None:
    """MTU 1500, 40 bytes of headers, no timestamps: 8 segments of 1460 bytes."""
    words = " quickack 1 window 11680 cwnd lock 8 initcwnd 2 rto_min 200ms congctl reno"
    assert kernel_tcp.ack_metric(scenario(), "sta1") == words
    changed = kernel_tcp.ack_metric(
        scenario(window=4, initial_window=10, rto_min=1.5, mss=536, delayed_ack=True, tcp="cubic"), "sta1"
    )
    assert changed == " window 2144 cwnd lock 4 initcwnd 4 rto_min 1500ms advmss 536 congctl cubic"


def test_under_the_modern_profile_a_route_has_the_congestion_control_alone(by_routes: None) -> None:
    assert kernel_tcp.ack_metric(scenario(profile="modern", tcp="cubic"), "sta1") == " congctl cubic"
    windowed = kernel_tcp.ack_metric(scenario(profile="modern", tcp="cubic", window=8), "sta1")
    assert windowed == f" window {8 * (1460 - 12)} cwnd lock 8 congctl cubic"  # with timestamps, 12 bytes of each segment


def test_a_station_has_the_tcp_of_its_flows(by_routes: None) -> None:
    flows = [{"from": "sta1", "to": "sta2"}, {"from": "sta3", "to": "sta2"}]
    assert kernel_tcp.tcp_of_station(scenario(flows=flows, tcp="cubic"), "sta1").spelled == "cubic"
    flows[1]["tcp"] = "newreno"
    with pytest.raises(KeyRefused, match=r'key "flows\.1\.tcp": sta2 has a flow with another TCP') as caught:
        kernel_tcp.require_one_tcp(scenario(flows=flows, tcp="cubic"), "test")
    assert "run it with sudo" in str(caught.value)
    flows[1]["to"] = "sta4"
    kernel_tcp.require_one_tcp(scenario(hops=3, flows=flows, tcp="cubic"), "test")
    assert kernel_tcp.tcp_of_station(scenario(hops=3, flows=flows, tcp="cubic"), "sta4").spelled == "newreno"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tcp": "vegas"}, '"vegas": the algorithm is eBPF, which needs root'),
        ({"tcp": "elfn(newreno)"}, "its layers are eBPF, which needs root"),
        ({"stations": "hwsim"}, 'key "stations": a radio of mac80211_hwsim needs root'),
        ({"capture_program": "tcpdump"}, 'key "capture_program": '),
        ({"rto_initial": 3}, 'key "rto_initial": '),
        ({"wires": [{"station": "sta1", "host": "server", "nat": True}]}, 'key "wires.0.nat": '),
    ],
)
def test_what_needs_root_is_refused_by_its_key(by_routes: None, keys: dict[str, object], words: str) -> None:
    with pytest.raises(KeyRefused) as caught:
        preflight.check_without_root(scenario(**keys), "test")
    assert words in str(caught.value) and "sudo" in str(caught.value) and "\n" not in str(caught.value)


def test_an_algorithm_that_is_not_loaded_differs_from_one_that_does_not_exist(
    by_routes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "loaded").write_text("reno cubic\n")
    monkeypatch.setattr(preflight, "LOADED", tmp_path / "loaded")
    monkeypatch.setattr(algorithms, "available", lambda: ["cubic", "hybla", "reno"])
    with pytest.raises(UsageError, match=r"among the loaded algorithms \(reno, cubic\).* root: sudo modprobe tcp_hybla"):
        preflight.check_without_root(scenario(tcp="hybla"), "test")
    with pytest.raises(UsageError, match=r'^test: key "tcp": this kernel has no "hybl" \(did you mean "hybla"\?\); use one of '):
        preflight.check_without_root(scenario(tcp="hybl"), "test")


def test_the_record_names_what_the_routes_do_not_set(by_routes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_tcp, "PROC_SYS", tmp_path)  # a kernel before 6.15
    judged = kernel_tcp.without_root(scenario())
    assert judged is not None and judged.judgement() == ("valid", [])
    assert judged.report() == {"tcp": "routes", "not_set": ["rto_initial", "rto_max"]}
    (note,) = kernel_tcp.without_root_notes([scenario(), scenario(profile="modern")])
    assert "without the profile's rto_initial and rto_max" in note


def test_a_run_of_root_has_no_such_record(by_ebpf: None) -> None:
    assert kernel_tcp.without_root(scenario()) is None
    assert kernel_tcp.without_root_notes([scenario()]) == []


def test_an_initial_window_is_never_above_the_window() -> None:
    assert metrics_of({"window_segments": 1, "initial_window_segments": 2}, 1460, None).initcwnd == 1


def test_the_metrics_of_a_third_partys_route_are_replaced_whole() -> None:
    """ip(8) 6.1 prints locked metrics as it does not read them."""
    metrics = Metrics(quickack=1, cwnd=8, rto_min=200, congctl="reno").words()
    has = "10.0.0.3 via 10.0.0.2 dev wlan0 proto 42 metric 5 onlink"
    printed = f"{has} cwnd lock 8 rto_min lock 200ms congctl reno quickack 1"
    assert lines_to_change(f"{has}\n{printed}\n", "wlan0", metrics) == [f"route change {has}{metrics}"]
    partly = f"{has} rto_min lock 300ms quickack 1 mtu lock 1400"
    assert lines_to_change(partly, "wlan0", metrics) == [f"route change {has} mtu lock 1400{metrics}"]
    assert METRIC.sub("", printed) == has


@pytest.mark.parametrize(("release", "old"), [((5, 15), True), ((6, 5), True), ((6, 6), False), ((6, 18), False)])
def test_only_kernels_that_scale_by_arrivals_get_a_receive_buffer(
    monkeypatch: pytest.MonkeyPatch, release: tuple[int, int], old: bool
) -> None:
    monkeypatch.setattr(route_tcp, "_release", lambda: release)
    monkeypatch.setattr(route_tcp, "arrival_bytes", lambda frame_bytes: 2176 if frame_bytes == 1514 else 0)
    values = route_tcp.sysctls_of({"window_segments": 8, "rto_max_ms": 60000}, 1460)
    buffer = {} if old else {"net.ipv4.tcp_rmem": "4096 19662 19662"}  # 171 of 256 are data: 17486, and 2176
    assert values == {"net.ipv4.tcp_rto_max_ms": 60000} | buffer
