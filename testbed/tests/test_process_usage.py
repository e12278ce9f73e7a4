"""Processor time and memory of processes, by proc(5)."""

import os
import subprocess
import sys

from testbed.stages.process_usage import usage_of

BURN = "import os, time\nwhile time.process_time() < {cpu_s}: pass\nblock = bytearray({memory})\nos.write(1, b'.')\nos.read(0, 1)"


def test_the_usage_is_that_of_all_processes_and_of_children_that_have_ended() -> None:
    words = [sys.executable, "-c", BURN.format(cpu_s=0.2, memory=50_000_000)]
    burning = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    shell = ["sh", "-c", f"'{sys.executable}' -c 't = __import__(\"time\")\nwhile t.process_time() < 0.2: pass'; echo .; read x"]
    with burning, subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waiting:
        assert burning.stdout is not None and waiting.stdout is not None
        burning.stdout.read(1), waiting.stdout.read(1)
        alone, both = usage_of([burning.pid]), usage_of([burning.pid, waiting.pid, 1 << 22])
        for process in (burning, waiting):
            process.communicate(b"\n")
    assert 0.2 <= alone["cpu_s"] < 2
    assert both["cpu_s"] >= alone["cpu_s"] + 0.2 - 1 / os.sysconf("SC_CLK_TCK")
    assert 50_000_000 / 1024 <= alone["peak_rss_kb"] < both["peak_rss_kb"]
    assert (alone["processes"], both["processes"]) == (1, 2)
    assert usage_of([1 << 22]) == {"cpu_s": 0.0, "rss_kb": 0, "peak_rss_kb": 0, "processes": 0}
