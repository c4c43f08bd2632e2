"""Time as the runner meets it: read here and nowhere else, and handed on as a value.

A log's clock never runs backwards: `now` is the wall clock, or the last line's time plus the monotonic seconds since
this
process read or wrote it, whichever is later. So a wait ends even when the wall clock was set back, and time that passed
while the machine was suspended counts (design, "Time is an input").
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

CLOCK_BACK = timedelta(seconds=60)


class Clock:
    """The machine's clocks. A test passes its own, and nothing sleeps."""

    def wall(self) -> datetime:
        """The time of day, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(seconds)


class LogClock:
    """One log's time, from a `Clock` and the time of its last line."""

    def __init__(self, clock: Clock, last: datetime | None) -> None:
        self._clock = clock
        self.back = last is not None and clock.wall() < last - CLOCK_BACK
        self._last = last
        self._since = clock.monotonic()

    def now(self) -> datetime:
        """The time for the next line."""
        wall = self._clock.wall()
        if self._last is None:
            return wall
        return max(wall, self._last + timedelta(seconds=self._clock.monotonic() - self._since))

    def wrote(self, at: datetime) -> None:
        """A line was written at `at`."""
        self._last = at
        self._since = self._clock.monotonic()

    async def until(self, moment: datetime) -> None:
        """Wait for a moment of this log's time."""
        while (left := (moment - self.now()).total_seconds()) > 0:
            await self._clock.sleep(left)
