#!/usr/bin/env python

"""A load of UDP packets and its count, for the examples: what arrived, with nothing else on the air.

    udp.py receive PORT SECONDS              prints what arrived in that time, kbit/s
    udp.py send ADDRESS PORT KBPS SECONDS    packets of 1000 bytes at a steady rate
"""

import socket
import sys
import time

SIZE = 1000  # bytes of payload


def receive(port, seconds):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(('', port))
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        sock.settimeout(max(0.01, end - time.monotonic()))
        try:
            total += len(sock.recv(2000))
        except TimeoutError:
            break
    print('%.0f' % (total * 8 / seconds / 1000))


def send(address, port, kbps, seconds):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    interval, begin, number = SIZE * 8 / (kbps * 1000), time.monotonic(), 0
    while time.monotonic() < begin + seconds:
        sock.sendto(bytes(SIZE), (address, port))
        number += 1
        time.sleep(max(0.0, begin + number * interval - time.monotonic()))


def throughputs(pairs, kbps, seconds):
    """kbit/s of each (sender, receiver), all at once; the first second is not counted."""
    receivers, senders = [], []
    for port, (sender, receiver) in enumerate(pairs, start=5001):
        sender.cmd('ping -c1 -W1 %s' % receiver.IP())  # so that ARP is done
        words = [sys.executable, __file__, 'send', receiver.IP(), str(port), str(kbps), str(seconds + 2)]
        senders.append(sender.popen(words))
    time.sleep(1)
    for port, (_sender, receiver) in enumerate(pairs, start=5001):
        receivers.append(receiver.popen([sys.executable, __file__, 'receive', str(port), str(seconds)]))
    found = [float(process.communicate()[0]) for process in receivers]
    for process in senders:
        process.wait()
    return found


if __name__ == '__main__':
    if sys.argv[1] == 'receive':
        receive(int(sys.argv[2]), float(sys.argv[3]))
    else:
        send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
