"""One process of ip(8) for several queries in a station."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.stages import iproute

SETUP = """
ip link set lo up; ip tuntap add d0 mode tap; ip address add 10.0.0.1/8 dev d0; ip link set d0 up
ip neighbour add 10.0.0.9 lladdr 02:00:00:00:00:09 dev d0 nud permanent
echo ready; exec sleep 60
"""


@pytest.mark.root
def test_several_queries_answer_as_each_alone():
    with subprocess.Popen(["unshare", "--net", "sh", "-c", SETUP], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            station = SimpleNamespace(netns=Path(f"/proc/{process.pid}/ns/net"))
            answers = iproute.ask_several(station, "route show table all", "neighbour show", "rule show")
            queries = (["route", "show", "table", "all"], ["neighbour", "show"], ["rule", "show"])
            assert answers == [iproute.ask(station, *words) for words in queries]
            assert "10.0.0.9" in answers[1]
        finally:
            process.kill()
