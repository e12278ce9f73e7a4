"""Costly answers give way: one at a time, few wait, at low priority."""

import os
import threading

import pytest

from testbed.serve.gate import MAX_WAITING, Gate
from testbed.serve.queue import QueueFull
from testbed.web.server import NICE


def test_one_is_inside_and_few_wait() -> None:
    gate, release, inside = Gate("answers"), threading.Event(), threading.Semaphore(0)
    most, now, lock = [0], [0], threading.Lock()

    def enter() -> None:
        with gate.passed():
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            inside.release()
            release.wait()
            with lock:
                now[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(MAX_WAITING)]
    for thread in threads:
        thread.start()
    inside.acquire()
    while gate._places._value:  # type: ignore[attr-defined]  # until all wait
        pass
    with pytest.raises(QueueFull, match="4 answers are under way already"), gate.passed():
        pass
    release.set()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_only_the_thread_that_passes_gives_way() -> None:
    found: list[int] = []

    def enter() -> None:
        with Gate("answers").passed():
            found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, os.getpid())
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert found == [NICE]
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) == before
