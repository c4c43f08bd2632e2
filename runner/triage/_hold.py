"""One holder at a time, found out by the kernel.

A lock file is only a place for the kernel's lock: its content is a courtesy to whoever is refused, and the lock ends
with the process by whatever death. A lock on a file that is no longer the one in the directory protects nothing, so
the holder can ask whether it still is.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

import portalocker

_EXCLUSIVE = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING


class Held:
    """A lock that this process holds until `release`, or until it dies. Use `take` to get one."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor = descriptor

    def still(self) -> bool:
        """Whether the locked file is the one in the directory."""
        try:
            there = self._file.stat(follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        """Let the next one in. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def take(file: Path) -> Held | None:
    """The lock at `file`, which is created if absent (0600); None when another process or thread holds it.

    Raises `OSError` when `file` can't be opened or is no regular file; a link is not followed and a FIFO never hangs.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    held = Held(file, descriptor)
    try:
        _lock(descriptor, file)
        if not held.still():  # the holder before us moved the directory away between our open and our lock
            held.release()
            return None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except portalocker.AlreadyLocked:
        held.release()
        return None
    except BaseException:  # whatever ends this leaves no lock behind, and goes on up
        held.release()
        raise
    return held


def _lock(descriptor: int, file: Path) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(None, "not a regular file", str(file))
    portalocker.lock(descriptor, _EXCLUSIVE)


def holder(file: Path) -> int | None:
    """The process id that the holder wrote, if it can be read. A courtesy: only the kernel knows who holds it."""
    with suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii"))
    return None
