"""`manet-tcp load|unload|list`: an algorithm for the whole machine, or one clear line of refusal.

All in a mount namespace with a BPF file system of its own: its pins end with it, whatever a test does.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tcplab import DEADLINE_S, MANET_TCP, end, wait_for

pytestmark = pytest.mark.root

NAMES = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
HEAD = """
#include "common.bpf.h"
SEC("struct_ops") void BPF_PROG(own_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { %s }
SEC("struct_ops") __u32 BPF_PROG(own_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
SEC("struct_ops") __u32 BPF_PROG(own_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
SEC(".struct_ops") struct tcp_congestion_ops own = {
    .cong_avoid = (void *)own_cong_avoid, .ssthresh = (void *)own_ssthresh, .undo_cwnd = (void *)own_undo_cwnd,
    .name = "own",
};
"""


class Machine:
    """A mount namespace, held by a process; the kernel's list of algorithms is the machine's."""

    def __init__(self) -> None:
        mine = Path("/proc/self/ns/mnt").readlink()
        self.holder = subprocess.Popen(["unshare", "--mount", "sleep", "infinity"])
        wait_for(lambda: Path(f"/proc/{self.holder.pid}/ns/mnt").readlink() != mine, "a mount namespace")
        # its own, over any that exists
        self.call("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")

    def call(self, *argv: str, **environment: str) -> subprocess.CompletedProcess:
        inside = ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", *argv]
        return subprocess.run(inside, capture_output=True, text=True, timeout=DEADLINE_S, env=dict(os.environ) | environment)

    def does(self, *arguments: str, **environment: str) -> str:
        done = self.call(str(MANET_TCP), *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refuses(self, *arguments: str, status: int = 1) -> str:
        done = self.call(str(MANET_TCP), *arguments)
        assert done.returncode == status, done
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
        return done.stderr

    def loaded(self) -> dict[str, dict]:
        return {row["name"]: row for row in json.loads(self.does("list", "--json"))["loaded"]}


@pytest.fixture
def machine(cgroup_root, features) -> Iterator[Machine]:
    if not features["struct_ops"]:
        pytest.skip("this kernel takes no congestion control from BPF; ./manet test --guests boots kernels that do")
    machine = Machine()
    try:
        yield machine
    finally:
        for name in machine.loaded():
            machine.call(str(MANET_TCP), "unload", name)
        end(machine.holder)


@pytest.fixture
def own_name() -> str:
    """A name that no other test uses at the same time."""
    return f"t{os.getpid() % 100000}"


def registered() -> set[str]:
    return set(NAMES.read_text().split())


# As in the kernel's own selftests: the first lacks what the kernel requires.
SEVERAL = """
#include "common.bpf.h"
SEC("struct_ops") void BPF_PROG(first_init, struct sock *sk) { }
SEC("struct_ops") void BPF_PROG(second_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { }
SEC("struct_ops") __u32 BPF_PROG(second_ssthresh, struct sock *sk) { return tcp_reno_ssthresh(sk); }
SEC("struct_ops") __u32 BPF_PROG(second_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }
SEC(".struct_ops") struct tcp_congestion_ops first = { .init = (void *)first_init, .name = "of_the_file_1" };
SEC(".struct_ops") struct tcp_congestion_ops second = {
    .cong_avoid = (void *)second_cong_avoid, .ssthresh = (void *)second_ssthresh, .undo_cwnd = (void *)second_undo_cwnd,
    .name = "of_the_file_2",
};
"""


def built(folder: Path, cong_avoid: str, variables: str = "", source_text: str | None = None) -> Path:
    """A user's algorithm, compiled like our own."""
    if not shutil.which("clang"):
        pytest.skip("needs clang (./setup.sh)")
    source, target, here = folder / "own.bpf.c", folder / "own.bpf.o", Path(__file__).resolve().parents[1]
    source.write_text(source_text or HEAD % cong_avoid + variables)
    architecture = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    include = ["-I", str(here), "-I", str(here / "algorithms"), "-I", f"/usr/include/{architecture}"]
    subprocess.run(["clang", "-O2", "-g", "-target", "bpf", *include, "-c", "-o", str(target), str(source)], check=True)
    return target


@pytest.mark.parametrize("environment", [{}, {"MANET_TCP_WITHOUT_LINKS": "1"}], ids=["by-link", "as-before-6.4"])
def test_load_and_unload(machine, own_name, environment):
    message = machine.does("load", "vegas", "alpha=2", "beta=4.5", "--name", own_name, **environment)
    assert message.startswith(f'loaded vegas {{"alpha":2,"beta":4.5,"gamma":1}} as "{own_name}"')
    assert own_name in registered()
    row = machine.loaded()[own_name]
    assert row["algorithm"] == "vegas"
    assert row["parameters"] == {"alpha": 2, "beta": 4.5, "gamma": 1}
    assert row["connections"] == 0
    machine.does("unload", own_name, **environment)
    assert own_name not in registered()
    assert machine.loaded() == {}


def test_list_shows_the_cost_of_verification(machine, own_name):
    """Instructions walked on 6.18: cong_control of tahoe 124 and reno 316, cong_avoid of vegas 209, pkts_acked of tcpap 1274."""
    for name in ("tahoe", "reno", "vegas", "tcpap", "atcp"):
        machine.does("load", name, "--name", own_name)
        walked = machine.loaded()[own_name]["verified_instructions"]
        machine.does("unload", own_name)
        print(name, walked)
        assert f"{name}_init" in walked
        assert sum(walked.values()) < 6000


def test_names_files_agree_with_the_objects(machine):
    """Parameters, defaults and ranges stand in names/*.toml for users and in the object for the loader."""
    own = {row["name"]: row["parameters"] for row in json.loads(machine.does("list", "--json"))["ours"]}
    table = {
        path.stem: tomllib.loads(path.read_text()) for path in (MANET_TCP.parents[2] / "kernel-tcp" / "names").glob("*.toml")
    }
    algorithms = {name: entry for name, entry in table.items() if entry["kind"] == "algorithm" and "kernel" not in entry}
    assert algorithms.keys() <= own.keys()
    for name, entry in algorithms.items():
        parameters = entry.get("parameters", {})
        assert {key: value["default"] for key, value in parameters.items()} == own[name]
        for key, value in parameters.items():
            for beyond in (value["min"] - 1, value["max"] + 1):
                words = machine.refuses("load", name, f"{key}={beyond}", status=2)
                assert f"number from {value['min']:g} to {value['max']:g}" in words


def test_the_kernels_algorithm_of_that_name_is_unchanged(machine):
    message = machine.does("load", "reno")
    assert 'as "manet_reno"' in message and "the kernel has another" in message
    machine.does("unload", "reno")
    assert "manet_reno" not in registered()
    assert "reno" in registered()


def test_loading_twice(machine, own_name):
    machine.does("load", "tahoe", "--name", own_name)
    words = machine.refuses("load", "tahoe", "--name", own_name)
    assert f"{own_name}: is loaded already; `manet-tcp unload {own_name}` first" in words
    assert own_name in registered()


def test_a_name_that_the_kernel_has(machine):
    assert "the kernel has an algorithm of that name; choose another" in machine.refuses("load", "tahoe", "--name", "reno")


def test_unloading_an_algorithm_that_is_not_loaded(machine):
    assert "nothing: is not loaded" in machine.refuses("unload", "nothing")
    assert "cubic: is not loaded" in machine.refuses("unload", "cubic")


def test_unloading_an_algorithm_in_use_is_refused(machine, own_name, lab):
    machine.does("load", "tahoe", "--name", own_name)
    with lab.manet_tcp(a={"algorithm": own_name}):
        server = lab.serve(read=False)
        client = lab.send(1000, then="time.sleep(600)")
        lab.ready_line(client, "connected")
        lab.ready_line(client, "sent")
        assert machine.loaded()[own_name]["connections"] == 1
        assert f"{own_name}: 1 connection uses it" in machine.refuses("unload", own_name)
        end(client)
        end(server)
        wait_for(lambda: machine.loaded()[own_name]["connections"] == 0, "the connection to be forgotten")
    machine.does("unload", own_name)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nix"], 2, '"nix" is no algorithm of ours'),
        (["no/such/file.bpf.o"], 2, "no/such/file.bpf.o: cannot be read: No such file"),
        (["vegas", "alpa=1"], 2, 'vegas: no parameter "alpa"; it has alpha, beta, gamma'),
        (["vegas", "alpha=much"], 2, '"alpha" must be a number from 0 to 64'),
        (["vegas", "alpha=65"], 2, '"alpha" must be a number from 0 to 64'),
        (["vegas", "alpha"], 2, "write a parameter as name=value"),
        (["vegas", "alpha=1", "alpha=2"], 2, '"alpha" is there twice'),
        (["vegas", "--name", "a/b"], 1, '"a/b" is no name for the kernel'),
        (["vegas", "--name", "a-name-that-is-too-long"], 1, "at most 15 bytes"),
    ],
)
def test_refused_with_the_reason(machine, arguments, status, message):
    before = machine.loaded()
    assert message in machine.refuses("load", *arguments, status=status)
    assert machine.loaded() == before


def test_a_users_own_algorithm(machine, own_name, tmp_path):
    target = built(tmp_path, "tcp_reno_cong_avoid(sk, ack, acked);")
    machine.does("load", str(target), "--name", own_name)
    assert machine.loaded()[own_name]["algorithm"] == "own"
    machine.does("unload", own_name)


def test_of_an_object_with_several_congestion_controls_one_is_chosen(machine, own_name, tmp_path):
    target = str(built(tmp_path, "", source_text=SEVERAL))
    words = machine.refuses("load", target, "--name", own_name, status=2)
    assert words == "manet-tcp: own: the object has 2 congestion controls; choose one with --operations: first, second\n"
    words = machine.refuses("load", target, "--operations", "third", status=2)
    assert 'the object has no congestion control "third"; it has first, second' in words
    message = machine.does("load", target, "--operations", "second", "--name", own_name)
    assert message.startswith(f'loaded second {{}} as "{own_name}"')
    assert own_name in registered() and not any(name.startswith("of_the_file") for name in registered())
    assert machine.loaded()[own_name]["algorithm"] == "second"
    machine.does("unload", own_name)
    # the kernel refuses the other one, which lacks three functions
    assert "refused by the kernel" in machine.refuses("load", target, "--operations", "first", "--name", own_name)
    assert own_name not in registered()


def test_refusal_ends_with_the_last_line_of_the_verifier(machine, own_name, tmp_path):
    target = built(tmp_path, "sk->__sk_common.skc_num = 1;")
    words = machine.refuses("load", str(target), "--name", own_name)
    assert f"{own_name}: refused by the kernel's verifier: " in words
    assert own_name not in registered()


def test_a_parameter_without_a_scale_is_invalid(machine, own_name, tmp_path):
    """`list` divides values by the scale, also in other users' loaded objects."""
    target = built(tmp_path, "tcp_reno_cong_avoid(sk, ack, acked);", "const volatile struct tunable P = { 1, 0, 5, 0 };\n")
    assert 'no parameter "P"; it has none' in machine.refuses("load", str(target), "P=1", "--name", own_name, status=2)
    machine.does("load", str(target), "--name", own_name)
    assert machine.loaded()[own_name]["parameters"] == {}
    machine.does("unload", own_name)


def test_a_file_that_is_no_object(machine, tmp_path):
    path = tmp_path / "garbage.bpf.o"
    path.write_bytes(os.urandom(4096))
    assert "not an object with a congestion control" in machine.refuses("load", str(path), status=2)


def test_without_a_bpf_file_system(machine):
    # this test's, and any that the machine has mounted below it; only in this namespace
    while machine.call("mountpoint", "-q", "/sys/fs/bpf").returncode == 0:
        assert machine.call("umount", "/sys/fs/bpf").returncode == 0
    assert "mount -t bpf bpf /sys/fs/bpf" in machine.refuses("load", "tahoe")
    assert "is not loaded" in machine.refuses("unload", "tahoe")
    assert machine.loaded() == {}
