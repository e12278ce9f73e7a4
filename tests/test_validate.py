"""Every check of `manet validate` holds: the medium in virtual time against closed form, Bianchi and ns-2."""

import pytest

from testbed.validate import checks, simulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not simulate.PROGRAM.exists(), reason="the medium is not built (./setup.sh)"),
]


@pytest.fixture(scope="module")
def outcome():
    return {check.name: check for check in checks.evaluate(checks.cases(), lambda done, total: None)}


@pytest.mark.parametrize("name", [case.name for case in checks.cases()])
def test_medium_agrees(outcome, name):
    check = outcome[name]
    assert check.ok, f"{check.ours:.4g} {check.unit}, {check.source}: {check.reference:.4g} +-{check.tolerance:.1%}"
