"""What a life has begun and waits for, how long it may take, and how it is asked to end."""

import asyncio
import contextvars
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVarTuple

import msgspec

from replay import Event
from runner._engine.bell import Bell
from runner._engine.inflight import InFlight

Ts = TypeVarTuple("Ts")


class Outcomes(msgspec.Struct):
    """What came back. `error` is raised once the events are saved."""

    events: list[Event] = []
    error: BaseException | None = None


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

    def untell(self, told: Callable[[], object]) -> None:
        """Call `told` no more: it is over before this is."""
        self._told.remove(told)


def _this() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # only what `Flight.begin` was given calls this
    return task


TOGETHER = 0.02
"""Seconds that an outcome waits for others to share its line."""
LINGER = 1.0
"""Seconds that a cancelled task may take to come to its end before it counts as in flight."""


class Flight:
    """What a life has begun and not heard of yet.

    Once the drain is requested, tasks get `grace` seconds and are then cancelled; when a wait here is itself cancelled,
    they are cancelled at once, and a second cancellation stops waiting. A task that does not end is left alone.
    """

    def __init__(self, drain: Drain, inflight: InFlight, bell: Bell) -> None:
        self._drain, self._inflight, self._bell = drain, inflight, bell
        self._tasks: list[asyncio.Task[Outcomes]] = []
        self._ended = 0
        """How many of them have."""
        self._timer: asyncio.TimerHandle | None = None
        self._cancelled = self._given_up = False
        self._limits: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._due = math.inf
        """Of the earliest limit there was: most are never reached, so it is only set anew for an earlier one."""

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def close(self) -> None:
        """Leave no timer behind that nobody needs."""
        if not self._limits:
            self._set_alarm(None)

    def begin(self, do: Callable[[*Ts], Coroutine[Any, Any, Outcomes]], *given: *Ts) -> None:
        """Do this in a task of its own, and wait for it, too. It is in flight from its first step on."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._doing(do, *given)))

    async def _doing(self, do: Callable[[*Ts], Coroutine[Any, Any, Outcomes]], *given: *Ts) -> Outcomes:
        try:
            self._inflight.begin()
            try:
                return await do(*given)
            finally:
                self._inflight.end()
        finally:  # not in a callback of the task: that would come a turn of the loop later
            self._ended += 1
            self._bell.wake()

    def limit(self, seconds: float) -> None:
        """Cancel the task that this is called in after so many seconds, unless it has ended by then."""
        due = self._limits[_this()] = asyncio.get_running_loop().time() + seconds
        if due < self._due:
            self._set_alarm(due)

    def is_late(self) -> bool:
        """Whether the task that this is called in was cancelled by its limit, and by nobody else; once."""
        is_late = _this() in self._late
        self._late.discard(_this())
        return is_late and _this().uncancel() == 0

    def _set_alarm(self, due: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._due = math.inf if due is None else due
        # In no context: a loop keeps that of a timer that was cancelled, and with it the call and its whole life.
        at, none = asyncio.get_running_loop().call_at, contextvars.Context()
        self._alarm = None if due is None else at(due, self._expire, context=none)

    def _expire(self) -> None:
        for task in [task for task, due in self._limits.items() if due <= self._due]:
            del self._limits[task]
            self._late |= {task} if task.cancel() else set()
        self._set_alarm(min(self._limits.values(), default=None))

    async def landed(self) -> Outcomes:
        """What has come back, once something has, the bell is rung, or the rest was cut off and is given up.

        What has ended waits a moment for the others: what is ready together shares a line.
        """
        together: asyncio.TimerHandle | None = None
        is_first = True
        while self._ended < len(self._tasks) and not (self._bell.rung or self._given_up):
            loop = asyncio.get_running_loop()
            if self._ended and together is None:
                together = loop.call_later(TOGETHER, self._bell.ring)
            if self._drain.asked and self._timer is None:
                self._timer = loop.call_later(self._drain.grace, self._cut_off)
            try:
                # What needs no time is done after one turn of the loop, where a bell would take two.
                await (asyncio.sleep(0) if is_first else self._bell.heard())
            except asyncio.CancelledError:
                if self._cancelled:
                    self._given_up = True
                else:
                    self._cancelled = True
                    self._cut_off()
            is_first = False
        if together is not None:
            together.cancel()
        self._bell.rung = False
        return self._came()

    def _came(self) -> Outcomes:
        """The outcomes of the tasks that have ended. One that was cut off, or that does not end, brings nothing."""
        outcomes = Outcomes(error=asyncio.CancelledError() if self._cancelled else None)
        flying = [task for task in self._tasks if not task.done()]
        for task in [task for task in self._tasks if task.done()]:
            self._limits.pop(task, None)
            self._late.discard(task)
            try:
                came = task.result()
            except BaseException as error:  # noqa: BLE001 (it is raised once the others' outcomes are saved)
                ours = self._drain.cut and isinstance(error, asyncio.CancelledError)
                came = Outcomes(error=None if ours else error)  # when it was not cut off by us, the run is cut off too
            outcomes.events += came.events
            outcomes.error = outcomes.error or came.error
        self._tasks, self._ended, self._given_up = [] if self._given_up else flying, 0, False
        if self._timer is not None and not self._tasks:
            self._timer.cancel()
            self._timer = None
        return outcomes

    def _cut_off(self) -> None:
        self._drain.cut = True
        for task in self._tasks:
            task.add_done_callback(self._recount)  # one that has not begun says nothing itself
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(LINGER, self._give_up)

    def _recount(self, _: object) -> None:
        self._ended = sum(task.done() for task in self._tasks)
        self._bell.wake()

    def _give_up(self) -> None:
        self._given_up = True
        self._bell.wake()
