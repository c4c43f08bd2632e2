"""One holder at a time, found out by the kernel.

A lock file is only a place for the kernel's lock: its content only names the holder, and the lock ends with the
process, however it dies. A lock on a file that is no longer the one in the directory protects nothing, so
the holder can ask whether it still is.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from runner.triage import _files


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

    Raises `OSError` as `_files.open_regular`.
    """
    descriptor = _files.open_regular(file, os.O_RDWR | os.O_CREAT)
    held = Held(file, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not held.still():  # the holder before us moved the directory away between our open and our lock
            held.release()
            return None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        held.release()
        return None
    except BaseException:  # whatever ends this leaves no lock
        held.release()
        raise
    return held


def holder(file: Path) -> int | None:
    """The process id that the holder wrote, if it can be read. It may be out of date: only the kernel knows."""
    with suppress(OSError, ValueError):
        return int(_files.read(file))
    return None
