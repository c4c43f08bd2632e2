"""Threads of a simulated life that act late: each waits for its moment of virtual time, or for the end of its life."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from runner.crashtest._faults import Killed
from runner.crashtest._virtual import Time

_PATIENCE: Final = 20.0


class Threads:
    """The threads that the tools of one life run in. Made in the life's own loop."""

    def __init__(self, time: Time) -> None:
        """Begin with none."""
        self._time, self._loop = time, asyncio.get_running_loop()
        self._bells: list[threading.Event] = []
        self._acting: list[threading.Thread] = []
        self._over = False
        self._said, threading.excepthook = threading.excepthook, self._ended

    def _ended(self, ended: threading.ExceptHookArgs) -> None:
        """A thread that ended with its simulated process has nothing to say; any other error is said as before."""
        if not issubclass(ended.exc_type, Killed):
            self._said(ended)

    @contextlib.contextmanager
    def acting(self, after: float) -> Iterator[None]:
        """In a tool's thread: wait for so many virtual seconds, then act."""
        self._acting.append(threading.current_thread())
        if after:
            bell = threading.Event()
            self._bells.append(bell)
            with contextlib.suppress(RuntimeError):  # the life is over, and `end` rings
                self._loop.call_soon_threadsafe(self._loop.call_later, after, bell.set)
            if self._over:
                bell.set()
            bell.wait(_PATIENCE)
        yield

    def end(self) -> None:
        """The life is over, but not yet its process: what still waits acts now. Returns when all have ended."""
        self._over = True
        for bell in self._bells:
            bell.set()
        for thread in self._acting:
            thread.join(_PATIENCE)
        threading.excepthook = self._said
