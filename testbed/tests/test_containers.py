"""Stations with a root file system of their own, in runs: their programs, their limits, and what a hostile one reaches."""

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from scenarios.scenario import Scenario
from testbed.host import cgroup, user_namespace
from testbed.programs import BUILT
from testbed.runs.run import RunResult, run_scenario
from testbed.stages.running_container import ENVIRONMENT
from testbed.stages.site import Site
from testbed.tests.rootfs import made_of
from testbed.tests.running import chain, driven, needs_runs, prompt, state_of, until_stage, wait_until

pytestmark = [pytest.mark.root, needs_runs]
PROGRAMS = ("cat", "env", "id", "ip", "kill", "ls", "mkdir", "mount", "ping", "ps", "sleep", "touch", "unshare", "nginx")
NGINX = """
daemon off; worker_processes 1; pid /run/nginx.pid; error_log stderr; user www-data;
events { }
http { access_log off; server { listen 80; root /www; } }
"""
GET = """
import socket, sys, time
while True:
    try:
        with socket.create_connection((sys.argv[1], 80)) as server:
            server.sendall(b"GET /page HTTP/1.0\\r\\n\\r\\n")
            print(server.makefile().read().splitlines()[-1], flush=True)
            break
    except OSError:
        time.sleep(0.1)
"""
CLIENT = ["python3", "-I", "-S", "-c", GET, "{target}"]
PAGE = "a page of the container\n"
FROM_2 = {"source": "sta2", "target": "sta1"}


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_of(tmp_path_factory.mktemp("rootfs"), *PROGRAMS)
    (folder / "etc/nginx.conf").write_text(NGINX)
    (folder / "www").mkdir()
    (folder / "www/page").write_text(PAGE)
    return folder


def station(rootfs: Path, command: list[str] | None = None, name: str = "sta1", **keys: object) -> dict:
    return {"name": name, "rootfs": str(rootfs), **({"command": command} if command else {}), **keys}


def command_flow(command: list[str], source: str = "sta1", target: str = "sta2", **keys: object) -> dict:
    return {"from": source, "to": target, "traffic": "command", "command": command, **keys}


def ran(scenario: Scenario, directory: Path) -> RunResult:
    result = run_scenario(scenario, 1, directory, programs=BUILT)
    groups = [mount / cgroup.PARENT for mount in {*cgroup.version_1_mounts().values(), cgroup.require_mount()}]
    left = [str(path) for group in groups for path in group.glob(f"*-{os.getpid()}-*")]
    assert left == []
    return result


def printed(directory: Path, name: str = "flow1-sender") -> str:
    return (directory / "log" / f"{name}.log").read_text()


def entry(directory: Path, name: str = "sta1") -> dict:
    return json.loads((directory / "containers.json").read_text())["stations"][name]


def listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_server_in_a_container_answers_over_two_hops(rootfs, tmp_path, host):
    """As any station: its frames are on the air, its interface is captured, a relay forwards to it."""
    flow = command_flow(CLIENT, target="sta3")
    server = station(rootfs, ["nginx", "-c", "/etc/nginx.conf"], name="sta3", memory=128 << 20, pids=20)
    before = listing(rootfs)
    result = ran(chain(hops=2, duration=5, flows=[flow], stations=[server]), tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    if result.verdict != "valid":
        host.void(f"the run is {result.verdict}")
    assert printed(tmp_path / "run") == PAGE
    assert (tmp_path / "run/captures/sta3.pcap").stat().st_size > 500
    assert analyse_run(tmp_path / "run")["flows"]["flow1"]["exit_status"] == 0
    assert entry(tmp_path / "run", "sta3")["limits"] == {"memory": 128 << 20, "pids": 20}
    assert entry(tmp_path / "run", "sta3")["remarks"] == []
    assert listing(rootfs) == before  # its pid file and its changes are gone with the run


def test_programs_see_the_containers_files_processes_and_the_stations_network(rootfs, tmp_path):
    script = "ls /; id -u; cat /proc/sys/kernel/hostname; ip -br addr; ps -e -o comm=; touch /etc/new; env"
    result = ran(chain(flows=[command_flow(["sh", "-c", script])], stations=[station(rootfs)]), tmp_path / "run")
    assert result.status == "complete"
    words = printed(tmp_path / "run").split()
    assert {"www", "etc", "0", "sta1", "10.0.0.1/8"} <= set(words) and "home" not in words
    assert "iperf3" not in words and "bash" not in words and f"PATH={ENVIRONMENT['PATH']}" in words
    assert not any(word.startswith("PYTHON") for word in words)
    assert not (rootfs / "etc/new").exists()


def test_a_killed_command_ends_the_run_in_one_line(rootfs, tmp_path):
    scenario = chain(flows=[command_flow(["true"], **FROM_2)], stations=[station(rootfs, ["sh", "-c", "kill -9 $$"])])
    result = ran(scenario, tmp_path / "run")
    assert result.status == "failed"
    assert result.error.startswith("sta1-command: sh was killed by SIGKILL; ")
    assert "\n" not in result.error


def test_a_command_that_runs_out_of_memory_is_named_with_its_limit(rootfs, tmp_path):
    growing = ["sh", "-c", "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"]
    scenario = chain(flows=[command_flow(["true"], **FROM_2)], stations=[station(rootfs, growing, memory="32 MiB")])
    result = ran(scenario, tmp_path / "run")
    reason = "out of memory: the kernel killed one of its processes (memory = 33554432 bytes)"
    assert (result.status, entry(tmp_path / "run")["remarks"]) == ("failed", [reason])
    assert result.error.startswith(f'sta1-command: sh was killed by SIGKILL: "{reason}"; ')
    assert 30 << 20 <= entry(tmp_path / "run")["peak_memory_bytes"] <= 32 << 20


def test_a_command_of_a_flow_that_runs_out_of_memory_is_a_remark_of_the_run(rootfs, tmp_path):
    growing = ["sh", "-c", "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done"]
    result = ran(chain(flows=[command_flow(growing)], stations=[station(rootfs, memory="32 MiB")]), tmp_path / "run")
    assert result.status == "complete"
    flow, container = analyse_run(tmp_path / "run")["remarks"]
    assert flow.startswith("flow1 from sta1 to sta2 was killed by signal 9: sh, after ")
    assert container == "sta1: out of memory: the kernel killed one of its processes (memory = 33554432 bytes)"


def test_forks_above_the_limit_are_refused_counted_and_named(rootfs, tmp_path):
    """200 children, and at most 50 processes with the shell; dash gives up at the first fork(2) that fails."""
    children = "i=0; while [ $i -lt 200 ]; do (sleep 100 & sleep 100) & i=$((i + 1)); done; wait"
    result = ran(chain(flows=[command_flow(["sh", "-c", children])], stations=[station(rootfs, pids=50)]), tmp_path / "run")
    assert result.status == "complete"
    refused = entry(tmp_path / "run")["refused_forks"]
    assert refused >= 1
    assert any(f"{refused} forks" in line or "one fork" in line for line in analyse_run(tmp_path / "run")["remarks"])


def test_200_children_end_with_the_run(rootfs, tmp_path):
    children = "i=0; while [ $i -lt 200 ]; do sleep 4321 & i=$((i + 1)); done; wait"
    server = station(rootfs, ["sh", "-c", children])
    result = ran(chain(flows=[command_flow(["true"], **FROM_2)], stations=[server]), tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(b"sleep\x004321" in line for line in lines)


def test_a_limit_of_processor_time_slows_the_station_and_not_the_verdict(rootfs, tmp_path):
    """A busy loop that may use a tenth of a processor waits for nine tenths of the time, by its own limit: its group is left out
    of the waits that decide the verdict."""
    busy = station(rootfs, ["sh", "-c", "while :; do :; done"], cpu=0.1)
    scenario = chain(flows=[command_flow(["true"], **FROM_2)], stations=[busy])
    assert ran(scenario, tmp_path / "run").status == "complete"
    assert entry(tmp_path / "run")["throttled_s"] > 1
    assert Site(scenario, 1, tmp_path, Path("/group")).limited_groups == [Path("/group/sta1")]


def test_a_program_that_the_root_file_system_lacks_is_named(rootfs, tmp_path):
    scenario = chain(flows=[command_flow(["true"], **FROM_2)], stations=[station(rootfs, ["babeld", "wlan0"])])
    result = ran(scenario, tmp_path / "run")
    assert result.error.startswith('sta1-command: babeld ended with status 127: "nsenter: failed to execute babeld: No such file')


def test_the_prompt_of_a_container_is_in_it(rootfs, tmp_path):
    lines = ("sta1 ls /", "sta1 id -u", "sta1 exit", "sta1 cat /proc/self/uid_map", "sta1 sleep 1000 &", "sta2 ls /")
    output = prompt(chain(stations=[station(rootfs, sandbox=True)]), tmp_path / "run", *lines)
    inside, outside = output.split("its shell ended with status 0")
    assert "www" in inside and "home" not in inside
    assert str(user_namespace.first_id(1)) in outside and "home" in outside
    assert "status complete None" in output


def test_nothing_is_left_of_a_run_that_is_killed(rootfs, tmp_path):
    """SIGKILL to `manet`: the run ends itself, with the container's processes, groups and mounts."""
    server = station(rootfs, ["sh", "-c", "sleep 4322 & sleep 4322"], memory=64 << 20, pids=10)
    scenario = chain(duration=60, flows=[command_flow(["true"], **FROM_2)], stations=[server])
    process = driven(scenario, tmp_path / "run")
    until_stage(process, "traffic")
    group = Path(state_of(tmp_path / "run").cgroup)
    limited = [mount / cgroup.PARENT / group.name for mount in set(cgroup.version_1_mounts().values())]
    process.kill()
    process.wait()
    wait_until(lambda: not any(path.exists() for path in (group, *limited)), "the end of the groups")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(b"sleep\x004322" in line for line in lines)


# --- sandbox ----------------------------------------------------------------------------------------------------------

HOSTILE = r"""
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "REACHED $name"; else echo "held $name"; fi; }
try root-of-the-init ls /proc/1/root/
try files-of-the-init ls /proc/1/fd/
try program-of-the-init cat /proc/1/exe
try kill-the-init kill -9 1
try kill-all-others sh -c 'kill -9 {other}'
try see-others ls /proc/{other}
try the-secret cat {secret}
try write-the-host touch {target}
try the-medium ls /run/manet/medium.sock
try mount-tmpfs mount -t tmpfs none /tmp
try mount-disk mount -t ext4 /dev/vda /mnt
try remount mount -o remount,dev /
try mount-cgroups mount -t cgroup2 none /tmp
try cgroups ls /sys/fs/cgroup
try move-out sh -c 'echo 0 > /sys/fs/cgroup/cgroup.procs'
try sysctl sh -c 'echo 0 > /proc/sys/net/ipv4/ip_forward'
try kernel-sysctl sh -c 'echo core > /proc/sys/kernel/core_pattern'
try sysrq sh -c 'echo h > /proc/sysrq-trigger'
try hostname sh -c 'echo evil > /proc/sys/kernel/hostname'
try radio-down ip link set wlan0 down
try address ip addr add 10.0.0.9/8 dev wlan0
try route ip route add default dev wlan0
try rename ip link set wlan0 name wlan9
try device mknod /dev/sda b 254 0
try kernel-log cat /proc/kmsg
try memory cat /proc/kcore
try host-port sh -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
try own-files touch /etc/allowed
try own-ping ping -c 1 -w 3 10.0.0.2
echo done
"""


@pytest.fixture
def listener():
    """A server on the host's loopback, which counts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        seen: list[object] = []

        def accept() -> None:
            try:
                while True:
                    seen.append(server.accept())
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_hostile_station_in_a_sandbox_reaches_nothing(rootfs, tmp_path, listener):
    """Host files, the medium's socket, other stations' processes, the host's network; only its own files and the air are left."""
    port, connections = listener
    secret, target = tmp_path / "secret", tmp_path / "written"
    secret.write_text("secret")
    made_of(rootfs, "mknod", "bash")
    values = {"other": os.getpid(), "secret": secret, "target": target, "port": port}
    script = HOSTILE
    for name, value in values.items():
        script = script.replace(f"{{{name}}}", str(value))
    script = script.replace("{", "{{").replace("}", "}}")
    scenario = chain(duration=6, flows=[command_flow(["bash", "-c", script])], stations=[station(rootfs, sandbox=True)])
    result = ran(scenario, tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    lines = printed(tmp_path / "run").splitlines()
    assert [line for line in lines if line.startswith("REACHED")] == ["REACHED own-files", "REACHED own-ping"]
    assert len(lines) == HOSTILE.count("\ntry ") + 1 and lines[-1] == "done"
    assert not target.exists() and connections == []


def test_a_link_in_a_root_file_system_leads_nowhere(tmp_path):
    """/dev as a link to a folder of the machine would be resolved before the root file system is the root."""
    root = made_of(tmp_path / "root", "sleep")
    (tmp_path / "outside").mkdir()
    (root / "dev").symlink_to(tmp_path / "outside")
    result = ran(chain(stations=[station(root, ["sleep", "100"])]), tmp_path / "run")
    assert "/dev of the root file system is a symbolic link; make it a folder" in result.error
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_root_of_a_sandbox_is_an_unprivileged_user_of_this_machine(rootfs, tmp_path):
    flow = command_flow(["sh", "-c", "id -u; cat /proc/self/uid_map; ls -ldn /etc /; touch /tmp/own; ls -ln /tmp/own"])
    result = ran(chain(flows=[flow], stations=[station(rootfs, sandbox=True)]), tmp_path / "run")
    assert result.status == "complete"
    lines = printed(tmp_path / "run").splitlines()
    assert lines[0] == "0" and lines[1].split() == ["0", str(user_namespace.first_id(1)), "65536"]
    assert [line.split()[2:4] for line in lines[2:]] == [["0", "0"]] * 3


def test_a_server_in_a_sandbox_listens_on_port_80(rootfs, tmp_path, host):
    flow = command_flow(CLIENT, **FROM_2)
    server = station(rootfs, ["nginx", "-c", "/etc/nginx.conf"], sandbox=True, memory=128 << 20)
    result = ran(chain(duration=5, flows=[flow], stations=[server]), tmp_path / "run")
    assert (result.status, result.error) == ("complete", None)
    if result.verdict != "valid":
        host.void(f"the run is {result.verdict}")
    assert printed(tmp_path / "run") == PAGE


def test_two_sandboxes_share_no_user(rootfs, tmp_path):
    assert user_namespace.first_id(2) == user_namespace.first_id(1) + user_namespace.IDS
    flows = [command_flow(["cat", "/proc/self/uid_map"]), command_flow(["cat", "/proc/self/uid_map"], "sta2", "sta1")]
    stations = [station(rootfs, sandbox=True), station(rootfs, name="sta2", sandbox=True)]
    assert ran(chain(flows=flows, stations=stations), tmp_path / "run").status == "complete"
    assert printed(tmp_path / "run", "flow1-sender") != printed(tmp_path / "run", "flow2-sender")
