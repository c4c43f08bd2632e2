"""How a save runs: in the loop's own thread while a run is alone, in a few shared threads when there are several.

A flush takes from 75 µs to 10 ms. For a run that is alone nothing else is kept waiting by it, and handing it to a
thread would cost about as much as the fastest flush, so a lone run saves where it is and stays at the disk's limit.
With several runs in one process the loop would stand still for each flush of each run; then saves go to eight threads,
because flushes of different files overlap in the disk, and more threads gain little. What has come back is handed to
the loop in batches, so that a thousand runs do not wake it a thousand times. That is why the threads are our own: with
an executor of the standard library, which wakes the loop for each, a hundred coroutines that write and flush took 95 us
of processors for each save instead of 57, of which the loop's thread 41 instead of 23 (medians of 11 rounds in turns).

A save that has begun is waited for, whatever is cancelled meanwhile: its line is on the disk or the log is dead, and
only the save can say which. The cancellation is delivered at the next await instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

THREADS = 8
LINE = 8 << 20
"""The most bytes of events in one line; more are split, outcomes first."""
OPENING_THREADS = 2
"""With more of them the loop is late for longer while a hundred runs start at once."""


class _Job(Generic[T]):
    """One save, and what it came to."""

    def __init__(self, body: Callable[[], T], finished: _Finished, waiter: asyncio.Future[None]) -> None:
        self.body, self.finished, self.waiter = body, finished, waiter
        self.over = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Save, in a thread."""
        try:
            self.result = self.body()
        except BaseException as error:  # noqa: BLE001 (it is raised where the save is awaited)
            self.error = error
        self.finished.add(self)

    def end(self) -> None:
        """Wake the coroutine that waits, in the loop's thread."""
        self.over = True
        if not self.waiter.done():
            self.waiter.set_result(None)


class _Finished:
    """The finished saves of one loop, collected until it fetches them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._ended: deque[_Job[object]] = deque()
        self._called = False

    def add(self, job: _Job[T]) -> None:
        """Add a finished save, and wake the loop unless it has been woken."""
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

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._jobs: queue.SimpleQueue[_Job[object]] = queue.SimpleQueue()
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Finished] = weakref.WeakKeyDictionary()
        self._begun = False
        self._lock = threading.Lock()
        self.lives: dict[asyncio.AbstractEventLoop, int] = {}

    def count(self, more: int) -> None:
        """Note that so many lives more, or less, share the running loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            lives = self.lives.pop(loop, 0) + more
            if lives:
                self.lives[loop] = lives

    def put(self, body: Callable[[], T], loop: asyncio.AbstractEventLoop) -> _Job[T]:
        """Have a save run in a thread."""
        with self._lock:
            if not self._begun:
                self._begun = True
                for _ in range(self._threads):
                    threading.Thread(target=self._work, name="refold-save", daemon=True).start()
            finished = self._loops.get(loop)
            if finished is None:
                finished = self._loops[loop] = _Finished(loop)
        job = _Job(body, finished, loop.create_future())
        self._jobs.put(job)  # type: ignore[arg-type] # as in `add`
        return job

    def _work(self) -> None:
        while True:
            self._jobs.get().run()


_pool = _Pool(THREADS)
_openings = _Pool(OPENING_THREADS)


def _in_child() -> None:
    """A forked child has none of the threads, and none of the lives."""
    global _pool, _openings
    _pool, _openings = _Pool(THREADS), _Pool(OPENING_THREADS)


os.register_at_fork(after_in_child=_in_child)


@contextlib.contextmanager
def counted(lives: int = 1) -> Iterator[None]:
    """While this lasts, so many lives more share the running loop."""
    pool = _pool
    pool.count(lives)
    try:
        yield
    finally:
        pool.count(-lives)


async def saved(body: Callable[[], T]) -> T:
    """What `body`, a save, gives or raises. It is waited for to its end even when the caller is cancelled."""
    if _pool.lives.get(asyncio.get_running_loop(), 0) < 2:  # noqa: PLR2004 (a life that is alone)
        return body()
    return await _awaited(_pool, body)


def timed(append: Callable[P, T], told: Callable[[float], object] | None) -> Callable[P, T]:
    """A save that tells a watcher who wants to know how many seconds it took, its wait for a thread left out."""
    if told is None:
        return append

    def timely(*given: P.args, **named: P.kwargs) -> T:
        began = time.perf_counter()
        line = append(*given, **named)
        with contextlib.suppress(Exception):  # an error in a watcher must not end the run
            told(time.perf_counter() - began)
        return line

    return timely


async def off_loop(body: Callable[[], T]) -> T:
    """What `body`, which opens, reads or closes runs, gives or raises, from one of two threads; as `saved` else.

    It sees the context variables of whoever waits for it.
    """
    return await _awaited(_openings, functools.partial(contextvars.copy_context().run, body))


async def beside(body: Callable[[], T]) -> T:
    """What `body`, which opens or closes a run, gives or raises: `off_loop` while another life shares the loop."""
    if _pool.lives.get(asyncio.get_running_loop(), 0) < 1:
        return body()
    return await off_loop(body)


async def _awaited(pool: _Pool, body: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    job = pool.put(body, loop)
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


def lines(encoded: Sequence[bytes]) -> list[list[bytes]]:
    """Events as the groups that share a line."""
    if sum(map(len, encoded)) <= LINE:
        return [[*encoded]]
    groups: list[list[bytes]] = [[]]
    size = 0
    for event in encoded:
        if groups[-1] and size + len(event) > LINE:
            groups.append([])
            size = 0
        groups[-1].append(event)
        size += len(event)
    return groups
