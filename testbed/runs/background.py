"""Work that goes on in a thread beside a block."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_background(name: str, work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Call `work` in a thread. The end of the block sets the event that it is given, and waits for it."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), name=name, daemon=True)
    try:
        thread.start()
        yield
    finally:  # also after a signal before the block
        over.set()
        if thread.ident is not None:
            thread.join()
