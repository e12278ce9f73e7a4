"""A mesh from another process: commands, pings, links, TCP, errors, and its end in every way that a test process can end."""

import gc
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from manet_testbed import CommandFailed, Mesh, MeshError, MeshTimeout, WrongRequest
from manet_testbed.process import MAX_OUTPUT_BYTES, PIPE, STDOUT
from manet_testbed.station import Station
from testbed.programs import ROOT
from testbed.tests.running import Traces, needs_runs, nothing_left, run_json, state_of, wait_until

Request = Callable[[Mesh, Station], object]
pytestmark = [pytest.mark.root, needs_runs]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    with Mesh.chain(3, directory=tmp_path_factory.mktemp("runs") / "mesh") as up:
        yield up


def test_two_hops_are_one_ping(mesh: Mesh) -> None:
    ping = mesh["sta1"].ping(mesh["sta3"])
    assert (ping.sent, ping.received, ping.loss) == (3, 3, 0)
    assert ping.rtt_ms is not None and 1 < ping.rtt_ms < 1000
    assert mesh.links() == {("sta1", "sta2"), ("sta2", "sta1"), ("sta2", "sta3"), ("sta3", "sta2")}
    assert mesh["sta1"].route_to(mesh["sta3"]).via == mesh["sta2"].address


def test_a_command_has_its_input_folder_and_environment(mesh: Mesh, tmp_path: Path) -> None:
    done = mesh["sta2"].run(["sh", "-c", "cat; pwd; echo $WORD >&2"], input="in\n", cwd=tmp_path, env={**os.environ, "WORD": "w"})
    assert (done.stdout, done.stderr, done.returncode) == (f"in\n{tmp_path}\n", "w\n", 0)


def test_a_program_is_found_in_its_folder_and_path(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("#!/bin/sh\necho own\n")
    (tmp_path / "own").chmod(0o755)
    assert mesh["sta1"].run("./own", cwd=tmp_path).stdout == "own\n"
    assert mesh["sta1"].run("own", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}).stdout == "own\n"


def test_an_environment_may_be_larger_than_a_datagram(mesh: Mesh) -> None:
    values = {f"V{number}": "x" * 100_000 for number in range(8)}
    assert mesh["sta1"].run(["printenv", "V7"], env={**os.environ, **values}).stdout == "x" * 100_000 + "\n"


def test_a_failed_command_is_an_error_of_one_line_that_names_station_and_command(mesh: Mesh) -> None:
    with pytest.raises(CommandFailed) as failed:
        mesh["sta1"].run(["sh", "-c", "echo first; echo last >&2; exit 3"])
    assert str(failed.value) == 'sta1: sh -c echo first; echo last >&2; exit 3: status 3: "last"'
    assert (failed.value.returncode, failed.value.stdout) == (3, "first\n")
    assert mesh["sta1"].run("false", check=False).returncode == 1
    with pytest.raises(WrongRequest, match=r"^sta1: no-such-program: not found"):
        mesh["sta1"].run("no-such-program --help")
    with pytest.raises(WrongRequest, match=r"^sta1: ls: the folder /proc/nowhere does not exist"):
        mesh["sta1"].run("ls", cwd="/proc/nowhere")
    with pytest.raises(WrongRequest, match=r"^sta1: ls: embedded null byte$"):
        mesh["sta1"].run(["ls", "a\0b"])
    with pytest.raises(WrongRequest, match=r"^sta1: run: the command is empty$"):
        mesh["sta1"].run([])
    with pytest.raises(WrongRequest, match=r"there is no station 'sta9'; the stations are sta1, sta2, sta3$"):
        mesh["sta9"]


def test_a_command_is_killed_after_its_timeout(mesh: Mesh) -> None:
    with pytest.raises(MeshTimeout, match=r"^sta2: sleep 60: not ended within 0.3 s$"):
        mesh["sta2"].run("sleep 60", timeout=0.3)
    assert mesh["sta2"].run("pgrep -x sleep", check=False).returncode == 1


@pytest.mark.parametrize("command", ["yes", "yes; true", "yes >&2; true"])
def test_a_command_that_prints_without_end_is_killed_at_the_limit(mesh: Mesh, command: str) -> None:
    """In memory files 300 MB of it cost 1.6 GB, and the machine ran out of memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MeshError, match=rf"sta1: sh -c {command}: printed more than 16 MiB; .* into a file: popen"):
        mesh["sta1"].run(["sh", "-c", command], timeout=60)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * MAX_OUTPUT_BYTES / 1024
    with pytest.raises(MeshError, match="printed more than 16 MiB"):
        mesh["sta1"].popen(["sh", "-c", command], stdout=PIPE, stderr=STDOUT).communicate()
    wait_until(lambda: mesh["sta1"].run(["pgrep", "-x", "yes"], check=False).returncode == 1, "nobody prints any more", 20)


def test_as_much_output_as_the_limit_is_whole(mesh: Mesh) -> None:
    done = mesh["sta1"].run(["head", "-c", str(MAX_OUTPUT_BYTES), "/dev/zero"])
    assert done.stdout == "\0" * MAX_OUTPUT_BYTES


def test_output_in_steps_does_not_outlast_the_timeout(mesh: Mesh) -> None:
    with pytest.raises(MeshTimeout, match=r'not ended within 0\.5 s: "again"'):
        mesh["sta1"].run(["sh", "-c", "while :; do echo again; sleep 0.02; done"], timeout=0.5)


def test_a_program_in_the_background_prints_on_after_the_end(mesh: Mesh, tmp_path: Path) -> None:
    words = ["sh", "-c", "(sleep 0.5; echo more; echo more; touch printed) & echo first"]
    assert mesh["sta1"].run(words, cwd=tmp_path).stdout == "first\n"
    wait_until(lambda: (tmp_path / "printed").exists(), "the program has printed", 20)


NONSENSE = {
    "break_link(a, a)": (lambda m, a: m.break_link(a, a), "give two stations with a radio, of sta1, sta2, sta3"),
    "break_link(None, a)": (lambda m, a: m.break_link(None, a), "there is no station None"),
    "restore_link(a, a)": (lambda m, a: m.restore_link(a, a), "is not broken; call break_link before"),
    "move(nan, 0)": (lambda m, a: a.move(math.nan, 0), "nan is not a finite number; give a distance in m"),
    "move(x, 0)": (lambda m, a: a.move("x", 0), "move: x='x': give a number"),
    "move(1e300, 0)": (lambda m, a: a.move(1e300, 0), "give at most 1e+07 m"),
    "move(speed=inf)": (lambda m, a: a.move(0, 0, speed=math.inf), "inf is not a finite number; give a speed in m/s"),
    "power(maybe)": (lambda m, a: a.power("maybe"), "give True or False"),
    "daemon([])": (lambda m, a: a.daemon([]), "give start, stop, restart or kill"),
    "ping(count=0)": (lambda m, a: a.ping(a, count=0), "count=0: give a whole number from 1"),
    "ping(interval=nan)": (lambda m, a: a.ping(a, interval=math.nan), "interval=nan: give a number"),
    "ping(option)": (lambda m, a: a.ping("-f"), "ping sent nothing"),
    "tcp(a, a)": (lambda m, a: m.tcp(a, a), "would measure itself"),
    "tcp(seconds=nan)": (lambda m, a: m.tcp(a, "sta2", math.nan), "iperf3 takes whole seconds from 1 to 86400"),
    "routes(ip=5)": (lambda m, a: a.routes(ip=5), "the versions are 4 and 6"),
    "run(quote)": (lambda m, a: a.run("echo 'x"), "No closing quotation; give a text or a list of words"),
    "run(None)": (lambda m, a: a.run(None), "give a text or a list of words"),
    "run(null byte)": (lambda m, a: a.run(["true", "a\0b"]), "embedded null byte"),
    "run(timeout=nan)": (lambda m, a: a.run("true", timeout=math.nan), "timeout=nan: give seconds, or None for no limit"),
    "run(env=[1])": (lambda m, a: a.run("true", env=[1]), "give a dict of texts"),
    "run(env=5)": (lambda m, a: a.run("true", env={"A": 5}), "give a dict of texts"),
    "run(cwd=5)": (lambda m, a: a.run("true", cwd=5), "cwd=5: give a folder"),
    "popen(stdin=9999)": (lambda m, a: a.popen("true", stdin=9999), "stdin=9999: give an open file, PIPE or DEVNULL"),
    "popen(stdin=STDOUT)": (lambda m, a: a.popen("true", stdin=STDOUT), "give an open file, PIPE or DEVNULL"),
    "wait_until_succeeds(timeout=x)": (lambda m, a: a.wait_until_succeeds("true", timeout="x"), "timeout='x': give seconds"),
    "mesh[[1]]": (lambda m, a: m[[1]], "there is no station [1]"),
}


@pytest.mark.parametrize(("request_of", "words"), NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_refused_in_one_line_and_the_mesh_lives_on(mesh: Mesh, request_of: Request, words: str) -> None:
    """`break_link(a, a)` ended the mesh: "bug in the testbed: KeyError"."""
    with pytest.raises(MeshError) as refused:
        request_of(mesh, mesh["sta1"])
    assert words in str(refused.value) and len(str(refused.value).splitlines()) == 1 and "bug" not in str(refused.value)
    assert ("sta1", "sta2") in mesh.links()


def test_a_defect_in_one_request_does_not_end_the_mesh(mesh: Mesh) -> None:
    """A request that no method of this side sends."""
    with pytest.raises(MeshError, match=r"bug in the testbed: ended: KeyError\(99\); see .*run.log"):
        mesh._ask("ended", process=99)
    assert ("sta1", "sta2") in mesh.links()


def test_a_started_command_is_read_signalled_and_waited_for(mesh: Mesh) -> None:
    with mesh["sta3"].popen("cat", stdin=PIPE, stdout=PIPE) as process:
        assert process.poll() is None
        assert process.communicate("text\n", timeout=10) == ("text\n", "")
        assert process.returncode == 0
    process = mesh["sta3"].popen("sleep 60")
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM


def test_a_server_and_its_client(mesh: Mesh, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("of the third station")
    serve = [sys.executable, "-m", "http.server", "--bind", mesh["sta3"].address, "8000"]
    with mesh["sta3"].popen(serve, cwd=tmp_path):
        fetch = f"import urllib.request; print(urllib.request.urlopen('http://{mesh['sta3'].address}:8000/page').read().decode())"
        done = mesh["sta1"].wait_until_succeeds([sys.executable, "-c", fetch], timeout=60)
    assert done.stdout == "of the third station\n"


def test_wait_until_succeeds_gives_up_with_the_last_failure(mesh: Mesh) -> None:
    with pytest.raises(MeshTimeout, match=r'^sta1: ls /proc/nowhere: status 2: ".*"; did not succeed within 0.5 s$'):
        mesh["sta1"].wait_until_succeeds("ls /proc/nowhere", timeout=0.5)


def test_wait_until_names_the_condition(mesh: Mesh) -> None:
    def never() -> bool:
        return False

    with pytest.raises(MeshTimeout, match=r"^wait_until: .*never is False after 0.3 s$"):
        mesh.wait_until(never, timeout=0.3)
    assert mesh.wait_until(lambda: 7, timeout=1) == 7


def test_a_broken_link_loses_all_and_a_restored_one_nothing(mesh: Mesh) -> None:
    mesh.break_link("sta2", mesh["sta3"])
    assert mesh["sta1"].ping(mesh["sta3"], count=2).loss == 1
    assert ("sta2", "sta3") not in mesh.links()
    assert mesh["sta1"].ping(mesh["sta2"], count=2).loss == 0
    mesh.restore_link("sta2", "sta3")
    assert mesh["sta1"].ping(mesh["sta3"], count=3).loss < 1
    with pytest.raises(WrongRequest, match=r"restore_link\(sta2, sta3\): is not broken"):
        mesh.restore_link("sta2", "sta3")


@pytest.mark.skipif(shutil.which("babeld") is None, reason="babeld: not found; apt-get install babeld")
def test_a_daemon_of_the_test_routes(tmp_path: Path) -> None:
    """As a daemon that the testbed does not know: the stations have their radios, and the daemon does the rest."""
    with Mesh.chain(3, routing="none", ipv6=True) as mesh:
        for station in mesh.stations:
            own = [f"redistribute local ip {station.address}/32 allow", "redistribute local deny"]
            words = [word for line in [*own, "interface wlan0 type wireless hello-interval 1"] for word in ("-C", line)]
            station.popen(["babeld", "-I", "", "-S", tmp_path / station.name, *words, "wlan0"])
        first, last = mesh["sta1"], mesh["sta3"]
        mesh.wait_until(lambda: first.route_to(last) and last.route_to(first), timeout=60)
        assert first.ping(last).received > 0


def test_a_routing_daemon_is_killed_and_started_again(mesh: Mesh, tmp_path: Path) -> None:
    with Mesh.chain(2, routing="aodv", directory=tmp_path / "mesh") as aodv:
        first, second = aodv.stations
        assert first.ping(second).received > 0
        second.daemon("kill")
        with pytest.raises(MeshError, match="sta2: its routing daemon does not run; start it"):
            second.daemon("stop")
        second.daemon("start")
        second.daemon("restart")
        aodv.wait_until(lambda: first.ping(second, count=1).received > 0)  # AODV waits after a crash (RFC 3561, 6.13)
    with pytest.raises(WrongRequest, match=r'^sta1: daemon: routing "static" has no daemon; choose a protocol'):
        mesh["sta1"].daemon("kill")
    with pytest.raises(WrongRequest, match='"end" is not known; give start, stop, restart or kill'):
        mesh["sta1"].daemon("end")


def test_stations_of_a_mesh_with_ipv6_reach_each_other_by_it() -> None:
    with Mesh.chain(3, ipv6=True) as mesh:
        first, middle, last = mesh.stations
        assert (last.address, last.address6) == ("10.0.0.3", "fd6d:616e:6574::3")
        assert first.ping(last, ip=6).loss == 0
        route = first.route_to(last, ip=6)
        assert route is not None and (route.destination, route.via) == (last.address6, "fe80::ff:fe00:2")
        assert [route.destination for route in middle.routes(ip=6)][:2] == [first.address6, last.address6]
        assert mesh.tcp(first, last, seconds=2, ip=6).kbps > 300
        with pytest.raises(WrongRequest, match="sta1: ip=5: the versions are 4 and 6"):
            first.ping(first, ip=5)


def test_without_ipv6_a_station_has_no_such_address(mesh: Mesh) -> None:
    assert mesh["sta1"].address6 is None
    with pytest.raises(WrongRequest, match="sta3: has no IPv6 address; give the mesh ipv6=True"):
        mesh["sta1"].ping(mesh["sta3"], ip=6)


def test_a_station_without_power_or_out_of_range_does_not_answer(mesh: Mesh) -> None:
    mesh["sta2"].power(False)
    assert mesh["sta1"].ping(mesh["sta2"], count=1).loss == 1
    mesh["sta2"].power(True)
    mesh["sta3"].move(9000, 0)
    assert mesh["sta3"].position == (9000, 0, 0)
    assert mesh.links() == {("sta1", "sta2"), ("sta2", "sta1")}
    mesh["sta3"].move(400, 0)
    mesh["sta3"].move(500, 0, speed=10)
    mesh.wait_until(lambda: 400 < mesh.positions()["sta3"][0] < 500)
    mesh["sta3"].move(400, 0)


def test_tcp_is_measured(mesh: Mesh) -> None:
    mesh.wait_until(lambda: mesh["sta1"].ping(mesh["sta3"], count=1).loss == 0)
    one_hop = mesh.tcp("sta1", "sta2", seconds=2)
    two_hops = mesh.tcp("sta1", mesh["sta3"], seconds=2)
    assert 300 < two_hops.kbps < one_hop.kbps < 2000
    assert one_hop.received_bytes == pytest.approx(one_hop.received_bps * one_hop.seconds / 8, rel=0.01)


def test_several_meshes_stand_side_by_side_and_end_alone(mesh: Mesh, tmp_path: Path) -> None:
    with Mesh.grid(2, 2, directory=tmp_path / "grid") as grid, Mesh.random(3, area=(100, 100), seed=5) as near:
        assert [station.name for station in grid] == ["sta1", "sta2", "sta3", "sta4"]
        assert grid["sta1"].ping(grid["sta4"], count=2).loss == 0
        assert near["sta1"].ping(near["sta3"], count=2).loss == 0
        temporary = near.directory
        assert {"sta1", "sta4", "air"} <= grid.captures.keys()
    assert grid.captures["sta1"].stat().st_size > 100
    assert not temporary.exists()
    assert grid.verdict().word in ("valid", "suspect", "void")
    assert run_json(tmp_path / "grid")["status"] == "complete"
    assert nothing_left(tmp_path / "grid")
    assert mesh["sta1"].run("true").returncode == 0
    with pytest.raises(MeshError, match=r"^sta4: ip route: the mesh has ended$"):
        grid["sta4"].run("ip route")


def test_a_scenario_file_with_overrides(tmp_path: Path) -> None:
    file = ROOT / "experiments" / "scenarios" / "hidden3.toml"
    with Mesh.from_toml(file, directory=tmp_path / "run", **{"routing.protocol": "aodv"}) as mesh:
        assert mesh["sta1"].ping(mesh["sta2"], count=3).received > 0
    assert '"aodv"' in (tmp_path / "run" / "scenario.json").read_text()


def test_wired_hosts_are_nodes_without_a_radio() -> None:
    with Mesh.chain(2, wires=[{"station": "sta2", "host": "inet1"}]) as mesh:
        assert [host.name for host in mesh.hosts] == ["inet1"]
        assert mesh["sta1"].ping(mesh["inet1"], count=2).loss == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Mesh.chain(3, spaceing=100), 'Mesh.chain: key "spaceing": unknown key; did you mean "spacing"?'),
        (lambda: Mesh.chain(3, spacing=-1), 'Mesh.chain: key "spacing": '),
        (lambda: Mesh.of(topology="ring"), 'Mesh.of: key "topology": '),
        (lambda: Mesh.chain(3, clock="virtual"), "a mesh runs in real time"),
        (lambda: Mesh.from_toml("nowhere.toml"), "nowhere.toml"),
        (lambda: Mesh.from_toml(ROOT / "experiments" / "hv-fig1.toml"), "is an experiment"),
        (lambda: Mesh.from_toml(ROOT / "experiments" / "scenarios" / "hidden3.toml", hopps=3), 'key "hopps"'),
        (lambda: Mesh.chain(3, seed=0), "Mesh.chain: seed=0: is no whole number from 1 on"),
    ],
)
def test_a_wrong_key_is_refused_before_anything_starts(make: object, words: str) -> None:
    with pytest.raises(WrongRequest) as refused:
        make().__enter__()
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_mesh_that_is_not_up_says_so() -> None:
    with pytest.raises(WrongRequest, match=r"^Mesh.chain: is not up; use it in a with block$"):
        _ = Mesh.chain(2)["sta1"]


def test_an_exception_takes_the_mesh_down_and_passes(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Mesh.chain(2, directory=tmp_path / "run") as mesh:
        started = mesh["sta1"].popen("sleep 600")
        _ = 1 / 0
    assert run_json(tmp_path / "run")["status"] == "complete"
    assert nothing_left(tmp_path / "run")
    with pytest.raises(MeshError):
        started.wait(1)


def test_the_failure_of_a_daemon_is_named(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"sta2: .*was killed by SIGKILL"), Mesh.chain(2, routing="aodv") as mesh:
        mesh["sta1"].run("pkill -9 -f manet-aodv.*sta2")
        mesh.wait_until(lambda: False, timeout=10)


PROGRAM = """
import sys, time
from manet_testbed import Mesh
with Mesh.chain(2, directory=sys.argv[1]) as mesh:
    mesh["sta1"].popen("sleep 600")
    print("up", flush=True)
    mesh["sta1"].run("sleep 600", timeout=600)
"""


@contextmanager
def a_test_process(program: str, folder: Path, first: str = "up\n") -> Iterator[subprocess.Popen[str]]:
    """A test process at work, once it has printed `first`."""
    command, environment = [sys.executable, "-c", program, str(folder)], {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None and process.stdout.readline() == first
        yield process


def left_of(traces: Traces) -> list[str]:
    """Without namespaces: those of a run that has just begun elsewhere may have the same numbers."""
    return [thing for thing in traces.remaining() if not thing.startswith("namespace")]


def wait_for_end(folder: Path, traces: Traces) -> None:
    assert len(traces.processes) > 5
    wait_until(lambda: nothing_left(folder) and not left_of(traces), f"the end of the mesh ({traces})")
    wait_until(lambda: run_json(folder)["ended"], "its record")
    assert run_json(folder)["status"] == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_nothing_outlives_the_test_process(tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "run"
    with a_test_process(PROGRAM, folder) as process:
        traces = Traces.of(folder)
        time.sleep(0.3)
        process.send_signal(number)
        process.wait(60)
    wait_for_end(folder, traces)


def test_a_child_of_the_test_process_does_not_keep_the_mesh(tmp_path: Path) -> None:
    """A fork without exec has the pipe of the test process, too; it goes on when its parent is killed."""
    folder = tmp_path / "run"
    fork = "    child = os.fork()\n    if child == 0: time.sleep(60); os._exit(0)\n"
    note = "    open(sys.argv[1] + '/child', 'w').write(str(child))\n"
    program = "import os" + PROGRAM.replace("    print(", f"{fork}{note}    print(")
    with a_test_process(program, folder) as process:
        child, traces = int((folder / "child").read_text()), Traces.of(folder)
        process.kill()
        try:
            wait_for_end(folder, traces)
        finally:
            os.kill(child, signal.SIGKILL)


def test_ctrl_c_while_the_mesh_comes_up_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = PROGRAM.replace("with Mesh", "print('begins', flush=True)\nwith Mesh")
    with a_test_process(program, folder, "begins\n") as process:
        wait_until(lambda: state_of(folder) is not None, "the state file")
        process.send_signal(signal.SIGINT)
        _output, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert nothing_left(folder)


def test_the_end_of_the_process_of_the_testbed_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    died = pytest.raises(MeshError, match=r"^the process of the testbed ended without a word$")
    with died, Mesh.chain(2, directory=folder) as mesh:
        state, traces = state_of(folder), Traces.of(folder)
        assert state is not None
        os.kill(state.owner.pid, signal.SIGKILL)
        wait_until(lambda: not left_of(traces), "the end of the mesh")
        mesh["sta1"].run("true")
    assert nothing_left(folder)


def test_several_threads_use_one_mesh(mesh: Mesh) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda number: mesh[f"sta{number % 3 + 1}"].run(f"echo {number}").stdout, range(24)))
    assert done == [f"{number}\n" for number in range(24)]


def descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open(mesh: Mesh) -> None:
    before = descriptors()
    for _ in range(3):
        mesh["sta1"].run("true")
        mesh["sta1"].run("false", check=False)
        with mesh["sta2"].popen("cat", stdin=PIPE, stdout=PIPE):
            pass
        with pytest.raises(WrongRequest):
            mesh["sta1"].popen("no-such-program", stdout=PIPE)
    gc.collect()
    assert descriptors() == before
