"""`manet wireshark`: a capture that grows, in Wireshark or as a stream for another program (testbed/runs/following.py)."""

import argparse

from testbed.commands.options import add_verb, run_and_station

EXAMPLES = """
  ./manet wireshark sta1                       the run under way
  ./manet wireshark results/chain5/all/seed-1 air
                                               the air: frames, ACKs, retries
  ./manet wireshark sta1 | tshark -r - -Y tcp  any program that reads pcap
  ssh HOST manet/manet wireshark sta1 | wireshark -k -i -
                                               Wireshark on another machine

Into a pipe or a file it writes the capture, and what is added to it until the
end of the run.
"""
NO_WIRESHARK = "wireshark: not found; apt-get install wireshark, or pipe the capture: manet wireshark {} | tshark -r -"


def add(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "wireshark", "show a station's capture, or the air's, while it grows", EXAMPLES)
    parser.usage = "manet wireshark [RUN] STATION|air"
    parser.add_argument(
        "words", metavar="RUN|STATION", nargs="+", help="default: the only run under way; then station, host or air"
    )


def run(options: argparse.Namespace) -> int:
    """Start Wireshark, or copy the capture to standard output."""
    import shutil
    import subprocess
    import sys
    from contextlib import suppress

    from testbed.errors import UsageError
    from testbed.runs.following import capture_of, follow

    directory, station = run_and_station(options.words, 'give one station, or air, as in "manet wireshark sta1"')
    path, grows = capture_of(directory, station)
    if not sys.stdout.isatty():
        follow(path, grows, sys.stdout.buffer)
        return 0
    program = shutil.which("wireshark")
    if program is None:
        raise UsageError(NO_WIRESHARK.format(station))
    with subprocess.Popen([program, "-k", "-i", "-"], stdin=subprocess.PIPE, bufsize=0) as wireshark:
        assert wireshark.stdin
        with suppress(BrokenPipeError):  # its window was closed
            follow(path, lambda: grows() and wireshark.poll() is None, wireshark.stdin)
    return wireshark.returncode
