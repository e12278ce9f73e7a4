"""Runs of an ordinary user: in a user namespace, without eBPF, control groups and root of the machine (docs/rootless.md).

The tests run as root in CI. They become a user without a name, groups or capabilities, in a mount namespace in which that user
may open /dev/net/tun, with a home and a runtime folder of its own.
"""

import csv
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.host import algorithms, privileges
from testbed.programs import BUILT, ROOT

USER = 61_234  # of no account, and none of systemd's dynamic users (61184 to 65519 are free for them on demand alone)
TUN = os.makedev(10, 200)  # Documentation/admin-guide/devices.txt
REACHES = "test -x {0} && test -r {1}"
MANET = [sys.executable, "-P", "-m", "testbed"]

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user, which needs root; sudo ./manet test"),
    pytest.mark.skipif(not BUILT.medium.exists(), reason="the medium is not built; run ./setup.sh"),
]


class User:
    """An ordinary user with a folder `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "HOME": str(home), "XDG_RUNTIME_DIR": str(home / "runtime"), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        }  # fmt: skip

    def line(self, words: list[str]) -> list[str]:
        """The command line, for root, that runs a command of this user."""
        become = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--inh-caps=-all", "--"]
        return [
            "unshare",
            "--mount",
            "sh",
            "-c",
            f'mount --bind {self.home}/tun /dev/net/tun && exec "$@"',
            "sh",
            *become,
            *words,
        ]

    def call(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run `manet WORDS` to its end."""
        return self.execute([*MANET, *words], given=given)

    def execute(self, words: list[str], *, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `given`: its standard input."""
        return subprocess.run(
            self.line(words), capture_output=True, text=True, env=self.environment, cwd=self.home, input=given, check=False
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start `manet WORDS`."""
        return subprocess.Popen(
            self.line([*MANET, *words]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
            cwd=self.home,
        )  # fmt: skip


@pytest.fixture(scope="module")
def user() -> Iterator[User]:
    """A user who may read this checkout; the tests are skipped where that is not so, or user namespaces are closed."""
    home = Path(tempfile.mkdtemp(prefix="manet-user-", dir="/tmp"))
    try:
        (home / "runtime").mkdir(mode=0o700)
        for folder in (home, home / "runtime"):
            os.chown(folder, USER, USER)
        os.mknod(home / "tun", 0o666 | stat.S_IFCHR, TUN)
        (home / "tun").chmod(0o666)
        user = User(home)
        if user.execute(["sh", "-c", REACHES.format(sys.executable, ROOT / "testbed" / "__main__.py")]).returncode != 0:
            pytest.skip(f"another user may not read {ROOT} (docs/rootless.md); chmod o+rx its folders")
        if (refused := privileges.refusal(user=USER)) is not None:
            pytest.skip(f"user namespaces are closed ({refused[0]}); {refused[1]} (docs/rootless.md)")
        yield user
    finally:
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def run(user: User) -> Path:
    """The results of one run of `chain5` with two hops and an RTO floor below that of the profile's sysctl (200 ms)."""
    keys = [word for key in ("hops=2", "duration=8", "rto_min=0.05") for word in ("--set", key)]
    done = user.call("run", "chain5", *keys, "--seeds", "1", "--out", "chain")
    assert done.returncode == 0, done.stderr
    (found,) = (user.home / "chain").glob("*/seed-1")
    return found


def test_the_record_and_the_verdict_say_that_the_run_was_made_without_root(run: Path) -> None:
    record, verdict = (json.loads((run / name).read_text()) for name in ("run.json", "verdict.json"))
    assert record["without_root"] == verdict["without_root"]
    assert record["without_root"]["tcp"] == "routes" and "rto_initial" in record["without_root"]["not_set"]
    assert record["status"] == "complete" and verdict["verdict"] in ("valid", "suspect")


def test_every_route_over_the_radio_sets_tcp(run: Path) -> None:
    """The profile `period`: a window of 8, an initial window of 2, no delayed ACKs, NewReno; and the scenario's RTO floor."""
    for name in ("sta1", "sta2", "sta3"):
        at_start = (run / "routes" / f"{name}.txt").read_text().split("# neighbours")[0]
        routes = [line for line in at_start.splitlines() if " dev wlan0 " in f"{line} " and line.startswith("10.")]
        assert len(routes) == 2, at_start
        for route in routes:
            for metric in ("window 11680", "cwnd lock 8", "initcwnd 2", "rto_min lock 50ms", "congctl reno", "quickack 1"):
                assert f" {metric}" in route, route


def rows_of(run: Path, station: str) -> list[dict[str, str]]:
    """The rows of tcp.csv of the station's connection with the most of them."""
    with (run / "tcp.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["station"] == station]
    cookies = [row["cookie"] for row in rows]
    return [row for row in rows if row["cookie"] == max(set(cookies), key=cookies.count)]


def test_the_kernel_has_the_windows_of_the_profile(run: Path) -> None:
    """The window of 8 bounds the congestion window and the data outstanding, and the timeout follows the floor of the route:
    RTO = srtt + max(rto_min, 4 rttvar) (kernel-tcp/README.md), whose second term falls to the floor as round trips equalise."""
    rows = rows_of(run, "sta1")
    windows = [int(row["snd_cwnd"]) for row in rows]
    assert max(windows) == 8 and windows[0] == 2
    outstanding = [(int(row["snd_nxt"]) - int(row["snd_una"])) % (1 << 32) for row in rows]
    assert max(outstanding) == 8 * 1460
    beyond_us = min(int(row["rto_us"]) - int(row["srtt_us"]) for row in rows)
    assert 40_000 <= beyond_us < 120_000  # the timeout is in ticks of up to 10 ms
    assert [row["detail"] for row in rows if row["event"] == "algorithm"] == ["newreno"]


def test_sequence_numbers_of_samples_are_those_of_the_capture(run: Path) -> None:
    """The initial ones come from the SYN (kernel-tcp/sample.c): every acknowledged number is one that a captured ACK has."""
    words = ["tshark", "-r", str(run / "captures" / "sta1.pcap"), "-o", "tcp.relative_sequence_numbers:FALSE"]
    fields = ["-Y", "tcp.flags.ack == 1", "-T", "fields", "-e", "tcp.ack", "-e", "tcp.srcport", "-e", "tcp.dstport"]
    shown = subprocess.run([*words, *fields], capture_output=True, text=True, check=True).stdout
    rows = rows_of(run, "sta1")
    sport, dport = rows[0]["sport"], rows[0]["dport"]
    captured = {number for number, source, target in map(str.split, shown.splitlines()) if (source, target) == (dport, sport)}
    sampled = {row["snd_una"] for row in rows if int(row["snd_una"]) != int(rows[0]["snd_una"])}
    assert len(sampled) > 20 and sampled <= captured


@pytest.mark.parametrize("protocol", ["olsr", "dsr"])
def test_the_routes_of_our_daemons_set_tcp(user: User, protocol: str) -> None:
    out = f"own-{protocol}"
    done = user.call("run", "chain5", "--set", "hops=2", "--set", "duration=2", "--set", f"routing={protocol}", "--out", out)
    assert done.returncode == 0, done.stderr
    (run,) = (user.home / out).glob("*/seed-1")
    table = (run / "routes" / "sta1.txt").read_text().split("# neighbours")[0]
    routes = [line for line in table.splitlines() if "proto 98" in line]
    assert routes and all(" cwnd lock 8" in line and " congctl reno" in line for line in routes), table


REFUSED = {
    "tcp=vegas": "eBPF",
    "tcp=elfn(newreno)": "eBPF",
    "tcp=yeah": "sudo modprobe tcp_yeah" if "yeah" in algorithms.available() else 'this kernel has no "yeah"; use one of ',
    "stations=hwsim": "a radio of mac80211_hwsim needs root; run it with sudo",
    "rto_initial=3": "needs root; run it with sudo",
    "capture_program=tcpdump": "needs root; run it with sudo",
}


@pytest.mark.parametrize(("key", "words"), list(REFUSED.items()))
def test_what_needs_root_is_refused_in_one_line_before_anything_starts(user: User, key: str, words: str) -> None:
    done = user.call("run", "chain5", "--set", key, "--out", "refused")
    assert done.returncode == 2 and words in done.stderr, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("manet run: ") and "without root" not in line]
    assert f'"{key.partition("=")[0]}"' in line or key.partition("=")[0] in line
    assert not (user.home / "refused").exists()


def test_flows_with_different_tcps_at_one_station_are_refused(user: User) -> None:
    (user.home / "two.toml").write_text(
        'hops = 2\nflows = [{from = "sta1", to = "sta3"}, {from = "sta1", to = "sta2", tcp = "cubic"}]\n'
    )
    done = user.call("run", "two.toml", "--out", "two")
    assert done.returncode == 2 and "sta1 has a flow with another TCP" in done.stderr


def test_the_prompt_works(user: User) -> None:
    done = user.call("cli", "chain5", "--set", "hops=1", "--out", "prompt", given="sta1 ping -c 1 -W 5 sta2\nlinks\n")
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout


SCRIPT = """
from mn_wifi.net import Mininet_wifi
from mn_wifi.link import adhoc

net = Mininet_wifi()
one = net.addStation("sta1", position="0,0,0")
two = net.addStation("sta2", position="50,0,0")
for station in (one, two):
    net.addLink(station, cls=adhoc, intf=f"{station.name}-wlan0", ssid="x")
net.build()
print(one.cmd("ping -c 1 -W 5", two.IP()))
net.stop()
"""


def test_a_script_works(user: User) -> None:
    (user.home / "pair.py").write_text(SCRIPT)
    done = user.call("script", "--out", "script", "pair.py")
    assert done.returncode == 0 and "1 received" in done.stdout, done.stdout + done.stderr


MESH = """
from manet_testbed import Mesh

with Mesh.chain(2, directory="mesh") as chain:
    chain["sta1"].wait_until_succeeds(["ping", "-c1", "-W1", chain["sta2"]], timeout=30)
"""


def test_a_mesh_works(user: User) -> None:
    done = user.execute([sys.executable, "-c", MESH])
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((user.home / "mesh" / "run.json").read_text())["status"] == "complete"


def until(done: Callable[[], bool], within_s: float = 60.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_other_commands_of_the_user_enter_the_run_and_clean_ends_a_killed_one(user: User) -> None:
    started = user.start("run", "chain5", "--set", "hops=1", "--set", "duration=100", "--out", "entered")
    records = user.home / "runtime" / "manet"
    try:
        until(lambda: any((user.home / "entered").glob("*/seed-1/run.json")) or started.poll() is not None)
        (run,) = (user.home / "entered").glob("*/seed-1")

        def answered() -> bool:
            entered = user.call("exec", str(run), "sta1", "--", "cat", "/proc/sys/net/ipv4/tcp_sack")
            return entered.returncode == 0 and entered.stdout == "0\n"

        until(answered)
        routes = user.call("routes", str(run))
        assert routes.returncode == 0 and "sta2" in routes.stdout, routes.stderr
        assert user.call("clean").stdout.startswith("left alone")
        (record,) = records.glob("*.json")
        owner = json.loads(record.read_text())["owner"]["pid"]
        os.kill(owner, signal.SIGKILL)
    finally:
        started.communicate()
    until(lambda: user.call("clean").stdout == "nothing was left behind\n")
    assert not list(records.glob("*.json"))


def test_the_view_starts_a_run_and_looks_into_it(user: User) -> None:
    short = ("--set", "hops=1", "--set", "duration=20")
    started = user.start("view", "chain5", *short, "--control", "--out", "seen")
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        match = re.search(r"(http://\S+)/\?token=(\S+)", line)
        assert match is not None, line
        base, token = match.groups()

        def ask(path: str, action: object = None) -> dict[str, Any]:
            data = None if action is None else json.dumps(action).encode()
            request = urllib.request.Request(f"{base}{path}", data, {"Authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request, timeout=60) as found:
                    answer: dict[str, Any] = json.loads(found.read())
            except urllib.error.HTTPError as problem:
                raise AssertionError(problem.read().decode()) from None
            return answer

        ask("/api/control", {"op": "start"})
        until(lambda: ask("/api/run")["kind"] == "live")
        until(lambda: (user.home / "seen" / "all" / "seed-1" / "tcp.csv").exists())
        time.sleep(3)  # of the traffic
        flow = ask("/api/control", {"op": "flow", "from": "sta2", "to": "sta1", "tcp": "newreno", "seconds": 3})
        assert flow == {"ok": True, "flow": "flow2"}
        ask("/api/control", {"op": "stop"})
        until(lambda: (user.home / "seen" / "all" / "seed-1" / "manifest.json").exists())
    finally:
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate()
    assert "Traceback" not in errors, errors


def test_the_doctor_needs_nothing_of_root(user: User) -> None:
    done = user.call("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0, [check for check in checks.values() if check["needed"] and not check["ok"]]
    assert not checks["root"]["ok"] and checks["root"]["without_root"]
    assert checks["user namespaces"]["without_root"] and checks["TUN"]["ok"]


def test_the_doctor_calls_nothing_missing_that_only_root_sees(user: User) -> None:
    shown = user.call("doctor").stdout
    assert "?       ok      privileges       only root sees it" in shown
    assert not [line for line in shown.splitlines() if line.startswith("MISSING ok")], shown
