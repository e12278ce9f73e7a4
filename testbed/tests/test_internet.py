"""`nat = true` of a wire: refused without permission, NAT to another network, nothing left behind.

The "Internet" of these tests is a namespace behind another one, in which `manet` runs; no packet reaches this machine's networks.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.errors import UsageError
from testbed.host import namespace, requirements
from testbed.host.clean import clean
from testbed.host.masquerade import NETLINK_NETFILTER, masquerading
from testbed.programs import ROOT
from testbed.runs.prompt import open_prompt
from testbed.runs.run import run_scenario
from testbed.tests.refusals import message
from testbed.tests.running import chain, needs_runs, nothing_left, state_of, until_stage, wait_until

SERVER = "203.0.113.2"  # RFC 5737
WIRE = {"station": "sta3", "host": "host1", "nat": True}
PROMPT = """
import sys
from pathlib import Path
from scenarios.scenario import Scenario
from testbed.runs.prompt import open_prompt
print("status", open_prompt(Scenario.from_json(sys.argv[1]), directory=Path(sys.argv[2]), allow_internet=True).status)
"""
RUN = """
import sys
from pathlib import Path
from scenarios.scenario import Scenario
from testbed.runs.run import run_scenario
say = lambda stage, fraction: print(stage, fraction or 0.0, flush=True)
print(run_scenario(Scenario.from_json(sys.argv[1]), 1, Path(sys.argv[2]), progress=say, allow_internet=True).status)
"""


@pytest.mark.root
@needs_runs
def test_without_permission_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    scenario = chain(hops=2, wires=[WIRE])
    for start in (lambda: run_scenario(scenario, 1, tmp_path / "run"), lambda: open_prompt(scenario, directory=tmp_path / "run")):
        with pytest.raises(UsageError, match=r'^scenario: key "wires\.0\.nat": .*add --allow-internet if that is wanted'):
            start()
    assert not (tmp_path / "run").exists()


@pytest.mark.root
@needs_runs
def test_the_command_line_refuses_it_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('hops = 2\n[[wires]]\nstation = "sta3"\nhost = "host1"\nnat = true\n')
    done = subprocess.run(
        [sys.executable, "-P", "-m", "testbed", "run", str(path), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1 and "--allow-internet" in done.stderr, done.stderr
    assert 'x.toml: line 5: key "wires.0.nat": ' in done.stderr  # the path is relative where that is shorter


def test_a_machine_that_does_not_forward_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "FORWARDS", tmp_path / "ip_forward")
    requirements.FORWARDS.write_text("0\n")
    with pytest.raises(UsageError, match=r"sysctl -w net\.ipv4\.ip_forward=1"):
        requirements.require_uplink(allowed=True)
    requirements.FORWARDS.write_text("1\n")
    requirements.require_uplink(allowed=True)


def test_a_guest_has_no_network_and_gateways_agree(load) -> None:
    one = '[[wires]]\nstation = "sta3"\nhost = "h1"\nnat = true\n'
    assert 'key "wires.0.nat": the guests of clock = "virtual"' in message(load, f'hops = 2\nclock = "virtual"\n{one}')
    both = message(load, f'hops = 2\n{one}[[wires]]\nstation = "sta1"\nhost = "h1"\n')
    assert 'key "wires.1.nat": ' in both and "set it for every wire, or for none" in both


@dataclass(frozen=True)
class Machine:
    """A namespace in which `manet` runs, connected to the "Internet"."""

    pid: int

    @property
    def netns(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    def start(self, program: str, *arguments: str, **options: object) -> subprocess.Popen:
        place = ["nsenter", "--target", str(self.pid), "--net", sys.executable, "-P", "-c", program, *arguments]
        return subprocess.Popen(place, text=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)

    def devices(self) -> list[str]:
        return sorted(name for _, name in namespace.within(self.netns, socket.if_nameindex))

    def nat_tables(self) -> list[str]:
        return nat_tables(self.netns)


def nat_tables(netns: Path) -> list[str]:
    """The names of all nf_tables tables (NFT_MSG_GETTABLE with NLM_F_DUMP)."""
    with namespace.within(netns, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)) as netlink:
        netlink.settimeout(5)
        netlink.send(struct.pack("=IHHIIBBH", 20, 10 << 8 | 1, 0x1 | 0x300, 1, 0, 0, 0, 0))
        names: list[str] = []
        while True:
            data = netlink.recv(65536)
            while len(data) >= 16:
                length, kind = struct.unpack_from("=IH", data)
                if kind == 3:  # NLMSG_DONE
                    return names
                assert kind == 10 << 8, kind
                size, attribute = struct.unpack_from("=HH", data, 20)
                assert attribute == 1, "the name is first"
                names.append(data[24 : 20 + size].rstrip(b"\0").decode())
                data = data[(length + 3) & ~3 :]


@contextmanager
def sleeping_namespace() -> Iterator[int]:
    """The pid of a process in a network namespace of its own."""
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "ip link set lo up; echo ready; exec sleep 600"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def machine() -> Iterator[Machine]:
    with sleeping_namespace() as here, sleeping_namespace() as server:
        for pid, line in [
            (here, f"link add out type veth peer name in netns {server}"),
            (here, "address add 203.0.113.1/24 dev out"),
            (here, "link set out up"),
            (server, f"address add {SERVER}/24 dev in"),  # and no route to anything else: it answers 203.0.113.1 only
            (server, "link set in up"),
        ]:
            subprocess.run(["nsenter", "--target", str(pid), "--net", "ip", *line.split()], check=True)
        namespace.within(f"/proc/{here}/ns/net", lambda: namespace.write_sysctls({"net.ipv4.ip_forward": 1}))
        yield Machine(here)


@pytest.mark.root
def test_a_table_ends_with_its_block_and_cannot_be_made_twice(machine: Machine) -> None:
    with masquerading(machine.netns, "one", source="198.18.0.2"):
        assert machine.nat_tables() == ["one"]
        with pytest.raises(Exception, match="nf_tables: table one: "), masquerading(machine.netns, "one"):
            pass
        with masquerading(machine.netns, "two", device="out"):
            assert machine.nat_tables() == ["one", "two"]
    assert machine.nat_tables() == []


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.parametrize("routing", ["static", "aodv", {"protocol": "dsdv", "settling": 0, "period": 2, "trigger_interval": 0.2}])
def test_stations_reach_the_network_of_the_machine_and_nothing_is_left(machine: Machine, tmp_path: Path, routing: object) -> None:
    scenario = chain(hops=2, wires=[WIRE], routing=routing)
    process = machine.start(PROMPT, scenario.to_json(), str(tmp_path / "run"), stdin=subprocess.PIPE)
    ping = f"ping -n -c 2 -i 0.3 -W 5 {SERVER}"
    answers, _ = process.communicate(
        f"sta1 {ping}\nsta3 {ping}\nhost1 {ping}\nhost1 ping -n -c 2 -i 0.3 sta1\nexit\n", timeout=120
    )
    assert answers.count("2 packets transmitted, 2 received") == 4, answers
    assert "status complete" in answers
    assert (machine.devices(), machine.nat_tables()) == (["lo", "out"], [])
    assert nothing_left(tmp_path / "run")


@pytest.mark.root
@pytest.mark.slow
@needs_runs
def test_nothing_is_left_after_kill_9(machine: Machine, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = machine.start(RUN, chain(hops=2, wires=[WIRE], duration=60).to_json(), str(run))
    until_stage(process, "traffic")
    assert machine.devices() == ["lo", "manet-nat0", "out"]
    assert machine.nat_tables() == ["manet-nat0"]
    state = state_of(run)
    assert state is not None and state.keeper is not None
    process.kill()
    with suppress(ProcessLookupError):
        os.kill(state.keeper.pid, signal.SIGKILL)
    process.wait()
    cleaned = clean()
    assert [line for line in cleaned.could_not if str(run) in line] == []
    wait_until(lambda: machine.devices() == ["lo", "out"], "the veth to be gone")
    assert machine.nat_tables() == []
    assert nothing_left(run)
