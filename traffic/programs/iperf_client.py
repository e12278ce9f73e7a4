"""iperf3's client, until its flow's time is up: `iperf_client.py --seconds S --report FILE --receiver PID -- iperf3 ...`.

Standard library only. iperf3 needs a control connection in addition to the flow, over the same radio and with the same TCP.
Between stations that move, either may be lost, stalled, or stand by for half a minute. The flow must not hang on it:

- Before the flow has sent anything (no route at connect(), control connection lost or silent for SETUP_S): the test is restarted
  with what is left of its time, as a user would, on a new server (SIGHUP to iperf_server.py). Ends that never meet do not fail.
- After the flow has sent to its end: the exchange of results may fail or take longer than CLOSING_S. The client's report holds
  then what it sent, the server's own what it read (traffic/bulk.py joins them), and `remark` is iperf3's message.
- In between the control connection is silent: the kernel has no reason to give it up. If it is lost all the same, that is an
  error.
- A killed iperf3, or one that ends without a report by itself, is an error at any time: its sent bytes are lost, and a second
  test would measure the rest of the flow's time as if it were all of it.

The report is iperf3's own with `"manet": {"tries", "first_try_s", "connected", "remark"}` added; first_try_s is UNIX time.
As iperf3 with --json, this ends with status 0 whatever the report says.
"""

import argparse
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

AGAIN_AFTER_S = 0.5
CLOSING_S = 20.0  # for the exchange of results; then iperf3 is interrupted, and reports its figures
CONNECT_DEADLINE_S = 30.0  # several SYN retransmissions of 3, 6, 12 s
KILLED_AFTER_S = 20.0  # an hour's report is a few thousand lines, on a busy machine
PAUSE_S, WORK_S = 0.2, 0.02  # of an iperf3 that closes
CLOSING = "iperf3-closing"  # name of this process meanwhile: testbed/runs/stopped.py then counts no stop of iperf3
MIN_TEST_S = 1.0  # a test shorter than that is not begun
LOOK_EVERY_S = 0.5
NO_REPORT = "iperf3 wrote no report"
SETUP_S = 10.0  # from the control connection to the first block of data; usually a few round trips
# Above all that iperf3 writes before data (cookies and parameters, some 500 bytes). Its first write of data may be a part of a
# block of 128 KiB: 45 kB without offloads, and the next one waits for ACKs.
SETUP_BYTES = 4 << 10
TERMINATED = "has terminated"  # iperf3's words (IECLIENTTERM, IESERVERTERM): a signal ended it, or its peer
UNREACHED = "unable to connect to server"  # iperf3's words (IECONNECT), before any byte has passed


class Try(NamedTuple):
    """One test: iperf3's report and the planned time of sending (s). `interrupted`: by this program, for its report; `sending`:
    it was seen to send; `cut_off`: it was killed before it could report."""

    report: dict[str, Any]
    seconds: float
    interrupted: bool = False
    sending: bool = False
    cut_off: bool = False

    @property
    def error(self) -> str:
        """The error in iperf3's report; empty without one."""
        return str(self.report.get("error", ""))

    @property
    def killed(self) -> bool:
        """Whether another process ended it, or its server while it sent: the flow neither ended nor failed to begin."""
        return self.cut_off or (self.sent and not self.interrupted and TERMINATED in self.error)

    @property
    def _sums(self) -> list[dict[str, Any]]:
        """The sums of each second and of the whole test, which iperf3 omits if the control connection ended the test."""
        return [*(i.get("sum", {}) for i in self.report.get("intervals", [])), self.report.get("end", {}).get("sum_sent", {})]

    @property
    def sent(self) -> bool:
        """Whether it sent any data."""
        return self.sending or any(part.get("bytes", 0) > 0 for part in self._sums)

    @property
    def sent_to_its_end(self) -> bool:
        """Whether it sent until its time was up."""
        return self.sent and (self.interrupted or max(part.get("end", 0) for part in self._sums) >= self.seconds - MIN_TEST_S)


class Iperf:
    """The current iperf3, which SIGTERM to this program ends. An exception of the handler could come while iperf3 is being
    started, and leave it behind."""

    def __init__(self) -> None:
        self.is_over = False
        self._process: subprocess.Popen[bytes] | None = None
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.is_over = True
        if self._process is not None:
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)

    def attend(self, argv: list[str], seconds: float) -> tuple[bytes, bool, bool, int]:
        """Run it to its end; its output, two of `_attend`, its status. SystemExit after SIGTERM."""
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as self._process:
            if self.is_over:  # the signal came while it was being started
                self._process.terminate()
            output, interrupted, sending = _attend(self._process, seconds)
        status, self._process = self._process.returncode, None
        if self.is_over:
            sys.exit(128 + signal.SIGTERM)
        return output, interrupted, sending, status


def run(options: argparse.Namespace) -> None:
    """Repeat the test until it has sent data or was killed, or the flow's time is up; then write the report."""
    iperf, began, first_try_s, tries = Iperf(), time.monotonic(), time.time(), 0
    last = Try({}, 0)
    while not tries or options.seconds - (time.monotonic() - began) > MIN_TEST_S:
        tries += 1
        last = _try(iperf, options.command, options.seconds - (time.monotonic() - began))
        if not last.error or last.sent or last.killed:
            break
        print(f"try {tries}: {last.error}", file=sys.stderr, flush=True)
        if UNREACHED not in last.error:
            _new_server(options.receiver)
        time.sleep(AGAIN_AFTER_S)
        if iperf.is_over:
            sys.exit(128 + signal.SIGTERM)
    report = last.report
    report["manet"] = {"tries": tries, "first_try_s": first_try_s, "connected": not last.error or last.sent, "remark": None}
    if last.error and not last.killed and (not last.sent or last.sent_to_its_end):
        report["manet"]["remark"] = report.pop("error")
        if last.sent:
            print(f"all sent, but iperf3's ends could not exchange results: {report['manet']['remark']}", file=sys.stderr)
    options.report.write_text(json.dumps(report))


def _new_server(receiver: int) -> None:
    """Replace the server, which waits for a test that will not begin; it has nothing to report."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(receiver, signal.SIGHUP)


def _try(iperf: Iperf, command: list[str], seconds: float) -> Try:
    """Run one test of iperf3."""
    patience_ms = round(1000 * max(MIN_TEST_S, min(CONNECT_DEADLINE_S, seconds)))
    argv = [*command, "--connect-timeout", str(patience_ms), "--time", str(math.ceil(seconds))]
    output, interrupted, sending, status = iperf.attend(argv, seconds)
    try:
        return Try(json.loads(output), seconds, interrupted)
    except ValueError:
        if interrupted:  # killed while it sent: the server has the received bytes
            return Try({"error": NO_REPORT}, seconds, interrupted, sending)
        return Try({"error": f"{NO_REPORT} ({exit_text(status)})"}, seconds, cut_off=True)


def exit_text(status: int) -> str:
    """The status of subprocess as text: `killed by SIGTERM` or `status 1`."""
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def _attend(iperf: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bool, bool]:
    """Wait for its end; returns its output, whether it was interrupted (it did not begin to send, or did not end), and whether it
    sent."""
    began, connected, interrupt_at = time.monotonic(), None, seconds + CLOSING_S
    closes_at = math.inf  # when it has sent for its time
    interrupted = sending = False
    passed = 0.0
    while True:
        closes = sending and not interrupted and time.monotonic() - began > closes_at
        if closes:
            _pause(iperf)
        look_in_s = LOOK_EVERY_S
        if sending and not interrupted:  # until it closes or is to be interrupted, a look would find nothing new
            look_in_s = WORK_S if closes else max(LOOK_EVERY_S, min(closes_at, interrupt_at) - passed)
        try:
            return iperf.communicate(timeout=look_in_s)[0], interrupted, sending
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - began
        if not sending:
            written = _written_bytes(iperf.pid)
            sending = written >= SETUP_BYTES
            closes_at = passed + math.ceil(seconds)
            connected = passed if written and connected is None else connected
            interrupt_at = seconds + CLOSING_S if sending or connected is None else min(interrupt_at, connected + SETUP_S)
        if passed > interrupt_at:
            iperf.send_signal(signal.SIGINT if not interrupted else signal.SIGKILL)
            interrupted, interrupt_at = True, passed + KILLED_AFTER_S


def _pause(iperf: subprocess.Popen[bytes]) -> None:
    """Stop it for PAUSE_S; the kernel's TCP continues.

    While what it has sent is not through at its end, iperf3 (3.12) calls select() without a pause, with the whole of a core. The
    exchange of results needs it a few times only.
    """
    Path("/proc/self/comm").write_text(CLOSING)
    iperf.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)
    iperf.send_signal(signal.SIGCONT)


def _written_bytes(pid: int) -> int:
    """Bytes that the process has written: before its report iperf3 writes to its connections only."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--receiver", type=int, required=True, help="process id of iperf_server.py")
    parser.add_argument("command", nargs="+")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
