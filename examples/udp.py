#!/usr/bin/env python3

"""A UDP load and its receiver, for the examples: counts received packets, without other traffic on the air.

udp.py receive PORT SECONDS      says "heard" at the first packet, waits for a line, then counts: kbit/s
udp.py send ADDRESS PORT KBPS    packets of 1000 bytes at a steady rate, until it is ended
"""

import contextlib
import socket
import subprocess
import sys
import time

from mininet.log import output

SIZE = 1000  # bytes of payload
DEADLINE_S = 30  # seconds for the first packet


def receive(port, seconds):
    """Print `heard` at the first packet, then, once a line comes in, count for `seconds` and print kbit/s of payload."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", port))
    sock.settimeout(DEADLINE_S)
    sock.recv(2000)
    print("heard", flush=True)
    sys.stdin.readline()
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            total += len(sock.recv(2000))
        except TimeoutError:
            break
    print(total * 8 / seconds / 1000)


def send(address, port, kbps):
    """Send payloads of SIZE bytes at `kbps` kbit/s until the process is ended."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    interval, begin, number = SIZE * 8 / (kbps * 1000), time.monotonic(), 0
    while True:
        with contextlib.suppress(OSError):  # no answer to ARP yet
            sock.sendto(bytes(SIZE), (address, port))
        number += 1
        time.sleep(max(0.0, begin + number * interval - time.monotonic()))


def throughputs(net, pairs, kbps, seconds):
    """kbit/s of each (sender, receiver), measured together once packets of all pairs arrive. A message is printed if the machine
    was too loaded for a sender to offer its load: then the figures show the machine, not the medium."""
    me = [sys.executable, __file__]
    receivers, senders = [], []
    for sender, receiver in pairs:  # ARP first: a request has no second try, and hidden senders would destroy it
        sender.cmd(f"ping -c1 -W1 {receiver.IP()}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    for port, (sender, receiver) in enumerate(pairs, start=5001):
        receivers.append(receiver.popen([*me, "receive", str(port), str(seconds)], **pipes))
        senders.append(sender.popen([*me, "send", receiver.IP(), str(port), str(kbps)]))
    for process in receivers:
        if process.stdout.readline() != "heard\n":
            sys.exit(f"no packet arrived within {DEADLINE_S} s")
    for process in receivers:
        process.stdin.write("\n")
        process.stdin.flush()
    before = net.counters()
    found = [float(process.stdout.readline()) for process in receivers]
    after = net.counters()
    for sender, _receiver in pairs:
        offered = (after[sender.name]["enqueued"] - before[sender.name]["enqueued"]) * SIZE * 8 / seconds / 1000
        if offered < 0.9 * kbps:
            output(f"*** too busy: {sender.name} offered {offered:.0f} of {kbps} kbit/s; run it again on an idle machine\n")
    for process in senders:
        process.terminate()
    for process in senders + receivers:
        process.wait()
    return found


def mark(verdict):
    """The text after a network's figures, from the value of its stop(): the verdict here, None in Mininet-WiFi."""
    return " (void: does not count)" if verdict == "void" else ""


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]), float(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
