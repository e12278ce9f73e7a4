"""The key `sysctls`: quoted and nested names are the same, and a name outside of `net` is refused."""

import json
import platform
from pathlib import Path

import pytest

from scenarios.definition import load_scenario
from scenarios.identity import identity
from scenarios.json_schema import of_scenario
from scenarios.scenario import Scenario
from testbed.campaigns.experiment import load as experiment
from testbed.programs import BUILT
from testbed.runs import preflight
from testbed.runs.run import run_scenario
from testbed.stages import kernel_tcp
from testbed.tests.refusals import message
from testbed.tests.running import chain, needs_runs

FRTO = "net.ipv4.tcp_frto"


def load(folder: Path, text: str, *settings: str) -> Scenario:
    (folder / "x.toml").write_text(text)
    return load_scenario(folder / "x.toml", list(settings))


def test_quoted_and_nested_names_are_the_same(tmp_path):
    for text in (f'sysctls = {{ "{FRTO}" = 0 }}', f"sysctls.{FRTO} = 0", f"[sysctls]\n{FRTO} = 0"):
        assert load(tmp_path, f"hops = 1\n{text}").sysctls == {FRTO: 0}
    one = load(tmp_path, f'hops = 1\nsysctls = {{ "{FRTO}" = 0, "net.mptcp.enabled" = true }}', f"sysctls.{FRTO}=2")
    assert one.sysctls == {FRTO: 2, "net.mptcp.enabled": True}
    assert Scenario.from_json(one.to_json()) == one


def test_they_win_over_the_profile_and_the_tcp():
    names = ("net.ipv4.tcp_sack", FRTO)
    bare = Scenario(hops=1, tcp="newreno")
    assert [kernel_tcp.sysctls(bare, "sta1")[name] for name in names] == [0, 0]  # profiles/period.toml
    own = Scenario(hops=1, tcp="newreno", sysctls={"net.ipv4.tcp_sack": True, FRTO: 2})
    assert [kernel_tcp.sysctls(own, "sta1")[name] for name in names] == [1, 2]
    assert identity(own) != identity(bare)


def test_one_may_be_an_axis_of_an_experiment(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        f'question = "?"\n[scenario]\nhops = 1\nsysctls = {{ "net.ipv4.tcp_sack" = 1 }}\n[axes]\n"sysctls.{FRTO}" = [0, 2]\n'
    )
    cells = experiment(path).cells
    assert [cell.scenario.sysctls for cell in cells] == [{"net.ipv4.tcp_sack": 1, FRTO: value} for value in (0, 2)]
    assert [cell.name for cell in cells] == ["sysctls.net.ipv4.tcp_frto0", "sysctls.net.ipv4.tcp_frto2"]


def test_a_scenario_without_them_is_written_as_before():
    assert "sysctls" not in json.loads(Scenario(hops=1).to_json())


@pytest.mark.root
@needs_runs
def test_a_run_has_them_in_stations_and_wired_hosts(tmp_path):
    """`net.mptcp.stale_loss_cnt` is 4 by default (mptcp-sysctl.rst)."""
    wires = [{"station": "sta2", "host": "host1"}]
    own = {"net.mptcp.stale_loss_cnt": 7, FRTO: 1}
    result = run_scenario(chain(duration=1, warmup=0, wires=wires, sysctls=own), 1, tmp_path / "run", programs=BUILT)
    assert (result.status, result.error) == ("complete", None)
    read = json.loads((tmp_path / "run" / "run.json").read_text())["sysctls"]
    assert {name: [read[name][key] for key in own] for name in ("sta1", "host1")} == {"sta1": ["7", "1"], "host1": ["7", "1"]}


def test_one_that_this_kernel_lacks_is_refused_before_anything_starts():
    preflight.check_machine([Scenario(hops=1, sysctls={FRTO: 0})], BUILT, "manet run")
    missing = Scenario(hops=1, sysctls={"net.ipv4.tcp_teleport": 1})
    text = f"sysctls: this kernel ({platform.release()}) has no net.ipv4.tcp_teleport; correct it, or use another kernel"
    assert message(preflight.check_machine, [missing], BUILT, "manet run") == text


def test_the_schema_takes_both_ways_of_writing():
    allowed = of_scenario()["properties"]["sysctls"]["additionalProperties"]["anyOf"]
    assert of_scenario()["properties"]["sysctls"]["maxProperties"] == 64
    assert {one["type"] for one in allowed} == {"boolean", "integer", "string", "object"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'sysctls = { "kernel.core_pattern" = "x" }',
            'key "sysctls.kernel.core_pattern": "kernel.core_pattern" is no setting of a network namespace; '
            "write a dotted name below net, as sysctl -a prints it",
        ),
        (
            'sysctls = { "net/../x" = 1 }',
            'key "sysctls.net/../x": "net/../x" is no setting of a network namespace; '
            "write a dotted name below net, as sysctl -a prints it",
        ),
        (
            f'sysctls = {{ "{FRTO}" = 1.5 }}',
            f'key "sysctls.{FRTO}": 1.5 is of the wrong type; give a number, true, false or text in quotes',
        ),
        (
            f'sysctls = {{ "{FRTO}" = "1\\n2" }}',
            f'key "sysctls.{FRTO}": "1\\n2" is of the wrong type; give a number, true, false or text in quotes',
        ),
        ("sysctls = 3", 'key "sysctls": 3 is of the wrong type; give a table'),
    ],
)
def test_a_wrong_name_or_value_is_refused(tmp_path, text, wanted):
    assert message(load, tmp_path, f"hops = 1\n{text}") == f"{tmp_path}/x.toml: line 2: {wanted}"
