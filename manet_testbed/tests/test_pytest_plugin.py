"""The pytest plugin: a factory whose meshes end with their test, verdicts, evidence of failures, missing requirements."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manet_testbed.requirements import missing_requirement
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, run_json, wait_until

pytest_plugins = ("pytester",)

PLUGIN = ("-p", "manet_testbed.pytest_plugin", "-p", "no:cacheprovider")
# In place of Mesh: a mesh without a network. Its verdict is that of the environment, its reason "late".
FAKE = """
from pathlib import Path
from typing import Any
import pytest
from manet_testbed import MeshError, MissingRequirement, Verdict, pytest_plugin

class FakeMesh:
    name = "Mesh.chain"
    words = ["{during}", "{after}"]
    def __init__(self, directory):
        self.directory, self.closed = directory, False
        self.captures = {{"sta1": directory / "captures" / "sta1.pcap"}}
    @classmethod
    def chain(cls, stations, directory):
        return cls(directory)
    def __enter__(self):
        if {missing!r}:
            raise MissingRequirement({missing!r})
        return self
    def __iter__(self):
        return iter(())
    def close(self):
        self.closed = True
        print("closed", self.directory.name)
    def verdict(self):
        return Verdict(self.words[self.closed], ("late",) if self.words[self.closed] != "valid" else ())

pytest_plugin.Mesh = FakeMesh
"""


def fake(pytester: pytest.Pytester, during: str = "valid", after: str = "valid", missing: str = "") -> None:
    pytester.makeconftest(FAKE.format(during=during, after=after, missing=missing))


def outcomes(pytester: pytest.Pytester, *arguments: str) -> tuple[dict[str, int], str]:
    result = pytester.runpytest_subprocess(*PLUGIN, *arguments)
    return result.parseoutcomes(), result.stdout.str()


@pytest.fixture(autouse=True)
def checkout_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


ONE = "def test_one(mesh):\n    mesh.chain(2)\n    assert {}\n"


def test_a_passed_test_closes_its_meshes_the_last_first(pytester: pytest.Pytester) -> None:
    fake(pytester)
    pytester.makepyfile("def test_one(mesh):\n    first = mesh.chain(2)\n    second = mesh.chain(2)\n    assert not first.closed")
    found, output = outcomes(pytester, "-rP", "--junitxml=j.xml")
    assert found == {"passed": 1}
    assert output.index("closed mesh2") < output.index("closed mesh\n")
    properties = (pytester.path / "j.xml").read_text()
    assert properties.count('name="manet_verdict" value="valid"') == 2 and "manet_capture" not in properties


def test_the_report_of_a_failed_test_names_captures_logs_and_verdict(pytester: pytest.Pytester) -> None:
    fake(pytester)
    pytester.makepyfile(ONE.format("False"))
    found, output = outcomes(pytester, "--junitxml=j.xml")
    assert found == {"failed": 1}
    assert "- mesh: mesh -" in output and "verdict: valid" in output and "/mesh/log" in output
    assert "capture of sta1: " in output and "/mesh/captures/sta1.pcap" in output
    assert 'name="manet_capture"' in (pytester.path / "j.xml").read_text()


# the mesh during and after the test, the outcome of `assert True`, and the words that say why
VERDICTS = {
    "void fails": ("void", "void", {"failed": 1},
                   "Mesh.chain: the mesh is void (late), so that its results do not count; run it again on a quieter machine"),
    "void only at its end is an error": ("valid", "void", {"passed": 1, "errors": 1}, "the mesh is void (late)"),
    "suspect is a warning once": ("suspect", "suspect", {"passed": 1, "warnings": 1},
                                  "MeshSuspect: Mesh.chain: the mesh is suspect (late)"),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS)
def test_the_verdict_of_a_mesh_is_that_of_its_test(pytester: pytest.Pytester, case: str) -> None:
    during, after, expected, words = VERDICTS[case]
    fake(pytester, during, after)
    pytester.makepyfile(ONE.format("True"))
    found, output = outcomes(pytester)
    assert found == expected and words in output


@pytest.mark.parametrize(
    ("option", "outcome", "words"),
    [("-rs", "skipped", "no mesh: no /dev/net/tun"), ("--manet-require", "failed", "MissingRequirement: no /dev/net/tun")],
)
def test_a_missing_requirement_skips_or_fails_as_the_option_says(
    pytester: pytest.Pytester, option: str, outcome: str, words: str
) -> None:
    fake(pytester, missing="no /dev/net/tun")
    pytester.makepyfile(ONE.format("True"))
    found, output = outcomes(pytester, option)
    assert found == {outcome: 1} and words in output


def test_tests_of_a_module_share_a_mesh(pytester: pytest.Pytester) -> None:
    fake(pytester, "void", "void")
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="module")
        def chain(mesh_module):
            return mesh_module.chain(2)

        def test_one(chain):
            assert not chain.closed

        def test_two(chain):
            assert not chain.closed

        def test_without():
            pass
        """
    )
    found, _output = outcomes(pytester)
    assert found == {"passed": 1, "failed": 2}


def test_the_first_missing_requirement_is_named(tmp_path: Path) -> None:
    assert "modprobe tun" in (missing_requirement(tun=tmp_path / "tun") or "")


@pytest.mark.root
@needs_runs
def test_a_test_of_another_project_has_its_mesh_which_ends_with_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(mesh):
            chain = mesh.chain(2)
            assert chain["sta1"].ping(chain["sta2"]).loss == 0
            assert False
        """
    )
    found, output = outcomes(pytester, "--manet-require", f"--basetemp={pytester.path}/base")
    assert (found["failed"], found.keys() - {"failed", "warnings"}) == (1, set())  # a suspect mesh warns
    run = pytester.path / "base" / "test_one0" / "mesh"
    assert f"capture of sta2: {run}/captures/sta2.pcap" in output
    assert "routes of sta1: 10.0.0.2\n" in output
    assert (run / "verdict.json").exists() and nothing_left(run)


@pytest.mark.root
@needs_runs
def test_ctrl_c_in_a_test_takes_its_mesh_down(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(mesh):
            chain = mesh.chain(2)
            (chain.directory / "up").touch()
            chain["sta1"].run("sleep 600", timeout=600)
        """
    )
    base = pytester.path / "base"
    process = pytester.popen([sys.executable, "-m", "pytest", *PLUGIN, f"--basetemp={base}"], stdin=subprocess.DEVNULL)
    run = base / "test_one0" / "mesh"
    try:
        wait_until((run / "up").exists, "the mesh")
        process.send_signal(signal.SIGINT)
        output, _errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert b"KeyboardInterrupt" in output
    assert nothing_left(run) and run_json(run)["ended"]


@pytest.mark.root
@needs_runs
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("babeld") is None, reason="babeld: not found; apt-get install babeld")
def test_the_example_passes(pytester: pytest.Pytester, host: Any) -> None:
    shutil.copy(ROOT / "examples" / "ci" / "test_babeld.py", pytester.path)
    found, output = outcomes(pytester, "--manet-require")
    if "the mesh is void" in output:
        host.void(next(line for line in output.splitlines() if "the mesh is void" in line))
    assert found.get("passed") == 1, output


def test_the_example_is_under_twenty_lines() -> None:
    assert len((ROOT / "examples" / "ci" / "test_babeld.py").read_text().splitlines()) < 20
