"""How a save runs: whole in the loop's thread while a run is alone; beside it when there are several.

A flush takes from 75 µs to 10 ms. For a run that is alone nothing else is kept waiting by it, and handing it over would
cost about as much as the fastest flush, so a lone run saves where it is and stays at the disk's limit. (A run in a
database counts as two: its server may hang.) With several runs in one process the loop would stand still for each flush
of each run. A save in a thread makes seven calls of the system, and after each it must get the interpreter back from a
loop that computes: then a hundred runs take 580 µs of processors a save. So where the kernel carries flushes on
(Linux), a save is done in the loop's thread but for the flush, all flushes of one turn of the loop are handed to the
kernel at once, and those that are over come back together: 310 µs, and 1.6 times as many saves (medians of rounds in
turns, at a load of 8). A thread for the flush alone, with all else in the loop's thread, took 410: the hand-over is
what costs. What the kernel does not do (a database, zeros that must be laid first, another system, a container that
refuses it) goes to eight threads as a whole: flushes of different files overlap in the disk, and more threads gain
little.

A save that has begun is waited for, whatever is cancelled meanwhile: its line is on the disk or the log is dead, and
only the save can say which. The cancellation is delivered at the next await instead.
"""

import asyncio
import contextlib
import contextvars
import functools
import itertools
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import eventlog
from runner._engine.bell import NO_THREAD, Work

T = TypeVar("T")

THREADS = 8
LINE = 8 << 20
"""The most bytes of events in one line; more are split, outcomes first."""
AT_ONCE = 4
"""Saves that end in one turn of the loop, so that it does not stand still for a hundred of them."""
OPENING_THREADS = 2
"""With more of them the loop is late for longer while a hundred runs start at once."""


class _Kernel:
    """The saves of one loop whose flushes the kernel carries on: all else of them is done in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.flushes = eventlog.DISK.kernel_flushes()
        self._jobs: dict[object, Work[Any]] = {}
        self._called = self._goes_on = False
        if self.flushes is not None:
            try:
                loop.add_reader(self.flushes, self._ended)
            except NotImplementedError:  # a loop that looks at no files
                self.flushes = None

    def begun(self, begin: Callable[..., Any], *given: Any, **more: Any) -> Work[eventlog.Line] | None:
        """A save that was begun; None when it must be done in a thread."""
        if self.flushes is None or self.flushes.refuses:
            return None
        save = begin(self.flushes, *given, **more)
        if save is None:
            return None
        if not self._called:
            asyncio.get_running_loop().call_soon(self._submit)
            self._called = True
        job = self._jobs[save.flush] = Work(save.end)
        return job

    def _submit(self) -> None:
        """Hand over at once all that were ordered in this turn of the loop, and wake for all together."""
        self._called = False
        if self.flushes is not None and not self.flushes.submit():
            self._ended()

    def _ended(self, *, goes_on: bool = False) -> None:
        if self.flushes is None or self._goes_on is not goes_on:
            return
        over = [*itertools.islice(self.flushes.ended(), AT_ONCE)]
        self._goes_on = len(over) == AT_ONCE
        if self._goes_on:
            asyncio.get_running_loop().call_soon(functools.partial(self._ended, goes_on=True))
        for flush in over:
            job = self._jobs.pop(flush, None)
            if job is not None:  # an interrupt may have come before it was there
                job.do()
                job.end()


class _Pool:
    """The threads, begun with the first save that needs one; daemons, for a process may always die.

    Where the system gives none, what would be done in one is done at once, in the loop's thread: late, and not never.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._jobs: queue.SimpleQueue[Work[Any]] = queue.SimpleQueue()
        self._begun = 0
        self._lock = threading.Lock()
        self.lives: dict[asyncio.AbstractEventLoop, int] = {}

    def count(self, loop: asyncio.AbstractEventLoop, more: int) -> None:
        """Note that so many lives more, or less, share a loop."""
        with self._lock:
            lives = self.lives.pop(loop, 0) + more
            if lives:
                self.lives[loop] = lives

    def put(self, body: Callable[[], T]) -> Work[T]:
        """Have a save run in a thread."""
        job = Work(body)
        with self._lock, contextlib.suppress(*NO_THREAD):  # the next save tries again
            while self._begun < self._threads:
                threading.Thread(target=self._work, name="refold-save", daemon=True).start()
                self._begun += 1
        if self._begun:
            self._jobs.put(job)
        else:
            job.do()
            job.end()
        return job

    def _work(self) -> None:
        while True:
            self._jobs.get().run()


_pool = _Pool(THREADS)
_openings = _Pool(OPENING_THREADS)
_kernels: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Kernel] = weakref.WeakKeyDictionary()


def _in_child() -> None:
    """A forked child has none of the threads, and none of the lives."""
    global _pool, _openings
    _pool, _openings = _Pool(THREADS), _Pool(OPENING_THREADS)
    _kernels.clear()


os.register_at_fork(after_in_child=_in_child)


@contextlib.contextmanager
def counted(lives: int = 1) -> Iterator[None]:
    """While this lasts, so many lives more share the running loop."""
    pool, loop = _pool, asyncio.get_running_loop()
    pool.count(loop, lives)
    try:
        yield
    finally:
        pool.count(loop, -lives)


def _sharing() -> int:
    """How many lives share the running loop. None runs where a coroutine is closed that its loop left behind."""
    with contextlib.suppress(RuntimeError):
        return _pool.lives.get(asyncio.get_running_loop(), 0)
    return 0


async def saved(body: Callable[[], T]) -> T:
    """What `body`, a save, gives or raises. It is waited for to its end even when the caller is cancelled."""
    if _sharing() < 2:  # noqa: PLR2004 (a life that is alone)
        return body()
    return await _awaited(_pool.put(body))


async def appended(
    log: eventlog.Log, told: Callable[[float], object] | None, at: datetime, events: Sequence[bytes], **more: Any
) -> eventlog.Line:
    """What `log.append` gives or raises, as `saved`; in the loop's thread where the kernel carries the flush on.

    `told`, of a watcher who wants to know, hears how many seconds it took, its wait for a thread left out.
    """
    loop = asyncio.get_running_loop()

    def append() -> tuple[eventlog.Line, float]:
        began = time.perf_counter()
        return log.append(at, events, **more), time.perf_counter() - began

    if _pool.lives.get(loop, 0) < 2:  # noqa: PLR2004 (a life that is alone)
        line, took = append()
    else:
        kernel = _kernels.get(loop) or _kernels.setdefault(loop, _Kernel(loop))
        began = time.perf_counter()
        job = kernel.begun(log.begin, at, events, **more)
        if job is None:
            line, took = await _awaited(_pool.put(append))
        else:
            line, took = await _awaited(job), time.perf_counter() - began
    if told is not None:
        with contextlib.suppress(Exception):  # an error in a watcher must not end the run
            told(took)
    return line


async def off_loop(body: Callable[[], T], *, kept: bool = False) -> T:
    """What `body`, which opens, reads or closes runs, gives or raises, from one of two threads; in this context.

    It is waited for as `saved` is, and then a cancellation is raised: after it there may be no await in the call that
    was cancelled. What is `kept`, for it must be given back, is returned first, to who awaits something.
    """
    return await _awaited(_openings.put(functools.partial(contextvars.copy_context().run, body)), kept=kept)


async def beside(body: Callable[[], T], *, kept: bool = False) -> T:
    """What `body`, which opens or closes a run, gives or raises: `off_loop` while another life shares the loop."""
    return await off_loop(body, kept=kept) if _sharing() else body()


async def _awaited(job: Work[T], *, kept: bool = True) -> T:
    cancelled: asyncio.CancelledError | None = None
    while not job.is_over:
        try:
            await job.news()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None and not kept:
        raise cancelled
    if cancelled is not None and (task := asyncio.current_task()) is not None:
        task.uncancel()  # the same request once more, not a second one
        task.cancel()
    return job.result()


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
