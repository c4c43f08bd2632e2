"""How a save runs: in the loop's own thread while a run is alone, in a few shared threads when there are several.

A flush takes from 75 µs to 10 ms. For a run that is alone nothing else is kept waiting by it, and handing it to a
thread would cost about as much as the fastest flush, so a lone run saves where it is and stays at the disk's limit.
With several runs in one process the loop would stand still for each flush of each run; then saves go to eight threads,
because flushes of different files overlap in the disk, and more threads gain little. What has come back is handed to
the loop in batches, so that a thousand runs do not wake it a thousand times.

A save that has begun is waited for, whatever is cancelled meanwhile: its line is on the disk or the log is dead, and
only the save can say which. The cancellation is delivered at the next await instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

THREADS = 8


class _Job(Generic[T]):
    """One save, and what it came to."""

    def __init__(self, body: Callable[[], T], desk: _Desk, waiter: asyncio.Future[None]) -> None:
        self.body, self.desk, self.waiter = body, desk, waiter
        self.over = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Save, in a thread."""
        try:
            self.result = self.body()
        except BaseException as error:  # noqa: BLE001 (it travels to whoever waits for the save)
            self.error = error
        self.desk.give_back(self)

    def end(self) -> None:
        """Say so to whoever waits, in the loop's thread."""
        self.over = True
        if not self.waiter.done():
            self.waiter.set_result(None)


class _Desk:
    """Where the finished saves of one loop are collected until it fetches them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._ended: deque[_Job[object]] = deque()
        self._called = False

    def give_back(self, job: _Job[T]) -> None:
        """Leave a finished save for the loop, and call the loop unless it has been called."""
        self._ended.append(job)  # type: ignore[arg-type] # what it gives is known to whoever waits for it
        loop = self._loop()
        if not self._called and loop is not None:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(self._fetch)

    def _fetch(self) -> None:
        self._called = False  # first: a save that ends from here on calls again
        while self._ended:
            self._ended.popleft().end()


class _Pool:
    """The threads, begun with the first save that needs one; daemons, for a process may always die."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job[object]] = queue.SimpleQueue()
        self._desks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = weakref.WeakKeyDictionary()
        self._begun = False
        self._lock = threading.Lock()
        self.lives = 0

    def count(self, more: int) -> None:
        """One life more or less."""
        with self._lock:
            self.lives += more

    def put(self, body: Callable[[], T], loop: asyncio.AbstractEventLoop) -> _Job[T]:
        """Have a save run in a thread."""
        with self._lock:
            if not self._begun:
                self._begun = True
                for _ in range(THREADS):
                    threading.Thread(target=self._work, name="refold-save", daemon=True).start()
            desk = self._desks.get(loop)
            if desk is None:
                desk = self._desks[loop] = _Desk(loop)
        job = _Job(body, desk, loop.create_future())
        self._jobs.put(job)  # type: ignore[arg-type] # as in `give_back`
        return job

    def _work(self) -> None:
        while True:
            self._jobs.get().run()


_pool = _Pool()


def _afresh() -> None:
    """A forked child has none of the threads, and none of the lives."""
    global _pool  # noqa: PLW0603 (the process is another one)
    _pool = _Pool()


os.register_at_fork(after_in_child=_afresh)


@contextlib.contextmanager
def counted() -> Iterator[None]:
    """While this lasts, one life more shares the process."""
    pool = _pool
    pool.count(1)
    try:
        yield
    finally:
        pool.count(-1)


async def saved(body: Callable[[], T]) -> T:
    """What `body`, a save, gives or raises. It is waited for to its end even when the caller is cancelled."""
    if _pool.lives < 2:  # noqa: PLR2004 (a life that is alone)
        return body()
    loop = asyncio.get_running_loop()
    job = _pool.put(body, loop)
    cancelled = False
    while not job.over:
        try:
            await job.waiter
        except asyncio.CancelledError:
            cancelled = True
            job.waiter = loop.create_future()
    task = asyncio.current_task()
    if cancelled and task is not None:
        task.uncancel()  # the same request once more, not a second one
        task.cancel()
    if job.error is not None:
        raise job.error
    return job.result  # type: ignore[return-value] # without an error there is a result
