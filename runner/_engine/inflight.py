"""Tracks the threads and tasks of one life until they finish.

A sync tool has a thread to itself while it runs, and no thread can be stopped from outside: a tool that timed out is
still in flight until its thread ends, no rerun may overtake it, and the run's lock is held until then. A life that was
interrupted writes nothing more; a late thread only delays the lock's release. A thread that only reads delays nothing:
it can't act, and nobody waits for what it returns. Threads are kept a while for the next call: starting one takes as
long as a quick save.
"""

import contextlib
import contextvars
import functools
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from runner._engine.bell import NO_THREAD, Work

T = TypeVar("T")


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

        The thread is free again before that, so whoever waited finds it. Raises one of `NO_THREAD` without a thread.
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

    def thread(self, body: Callable[[], T], *, acts: bool = True) -> Work[T]:
        """Run a function in a thread, with this context; one that does not act is not waited for.

        It counts as ended before anybody hears of it: whoever started the run may open it again at once. Raises one
        of `NO_THREAD` when none can be started. After an interrupt the thread may run, and it counts until it ends.
        """
        work = Work(functools.partial(contextvars.copy_context().run, body))

        def run() -> Give:
            work.do()
            try:
                if acts:
                    self.end()
            except BaseException:  # whoever waits gets the result, whatever the end of the life came to
                work.give()
                raise
            return work.give

        if acts:
            self.begin()
        try:
            threads.run(run)
        except NO_THREAD:
            if acts:
                self.end()
            raise
        return work
