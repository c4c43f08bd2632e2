"""Tracks the threads and tasks of one life until they finish.

A sync tool has a thread to itself while it runs, and no thread can be stopped from outside: a tool that timed out is
still in flight until its thread ends, no rerun may overtake it, and the run's lock is held until then. A life that was
interrupted writes nothing more; a late thread only delays the lock's release. A thread that only reads delays nothing:
it can't act, and nobody waits for what it returns. Threads are kept a while for the next call: starting one takes as
long as a quick save.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
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

    def thread(self, body: Callable[[], T], *, acts: bool = True) -> concurrent.futures.Future[T]:
        """Run a function in a thread, with this context; one that does not act is not waited for.

        It counts as ended before its future is done: whoever started the run may open it again at once. Raises
        `RuntimeError` when no thread can be started.
        """
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        context = contextvars.copy_context()

        def run() -> Give:
            give: Give
            try:
                give = functools.partial(future.set_result, context.run(body))
            except StopIteration as error:  # no coroutine can raise it, so nobody could wait for it
                give = functools.partial(
                    future.set_exception, RuntimeError(f"the function raised StopIteration({error})")
                )
            except BaseException as error:  # noqa: BLE001 (it travels to whoever waits for the future)
                give = functools.partial(future.set_exception, error)
            try:
                if acts:
                    self.end()
            except BaseException:  # whoever waits gets the result, whatever the end of the life came to
                give()
                raise
            return give

        future.set_running_or_notify_cancel()  # from here on nobody can cancel it: a thread ends by itself
        if acts:
            self.begin()
        try:
            threads.run(run)
        except RuntimeError:
            if acts:
                self.end()
            raise
        return future


async def ended(running: concurrent.futures.Future[Any], most: float | None = None) -> bool:
    """Wait for a thread, `most` seconds at most: whether it has ended. Its future is never cancelled."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    def call(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(wake)

    running.add_done_callback(call)
    timer = loop.call_later(most, wake) if most is not None else None
    try:
        await woken
    finally:
        if timer is not None:
            timer.cancel()
    return running.done()


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
        self._deadline: float | None = None
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
        together: float | None = None
        while self._tasks:
            now = asyncio.get_running_loop().time()
            if self._drain.asked and self._deadline is None:
                self._deadline = now + self._drain.grace
            if self._deadline is not None and now >= self._deadline:
                if self._drain.cut:
                    return self._ended(give_up=True)
                self._cut_off(now)
            ended = sum([task.done() for task in self._tasks])
            if self._bell.rung or ended == len(self._tasks) or (together is not None and now >= together):
                break
            if ended and together is None:
                together = now + TOGETHER
            until = min((at for at in (self._deadline, together) if at is not None), default=None)
            try:
                await self._bell.heard(None if until is None else until - now)
            except asyncio.CancelledError:
                if self.cancelled:
                    return self._ended(give_up=True)
                self.cancelled = True
                self._cut_off(now)
        return self._ended()

    def _cut_off(self, now: float) -> None:
        self._drain.cut = True
        for task in self._tasks:
            task.add_done_callback(self._bell.wake)  # one that has not begun says nothing itself
            task.cancel()
        self._deadline = now + LINGER

    def _ended(self, *, give_up: bool = False) -> list[asyncio.Task[T]]:
        self._bell.rung = False
        ended = [task for task in self._tasks if task.done()]
        self._tasks = [] if give_up else [task for task in self._tasks if not task.done()]
        return ended
