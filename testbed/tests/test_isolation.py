"""Starting an isolated run is not cut in two by Ctrl-C."""

import subprocess
import sys

import pytest

from testbed.programs import ROOT

# The main thread blocks the signal, so that the other one takes it; Python still runs the handler in the main thread.
PROGRAM = """
import os, signal, threading, time
from testbed.runs.isolation import _interrupts_deferred
stop = threading.Event()
threading.Thread(target=stop.wait, daemon=True).start()
signal.signal(signal.SIGHUP, signal.default_int_handler)
try:
    with _interrupts_deferred():
        os.kill(os.getpid(), signal.{name})
        time.sleep(0.1)
        print("started", flush=True)
    print("too late")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_a_signal_that_another_thread_takes_waits_until_the_keeper_is_known(name: str) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM.format(name=name)]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("started\ninterrupted\n", "")
