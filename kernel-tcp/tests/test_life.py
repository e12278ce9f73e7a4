"""How manet-tcp starts, is refused and ends: one line with the remedy, nothing attached afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MANET_TCP, end, wait_for

pytestmark = pytest.mark.root


def held(pid: int) -> dict[str, set[int]]:
    """The ids of the BPF objects that the process holds, by kind."""
    ids: dict[str, set[int]] = {"prog": set(), "link": set(), "map": set()}
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        for line in entry.read_text().splitlines():
            key, _, value = line.partition(":")
            if key in ("prog_id", "link_id", "map_id"):
                ids[key.removesuffix("_id")].add(int(value))
    return ids


def alive(ids: dict[str, set[int]]) -> dict[str, set[int]]:
    """Those that the kernel still has."""
    return {kind: of_kind & existing(kind) for kind, of_kind in ids.items()}


def existing(kind: str) -> set[int]:
    text = subprocess.run(["bpftool", "-j", kind, "list"], capture_output=True, text=True).stdout
    return {entry["id"] for entry in json.loads(text)}


def on_cgroup(lab) -> str:
    return subprocess.run(["bpftool", "cgroup", "show", lab.cgroup], capture_output=True, text=True).stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_attached(lab, how):
    process = lab.start_tcp(lab.write_settings("tcp.csv", a={"window_segments": 8}))
    objects = held(process.pid)
    assert alive(objects) == objects
    assert len(objects["prog"]) == len(objects["link"]) == 2
    assert "settings" in on_cgroup(lab)
    process.send_signal(how)
    process.wait(DEADLINE_S)
    assert process.returncode == (-how if how == signal.SIGKILL else 0)
    # The kernel frees them a moment after the process has ended.
    wait_for(lambda: not any(alive(objects).values()), "programs, links and maps to be gone")
    assert "settings" not in on_cgroup(lab)


def test_verifier_cost_has_not_grown(lab):
    """Measured on 6.18: 297 and 686 instructions walked. Far more would mean a loop crept in."""
    process = lab.start_tcp(lab.write_settings("tcp.csv"))
    walked = [
        int(line.split()[1])
        for entry in Path(f"/proc/{process.pid}/fdinfo").iterdir()
        for line in entry.read_text().splitlines()
        if line.startswith("verified_insns:")
    ]
    assert len(walked) >= 2  # absent before Linux 5.17
    print(f"verified instructions: {sorted(walked)}")
    assert sum(walked) < 4000


def test_sockets_open_when_it_ends_live_on(lab):
    process = lab.start_tcp(lab.write_settings(a={"algorithm": "newreno", "window_segments": 4}))
    with lab.paused_transfer():
        end(process)


def refused(path, *arguments) -> str:
    """The one line on standard error of a start that must fail without printing ready."""
    done = subprocess.run([MANET_TCP, "run", path, *arguments], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def change(lab, edit) -> str:
    path = lab.write_settings(a={"algorithm": "newreno"})
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return refused(path)


def test_missing_file(program, tmp_path):
    assert "nowhere.json: cannot be read: No such file" in refused(tmp_path / "nowhere.json")


def test_not_json_names_the_line(program, tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{\n "format": \n}')
    assert "s.json:3: not JSON" in refused(path)


def test_duplicate_key(program, tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{"format": "manet-tcp-settings/1",\n "format": "manet-tcp-settings/1"}')
    assert "duplicate" in refused(path)


def settings_of(key, value):
    return lambda document: document["stations"][0]["settings"].update({key: value})


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda d: d.update(format="manet-tcp-settings/2"), '"format" must be "manet-tcp-settings/1"'),
        (lambda d: d.update(sample="x"), 'top level: unknown key "sample"'),
        (lambda d: d["stations"][0].update(ns="x"), 'stations[0]: unknown key "ns"'),
        (lambda d: d.update(stations=[]), '"stations" must be a list of 1 to'),
        (lambda d: d["stations"][1].update(name="a"), "station a is there twice"),
        (lambda d: d["stations"][1].update(name="a,b"), "no comma"),
        (lambda d: d["stations"][1].update(netns=d["stations"][0]["netns"]), "stations a and b are one network namespace"),
        (lambda d: d["stations"][0].update(netns="/proc/1/ns/nothing"), "station a: cannot open netns /proc/1/ns/nothing"),
        (lambda d: d["stations"][0].update(netns="/dev/null"), "station a: cannot enter netns /dev/null"),
        (lambda d: d["stations"][0].update(hops=[2]), 'station a: "hops" must be an object'),
        (lambda d: d["stations"][0].update(hops={"sta2": 2}), '"hops": "sta2" is no address of IPv4 or IPv6'),
        (lambda d: d["stations"][0].update(hops={"10.9.0.2": 0}), '"hops" of 10.9.0.2 must be a whole number from 1 to 255'),
        (lambda d: d["stations"][0].update(gateways=[2]), 'station a: "gateways" must be an object'),
        (lambda d: d["stations"][0].update(gateways={"h": []}), '"gateways": "h" is no IPv4 address'),
        (lambda d: d["stations"][0].update(gateways={"10.9.0.2": ["gw"]}), "10.9.0.2 must be a list of IPv4 addresses"),
        (settings_of("windows", 8), 'station a: unknown key "windows"'),
        (settings_of("window_segments", 0), '"window_segments" must be a whole number from 1 to 32767'),
        (settings_of("mss", 87), '"mss" must be a whole number from 88 to 32727'),
        (settings_of("window_segments", "8"), '"window_segments" must be a whole number'),
        (settings_of("window_segments", 8.5), '"window_segments" must be a whole number'),
        (settings_of("rto_min_us", 300000), "tcp_rto_min_us"),
        (settings_of("rto_min_us", 100), "two ticks"),
        (settings_of("rto_max_ms", 500), '"rto_max_ms" must be a whole number from 1000 to 120000'),
        (settings_of("delayed_ack", 1), '"delayed_ack" must be true or false'),
        (settings_of("algorithm", "taho"), 'algorithm "taho": No such file'),
        (settings_of("algorithm", "a-name" * 6), '"algorithm" is longer than 31 bytes'),
        (lambda d: d.update(cgroup="/sys/fs/cgroup/unified/nothing-here"), "make it with mkdir"),
        (lambda d: d.update(cgroup="/tmp"), "/tmp: not in a cgroup v2 hierarchy"),
    ],
)
def test_refused_with_the_reason(lab, edit, words):
    assert words in change(lab, edit)


def test_samples_that_cannot_be_written_are_refused_before_ready(lab):
    done = subprocess.run(
        [MANET_TCP, "run", lab.write_settings("no/such/folder.csv")], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "folder.csv: cannot be written: No such file" in done.stderr
    assert "settings" not in on_cgroup(lab)


def test_null_is_as_absent(lab):
    path = lab.write_settings(a=dict.fromkeys(("algorithm", "window_segments", "rto_max_ms", "delayed_ack")))
    end(lab.start_tcp(path))


@pytest.mark.parametrize("arguments", [[], ["run"], ["walk"], ["features", "--xml"], ["run", "a", "b"]])
def test_wrong_command_line_shows_the_usage(program, arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: manet-tcp")


def test_without_root_features_names_the_remedy(program, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to become nobody; sudo ./manet test")
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
         program, "features", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["usable"] is False
    assert "not root: run with sudo" in answer["missing"]


def test_features_are_those_of_the_kernel(features, cgroup_root):
    assert features["format"] == "manet-tcp-features/1"
    assert features["btf"] and features["tcp_probe"] and features["sockops"]
    assert "reno" in features["algorithms"]
    assert features["hz"] in (100, 250, 300, 1000)
    assert features["missing"] == []
