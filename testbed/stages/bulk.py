"""iperf3's client, started again until it reaches its server: `bulk.py --seconds S --report FILE -- iperf3 ...`.

Standard library only. Between stations that move, the ends of a flow may be apart at its start: connect() then ends with "no
route to host" as soon as somebody says so (tcp_v4_err() in SYN-SENT). A user would try again, so this does, with what is left of
the flow's time. The report is iperf3's own with `"manet": {"tries", "first_try_s", "connected"}` added; first_try_s is UNIX time.
A flow whose ends never met is no failure: it carried nothing.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

AGAIN_AFTER_S = 0.5
CONNECT_DEADLINE_S = 30.0  # several SYN retransmissions of 3, 6, 12 s
LEAST_PRIORITY = 19
LEAST_S = 1.0  # a test shorter than that is not begun
UNREACHED = "unable to connect to server"  # iperf3's words (IECONNECT), before any byte has passed


def run(options: argparse.Namespace) -> int:
    began, first_try_s, tries = time.monotonic(), time.time(), 0
    report: dict = {}
    status = 1
    while not tries or options.seconds - (time.monotonic() - began) > LEAST_S:
        tries += 1
        left_s = options.seconds - (time.monotonic() - began)
        status, report = _try(options.command, left_s)
        if UNREACHED not in str(report.get("error", "")):
            break
        time.sleep(AGAIN_AFTER_S)
    connected = UNREACHED not in str(report.get("error", ""))
    if not connected:
        report.pop("error")
        status = 0
    report["manet"] = {"tries": tries, "first_try_s": first_try_s, "connected": connected}
    options.report.write_text(json.dumps(report))
    return status


def _try(command: list[str], seconds: float) -> tuple[int, dict]:
    """One test of iperf3, which goes when this program is told to."""
    patience_ms = round(1000 * max(LEAST_S, min(CONNECT_DEADLINE_S, seconds)))
    argv = [*command, "--connect-timeout", str(patience_ms), "--time", str(math.ceil(seconds))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as iperf:
        signal.signal(signal.SIGTERM, lambda *_: (iperf.terminate(), sys.exit(128 + signal.SIGTERM)))
        try:
            output, _ = iperf.communicate(timeout=seconds + 0.5)
        except subprocess.TimeoutExpired:
            # iperf3 (3.12) asks select() without a pause while what it has sent is not through at its end, a core's whole time
            os.setpriority(os.PRIO_PROCESS, iperf.pid, LEAST_PRIORITY)
            output, _ = iperf.communicate()
    return iperf.returncode, _read(output)


def _read(output: bytes) -> dict:
    try:
        return json.loads(output)
    except ValueError:
        return {"error": "iperf3 wrote no report"}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("command", nargs="+")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
