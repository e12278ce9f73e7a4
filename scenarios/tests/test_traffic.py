"""The traffic kinds: each is one module, found by its file's name, and nothing else knows it by name."""

import ast
import re
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError, model_validator

import traffic
from keys.models import KeyProblem, Strict
from scenarios import events, flows
from scenarios.flows import Flow
from scenarios.scenario import Scenario
from traffic.bulk import with_servers_part
from traffic.shared.datagrams import Train
from traffic.shared.kind import FlowPlan

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "traffic" / "programs"
CBR = {"from": "sta1", "to": "sta2", "traffic": "cbr", "rate": 100_000, "bytes": 512}


def plan(flow: Flow, folder: Path) -> FlowPlan:
    ends = {"source": "10.0.0.1", "target": "10.0.0.2", "port": 5201}
    return FlowPlan("flow1", flow.own_keys(), **ends, seconds=7.0, seed=1, report=folder / "flow1.json", log=folder)


@pytest.mark.parametrize("name", traffic.kind_names())
def test_a_kind_is_complete_and_documented(name: str, tmp_path: Path) -> None:
    kind = traffic.kind_named(name)
    required = {key: field.examples for key, field in kind.keys.model_fields.items() if field.is_required()}
    assert all(required.values()), "an error shows an example of a missing key"
    keys = {key: examples[0] for key, examples in required.items()}
    flow = Flow.model_validate({"from": "sta1", "to": "sta2", "traffic": name, **keys})
    programs = [kind.receiver(plan(flow, tmp_path)), kind.sender(plan(flow, tmp_path), 4711)]
    assert programs[1] is not None
    assert all(isinstance(word, str) for program in programs if program is not None for word in program.argv)
    row = next(line for line in (ROOT / "formats" / "scenario.md").read_text().splitlines() if line.startswith(f"| `{name}` |"))
    assert all(f"`{key}`" in row for key in kind.keys.model_fields)


def test_a_key_means_the_same_in_every_kind() -> None:
    meanings: dict[str, set[str]] = {}
    for kind in traffic.kinds().values():
        for key, field in kind.keys.model_fields.items():
            meanings.setdefault(key, set()).add(str((field.annotation, field.metadata)))
    assert {key: len(each) for key, each in meanings.items()} == dict.fromkeys(meanings, 1)


# the medium's own streams, ns-2's trace and the description of a daemon have names of their own, in no relation to a scenario's
# kinds
OTHER_STREAMS = (
    ROOT / "testbed" / "validate",
    ROOT / "testbed" / "runs" / "preflight.py",
    ROOT / "scenarios" / "daemon_description.py",
)
SEARCHED = [
    path
    for folder in ("scenarios", "traffic", "record", "analysis", "testbed")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "tests" not in path.relative_to(ROOT).parts and not any(path.is_relative_to(other) for other in OTHER_STREAMS)
]


def names_a_kind(source: str) -> list[int]:
    """Lines with a kind's name as a value of its own, or with a comparison of `traffic`. The name of an argument of a program is
    another thing, and a name that events have too cannot be told from theirs."""
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    arguments = [word for call in calls if call.func.attr == "add_argument" for word in call.args]
    values = [node for node in nodes if isinstance(node, ast.Constant) and node not in arguments]
    named = [node.lineno for node in values if node.value in set(traffic.kind_names()) - set(events.KINDS)]
    compared = re.compile(r"""traffic["']?\]?\s*(==|!=)|\bcase\s+["']""")
    return named + [number for number, line in enumerate(source.splitlines(), 1) if "traffic" in line and compared.search(line)]


def test_a_kind_s_name_is_in_its_module_only() -> None:
    own = {ROOT / "traffic" / "__init__.py"}  # which kind is the default
    found = {str(path): names_a_kind(path.read_text()) for path in SEARCHED if path not in own}
    assert len(found) > 200
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_branch_on_a_kind_is_found() -> None:
    assert names_a_kind('if flow.traffic == "voice":\n    pass') == [1]
    assert names_a_kind('names = TCP if flow["traffic"] in ("bulk",) else UDP') == [1]


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.name)
def test_a_program_needs_the_standard_library_only(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    used = {alias.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    used |= {str(node.module).split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    assert used <= set(sys.stdlib_module_names)


def test_the_command_lines_of_bulk(tmp_path: Path) -> None:
    bulk = traffic.kind_named("bulk")
    flow = plan(Flow.model_validate({"from": "sta1", "to": "sta2"}), tmp_path)
    receiver, sender = (program.argv[3:] for program in (bulk.receiver(flow), bulk.sender(flow, 4711)))
    served = f"{PROGRAMS / 'iperf_server.py'} --report {tmp_path / 'flow1-received.json'}"
    assert receiver == f"{served} -- iperf3 --bind 10.0.0.2 --port 5201".split()
    keeper = f"{PROGRAMS / 'iperf_client.py'} --seconds 7.0 --report {tmp_path / 'flow1.json'} --receiver 4711"
    iperf3 = "iperf3 --client 10.0.0.2 --bind 10.0.0.1 --port 5201 --json"
    assert sender == f"{keeper} -- {iperf3}".split()


def test_an_iperf3_that_failed_is_quoted(tmp_path: Path) -> None:
    bulk = traffic.kind_named("bulk")
    flow = plan(Flow.model_validate({"from": "sta1", "to": "sta2"}), tmp_path)
    flow.report.write_text('{"error": "control socket has closed", "manet": {"connected": true}}')
    assert bulk.error(flow) == 'iperf3: "control socket has closed"'
    assert bulk.sender(flow, 4711).explain() == "control socket has closed"
    flow.report.write_text('{"manet": {"connected": false}}')
    assert (bulk.error(flow), bulk.report(flow)) == (None, None)


def test_a_server_of_another_test_is_not_joined() -> None:
    start = {"cookie": "mine", "test_start": {"duration": 2}}
    report = {"start": start, "end": {}, "manet": {"connected": True}}
    assert with_servers_part(report, [{"start": {**start, "cookie": "other"}, "intervals": []}]) is None
    assert with_servers_part(report, []) is None


def test_cbr_is_a_train_of_one_datagram() -> None:
    """512 bytes are 4096 bits, at 100 kbit/s 40.96 ms."""
    cbr = traffic.kind_named("cbr")
    flow = Flow.model_validate(CBR)
    assert cbr.train(flow.own_keys()) == Train(every_s=0.04096, packets=1, packet_bytes=512)
    assert (cbr.offered_bps({"rate": 1e5}), cbr.offered_bps({"rate": None})) == (1e5, None)


def test_a_kind_s_own_model_gives_defaults_and_checks_keys_in_company(monkeypatch: pytest.MonkeyPatch) -> None:
    class Paced(Strict):
        rate: float = 8000.0
        bytes: int

        @model_validator(mode="after")
        def _whole(self) -> "Paced":
            if self.rate < self.bytes:
                raise KeyProblem(("rate",), "too slow; raise it")
            return self

    cbr = traffic.kind_named("cbr")
    monkeypatch.setattr(type(cbr), "keys", Paced)
    keys = {key: value for key, value in CBR.items() if key != "rate"}
    assert Flow.model_validate(keys).rate == 8000.0
    with pytest.raises(ValidationError, match="too slow; raise it"):
        Flow.model_validate({**keys, "rate": 100})


def test_keys_of_other_kinds_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """scenario.json of an old kind stays as it was when a kind is added; `rate` and `bytes` were there from the first."""
    written = Flow.model_validate({"from": "sta1", "to": "sta2"}).model_dump(by_alias=True)
    assert list(written) == ["from", "to", "traffic", "start", "rate", "bytes", "tcp"]
    monkeypatch.setattr(flows, "ALWAYS_WRITTEN", ())
    assert "rate" not in Flow.model_validate({"from": "sta1", "to": "sta2"}).model_dump()


def test_streams_of_a_kind_are_joined_by_their_datagrams() -> None:
    """100 and 300 sent, 50 and 300 arrived: 350 of 400; latencies (50 * 10 + 300 * 20) / 350."""
    one = {"sent": 100, "delivery": 0.5, "delivered_bps": 1e3, "latency_ms_mean": 10.0, "jitter_ms": 1.0}
    two = {"sent": 300, "delivery": 1.0, "delivered_bps": 6e3, "latency_ms_mean": 20.0, "jitter_ms": None}
    silent = {"sent": 0, "delivery": None, "delivered_bps": 0.0, "latency_ms_mean": None, "jitter_ms": None}
    cbr = traffic.kind_named("cbr")
    found = cbr.of_run([one, two, silent])
    assert found == pytest.approx({"delivery": 0.875, "delivered_bps": 7e3, "latency_ms": 6500 / 350, "jitter_ms": 50 / 350})
    assert cbr.of_run([one, {"sent": None}]) == dict.fromkeys(found)
    assert cbr.of_run([silent]) == {"delivery": None, "delivered_bps": 0, "latency_ms": None, "jitter_ms": None}


def test_a_flow_ends_at_its_stop_or_with_the_traffic() -> None:
    """start 5, warmup 2 and duration 10: the traffic lasts 17 s."""
    flows = [{"from": "sta1", "to": "sta2", "stop": 8}, {"from": "sta2", "to": "sta1", "start": 5}]
    scenario = Scenario.model_validate({"topology": "chain", "hops": 1, "flows": flows, "warmup": 2, "duration": 10})
    assert [scenario.seconds_of(flow) for flow in scenario.flows] == [8, 12]
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_a_warmup_of_a_flow_replaces_the_scenario_s() -> None:
    """Background traffic warms up for 100 s, a session starts then: both are measured for the same 20 s."""
    flows = [{"from": "sta1", "to": "sta2", "warmup": 100}, {"from": "sta2", "to": "sta1", "start": 100}]
    scenario = Scenario.model_validate({"topology": "chain", "hops": 1, "flows": flows, "warmup": 0, "duration": 20})
    assert (scenario.traffic_seconds(), [scenario.seconds_of(flow) for flow in scenario.flows]) == (120, [120, 20])
    assert Scenario.from_json(scenario.to_json()) == scenario


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        (3, "3 s is not after start = 3 s; give a later time"),
        (99, "99 s is after the end of the traffic at 15 s; remove it"),
        (5, "5 s leaves nothing to measure after start = 3 s and warmup = 2 s; give a later time"),
    ],
)
def test_a_stop_outside_the_measurement_is_refused(stop: float, message: str) -> None:
    flow = {"from": "sta1", "to": "sta2", "start": 3, "stop": stop}
    with pytest.raises(ValidationError, match=re.escape(message)):
        Scenario.model_validate({"topology": "chain", "hops": 1, "flows": [flow], "warmup": 2, "duration": 10})
