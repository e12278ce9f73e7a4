"""A view for tests: `manet view` as a process of its own, and questions to it."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.programs import ROOT


@dataclass(frozen=True)
class Served:
    """A running `manet view`. `url`: the page's address with its token."""

    url: str
    process: subprocess.Popen

    @property
    def base(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def token(self) -> str:
        return self.url.partition("token=")[2]

    def answer(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Status and body."""
        request = urllib.request.Request(self.base + path, headers={"Authorization": f"Bearer {self.token}", **headers})
        try:
            with urllib.request.urlopen(request, timeout=30) as found:
                return found.status, found.read()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read()

    def ask(self, path: str):
        status, body = self.answer(path)
        assert status == 200, body
        return json.loads(body)


@contextmanager
def view(directory: Path | None, *options: str) -> Iterator[Served]:
    """`manet view [DIRECTORY] OPTIONS`, ended by Ctrl-C, without a word of complaint."""
    argv = [sys.executable, "-P", "-m", "testbed", "view", *([str(directory)] if directory else []), *options]
    process = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "?token=" in line, process.stderr.read() if process.stderr else line
        yield Served(line.rsplit(": ", 1)[1].strip(), process)
    finally:
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (0, "")
