"""A command line of the user's, as a program: `command.py run ... -- WORDS` and `command.py serve -- WORDS`.

Standard library only.
`run` lasts `--seconds`, with status 0: WORDS may end earlier, with any status. At the end, or at SIGTERM, the command is asked to
end (SIGTERM); after GRACE_S, or when it has ended, all processes of its group are killed. The report has the words, the status
(negative: the signal that ended it; null if it was ended here), and how long it ran.
`serve` lasts until SIGTERM; WORDS that end earlier are an error.
"""

import argparse
import json
import os
import select
import signal
import subprocess
import time
from typing import NoReturn

GRACE_S = 5.0  # less than testbed/host/processes.py gives this program


class Command:
    """The running command, which leads a group of processes. It is reaped last, so that the group's number stays its own.

    SIGTERM ends the waiting, and nothing else: an exception of its handler could come while the command is being started, and
    leave it behind."""

    def __init__(self, words: list[str]) -> None:
        self._signal, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken)
        signal.signal(signal.SIGTERM, lambda _number, _frame: None)
        try:
            self._process = subprocess.Popen(words, process_group=0)
        except OSError as problem:
            raise SystemExit(f"{words[0]}: {problem.strerror}") from None
        self._pidfd = os.pidfd_open(self._process.pid)

    def ended_within(self, seconds: float | None) -> bool:
        """Wait for its end, at most so long (None: any time). SystemExit at SIGTERM."""
        return self._wait(seconds, self._pidfd)

    def pause(self, seconds: float) -> None:
        """Wait so long. SystemExit at SIGTERM."""
        self._wait(seconds)

    def _wait(self, seconds: float | None, *descriptors: int) -> bool:
        ready = select.select([self._signal, *descriptors], [], [], seconds)[0]
        if self._signal in ready:
            raise SystemExit(128 + signal.SIGTERM)
        return bool(ready)

    def end(self) -> int:
        """End the group; the status."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this is under way
        group = self._process.pid
        os.killpg(group, signal.SIGTERM)
        select.select([self._pidfd], [], [], GRACE_S)
        os.killpg(group, signal.SIGKILL)
        return self._process.wait()


def run(options: argparse.Namespace) -> None:
    """Run the command for its time, end it, and write the report."""
    began, first_try_s = time.monotonic(), time.time()
    command = Command(options.words)
    by_itself = False
    passed_s = options.seconds
    try:
        by_itself = command.ended_within(options.seconds)
        passed_s = time.monotonic() - began
        command.pause(max(0.0, options.seconds - passed_s))
    finally:
        status = command.end()
    report = {
        "format": "manet-command/1",
        "manet": {"first_try_s": first_try_s, "connected": True},
        "argv": options.words[options.place_words :],
        "exit_status": status if by_itself else None,
        "ended_by_run": not by_itself,
        "seconds": passed_s,
    }
    with open(options.out, "w") as out:  # noqa: PTH123 (pathlib would double this program's start-up time)
        json.dump(report, out, indent=1)


def serve(options: argparse.Namespace) -> NoReturn:
    """Run the server until SIGTERM; SystemExit with a message if it ends by itself."""
    command = Command(options.words)
    try:
        command.ended_within(None)
    finally:
        status = command.end()
    ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    raise SystemExit(f"the server, {options.words[options.place_words]}, {ended}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs, serves = verbs.add_parser("run"), verbs.add_parser("serve")
    runs.add_argument("--seconds", type=float, required=True)
    runs.add_argument("--out", required=True, help="file for the report")
    for sub in (runs, serves):
        sub.add_argument("--place-words", type=int, default=0, help="so many words before the command run it in its place")
        sub.add_argument("words", nargs="+")
    options = parser.parse_args()
    run(options) if options.verb == "run" else serve(options)


if __name__ == "__main__":
    main()
