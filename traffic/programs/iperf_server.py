"""iperf3's server for one flow: `iperf_server.py --report FILE -- iperf3 ...`, until SIGTERM. Standard library only.

A server of one test at a time, restarted after each, and at SIGHUP (iperf_client.py: this test will not begin). FILE is the
list of the servers' own reports: the bytes that they read, also if the control connection could not carry that to the client. A
server that another process killed ends this program with status 1: its counts are lost.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

NO_DATA_MS = 86_400_000  # iperf3 ends a test after 120 s without data: a partition may last longer
SERVER = ("--server", "--one-off", "--json", "--rcv-timeout", str(NO_DATA_MS))
AGAIN_AFTER_S = 0.1


class Server:
    """The running iperf3; signals end it."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._end = self.stopping = False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGHUP, self._on_signal)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._end = True
        self.stopping = self.stopping or number == signal.SIGTERM
        if self._process is not None:
            self._process.terminate()

    def serve(self) -> bytes:
        """Run one test; returns its output. SystemExit if another process killed it."""
        self._end = self.stopping
        with subprocess.Popen([*self._command, *SERVER], stdout=subprocess.PIPE) as self._process:
            if self._end:  # the signal came while it was being started
                self._process.terminate()
            output = self._process.communicate()[0]
            status = self._process.returncode
        self._process = None
        if status < 0 and not self._end:
            raise SystemExit(f"the server, iperf3, was killed by {signal.Signals(-status).name}")
        return output


def run(command: list[str], path: Path) -> None:
    """Serve one test after the other until SIGTERM; write the list of reports to `path` after each."""
    server, reports = Server(command), []
    while not server.stopping:
        try:
            report = json.loads(server.serve())
        except ValueError:
            report = {}
        if "cookie" in report.get("start", {}):  # a test had begun
            reports.append(report)
            path.write_text(json.dumps(reports))
        time.sleep(AGAIN_AFTER_S)


def main() -> int:
    """Run the command line; the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    run(options.command, options.report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
