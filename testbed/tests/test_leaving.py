"""The end of `manet` does not wait for answers that a server still computes."""

import os
import subprocess
import sys

import pytest

from testbed.programs import ROOT

# a server's thread that computes without end, or has just ended; then the end of the program
PROGRAM = """
import asyncio, atexit, sys, threading
from starlette.concurrency import run_in_threadpool
from testbed.__main__ import _leave

async def serve(wait):
    task = asyncio.ensure_future(run_in_threadpool(threading.Event().wait, wait))
    await asyncio.sleep(0)
    await asyncio.wait({task}, timeout=1 if wait is None else None)

atexit.register(print, "left", flush=True)
asyncio.run(serve(None if sys.argv[1] == "computing" else 0))
_leave(3)
"""


@pytest.mark.parametrize("thread", ["computing", "ended"])
def test_the_program_ends_although_an_answer_is_computed(thread):
    argv, environment = [sys.executable, "-P", "-c", PROGRAM, thread], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (3, "left\n", "")
