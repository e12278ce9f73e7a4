"""Programs that tests start have the usual dispositions of signals, however the tests were started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
STATUS = "import re; print(re.search(r'SigIgn:\\t(\\S+)', open('/proc/self/status').read())[1])"  # proc_pid_status(5)
IGNORING = """
import os, signal, sys
for number in map(int, sys.argv[1].split(",")):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


def test_a_program_of_a_test_ignores_none_of_the_signals_that_end_it() -> None:
    done = subprocess.run([sys.executable, "-c", STATUS], capture_output=True, text=True, check=True)
    ignored = int(done.stdout, 16)
    assert [number.name for number in ENDING if ignored & 1 << number - 1] == []


def test_nor_after_nohup_or_in_the_background_of_a_script() -> None:
    this = f"{Path(__file__)}::{test_a_program_of_a_test_ignores_none_of_the_signals_that_end_it.__name__}"
    numbers = ",".join(str(number.value) for number in ENDING)
    argv = [sys.executable, "-c", IGNORING, numbers, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", this]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 0, done.stdout
