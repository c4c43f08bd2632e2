"""Time that nobody waits for: an event loop that jumps to its next timer as soon as nothing else is to be done.

Sleeps, timeouts and waits pass at once and in their order, so a sweep repeats exactly. What runs in a thread is waited
for really; what a program would hand to a pool of threads runs at once, in the loop's own.
"""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import runner

if TYPE_CHECKING:
    from collections.abc import Callable

_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_PATIENCE: Final = 20.0


class Stuck(RuntimeError):
    """A simulated life waits for something that never comes."""


class Time:
    """The seconds that have passed, in all lives of one scenario.

    `lingers` is how many real seconds threads get before each jump.
    """

    def __init__(self) -> None:
        """Begin at noon."""
        self.now = 0.0
        self.lingers = 0.0


class VirtualClock(runner.Clock):
    """The clocks of a simulated machine. Its `sleep` is asyncio's, and so passes at once in a `VirtualLoop`."""

    def __init__(self, time: Time) -> None:
        """Show a time."""
        self._time = time

    def wall(self) -> datetime:
        """The time of day."""
        return _NOON + timedelta(seconds=self._time.now)

    def monotonic(self) -> float:
        """The same in seconds."""
        return self._time.now


class _Selector(selectors.DefaultSelector):
    """Waits for files really, and for timers not at all."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        if timeout is None:
            found = super().select(_PATIENCE)
            if not found:
                raise Stuck(f"nothing happened in {_PATIENCE:g} s, and no timer is set")
            return found
        found = super().select(min(timeout, self._time.lingers))
        if not found:
            self._time.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop of one simulated life."""

    def __init__(self, time: Time) -> None:
        """Run in a time."""
        self._seconds = time
        super().__init__(_Selector(time))

    def time(self) -> float:
        """The virtual seconds."""
        return self._seconds.now

    def run_in_executor(  # type: ignore[override] # a future either way, and done already
        self,
        executor: object,  # noqa: ARG002 (asyncio's own signature)
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """Run it at once, so that everything has one order."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 (it travels to whoever waits for the future)
            future.set_exception(error)
        return future
