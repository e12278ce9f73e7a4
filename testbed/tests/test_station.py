"""Stations: many at once, each a Mininet host."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenarios.scenario import Scenario
from testbed.errors import RunError
from testbed.host import namespace
from testbed.programs import ROOT
from testbed.stages.station import StationNet, host_sysctls, ipv6_sysctls, stations_up

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root; sudo ./manet test")]


@pytest.fixture
def net():
    with stations_up(["sta1", "sta2", "sta3"]) as network:
        yield network


def test_a_station_is_a_mininet_host_with_predictable_names(net: StationNet) -> None:
    assert [station.name for station in net.hosts] == ["sta1", "sta2", "sta3"]
    assert (net["sta2"].IP(), net["sta2"].MAC()) == ("10.0.0.2", "02:00:00:00:00:02")
    assert net["sta3"].cmd("echo hello").strip() == "hello"
    assert net["sta1"].defaultIntf().name == "wlan0"


def test_each_station_has_a_namespace_of_its_own(net: StationNet) -> None:
    spaces = {str(station.netns.readlink()) for station in net.stations} | {str(Path("/proc/self/ns/net").readlink())}
    assert len(spaces) == 4


def test_a_device_has_no_duplicate_address_detection_when_it_begins_with_ipv6() -> None:
    """Else its link-local address would come a second later, during the traffic."""
    order = [name.rpartition(".")[2] for name in ipv6_sysctls("wlan0")]
    assert {"accept_dad", "dad_transmits"} <= set(order[: order.index("disable_ipv6")])


def test_sysctls_of_one_station_are_not_those_of_another(net: StationNet) -> None:
    scenario = Scenario.model_validate({"hops": 2})
    first, second = net.stations[:2]
    namespace.within(first.netns, lambda: namespace.write_sysctls(host_sysctls(scenario)))
    names = ["net.ipv4.ip_forward", "net.ipv4.ip_default_ttl", "net.ipv6.conf.all.disable_ipv6"]
    values = [namespace.within(s.netns, lambda: namespace.read_sysctls(names)) for s in (first, second)]
    assert values[0]["net.ipv4.ip_forward"] == "1"
    assert values[0]["net.ipv4.ip_default_ttl"] == "255"
    assert values[0].get("net.ipv6.conf.all.disable_ipv6", "1") == "1"
    assert values[1]["net.ipv4.ip_default_ttl"] == "64"


def test_acting_in_a_namespace_does_not_move_this_process(net: StationNet) -> None:
    here = Path("/proc/self/ns/net").readlink()
    there = namespace.within(net.stations[0].netns, lambda: Path("/proc/thread-self/ns/net").readlink())
    assert there == net.stations[0].netns.readlink() != here
    assert Path("/proc/thread-self/ns/net").readlink() == here


def test_acting_in_each_namespace_has_the_order_of_the_stations_and_does_not_move_this_process(net: StationNet) -> None:
    own = Path("/proc/self/ns/net").readlink()
    found = namespace.within_each([(s.netns, lambda: Path("/proc/thread-self/ns/net").readlink()) for s in net.stations])
    assert found == [station.netns.readlink() for station in net.stations]
    assert Path("/proc/thread-self/ns/net").readlink() == own and own not in found


def test_a_missing_namespace_is_an_error_with_the_reason() -> None:
    with pytest.raises(RunError, match="has ended"):
        namespace.within("/proc/0/ns/net", lambda: None)


@pytest.mark.parametrize("end", ["exit 3", "kill -KILL $$"])
def test_a_shell_that_ends_is_replaced_in_the_same_namespace(net: StationNet, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    printed: list[str] = []
    monkeypatch.setattr("testbed.stages.station.output", printed.append)
    station = net["sta1"]
    space = station.netns.readlink()
    station.cmd("ip tuntap add dev there mode tap")
    assert "before" in station.cmd(f"echo before; {end}")
    assert "there" in station.cmd("ls /sys/class/net")
    assert station.netns.readlink() == space == Path(f"/proc/{station.pid}/ns/net").readlink()
    assert station.popen("ls /sys/class/net", text=True).communicate()[0].split() == ["lo", "there"]
    how = "ended with status 3" if end.startswith("exit") else "was killed by SIGKILL"
    assert printed == [f"*** sta1: its shell {how}; it has a new one\n"]


def test_a_shell_killed_between_two_commands_is_replaced_before_the_next(net: StationNet) -> None:
    station = net["sta2"]
    os.kill(station.pid, signal.SIGKILL)
    station.shell.wait()
    assert station.cmd("echo hello").strip() == "hello"


COLOURING = """#!/bin/sh
# as ip(8) of Debian 13, built with CONF_COLOR=auto: colour on a terminal, unless NO_COLOR is set (iproute2 lib/color.c)
if [ -t 1 ] && [ -z "$NO_COLOR" ]; then printf '\\033[36mlo\\033[0m\\n'; else echo lo; fi
"""


def test_programs_that_colour_their_output_on_a_terminal_do_not_in_a_station(net: StationNet, tmp_path: Path) -> None:
    (tmp_path / "ip").write_text(COLOURING)
    (tmp_path / "ip").chmod(0o755)
    assert net["sta1"].cmd(f"{tmp_path}/ip").strip() == "lo"
    os.kill(net["sta1"].pid, signal.SIGKILL)
    net["sta1"].shell.wait()
    assert net["sta1"].cmd(f"{tmp_path}/ip").strip() == "lo"


def test_popen_takes_the_arguments_of_mininet(net: StationNet, tmp_path: Path) -> None:
    station = net["sta1"]
    ways = [(("echo a b",), {}), ((["echo", "a", "b"],), {}), (("echo", "a", "b"), {}), (("x=a; echo $x b",), {"shell": True})]
    assert [station.popen(*words, text=True, **more).communicate()[0] for words, more in ways] == ["a b\n"] * 4
    assert station.popen("pwd", cwd=tmp_path, text=True).communicate()[0].strip() == str(tmp_path)
    assert station.pexec("cat /proc/no-such-file")[2] == 1


IN_A_CHROOT = """
from testbed.stages.station import stations_up
with stations_up(["sta1"]) as net:
    print(net["sta1"].popen(["/mnt/only-here", "popen"], text=True).communicate())
    print(net["sta1"].cmd("/mnt/only-here cmd"))
"""


def test_popen_finds_programs_that_exist_only_below_a_chroot(tmp_path: Path) -> None:
    """mnexec -a enters the mount namespace alone, whose root is that of the machine."""
    root = tmp_path / "root"
    root.mkdir()
    steps = f"mount --rbind / {root} && mount -t tmpfs tmpfs {root}/mnt && "
    steps += f"printf '#!/bin/sh\\necho ran by $1\\n' > {root}/mnt/only-here && chmod 755 {root}/mnt/only-here && "
    steps += f'exec chroot {root} "$@"'
    argv = ["unshare", "--mount", "sh", "-c", steps, "sh", "env", "-C", str(ROOT), sys.executable, "-P", "-c", IN_A_CHROOT]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert "ran by popen" in done.stdout, done.stdout + done.stderr
    assert "ran by cmd" in done.stdout, done.stdout + done.stderr


def test_a_shell_that_cannot_start_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.stages.station.NamespaceHost._start", started_as(["false"]))
    began = time.monotonic()
    with pytest.raises(RunError, match="sta1: its shell ended with status 1"), stations_up(["sta1"]):
        pass
    assert time.monotonic() - began < 10  # SHELL_DEADLINE_S is 30


def test_a_namespace_that_cannot_be_made_is_an_error_with_the_reason() -> None:
    program = "from testbed.stages.station import stations_up\nwith stations_up(['sta1']): pass"
    argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-P", "-c", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert "sta1: could not make a namespace: Operation not permitted; run as root" in done.stderr


def started_as(place: list[str]):
    from testbed.stages.station import NamespaceHost

    start = NamespaceHost._start
    return lambda self, _place, **options: start(self, place, **options)


def test_mininet_does_not_raise_limits_of_the_whole_system() -> None:
    names = ["net.core.wmem_max", "kernel.pty.max", "net.ipv4.neigh.default.gc_thresh3", "net.ipv4.tcp_rmem"]
    before = namespace.read_sysctls(names)
    with stations_up(["sta1"]):
        pass
    assert namespace.read_sysctls(names) == before


def test_shells_are_gone_after_the_block_even_if_it_fails() -> None:
    pids = []
    with pytest.raises(ZeroDivisionError), stations_up(["sta1", "sta2"]) as network:
        pids += [station.pid for station in network.stations]
        raise ZeroDivisionError
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_fifty_stations_take_little_processor_time() -> None:
    """Processor time, since a loaded host makes the time on the clock anything; `make bench` has that (0.4 s on two cores)."""
    before = processor_s()
    with stations_up([f"sta{number}" for number in range(1, 51)]) as network:
        assert len(network.stations) == 50
    assert processor_s() - before < 3


def processor_s() -> float:
    """Of this process and of the children that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
