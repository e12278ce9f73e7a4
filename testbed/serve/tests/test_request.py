"""Requests become plans: the same checks as files, and words for `manet run` that mean the same."""

from typing import Any

import pytest

from testbed.errors import UsageError
from testbed.serve.request import names, plan_of


def refusal(body: Any) -> str:
    with pytest.raises(UsageError) as refused:
        plan_of(body, check_machine=False)
    return str(refused.value)


def test_a_deep_value_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert "is nested too deep" in refusal({"scenario": {"hops": deep}})


def test_an_experiment_s_options_are_those_of_the_command() -> None:
    body = {"experiment": "hv-fig1", "quick": True, "set": {"hops": [1, 2], "tcp": "vegas(alpha=2)"}, "variant": ["hv"],
            "seeds": 2, "profile": "modern"}  # fmt: skip
    plan = plan_of(body, check_machine=False)
    assert (plan.target, plan.runs, plan.text) == ("hv-fig1", 4, None)
    words = ["--set", "hops=[1, 2]", "--set", 'tcp="vegas(alpha=2)"', "--set", "profile=modern", "--seeds", "2"]
    assert list(plan.options) == ["--quick", *words, "--variant", "hv"]


def test_a_scenario_is_checked_as_its_file_is() -> None:
    assert refusal({"scenario": {"hops": 0}}) == 'scenario: key "hops": 0 is out of range; give at least 1'
    assert refusal({"scenario": {"hops": 2, "spacing": "2 s"}}).startswith('scenario: key "spacing": ')
    assert 'did you mean "hops"?' in refusal({"scenario": {"hobs": 2}})
    assert refusal({"scenario": {"hops": 2, "flows": []}}).startswith('scenario: key "flows": is empty')


def test_errors_of_an_experiment_name_the_key() -> None:
    assert refusal({"experiment": "hv-fig1", "set": {"hopps": 2}}).startswith('--set: key "hopps": unknown key')
    assert refusal({"experiment": "hv-fig1", "variant": ["x"]}).startswith("--variant x: hv-fig1 has no such variant")
    assert refusal({"experiment": "hv-fig1", "seeds": 0}) == 'key "seeds": 0 is out of range; give at least 1'
    assert refusal({"experiment": "hv-fig1", "quick": "yes"}).startswith('key "quick": "yes" is of the wrong type')


@pytest.mark.parametrize("name", names())
def test_each_shipped_experiment_can_be_requested(name: str) -> None:
    """As it is: its own files and commands are not limited."""
    assert plan_of({"experiment": name, "quick": True}, check_machine=False).runs >= 1
