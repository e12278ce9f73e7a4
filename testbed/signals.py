"""Signals to this process while it starts a child that has a session of its own, and that nobody else would end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_noted() -> Iterator[None]:
    """Signals that come in this block take effect at its end: a child that it starts is known by then, and can be ended."""
    noted: list[int] = []
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    handlers = {n: signal.signal(n, lambda number, _: noted.append(number)) for n in handled if callable(signal.getsignal(n))}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for signalled in noted:
            signal.raise_signal(signalled)
