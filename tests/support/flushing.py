"""A stand-in for the kernel's flushes: each is done, held or refused by hand, in whatever order a test wants."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator

from eventlog._flushes import Flush, Flushes


class ByHand(Flushes):
    """Flushes by `sync`, in a thread for each that was submitted, so that `sync` may hold them or raise."""

    def __init__(self, sync: Callable[[int], None], *, takes: bool = True) -> None:
        self.sync, self.takes, self.refuses = sync, takes, False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._ordered: list[tuple[Flush, int]] = []
        self._over: deque[Flush] = deque()
        self._told = threading.Condition()

    def fileno(self) -> int:
        """Give what can be read when a flush is over."""
        return self._read

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)

    def begin(self, fd: int) -> Flush:
        """Order a flush."""
        flush = Flush(self, len(self._ordered))
        self._ordered.append((flush, fd))
        return flush

    def submit(self) -> bool:
        """Begin those that were ordered, or take none."""
        ordered, self._ordered = self._ordered, []
        for flush, fd in ordered:
            if self.takes:
                threading.Thread(target=self._work, args=(flush, fd), daemon=True).start()
            else:
                flush.taken = False
                self._end(flush)
        return self.takes or not ordered

    def ended(self) -> Iterator[Flush]:
        """Give those that are over."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 1 << 16)
        while self._over:
            yield self._over.popleft()

    def wait(self, flush: Flush) -> None:
        """Return once this one is over."""
        self.submit()
        with self._told:
            self._told.wait_for(lambda: flush.over)

    def _work(self, flush: Flush, fd: int) -> None:
        try:
            self.sync(fd)
        except OSError as error:
            flush.error = error.errno or 0
        self._end(flush)

    def _end(self, flush: Flush) -> None:
        with self._told:
            flush.over = True
            self._over.append(flush)
            os.write(self._write, b".")
            self._told.notify_all()
