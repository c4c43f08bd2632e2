"""The lock: one process per run, decided by the kernel alone.

The lock is a `flock` on the file `lock` in the run's directory, taken before anything is read. The kernel drops it
when the process dies by any means, so no pid, no age and no content of the file ever decides anything: the holder
written into it only answers "who?". A lock file can be deleted or replaced while it is held; then a second process
could hold another file of the same name, so the holder looks at what has the name before every save
(`LockLost`).

A forked child inherits descriptors, and would keep the lock when its parent has closed the run or died. So its copies
are closed in the child, and a release unlocks before it closes. But a child may still act for the run, in the body of a
tool. Therefore the holder also has a shared lock on the run's directory, which a forked child keeps until it ends, and
which blocks nobody. An opener that finds it held by others says so (`lease_lost`): what was in doubt may still happen.

Someone who only asks whether the run is held takes a shared lock for an instant. An opener that meets one can tell it
from a writer (a shared lock is still to be had) and tries again; a writer it meets is refused at once.
"""

import contextlib
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from eventlog._disk import Disk
from eventlog._files import OpenFile
from eventlog._in_child import not_for_children
from eventlog._names import LOCK
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

    def refusal(self, run: str, disk: Disk, until: datetime | None = None) -> RunLocked:
        """Give the error for a second writer of what this one holds."""
        error = RunLocked(run, self.pid, self.host, self.since, until)
        if (self.host, self.pid) == (disk.host(), disk.pid()):
            vars(error)["hint"] = RunLocked.HERE
        return error


class Lock(OpenFile):
    """A run's lock, held until `release` or the end of the process. Made by `take`."""

    def __init__(self, disk: Disk, path: Path, run: str, fd: int, family: int) -> None:
        """Keep an open, locked file, and its directory: children inherit the shared lock on that one."""
        super().__init__(disk, fd)
        self._path, self._run = str(path), run
        found = disk.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        self._before, self._size = disk.pread(fd, _RECORD, 0), found.st_size
        self._pid, self._family = disk.pid(), OpenFile(disk, family)
        self.lease_lost = False
        not_for_children(self)

    def share(self) -> None:
        """Take the shared lock that forked children inherit, and see whether children of an earlier holder have it."""
        family = self._family.fd
        self.lease_lost = not self._disk.try_lock(family)
        self._disk.try_lock(family, shared=True)

    def sign(self) -> None:
        """Write who holds the run into the file."""
        disk = self._disk
        holder = msgspec.json.encode(Holder(disk.pid(), disk.host(), disk.now()))
        disk.pwrite(self.fd, holder.ljust(_RECORD - 1) + b"\n", 0)

    def put_back(self) -> None:
        """Leave the file as it was found, for an opener that was refused: it touches nothing on disk."""
        self._disk.pwrite(self.fd, self._before, 0)
        self._disk.truncate(self.fd, self._size)

    def wipe(self) -> None:
        """Take the holder's name out, so that the next holder is never mistaken for this one."""
        self._disk.truncate(self.fd, 0)

    def check(self) -> None:
        """Raise `LockLost` unless the locked file still has its name."""
        try:
            found = self._disk.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            raise LockLost(self._run) from None
        if found.st_ino != self._file[1] or found.st_dev != self._file[0]:
            raise LockLost(self._run)

    def release(self) -> None:
        """Give the lock back. A forked child only closes its own copy, and the parent still holds the lock."""
        if self.fd >= 0 and self._disk.pid() == self._pid:
            with contextlib.suppress(OSError):  # closing it gives it back too, unless a child has a copy
                self._disk.unlock(self.fd)
        self.close_copies()
        self._family.release()

    def close_copies(self) -> None:
        """Close the lock file alone: what is open on the directory stays, for as long as this process may act."""
        super().release()


def take(disk: Disk, directory: Path, run: str, family: int) -> Lock:
    """Lock a run at once, or raise `RunLocked` naming the holder. Takes over `family`, the run's open directory."""
    with contextlib.ExitStack() as undo:
        undo.callback(disk.close, family)
        for _ in range(_TRIES):
            lock = _tried(disk, directory, run, family)
            if lock is not None:
                undo.pop_all()
                return lock
            disk.pause(_MOMENT)
        raise RunLocked(run, None, "", None)


def _tried(disk: Disk, directory: Path, run: str, family: int) -> Lock | None:
    """Lock a run; None when somebody else asked for the lock meanwhile, or the file was replaced.

    A lock file with a second name is another file too, or a backup's, and its bytes are not ours to change: it loses
    the name of the lock. It is locked for that, so that whoever holds it is met.
    """
    with contextlib.ExitStack() as undo:
        fd = disk.open(directory / LOCK, write=True, create=True, within=family)
        undo.callback(disk.close, fd)
        if not disk.try_lock(fd):
            if disk.try_lock(fd, shared=True):
                return None
            held = _named(disk, fd)
            raise held.refusal(run, disk) if held is not None else RunLocked(run, None, "", None)
        if disk.links_and_size(fd)[0] > 1:
            disk.unlink(directory / LOCK, within=family)
            return None
        lock = Lock(disk, directory / LOCK, run, fd, family)
        undo.pop_all()
        undo.callback(lock.close_copies)
        # It may have been replaced between opening and locking: the one with the name counts.
        with contextlib.suppress(LockLost):
            lock.check()
            lock.sign()
            lock.share()
            undo.pop_all()
            return lock
    return None


def holder(disk: Disk, directory: Path) -> Holder | None:
    """Say who holds a run for writing, or None when nobody does. Raises `DiskFailed` for an unreadable lock file."""
    path = directory / LOCK
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


def _named(disk: Disk, fd: int) -> Holder | None:
    """Read the holder's name, waiting a moment for one that has not signed yet. A process that is gone is not named."""
    for _ in range(_ASK_AGAIN):
        try:
            holder = msgspec.json.decode(disk.pread(fd, _RECORD, 0).strip(b" \n\0"), type=Holder)
        except msgspec.DecodeError:
            holder = None
        if holder is not None and (holder.host != disk.host() or disk.alive(holder.pid)):
            return holder
        disk.pause(_MOMENT)
    return None
