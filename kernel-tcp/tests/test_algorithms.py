"""Our algorithms: loaded, refused, used only by the configured connections, and removed afterwards."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, IN_GUEST, MANET_TCP, MSS, end, stations, wait_for

pytestmark = pytest.mark.root

NAMES = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
MEGABYTES = 1_000_000 if IN_GUEST else 4_000_000
# each parameter at both bounds, with the others at their defaults
EXTREMES = [
    ("tahoe", {}),
    ("reno", {}),
    ("atcp", {}),
    ("vegas", {}),
    ("vegas", {"alpha": 0, "beta": 0, "gamma": 0}),
    ("vegas", {"alpha": 64, "beta": 64, "gamma": 64}),
    ("tcpap", {}),
    ("tcpap", {"hops": 1, "weight": 0, "history": 2, "rate_kbps": 1_000_000}),
    ("tcpap", {"hops": 64, "weight": 1, "history": 50, "rate_kbps": 1_000_000}),
]


@pytest.fixture(autouse=True)
def needs_struct_ops(features):
    if not features["struct_ops"]:
        pytest.skip("this kernel takes no congestion control from BPF; ./manet test --guests boots kernels that do")


def registered() -> set[str]:
    return set(NAMES.read_text().split())


def copies(process: subprocess.Popen) -> set[str]:
    """The names of this process's own copies, by its struct_ops maps."""
    ids = set()
    for entry in Path(f"/proc/{process.pid}/fdinfo").iterdir():
        lines = dict(line.split(":", 1) for line in entry.read_text().splitlines() if ":" in line)
        if lines.get("map_type", "").strip() == "26":
            ids.add(int(lines["map_id"]))
    found = set()
    for number in ids:
        text = subprocess.run(["bpftool", "-j", "struct_ops", "dump", "id", str(number)], capture_output=True, text=True).stdout
        found |= set(re.findall(r'"name":"([a-z]+\.[0-9a-f]+)"', text))
    return found


def used(station) -> set[str]:
    """The algorithms of the station's established connections: the word that has a name of the kernel's list."""
    return {word for row in station.sockets() for word in row["words"].split()} & registered()


def hold_connection(lab, port: int = 5201) -> None:
    server = lab.serve(port, read=False)
    client = lab.send(1000, port, then="time.sleep(600)")
    lab.ready_line(client, "connected")
    lab.ready_line(client, "sent")
    lab.ready_line(server, "accepted")


@pytest.mark.parametrize(("name", "parameters"), EXTREMES, ids=lambda value: str(value).replace(" ", ""))
def test_moves_megabytes(lab, name, parameters):
    with lab.manet_tcp(both={"algorithm": name, "parameters": parameters}) as process:
        lab.transfer(MEGABYTES)
        loaded = copies(process)
        assert [copy.split(".")[0] for copy in loaded] == [name]
        assert loaded <= registered()
    wait_for(lambda: not loaded & registered(), "the copy to be unregistered")


@pytest.mark.parametrize("drop", ["20", "20,22", "20,22,24,26", "20,29", "2", "1,2"])
@pytest.mark.parametrize("name", ["tahoe", "reno", "vegas", "tcpap", "atcp"])
def test_recovers_from_losses(tmp_path, cgroup_root, name, drop):
    parameters = {"hops": 4} if name == "tcpap" else {}
    settings = {"algorithm": name, "parameters": parameters, "window_segments": 8, "delayed_ack": False}
    relay = ["--rate-bps", "1e7", "--delay-ms", "5", "--drop", drop]
    with stations(tmp_path, cgroup_root, relay, quickack=True) as lab, lab.manet_tcp(both=settings):
        lab.transfer(60 * MSS)


def test_the_connection_is_seen_to_use_it(lab):
    with lab.manet_tcp(a={"algorithm": "tahoe"}, b={"algorithm": "newreno"}):
        hold_connection(lab)
        assert {name.split(".")[0] for name in used(lab.a)} == {"tahoe"}
        assert used(lab.b) == {"reno"}


def test_reno_is_the_classic_one_and_kernel_reno_the_kernels(lab):
    with lab.manet_tcp(a={"algorithm": "reno"}, b={"algorithm": "kernel-reno"}):
        hold_connection(lab)
        assert [name.split(".")[0] for name in used(lab.a)] == ["reno"]
        assert used(lab.a) != {"reno"}
        assert used(lab.b) == {"reno"}


def test_a_port_has_its_own(lab):
    path = lab.write_settings(a={"algorithm": "tahoe", "window_segments": 8}, b={})
    document = json.loads(path.read_text())
    document["stations"][0]["ports"] = {"5202": {"algorithm": "vegas"}, "5203": {}}
    path.write_text(json.dumps(document))
    lab.start_tcp(path)
    for port in (5201, 5202, 5203):
        hold_connection(lab, port)
    rows = {row["peer"].rpartition(":")[2]: row for row in lab.a.sockets()}
    words = {port: set(row["words"].split()) & registered() for port, row in rows.items()}
    assert {name.split(".")[0] for name in words["5201"]} == {"tahoe"}
    assert {name.split(".")[0] for name in words["5202"]} == {"vegas"}
    assert not words["5203"] & {*words["5201"], *words["5202"]}
    # its settings replace all of the station's
    assert rows["5201"]["ssthresh"] == "8"
    assert "ssthresh" not in rows["5202"] and "ssthresh" not in rows["5203"]


def test_a_port_counts_at_the_end_that_listens(lab):
    path = lab.write_settings(a={}, b={"algorithm": "newreno"})
    document = json.loads(path.read_text())
    document["stations"][1]["ports"] = {"5202": {"algorithm": "vegas"}}
    path.write_text(json.dumps(document))
    lab.start_tcp(path)
    hold_connection(lab, 5202)
    assert {name.split(".")[0] for name in used(lab.b)} == {"vegas"}


def test_each_set_of_parameters_is_a_copy_and_the_same_set_one(lab):
    two, same = {"algorithm": "vegas", "parameters": {"alpha": 2}}, {"algorithm": "vegas", "parameters": {"alpha": 1}}
    with lab.manet_tcp(a=two, b=same) as process:
        assert len(copies(process)) == 2
    with lab.manet_tcp(both=two) as process:
        assert len(copies(process)) == 1


def test_runs_side_by_side_have_their_own(lab, tmp_path, cgroup_root):
    (tmp_path / "second").mkdir()
    with stations(tmp_path / "second", cgroup_root) as other, lab.manet_tcp(both={"algorithm": "tahoe"}) as first:
        with other.manet_tcp(both={"algorithm": "tahoe"}) as second:
            assert not copies(first) & copies(second)
            hold_connection(lab)
            hold_connection(other)
            assert used(lab.a) == copies(first)
            assert used(other.a) == copies(second)
            gone = copies(second)
        wait_for(lambda: not gone & registered(), "the second run's copy to be gone")
        lab.transfer(100_000, port=5300)


@pytest.mark.parametrize("environment", [{}, {"MANET_TCP_WITHOUT_LINKS": "1"}], ids=["by-link", "as-before-6.4"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_registered(lab, how, environment):
    process = lab.start_tcp(lab.write_settings(a={"algorithm": "tahoe"}, b={"algorithm": "vegas"}), **environment)
    loaded = copies(process)
    assert len(loaded) == 2
    process.send_signal(how)
    process.wait(DEADLINE_S)
    wait_for(lambda: not loaded & registered(), "the copies to be unregistered")


def test_a_connection_keeps_it_until_it_ends(lab):
    process = lab.start_tcp(lab.write_settings(a={"algorithm": "tahoe"}))
    with lab.paused_transfer():
        end(process)


def refused(lab, settings: dict) -> str:
    done = subprocess.run([MANET_TCP, "run", lab.write_settings(a=settings)], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"algorithm": "vegas", "parameters": {"alpa": 1}}, '"vegas": no parameter "alpa"; it has alpha, beta, gamma'),
        ({"algorithm": "tahoe", "parameters": {"alpha": 1}}, 'no parameter "alpha"; it has none'),
        ({"algorithm": "vegas", "parameters": {"alpha": "much"}}, '"alpha" must be a number from 0 to 64'),
        ({"algorithm": "vegas", "parameters": {"alpha": -1}}, '"alpha" must be a number from 0 to 64'),
        ({"algorithm": "vegas", "parameters": {"alpha": 1e300}}, '"alpha" must be a number from 0 to 64'),
        ({"algorithm": "tcpap", "parameters": {"history": 2.5}}, '"history" must be a whole number from 2 to 50'),
        ({"algorithm": "tcpap", "parameters": []}, '"parameters" must be an object'),
        ({"algorithm": "newreno", "parameters": {"alpha": 1}}, 'the kernel\'s own takes no "parameters"'),
    ],
)
def test_parameters_are_refused_with_the_reason(lab, settings, words):
    before = registered()
    assert words in refused(lab, settings)
    assert registered() <= before | {name for name in registered() if "." in name}


@pytest.mark.parametrize("port", ["0", "65536", "-1", "05202", "http", ""])
def test_an_invalid_port(lab, port):
    path = lab.write_settings()
    document = json.loads(path.read_text())
    document["stations"][0]["ports"] = {port: {}}
    path.write_text(json.dumps(document))
    done = subprocess.run([MANET_TCP, "run", path], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 2
    assert f'station a: "ports": "{port}" is no port; use 1 to 65535' in done.stderr


def test_kernel_without_btf_is_refused_with_the_reason(lab):
    """Simulates one without struct_ops: the kernel's BTF is hidden in this mount namespace."""
    path = lab.write_settings(a={"algorithm": "tahoe"})
    hidden = 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hidden, MANET_TCP, "run", path], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "takes no congestion control from BPF" in done.stderr
