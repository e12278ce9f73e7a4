"""Radios of the kernel's mac80211_hwsim under our medium; a kernel that has it is a guest's (`./manet test --guests`)."""

import csv
import json
import os
import re
import signal
import socket
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from analysis.metrics.analyse import analyse_run
from analysis.metrics.rates import read_rates
from testbed.host.namespace import within
from testbed.host.requirements import require_radios
from testbed.programs import BUILT
from testbed.runs.run import RunResult, run_scenario
from testbed.tests.running import Background, chain, needs_runs, process_of, prompt, skip_unless

GENERIC, CONTROLLER, GET_FAMILY, DEL_RADIO, RADIO_NAME, FAMILY_NAME = 16, 16, 3, 5, 17, 2
REQUEST, ACK = 1, 4


needs_hwsim = skip_unless(require_radios, "hwsim")
pytestmark = [pytest.mark.root, pytest.mark.slow]


def measured(result: RunResult) -> float:
    """kbit/s of the flow, of a run that is complete and not void."""
    assert result.status == "complete", result.error
    assert result.verdict in ("valid", "suspect"), (result.directory / "verdict.json").read_text()
    metrics = analyse_run(result.directory)
    assert [check for check in metrics["checks"] if not check["ok"]] == []
    return metrics["flows"]["flow1"]["acked_bps"] / 1000


def run(directory: Path, **keys: object) -> RunResult:
    return run_scenario(chain(stations="hwsim", **keys), 1, directory, programs=BUILT)


def radios() -> list[str]:
    """Names of the kernel's radios, in whatever namespace."""
    return [path.name for path in Path("/sys/kernel/debug/ieee80211").glob("*")]


def message(kind: int, command: int, attribute: int, value: bytes) -> bytes:
    padded = value + bytes(-len(value) % 4)
    body = struct.pack("=BBHHH", command, 1, 0, 4 + len(value), attribute) + padded
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST | ACK, 1, 0) + body


def remove_radio(name: str) -> None:
    """As anybody may who is root: DEL_RADIO of the family MAC80211_HWSIM, in the calling thread's namespace."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC) as sock:
        sock.bind((0, 0))
        sock.send(message(CONTROLLER, GET_FAMILY, FAMILY_NAME, b"MAC80211_HWSIM\0"))
        answer = sock.recv(65536)
        at = 20
        while struct.unpack_from("=HH", answer, at)[1] != 1:  # CTRL_ATTR_FAMILY_ID
            at += (struct.unpack_from("=H", answer, at)[0] + 3) // 4 * 4
        family = struct.unpack_from("=H", answer, at + 4)[0]
        sock.recv(65536)  # the acknowledgement
        sock.send(message(family, DEL_RADIO, RADIO_NAME, name.encode()))
        assert struct.unpack_from("=i", sock.recv(65536), 16)[0] == 0


@needs_runs
@needs_hwsim
def test_two_hops_carry_as_much_as_two_hops_of_taps(tmp_path):
    keys = {"hops": 2, "warmup": 1, "duration": 8, "window": 8}
    tap = measured(run_scenario(chain(**keys), 1, tmp_path / "tap", programs=BUILT))
    hwsim = measured(run(tmp_path / "hwsim", **keys))
    assert 0.9 < hwsim / tap < 1.1, (hwsim, tap)


@needs_runs
@needs_hwsim
def test_a_mesh_finds_a_path_over_a_relay_by_itself(tmp_path):
    """802.11s: two stations out of each other's range, with no routing but the kernel's own."""
    keys = {"hops": 2, "routing": "none", "hwsim": {"mode": "mesh"}, "warmup": 2, "duration": 4, "traffic_at": 15}
    assert measured(run(tmp_path / "run", **keys)) > 300


@needs_runs
@needs_hwsim
def test_stations_outside_a_bss_need_no_beacon(tmp_path):
    result = run(tmp_path / "run", hwsim={"mode": "ocb"}, warmup=3, duration=3)
    assert measured(result) > 1000


@needs_runs
@needs_hwsim
def test_the_kernels_rate_control_selects_higher_rates_for_near_radios(tmp_path):
    """30 m apart, 11 Mbit/s are there for an 802.11b station that begins at its lowest rate."""
    keys = {"radio": "dot11b-11m", "spacing": 30, "warmup": 1, "duration": 4, "window": 32}
    assert measured(run(tmp_path / "run", hwsim={"rates": "kernel"}, **keys)) > 2500


@needs_runs
@needs_hwsim
def test_stations_whom_only_lower_rates_reach_are_neighbours_and_the_kernel_finds_the_rates(tmp_path):
    """802.11g at 300 m: -77 dBm. 54 Mbit/s end at 219 m, 24 Mbit/s at 377 m; RTS and ACK go with them."""
    keys = {"radio": "dot11g-54m", "hops": 1, "spacing": 300, "warmup": 1, "duration": 4, "window": 32}
    assert measured(run(tmp_path / "run", hwsim={"rates": "kernel"}, **keys)) > 3000
    rates = read_rates(tmp_path / "run").of("sta1").links[0]
    assert max(rates.rows, key=lambda row: row.delivered).rate_bps == 24_000_000


@needs_runs
@needs_hwsim
def test_the_kernels_minstrel_ht_finds_the_mcs_that_the_sinr_allows(tmp_path):
    """-75.8 dBm at 400 m, 19 dB above the noise: half of the frames survive at 16 dB at MCS 4, at 21 dB at MCS 5."""
    keys = {"radio": "dot11n-ht20", "aggregation": False, "hops": 1, "warmup": 1, "duration": 4, "window": 32}
    for spacing, mcs in ((30, 7), (400, 4)):
        directory = tmp_path / str(spacing)
        assert measured(run(directory, hwsim={"rates": "kernel"}, spacing=spacing, **keys)) > 3000
        rates = read_rates(directory).of("sta1").links[0]
        assert max(rates.rows, key=lambda row: row.attempts).mode == f"ht-mcs{mcs}-20"
        assert {row.mode for row in rates.rows} <= {None, *(f"ht-mcs{each}-20" for each in range(8))}


@needs_runs
@needs_hwsim
def test_the_kernels_statistics_are_those_of_the_air(tmp_path):
    """Two stations hidden from each other ask the one between them: mac80211 counts as many retries as the air log has, and hwsim
    drops no frame."""
    pings = "ping -q -f -c 200 -s 1000 sta2"
    printed = prompt(
        chain(stations="hwsim", hops=2), tmp_path / "run", f"sta3 {pings} > /dev/null &", f"sta1 {pings}",
        "sta1 ethtool -S wlan0", "exit",
    )  # fmt: skip
    counted = {name: int(value) for name, value in re.findall(r"^ +(\w+): (\d+)$", printed, re.MULTILINE)}
    assert (counted["d_tx_dropped"], counted["d_tx_failed"]) == (0, 0)
    with (tmp_path / "run" / "air.csv").open() as file:
        sent = [row for row in csv.DictReader(file) if (row["station"], row["event"]) == ("sta1", "tx")]
    # each try to send to a station begins with an RTS
    tries = Counter(row["packet"] for row in sent if row["frame"] == "rts")
    assert counted["tx_retries"] == sum(tries.values()) - len(tries) > 0
    assert counted["tx_retry_failed"] == 0


@needs_runs
@needs_hwsim
def test_radios_go_with_the_medium_and_the_run_fails(tmp_path):
    """Left alone, the kernel would go on with a medium that loses nothing and takes no time."""
    background = Background(chain(stations="hwsim", duration=60), tmp_path / "run").at("traffic", 0.01)
    os.kill(process_of(tmp_path / "run", "medium.json"), signal.SIGKILL)
    result = background.result()
    assert result.status == "failed" and "medium" in result.error and "void" in result.error
    assert radios() == []


@needs_runs
@needs_hwsim
def test_a_radio_removed_during_the_run_is_reported(tmp_path):
    background = Background(chain(stations="hwsim", duration=6), tmp_path / "run").at("traffic", 0.01)
    station = process_of(tmp_path / "run", "mininet:sta2")
    (radio,) = [name for name in radios() if name.endswith("-2")]
    within(f"/proc/{station}/ns/net", lambda: remove_radio(radio))
    result = background.result()
    assert result.status == "failed"
    assert "sta2" in result.error
    log = (tmp_path / "run" / "log" / "medium.log").read_text()
    assert "the interface of sta2 was deleted while the medium ran" in log


@needs_runs
@needs_hwsim
def test_a_second_medium_in_one_namespace_is_refused(tmp_path):
    """wmediumd's place is taken once."""
    background = Background(chain(stations="hwsim", duration=8), tmp_path / "run").at("traffic", 0.01)
    medium = process_of(tmp_path / "run", "medium.json")
    config = json.loads((tmp_path / "run" / "medium.json").read_text())
    config |= {
        "radio": str(tmp_path / "run" / "radio.toml"),
        "outputs": {},
        "control_socket": None,
        "feedback_dir": None,
        "trace": None,
    }
    (tmp_path / "second.json").write_text(json.dumps(config))
    command = ["nsenter", f"--net=/proc/{medium}/ns/net", str(BUILT.medium), "run", str(tmp_path / "second.json")]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode != 0
    # Linux 6.12 refuses a second radio of one address, 6.1 the second medium
    assert "is another medium running in this" in second.stderr or "another medium (wmediumd?) is registered" in second.stderr
    assert background.result().status == "complete"
