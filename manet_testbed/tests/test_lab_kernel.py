"""Runs in the kernel of a notebook: awaited at top level, interrupted, and with a kernel that is killed."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.programs import ROOT
from testbed.tests.running import needs_runs, nothing_left, wait_until

manager = pytest.importorskip("jupyter_client.manager", reason="a kernel needs ipykernel: ./setup.sh --pages")
pytest.importorskip("ipykernel", reason="a kernel needs ipykernel: ./setup.sh --pages")
pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.pages, needs_runs]
LIMIT_S = 300  # of a loaded machine
HEAD = "from manet_testbed import Scenario\nkeys = {'topology': 'chain', 'hops': 1, 'warmup': 0, 'duration': %d}\n"
BLOCKING = HEAD % 600 + "Scenario(keys).run(out='out', progress=print)"


class Kernel:
    """A kernel in `folder`, and what it prints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.manager, self.client = manager.start_new_kernel(startup_timeout=LIMIT_S, cwd=str(folder), env=environment)
        self.printed = ""
        self.error = ""

    def start(self, code: str) -> None:
        """Execute a cell, without waiting for its end."""
        self.client.execute(code)

    def read_until(self, word: str) -> None:
        """Read messages until the kernel prints `word`, or is idle if that is empty."""
        deadline = time.monotonic() + LIMIT_S
        while word == "" or word not in self.printed:
            message = self.client.get_iopub_msg(timeout=max(1.0, deadline - time.monotonic()))
            content = message["content"]
            if message["msg_type"] == "stream":
                self.printed += content["text"]
            elif message["msg_type"] in ("execute_result", "display_data"):
                self.printed += content["data"].get("text/plain", "") + "\n"
            elif message["msg_type"] == "error":
                self.error = content["ename"]
            elif (
                word == "" and message["msg_type"] == "status" and content["execution_state"] == "idle" and self.executed(message)
            ):
                return

    def executed(self, message: dict[str, Any]) -> bool:
        """Whether the message belongs to a cell, not to the kernel's start."""
        return bool(message["parent_header"].get("msg_type") == "execute_request")

    @property
    def status(self) -> str | None:
        path = self.folder / "out" / "all" / "seed-1" / "run.json"
        return json.loads(path.read_text())["status"] if path.exists() else None


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.client.stop_channels()
    kernel.manager.shutdown_kernel(now=True)


def test_a_run_is_awaited_at_top_level_with_its_progress(kernel: Kernel) -> None:
    kernel.start(HEAD % 2 + "results = await Scenario(keys, name='mine').run_async(out='out', progress=print)\nresults")
    kernel.read_until("")
    assert kernel.error == "" and "] all seed 1: " in kernel.printed
    assert "<Results mine: " in kernel.printed and kernel.status == "complete"


def test_an_interrupted_cell_ends_its_run_in_order(kernel: Kernel) -> None:
    kernel.start(BLOCKING)
    kernel.read_until("traffic")
    kernel.manager.interrupt_kernel()
    kernel.read_until("")
    assert (kernel.error, kernel.status) == ("KeyboardInterrupt", "interrupted")
    assert nothing_left(kernel.folder / "out" / "all" / "seed-1")
    kernel.start("print('alive')")
    kernel.read_until("alive")


def test_a_killed_kernel_leaves_nothing_of_its_run(kernel: Kernel) -> None:
    kernel.start(BLOCKING)
    kernel.read_until("traffic")
    os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
    wait_until(lambda: kernel.status == "interrupted", "the end of the run", LIMIT_S)
    wait_until(lambda: nothing_left(kernel.folder / "out" / "all" / "seed-1"), "the removal of the run's state", LIMIT_S)
