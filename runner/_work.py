"""What this life has started and what has not ended yet.

A sync tool runs in a thread of its own, and no thread can be stopped from outside: a tool that timed out is still in
flight until its thread ends, no rerun may overtake it, and the run's lock is held until then (spec rows 13 and 22). A
parked life writes nothing more; a late thread only delays the lock's release.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Work:
    """The threads and tasks of one life. `when_idle` runs its callback once, after the last of them has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live = 0
        self._idle: Callable[[], None] | None = None
        self._threads: list[tuple[concurrent.futures.Future[Any], threading.Thread]] = []

    def _begin(self) -> None:
        with self._lock:
            self._live += 1

    def _end(self) -> None:
        with self._lock:
            self._live -= 1
            idle = self._idle if self._live == 0 else None
            if idle is not None:
                self._idle = None
        if idle is not None:
            idle()

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call `callback` now if nothing is live, else in the thread of whatever ends last.

        A thread that has given its result and only has to count itself out is waited for: whoever started the run may
        open it again at once.
        """
        for box, thread in self._threads:
            if box.done():
                thread.join()
        with self._lock:
            if self._live:
                self._idle = callback
                return
        callback()

    def task(self, body: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as a task of this life."""
        self._begin()
        task = asyncio.ensure_future(body)
        task.add_done_callback(lambda _: self._end())
        return task

    def thread(self, body: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Run a function in a thread of its own, with this context.

        The future is done before the thread counts as ended.
        """
        box: concurrent.futures.Future[T] = concurrent.futures.Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                box.set_result(context.run(body))
            except StopIteration as error:  # no coroutine can raise it, so nobody could wait for it
                box.set_exception(RuntimeError(f"the function raised StopIteration({error})"))
            except BaseException as error:  # noqa: BLE001 (it travels to whoever waits for the future)
                box.set_exception(error)
            finally:
                self._end()

        self._begin()
        box.set_running_or_notify_cancel()  # from here on nobody can cancel it: a thread ends by itself
        # A daemon: a process that has parked may exit, and the kernel drops the lock; the call is open, as at a death.
        thread = threading.Thread(target=run, name="refold-tool", daemon=True)
        self._threads = [(other, begun) for other, begun in self._threads if begun.is_alive()]
        self._threads.append((box, thread))
        thread.start()
        return box


class Parking:
    """Asked by a signal: let the call in flight end within `grace` seconds, then park (spec row 9).

    `asked` says that the run should park. `cut` is set once what is in flight is being cut off: from then on a
    cancellation is ours, before that a tool's own. `rung` is set by the signal itself, even while something blocks the
    loop and `asked` has to wait for it.
    """

    def __init__(self, grace: float) -> None:
        self.grace = grace
        self.cut = False
        self.rung = False
        self.asked = False
        self._bell: asyncio.Future[None] | None = None

    def ask(self) -> None:
        """Park as soon as what is in flight has ended. Call it in the loop's thread."""
        self.asked = True
        if self._bell is not None and not self._bell.done():
            self._bell.set_result(None)

    def bell(self) -> asyncio.Future[None]:
        """A future that is done once parking is asked for: one for the whole life, to wait for beside other things."""
        if self._bell is None or self._bell.cancelled():
            self._bell = asyncio.get_running_loop().create_future()
            if self.asked:
                self._bell.set_result(None)
        return self._bell


LINGER = 1.0
"""Seconds that a cancelled task may take to come to its end before it counts as in flight."""


async def settle(tasks: list[asyncio.Task[T]], parking: Parking) -> bool:
    """Wait for tasks to end. True when this wait was cancelled.

    When parking is asked for, they get `grace` seconds and are then cancelled; when this wait itself is cancelled, they
    are cancelled at once, and a second cancellation stops waiting. A task that does not end is left alone.
    """
    loop = asyncio.get_running_loop()
    pending: set[asyncio.Future[Any]] = set(tasks)
    bell = parking.bell()
    deadline: float | None = None
    cancelled = False

    def cut_off() -> float:
        parking.cut = True
        for task in pending:
            task.cancel()
        return loop.time() + LINGER

    while pending:
        watched = pending if bell.done() else pending | {bell}
        left = None if deadline is None else max(0.0, deadline - loop.time())
        try:
            await asyncio.wait(watched, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if cancelled:
                break
            cancelled = True
            deadline = cut_off()
        pending = {task for task in pending if not task.done()}
        if bell.done() and deadline is None:
            deadline = loop.time() + parking.grace
        if deadline is not None and loop.time() >= deadline:
            if parking.cut:
                break
            deadline = cut_off()
    return cancelled
