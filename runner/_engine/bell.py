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

    def heard(self) -> asyncio.Future[None]:
        """What to wait for: it is done once somebody wakes it. It may be for nothing: look again what has come."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter
