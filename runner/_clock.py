"""Time: read here and nowhere else, and passed on as a value.

Log time is the wall clock, or the time of the last line plus the monotonic seconds since this process read it or chose
it, whichever is later. So it never goes back, a wait ends even if the wall clock was set back, and time counts during
which the machine was suspended.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

CLOCK_BACK = timedelta(seconds=60)
LONGEST_SLEEP = 60.0
"""Seconds: a sleep does not count those during which the machine was suspended, so the time is looked at again."""


class Clock:
    """The clocks of the machine, or the time of day of another (`eventlog.Store.now`). A test passes its own."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        if now is not None:
            self.wall = now  # type: ignore[method-assign] # of this clock alone

    def wall(self) -> datetime:
        """The time of day (UTC)."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits for some seconds."""
        import asyncio  # noqa: PLC0415 (whoever waits has it, and a list of runs does without)

        await asyncio.sleep(seconds)


class LogClock:
    """The time of one log, from a `Clock` and the time of its last line."""

    def __init__(self, clock: Clock, last: datetime | None) -> None:
        self.clock = clock
        self.back = last is not None and clock.wall() < last - CLOCK_BACK
        self._looked = clock.monotonic()
        self._last = (last, self._looked)  # one value: a child's log is opened in a thread

    def now(self) -> datetime:
        """The time of the next line (UTC)."""
        (last, since), wall, looked = self._last, self.clock.wall(), self.clock.monotonic()
        self._looked = looked
        return wall if last is None else max(wall, last + timedelta(seconds=looked - since))

    def wrote(self, at: datetime) -> None:
        """Notes that a line was written at `at`, the time that was looked at last."""
        self._last = (at, self._looked)

    def shared(self) -> Clock:
        """A clock for the log of a child, which is never behind this one: what is due here is due there."""
        clock = Clock(self.now)
        clock.monotonic, clock.sleep = self.clock.monotonic, self.clock.sleep  # type: ignore[method-assign]
        return clock

    def left(self, moment: datetime) -> float:
        """Seconds until a moment of log time; negative once it has passed."""
        return (moment - self.now()).total_seconds()

    async def until(self, moment: datetime) -> None:
        """Waits until a moment of log time."""
        while (left := self.left(moment)) > 0:
            await self.clock.sleep(min(left, LONGEST_SLEEP))

    def alarm(self, moment: datetime, ring: Callable[[], None]) -> asyncio.Task[None]:
        """Ring at a moment of log time, unless what this returns is cancelled before."""
        import asyncio  # noqa: PLC0415 (the same)

        async def wait() -> None:
            await self.until(moment)
            ring()

        return asyncio.ensure_future(wait())
