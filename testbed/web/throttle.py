"""A limit of messages a second: a client that sends more is read later, and at last waits in its own socket."""

import asyncio


class Throttle:
    """At most `per_s` turns a second; after a pause `burst` of them at once."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._every_s, self._ahead_s = 1 / per_s, burst / per_s
        self._next_s = 0.0

    async def turn(self) -> None:
        """Wait for the next turn."""
        now_s = asyncio.get_running_loop().time()
        self._next_s = max(self._next_s, now_s - self._ahead_s) + self._every_s
        if self._next_s > now_s:
            await asyncio.sleep(self._next_s - now_s)
