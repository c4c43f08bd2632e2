"""What a coroutine waits for that several things may wake: tasks, threads, mail, a moment, a signal."""

from __future__ import annotations

import asyncio


class Bell:
    """Wakes the one coroutine of a life that waits. It is rung by whatever has news: mail, or a moment that has come.

    `rung` stays until it is cleared, so that nobody misses what came before they waited.
    """

    def __init__(self) -> None:
        self.rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self, _: object = None) -> None:
        """Have the coroutine look at what is new."""
        self.rung = True
        self.wake()

    def wake(self, _: object = None) -> None:
        """Have it look whether what it waits for has come."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def heard(self, most: float | None = None) -> None:
        """Wait until somebody wakes it, `most` seconds at most. It may be for nothing: look again what has come."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(most, self.wake) if most is not None else None
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
