"""The lock: one process per run (spec 13), decided by the kernel alone.

The lock is a `flock` on the file `lock` in the run's directory, taken before anything is read. The kernel drops it
when the process dies by any means, so no pid, no age and no content of the file ever decides anything: the holder
written into it only answers "who?". A lock file can be deleted or replaced while it is held; then a second process
could hold another file of the same name, so the holder compares the file behind the name before every save
(`LockLost`).

Someone who only asks whether the run is held takes a shared lock for an instant. An opener that meets one can tell it
from a writer (a shared lock is still to be had) and tries again; a writer it meets is refused at once.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from eventlog._disk import DISK, Disk
from eventlog._names import LOCK, check_id
from eventlog.errors import DiskFailed, LockLost, RunLocked

_RECORD: Final = 512
_TRIES: Final = 100
_ASK_AGAIN: Final = 20
_MOMENT: Final = 0.002


class Holder(msgspec.Struct, frozen=True):
    """Who holds a run: process, machine, since when (UTC)."""

    pid: int
    host: str
    since: datetime


class Lock:
    """A run's lock, held until `release` or the end of the process. Made by `take`."""

    def __init__(self, disk: Disk, path: Path, run: str, fd: int) -> None:
        """Keep an open, locked file."""
        self._disk, self._path, self._run, self._fd = disk, str(path), run, fd
        found = disk.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        self._before, self._size = disk.pread(fd, _RECORD, 0), found.st_size

    def sign(self) -> None:
        """Write who holds the run into the file."""
        disk = self._disk
        holder = msgspec.json.encode(Holder(disk.pid(), disk.host(), disk.now()))
        disk.pwrite(self._fd, holder.ljust(_RECORD - 1) + b"\n", 0)

    def put_back(self) -> None:
        """Leave the file as it was found, for an opener that was refused: it touches nothing on disk."""
        self._disk.pwrite(self._fd, self._before, 0)
        self._disk.truncate(self._fd, self._size)

    def wipe(self) -> None:
        """Take the holder's name out, so that the next holder is never mistaken for this one."""
        self._disk.truncate(self._fd, 0)

    def check(self) -> None:
        """Raise `LockLost` unless the file behind the name is still the one that is locked."""
        if not self.is_named():
            raise LockLost(self._run)

    def is_named(self) -> bool:
        """Tell whether the name still stands for the locked file."""
        try:
            found = self._disk.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (found.st_dev, found.st_ino) == self._file

    def release(self) -> None:
        """Let go by closing the file. A forked child closes its own copy, and the parent still holds the lock."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._disk.close(fd)


def take(disk: Disk, directory: Path, run: str) -> Lock:
    """Lock a run at once, or raise `RunLocked` naming the holder."""
    for _ in range(_TRIES):
        with contextlib.ExitStack() as undo:
            fd = disk.open(directory / LOCK, write=True, create=True)
            undo.callback(disk.close, fd)
            if disk.try_lock(fd):
                lock = Lock(disk, directory / LOCK, run, fd)
                if (
                    lock.is_named()
                ):  # it may have been replaced between opening and locking: the one with the name counts
                    lock.sign()
                    undo.pop_all()
                    return lock
            elif not disk.try_lock(fd, shared=True):
                raise _refused(run, _named(disk, fd))
        disk.pause(_MOMENT)
    raise _refused(run, None)


def lock_holder(runs: str | Path, run: str, *, disk: Disk = DISK) -> Holder | None:
    """Say who holds a run for writing, or None when nobody does. Writes nothing; works in a read-only directory.

    When it is held by a process that left no readable name, the answer has pid 0. Raises `BadRunId`, and `DiskFailed`
    when the lock file cannot be read.
    """
    path = Path(runs) / check_id(run) / LOCK
    try:
        fd = disk.open(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DiskFailed(str(path), error.strerror or str(error)) from error
    try:
        if disk.try_lock(fd, shared=True):
            return None
        return _named(disk, fd) or Holder(0, "", disk.now())
    finally:
        disk.close(fd)


def _refused(run: str, holder: Holder | None) -> RunLocked:
    return RunLocked(run, holder.pid, holder.host, holder.since) if holder else RunLocked(run, None, "", None)


def _named(disk: Disk, fd: int) -> Holder | None:
    """Read the holder's name, waiting a moment for a holder that has the lock but has not signed yet."""
    holder = None
    for _ in range(_ASK_AGAIN):
        try:
            holder = msgspec.json.decode(disk.pread(fd, _RECORD, 0).strip(b" \n\0"), type=Holder)
        except msgspec.DecodeError:
            holder = None
        if holder is not None and (holder.host != disk.host() or disk.alive(holder.pid)):
            return holder
        disk.pause(_MOMENT)
    return holder
