"""Tracks the threads and tasks of one life until they finish.

A sync tool has a thread to itself while it runs, and no thread can be stopped from outside: a tool that timed out is
still in flight until its thread ends, no rerun may overtake it, and the run's lock is held until then. A life that was
interrupted writes nothing more; a late thread only delays the lock's release. A thread that only reads delays nothing:
it can't act, and nobody waits for what it returns. Threads are kept a while for the next call: starting one takes as
long as a quick save.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import math
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


KEPT = 5.0
"""Seconds that a thread waits for another call before it ends."""
Give = Callable[[], None]
Inbox = queue.SimpleQueue[Callable[[], Give]]


class Threads:
    """As many threads as are needed at once. Daemons: a process that was told to end may exit at any moment."""

    def __init__(self) -> None:
        self._free: deque[Inbox] = deque()

    def run(self, body: Callable[[], Give]) -> None:
        """Run `body` in a thread that does nothing else, then what it returns: that gives the result to somebody.

        The thread is free again before that, so whoever waited finds it. Raises `RuntimeError` without a thread.
        """
        try:
            inbox = self._free.pop()
        except IndexError:
            inbox = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(inbox,), name="refold-tool", daemon=True).start()
        inbox.put(body)

    def _work(self, inbox: Inbox) -> None:
        while True:
            try:
                give = inbox.get(timeout=KEPT)()
            except queue.Empty:
                with contextlib.suppress(ValueError):  # somebody has just taken it, and will put something
                    self._free.remove(inbox)
                    return
            else:
                self._free.append(inbox)
                give()
                del give


threads = Threads()


def _in_child() -> None:
    """A forked child has none of the threads."""
    global threads  # noqa: PLW0603 (as every fork hook)
    threads = Threads()


os.register_at_fork(after_in_child=_in_child)


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


class Running(Generic[T]):
    """A function that runs in a thread, and what it comes to. Nobody can cancel it: a thread ends by itself."""

    def __init__(self) -> None:
        self.is_over = False
        self._loop = asyncio.get_running_loop()
        self._bell = Bell()
        self._value: list[T] = []
        self._error: BaseException | None = None

    def do(self, body: Callable[[], T]) -> None:
        """Run it, in the thread."""
        try:
            self._value.append(body())
        except StopIteration as error:  # no coroutine can raise it, so nobody could wait for it
            self._error = RuntimeError(f"the function raised StopIteration({error})")
        except BaseException as error:  # noqa: BLE001 (it is raised where the function is waited for)
            self._error = error

    def give(self) -> None:
        """Tell whoever waits, from the thread."""
        self.is_over = True
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._loop.call_soon_threadsafe(self._bell.wake)

    async def ended(self, most: float | None = None) -> bool:
        """Wait for it, `most` seconds at most: whether it has ended."""
        if not self.is_over:
            await self._bell.heard(most)
        return self.is_over

    def result(self) -> T:
        """What it returned or raised; once it has ended."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._value[0]


class InFlight:
    """The threads and tasks of one life. `when_idle` runs its callback once, after the last of them has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._idle: Callable[[], None] | None = None

    def begin(self) -> None:
        """Count one thing more."""
        with self._lock:
            self._count += 1

    def end(self) -> None:
        """Count one thing less."""
        with self._lock:
            self._count -= 1
            idle = self._idle if self._count == 0 else None
            if idle is not None:
                self._idle = None
        if idle is not None:
            idle()

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` now if nothing is in flight, else in the thread of whatever ends last."""
        with self._lock:
            if self._count:
                self._idle = callback
                return
        callback()

    def thread(self, body: Callable[[], T], *, acts: bool = True) -> Running[T]:
        """Run a function in a thread, with this context; one that does not act is not waited for.

        It counts as ended before anybody hears of it: whoever started the run may open it again at once. Raises
        `RuntimeError` when no thread can be started.
        """
        running: Running[T] = Running()
        context = contextvars.copy_context()

        def run() -> Give:
            running.do(functools.partial(context.run, body))
            try:
                if acts:
                    self.end()
            except BaseException:  # whoever waits gets the result, whatever the end of the life came to
                running.give()
                raise
            return running.give

        if acts:
            self.begin()
        try:
            threads.run(run)
        except RuntimeError:
            if acts:
                self.end()
            raise
        return running


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
        """Do this in a task of its own, and wait for it, too."""
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
