"""What a life has begun and waits for, and how it is asked to end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

from runner._engine.bell import Bell
from runner._engine.inflight import InFlight

T = TypeVar("T")
P = ParamSpec("P")


class Drain:
    """A request to end the life: what is in flight may end within `grace` seconds, then the run stops.

    `asked` says that it was requested. `cut` is set once what is in flight is being cut off: from then on a
    cancellation is ours, before that a tool's own. `signalled` is set by the signal itself, even while something blocks
    the loop and `asked` has to wait for it.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.cut = False
        self.signalled = False
        self.asked = False
        self._told: list[Callable[[], object]] = []

    def ask(self) -> None:
        """Stop as soon as what is in flight has ended. Call it in the loop's thread."""
        if not self.asked:
            self.asked = True
            for told in self._told:
                told()

    def tell(self, told: Callable[[], object]) -> None:
        """Call `told` once the drain is requested; at once if it was."""
        self._told.append(told)
        if self.asked:
            told()


TOGETHER = 0.02
"""Seconds that an outcome waits for others to share its line."""
LINGER = 1.0
"""Seconds that a cancelled task may take to come to its end before it counts as in flight."""


class Flight(Generic[T]):
    """What a life has begun and not heard of yet.

    Once the drain is requested, tasks get `grace` seconds and are then cancelled; when a wait here is itself cancelled,
    they are cancelled at once, and a second cancellation stops waiting. A task that does not end is left alone.
    """

    def __init__(self, drain: Drain, inflight: InFlight, bell: Bell) -> None:
        self._drain, self._inflight, self._bell = drain, inflight, bell
        self._tasks: list[asyncio.Task[T]] = []
        self._deadline = math.inf
        self.cancelled = False

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def begin(self, do: Callable[P, Coroutine[Any, Any, T]], *given: P.args, **named: P.kwargs) -> None:
        """Do this in a task of its own, and wait for it, too. It is in flight from its first step on."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._doing(do, *given, **named)))

    async def _doing(self, do: Callable[P, Coroutine[Any, Any, T]], *given: P.args, **named: P.kwargs) -> T:
        self._inflight.begin()
        try:
            return await do(*given, **named)
        finally:  # not in a callback of the task: that would come a turn of the loop later
            self._inflight.end()
            self._bell.wake()

    async def landed(self) -> list[asyncio.Task[T]]:
        """The tasks that have ended, once one has, the bell is rung, or the rest was cut off and is given up.

        One that has ended waits a moment for the others: what is ready together shares a line.
        """
        together = math.inf
        give_up = False
        while not (self._bell.rung or give_up):
            ended = sum([task.done() for task in self._tasks])
            if ended == len(self._tasks):
                break
            now = asyncio.get_running_loop().time()
            if self._drain.asked and self._deadline == math.inf:
                self._deadline = now + self._drain.grace
            if now >= self._deadline and self._drain.cut:
                give_up = True
            elif now >= self._deadline:
                self._cut_off(now)
            elif now >= together:
                break
            else:
                together = min(together, now + TOGETHER) if ended else together
                give_up = not await self._heard(min(self._deadline, together) - now)
        self._bell.rung = False
        landed = [task for task in self._tasks if task.done()]
        self._tasks = [] if give_up else [task for task in self._tasks if not task.done()]
        return landed

    async def _heard(self, most: float) -> bool:
        """Wait for news; False when this is cancelled for the second time."""
        try:
            await self._bell.heard(most if most < math.inf else None)
        except asyncio.CancelledError:
            if self.cancelled:
                return False
            self.cancelled = True
            self._cut_off(asyncio.get_running_loop().time())
        return True

    def _cut_off(self, now: float) -> None:
        self._drain.cut = True
        for task in self._tasks:
            task.add_done_callback(self._bell.wake)  # one that has not begun says nothing itself
            task.cancel()
        self._deadline = now + LINGER
