"""The files of a run in virtual time: complete, the same each time, and refused if they cannot be listed."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from scenarios.identity import input_files
from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.guests import guest, run_files
from testbed.guests.kernels import Unpacked
from testbed.host.requirements import TOOLS
from testbed.programs import BUILT, ROOT

COMMAND = {"from": "sta1", "to": "sta2", "traffic": "command", "command": ["true"], "server": ["sleep", "99"], "ready_after": 1}
PUT = {"kernel/net/9p/9pnet.ko.xz", "kernel/drivers/net/tun.ko.xz", "modules.dep"}
LEFT = {"kernel/sound/soundcore.ko.xz", "kernel/drivers/net/ppp.ko.xz"}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    if shutil.which("kmod", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("kmod, which a run takes along, is absent; ./setup.sh --guests installs it")
    folder = tmp_path_factory.mktemp("kernel")
    for name in PUT | LEFT:
        path = folder / "lib" / "modules" / "6.12.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"module")
    return Unpacked("6.12", folder, "6.12.0", "p", "1")


@pytest.fixture(scope="module")
def paths(kernel: Unpacked) -> list[str]:
    if not BUILT.medium.exists():
        pytest.skip("./setup.sh has not built the medium")
    return run_files.of_run(kernel, run_files.programs_of(Scenario(hops=1, routing="aodv"))).paths()


def test_a_run_has_its_programs_with_their_libraries(paths):
    assert {str(BUILT.medium), str(BUILT.kernel_tcp), str(BUILT.daemon("aodv")), sys.executable} <= set(paths)
    assert str(BUILT.daemon("olsr")) not in paths
    assert any(Path(path).name.startswith("libc.so") for path in paths)
    assert {str(path) for path in BUILT.kernel_tcp.parent.glob("*.bpf.o")} <= set(paths)


def test_a_run_has_what_its_start_requires():
    """The check before a run looks for these inside, too: of tcpdump, which it had not, every run in virtual time was refused."""
    assert set(TOOLS) <= set(run_files.PROGRAMS)


def test_a_run_has_the_program_that_captures_it():
    programs = {name: run_files.programs_of(Scenario(hops=1, capture_program=name)) for name in ("manet-capture", "tcpdump")}
    assert str(BUILT.capture) in programs["manet-capture"] and "tcpdump" not in programs["manet-capture"]
    assert "tcpdump" in programs["tcpdump"] and str(BUILT.capture) not in programs["tcpdump"]


def test_a_run_has_python_with_the_modules_that_it_imports(paths):
    for name in ("testbed/runs/run.py", "traffic/web.py", "medium/radios/ns2-dsss-2m.toml", "formats/schema/aodv.json"):
        assert str(ROOT / name) in paths, name
    assert not any("/tests/" in path for path in paths if path.startswith(str(ROOT / "testbed")))
    for name in ("mininet/net.py", "pydantic/main.py", "json/__init__.py"):
        assert any(path.endswith(f"/{name}") for path in paths), name


def test_a_run_has_the_kernels_modules_for_networks_and_no_others(paths):
    folder = "/usr/lib/modules/6.12.0/"
    assert {path.removeprefix(folder) for path in paths if path.startswith(folder)} & (PUT | LEFT) == PUT


def test_a_program_outside_of_debians_folders_is_found_in_the_guest_too(monkeypatch, tmp_path):
    (tmp_path / "daemon-of-a-test").write_text("#!/bin/sh\n")
    (tmp_path / "daemon-of-a-test").chmod(0o755)
    monkeypatch.setenv("PATH", f"/usr/sbin:/usr/bin:{tmp_path}")
    assert run_files.search_path(["daemon-of-a-test"]) == f"{tmp_path}:{guest.PATH}"
    assert run_files.search_path([]) == guest.PATH


def test_programs_of_kinds_and_protocols_are_added_where_a_run_needs_them():
    web = {"from": "sta1", "to": "sta2", "traffic": "web"}
    assert "nginx" in run_files.programs_of(Scenario(hops=1, flows=[web]))
    assert run_files.programs_of(Scenario(hops=1, routing="babeld"))[0] == "babeld"
    assert run_files.programs_of(Scenario(hops=1)) == run_files.programs_of(Scenario(hops=3, tcp="vegas"))


def test_a_missing_program_is_one_line_with_the_remedy(kernel):
    with pytest.raises(RunError, match=r"no-such-program: not found, .*; install it, or run \./setup\.sh --guests$"):
        run_files.of_run(kernel, ["no-such-program"])


@pytest.mark.parametrize(
    ("keys", "unlisted"),
    [
        ({}, None),
        ({"routing": "olsr"}, None),
        ({"routing": "babeld"}, None),
        ({"stations": "hwsim"}, None),
        ({"routing": "olsrd"}, 'the daemon of routing "olsrd"'),
        ({"flows": [COMMAND]}, 'the programs of traffic "command"'),
    ],
)
def test_programs_that_cannot_be_listed_are_named(keys, unlisted):
    assert run_files.missing(Scenario(hops=1, **keys)) == unlisted


def test_files_that_a_scenario_names_go_along(tmp_path):
    (tmp_path / "sizes").write_text("100\n")
    for seed in (1, 2):
        (tmp_path / f"walk-{seed}.ns_movements").write_text("")
    flow = {"from": "sta1", "to": "sta2", "traffic": "vbr", "interval": 0.02, "sizes": str(tmp_path / "sizes")}
    assert input_files(Scenario(hops=1, flows=[flow])) == [tmp_path / "sizes"]
    web = {"from": "sta1", "to": "sta2", "traffic": "web", "distributions": "1995"}  # of data/web.toml
    assert input_files(Scenario(hops=1, flows=[web])) == []
    moving = Scenario(hops=1, mobility={"model": "file", "file": f"{tmp_path}/walk-*.ns_movements"})
    assert [path.name for path in input_files(moving)] == ["walk-1.ns_movements", "walk-2.ns_movements"]


def test_a_script_brings_its_interpreter(tmp_path, kernel):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    paths = run_files.of_run(kernel, [str(script)]).paths()
    assert str(script) in paths and str(Path(shutil.which("sh", path="/bin") or "/bin/sh").resolve()) in paths
