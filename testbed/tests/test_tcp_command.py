"""`manet tcp`: its lists, its refusals, and its calls of the loader."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.tcp_names import table
from testbed import __main__ as manet
from testbed.commands import tcp
from testbed.host import algorithms
from testbed.programs import BUILT, ROOT, Programs
from testbed.tests.running import needs_runs

HAS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.fixture
def kernel(monkeypatch):
    """A kernel with these congestion controls, which takes our own unless `why` is given."""

    def of(*names, why=""):
        monkeypatch.setattr(algorithms, "available", lambda: sorted(names))
        monkeypatch.setattr(algorithms, "missing_struct_ops", lambda: why)

    of("cubic", "reno")
    return of


@pytest.fixture
def loader(monkeypatch, tmp_path, kernel):
    """A loader that records its arguments, and ends with the given words and status."""
    if os.geteuid() != 0:
        pytest.skip("needs root, without which the loader is not called; sudo ./manet test")

    def that(words="", status=0):
        path = tmp_path / "manet-tcp"
        record = f'[ "$1" = list ] || echo "$@" >{tmp_path}/asked'
        path.write_text(f'#!/bin/sh\n{record}\necho "manet-tcp: {words}" >&2\nexit {status}\n')
        path.chmod(0o755)
        monkeypatch.setattr("testbed.programs.BUILT", Programs(kernel_tcp=path))
        return lambda: (tmp_path / "asked").read_text().split()

    return that


def output_of(capsys, *arguments, status=0):
    assert manet.main(["tcp", *arguments]) == status
    output = capsys.readouterr()
    if status:
        assert output.err.count("\n") == 1 and output.err.startswith("manet tcp: ")
        return output.err.removeprefix("manet tcp: ").rstrip("\n")
    return output.out


def test_every_name_is_listed_with_its_kind_and_whether_it_can_be_used_here(kernel, monkeypatch, capsys):
    kernel("cubic", "reno", "vegas", "manet_reno")
    monkeypatch.setattr(tcp, "_loaded", lambda: [{"name": "manet_reno", "parameters": {"x": 0.5}, "connections": 2}])
    answer = json.loads(output_of(capsys, "list", "--json"))
    assert answer["format"] == "manet-tcp-names/1"
    rows = {row["name"]: row for row in answer["names"]}
    assert set(rows) == {*table(), "cubic", "kernel-vegas"}
    assert [rows[name]["kind"] for name in ("tahoe", "elfn", "cubic")] == ["algorithm", "layer", "kernel"]
    assert all(row["summary"] and row["why_not"] is None for row in rows.values())
    text = output_of(capsys, "list")
    assert all(any(line.startswith(f"  {name} ") for line in text.splitlines()) for name in rows)
    assert "loaded for every program of this machine: manet_reno (x=0.5), connections: 2\n" in text
    assert [row["name"] for row in answer["loaded"]] == ["manet_reno"]


def test_an_algorithm_loaded_under_another_name_is_shown_with_its_own(kernel, monkeypatch, capsys):
    kernel("cubic", "reno", "quick", "mine")
    quick = {"name": "quick", "algorithm": "vegas", "parameters": {"alpha": 2, "beta": 3}, "connections": 1}
    mine = {"name": "mine", "algorithm": "own", "parameters": {"x": 0.5}, "connections": 0}
    monkeypatch.setattr(tcp, "_loaded", lambda: [quick, mine])
    shown = output_of(capsys, "show", "quick")
    assert shown.startswith("quick: loaded for every program of this machine\n  vegas: Vegas: holds alpha to beta segments")
    assert "alpha: with fewer queued, the window grows by one segment a round trip\n    0 to 64 (segments); loaded" in shown
    assert "; loaded with 2\n" in shown
    assert '\n  tcp = "quick"\n' in shown
    assert "  own, an object of your own\n  x: loaded with 0.5\n" in output_of(capsys, "show", "mine")
    inner = output_of(capsys, "show", "elfn(quick)")
    assert "elfn: layer" in inner and "quick: loaded for every program of this machine" in inner
    answer = json.loads(output_of(capsys, "show", "quick", "--json"))
    assert [(row["name"], row["kind"]) for row in answer["names"]] == [("quick", "loaded")]
    values = [(p["name"], p["default"], p["loaded"]) for p in answer["names"][0]["parameters"]]
    assert values == [("alpha", "1", "2"), ("beta", "3", "3")]
    text = output_of(capsys, "list")
    assert "loaded for every program of this machine: quick: vegas (alpha=2, beta=3), connections: 1\n" in text


def test_an_old_kernel_is_reported_once_with_the_remedy(kernel, capsys):
    kernel("cubic", "reno", why="this kernel takes no BPF congestion control; use Linux 6.1")
    rows = {row["name"]: row["why_not"] for row in json.loads(output_of(capsys, "list", "--json"))["names"]}
    assert {name for name, why in rows.items() if why} == set(table()) - {"newreno", "sack"}
    lines = [line for line in output_of(capsys, "list").splitlines() if line.startswith("not usable here: ")]
    assert len(lines) == 1 and lines[0].endswith("use Linux 6.1") and "tahoe" in lines[0]
    assert "not usable here: " in output_of(capsys, "show", "tahoe")
    assert "not usable here: " not in output_of(capsys, "show", "newreno")


@pytest.mark.parametrize("name", table())
def test_a_name_is_shown_with_all_that_its_file_says(name, kernel, capsys):
    text = output_of(capsys, "show", name)
    known = table()[name]
    assert text.startswith(f"{name}: {known.kind}\n") and known.summary in text and known.source in text
    for parameter in known.parameters.values():
        assert f"  {parameter.name}: {parameter.text}\n    {parameter.allowed()}; default " in text
    assert f'  tcp = "{name}' in text


def test_a_whole_text_is_shown_with_its_meaning(kernel, capsys):
    text = output_of(capsys, "show", "elfn(vegas, probe=0.5s)")
    assert 'tcp = "elfn(vegas, probe=500ms)"' in text
    of_elfn = "probe=500ms, repair=unchanged, packet=first, leave=any-ack, restore=at-notice, notice=icmp"
    assert f'tcp = "elfn(vegas(alpha=1, beta=3, gamma=1), {of_elfn})"' in text
    shown = json.loads(output_of(capsys, "show", "--json", "elfn(vegas, probe=0.5s)"))
    assert shown["settings"]["layers"][0]["parameters"]["probe_us"] == 500_000
    assert [row["name"] for row in shown["names"]] == ["elfn", "vegas"]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["show", "tahooe"], 'this kernel has no "tahooe" (did you mean "tahoe"?); use one of atcp, elfn, '),
        (
            ["show", "kernel-vegas"],
            'this kernel has no "vegas" of its own; tcp = "vegas" is this testbed\'s; use one of atcp, elfn, ',
        ),
        (["show", "tcp=newreno"], '"=" is unexpected after "tcp"; a TCP is written like "newreno" or "elfn(newreno, probe=2s)"'),
        (["show", "elfn(prob=1s)"], '"elfn" has no parameter "prob"; did you mean "probe"?'),
        (
            ["load", "cubic"],
            '"cubic" is not an algorithm of this testbed; use one of',
        ),
        (["load", "x\ny"], '"x?y" is not an algorithm of this testbed; use one of '),
        (["unload", "sack"], '"sack" is the kernel\'s own reno, which is there without being loaded'),
        (
            ["load", "elfn"],
            '"elfn" is a layer, which works within a run only, on its connections; write tcp = "elfn(newreno)" in a scenario',
        ),
        (["load", "newreno"], '"newreno" is the kernel\'s own reno, which is there without being loaded'),
        (["load", "vegas", "alpha=9"], '"vegas": alpha=9 is above beta=3; lower alpha, or raise beta'),
        (
            ["load", "vegas", "2"],
            '"vegas" is an algorithm and has no inner TCP, but "2" is inside; remove it, or name a parameter',
        ),
    ],
)
def test_an_invalid_request_is_one_line_with_the_remedy(arguments, wanted, kernel, capsys):
    assert output_of(capsys, *arguments, status=2).startswith(wanted)


def test_names_of_the_kernel_are_among_those_that_can_be_shown(kernel, capsys):
    kernel("bbr", "cubic", "reno")
    assert output_of(capsys, "show", "kernel-vegas", status=2).endswith(", bbr, cubic")
    assert 'tcp = "bbr"' in output_of(capsys, "show", "bbr")


def test_without_root_nothing_is_loaded(monkeypatch, kernel, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert output_of(capsys, "load", "tahoe", status=2).startswith("not root: ")


def test_the_loader_is_given_every_parameter(loader, capsys):
    calls = loader()
    output_of(capsys, "load", "vegas", "alpha=2")
    assert calls() == ["load", "vegas", "alpha=2", "beta=3", "gamma=1"]
    output_of(capsys, "load", "tahoe", "--name", "mine")
    assert calls() == ["load", "tahoe", "--name", "mine"]
    output_of(capsys, "load", "x/own.bpf.o", "gain=3")
    assert calls() == ["load", "x/own.bpf.o", "gain=3"]
    output_of(capsys, "load", "x/own.bpf.o", "--operations", "second")
    assert calls() == ["load", "x/own.bpf.o", "--operations", "second"]
    output_of(capsys, "unload", "own")
    assert calls() == ["unload", "own"]


@pytest.mark.parametrize(("loaders", "status"), [(1, 1), (2, 2)])
def test_errors_of_the_loader_are_passed_on(loaders, status, loader, capsys):
    loader("tahoe is loaded already; unload it first", loaders)
    assert output_of(capsys, "load", "tahoe", status=status) == "tahoe is loaded already; unload it first"


def test_an_unsupported_kernel_is_reported_before_the_loader_is_called(loader, kernel, capsys):
    loader()
    kernel("cubic", why="this kernel takes none")
    assert output_of(capsys, "load", "tahoe", status=2) == "this kernel takes none"


def test_this_kernels_own_are_listed(capsys):
    if not HAS.exists() or not BUILT.kernel_tcp.exists():
        pytest.skip("the loader, whose list of congestion controls is compared, is not built (./setup.sh)")
    rows = {row["name"] for row in json.loads(output_of(capsys, "list", "--json"))["names"]}
    known = {name for name in HAS.read_text().split() if "." not in name and not name.startswith("manet_")}
    assert known <= rows | {name.removeprefix("kernel-") for name in rows}


IN_THEIR_OWN_MOUNTS = (
    "mount -t bpf bpf /sys/fs/bpf && for words in 'load vegas alpha=2' list 'load vegas' 'load tahoe --name {0}' "
)
IN_THEIR_OWN_MOUNTS += "'load tahoe --name {0}' 'unload {0}' 'unload {0}'; do {1} tcp $words 2>&1; echo status $?; done"


@pytest.mark.root
@needs_runs
@pytest.mark.skipif(algorithms.missing_struct_ops() != "", reason=algorithms.missing_struct_ops())
def test_an_algorithm_is_loaded_and_unloaded_for_the_machine():
    """In a mount namespace of its own: what is pinned there goes with it, however the test ends."""
    name, words = f"t{os.getpid() % 10**6}", f"{sys.executable} -P -m testbed"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", IN_THEIR_OWN_MOUNTS.format(name, words)],
        capture_output=True, text=True, check=True, timeout=120, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    loaded, listed, again, own, twice, unloaded, gone = done.stdout.split("status ")[:7]
    assert '"alpha":2' in loaded, done.stdout
    assert "loaded for every program of this machine: " in listed and "alpha=2" in listed
    assert "is loaded already" in again and "is loaded already" in twice and again.startswith("0\nmanet tcp: ")
    assert f'"{name}"' in own and unloaded.startswith("1\n") and gone.startswith("0\n") and "is not loaded" in gone
    assert name not in HAS.read_text().split()
