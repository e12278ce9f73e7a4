"""A daemon with a planted fault turns the example for other projects' CI red, and the captures show the fault."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from manet_testbed.tests.test_pytest_plugin import PLUGIN
from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left

pytest_plugins = ("pytester",)
BABELD = shutil.which("babeld")
# First in PATH, as a CI's own build is: babeld with a filter that denies each update of its neighbours (babeld(8), filtering)
DEAF = f"#!/bin/sh\nexec {BABELD} -C 'in deny' \"$@\"\n"
UPDATE = "babel.message.type == 8"  # RFC 8966, 4.6.9


@pytest.mark.root
@pytest.mark.slow
@needs_runs
@pytest.mark.skipif(BABELD is None, reason="babeld: not found; apt-get install babeld")
def test_a_babeld_that_ignores_updates_turns_the_example_red_and_the_capture_is_kept(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, host
) -> None:
    example = (ROOT / "examples" / "ci" / "test_babeld.py").read_text()
    patient = "first.route_to(last), timeout=60"
    assert patient in example
    (pytester.path / "test_babeld.py").write_text(example.replace(patient, "first.route_to(last), timeout=15"))
    program = pytester.path / "bin" / "babeld"
    program.parent.mkdir()
    program.write_text(DEAF)
    program.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/sbin:/usr/bin:/sbin:/bin")
    base = pytester.path / "base"
    result = pytester.runpytest_subprocess(*PLUGIN, "--manet-require", "--junitxml=j.xml", f"--basetemp={base}")
    output = result.stdout.str()
    if "is void (" in output:
        host.void("the mesh was void")
    assert result.parseoutcomes()["failed"] == 1 and "is None after 15 s" in output
    run = base / "test_two_hops0" / "mesh"
    (capture,) = re.findall(r'name="manet_capture" value="([^"]*/sta1.pcap)"', (pytester.path / "j.xml").read_text())
    assert Path(capture) == run / "captures" / "sta1.pcap" and Path(capture).stat().st_size > 24  # bytes: more than a header
    assert "routes of sta1: none\n" in output
    # the updates that it ignored: sta2 sends them, sta1 receives them
    heard = packets_with_updates(run / "captures" / "sta1.routing.pcap", from_mac="02:00:00:00:00:02")
    assert "10.0.0.2" in heard
    assert nothing_left(run)


def packets_with_updates(capture: Path, *, from_mac: str) -> str:
    """tshark's text of the Babel packets with updates that a station sent."""
    argv = ["tshark", "-n", "-r", str(capture), "-Y", f"{UPDATE} && eth.src == {from_mac}", "-V"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
