"""What a coroutine waits for that several things may wake: tasks, threads, mail, a moment, a signal."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
NO_THREAD = (RuntimeError, MemoryError)
"""What the start of a thread raises where the system gives none, or no memory for one."""


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


class Work(Generic[T]):
    """A function that runs in a thread, and what it comes to. Nobody can cancel it: it ends by itself."""

    def __init__(self, body: Callable[[], T]) -> None:
        self.is_over = False
        self._body = body
        self._loop = asyncio.get_running_loop()
        self._bell = Bell()
        self._value: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do it and tell whoever waits, in a thread."""
        self.do()
        self.give()

    def do(self) -> None:
        """Do it; whoever waits hears of it by `give` or `end`."""
        try:
            self._value.append(self._body())
        except StopIteration as error:  # no coroutine can raise it, so nobody could wait for it
            self._error = RuntimeError(f"the function raised StopIteration({error})")
        except BaseException as error:  # noqa: BLE001 (it is raised where the function is waited for)
            self._error = error

    def give(self) -> None:
        """Tell whoever waits, from a thread."""
        self.is_over = True
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(self._bell.wake)

    def end(self) -> None:
        """Tell whoever waits, from the loop's thread."""
        self.is_over = True
        self._bell.wake()

    def news(self) -> asyncio.Future[None]:
        """What to wait for while it is not over."""
        return self._bell.heard()

    def result(self) -> T:
        """What it returned or raised; once it has ended."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._value[0]
