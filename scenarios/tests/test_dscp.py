"""The DSCP of a flow: names and numbers, the kinds that set one, and scenario.json of flows without one."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

import traffic
from scenarios.dscp import NAMES
from scenarios.flows import Flow
from scenarios.scenario import Scenario
from traffic.shared.kind import FlowPlan

ENDS = {"from": "sta1", "to": "sta2"}


@pytest.mark.parametrize(
    ("stated", "number"),
    [("EF", 46), ("ef", 46), ("AF41", 34), ("AF13", 14), ("CS6", 48), ("VOICE-ADMIT", 44), ("LE", 1), (0, 0), (63, 63)],
)
def test_a_name_is_a_number(stated: object, number: int) -> None:
    assert Flow.model_validate({**ENDS, "dscp": stated}).dscp == number


def test_names_are_those_of_their_rfcs() -> None:
    # RFC 2597, section 6; RFC 2474, section 4.2.2.2
    assert [NAMES[f"AF{number}"] for number in (11, 22, 33, 42)] == [10, 20, 30, 36]
    assert len(set(NAMES.values())) == len(NAMES) == 8 + 12 + 3


@pytest.mark.parametrize("wrong", ["EFF", 64, -1, 4.5, True])
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Flow.model_validate({**ENDS, "dscp": wrong})


def test_a_kind_that_sets_none_is_refused_and_the_others_are_named() -> None:
    with pytest.raises(ValidationError, match=r'a "web" flow sets no DSCP; remove it, or set traffic = "bulk" or "cbr" or "vbr"'):
        Flow.model_validate({**ENDS, "traffic": "web", "dscp": 46})


def test_scenario_json_has_the_number_and_without_one_is_as_it_was() -> None:
    scenario = Scenario.model_validate({"hops": 1, "flows": [ENDS, {**ENDS, "dscp": "EF"}]})
    written = json.loads(scenario.to_json())["flows"]
    assert "dscp" not in written[0] and written[1]["dscp"] == 46


@pytest.mark.parametrize("name", traffic.kinds_with_dscp())
@pytest.mark.parametrize("dscp", [None, 46])
def test_the_sender_is_told(name: str, dscp: int | None, tmp_path: Path) -> None:
    kind = traffic.kind_named(name)
    required = {key: field.examples for key, field in kind.keys.model_fields.items() if field.is_required()}
    keys = {key: examples[0] for key, examples in required.items() if examples}
    flow = Flow.model_validate({**ENDS, "traffic": name, **keys})
    source, target, report = "10.0.0.1", "10.0.0.2", tmp_path / "flow1.json"
    plan = FlowPlan("flow1", flow.own_keys(), source, target, 5201, seconds=1.0, seed=1, report=report, log=tmp_path, dscp=dscp)
    argv = kind.sender(plan, 4711).argv
    assert ("--dscp" in argv) == (dscp is not None)
    assert dscp is None or argv[argv.index("--dscp") + 1] == str(dscp)
