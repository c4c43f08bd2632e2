"""A process of a simulated machine: `eventlog.Disk` with every verb answered from memory.

Give it to `eventlog.Directory` as `disk`. No verb of it reaches the operating system; a test compares
it with `eventlog.Disk`, so that a verb added there cannot be forgotten here.
"""

import errno
import os
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import eventlog
from eventlog.simdisk._machine import Machine

_MOUNTS = "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
_FIRST_FD = 1000


class Process(eventlog.Disk):
    """One process of a machine: its open files and locks, over the files of all.

    Its clock moves a second at each look, and nothing in it waits.
    """

    def __init__(self, machine: Machine, pid: int = 1) -> None:
        """Begin with no file open. `pid` is any number; processes alive at once need different ones."""
        self.machine, self._pid = machine, pid
        self._open: dict[int, tuple[int, bool]] = {}
        self._alive = True
        self._seconds = count()

    def die(self) -> None:
        """End as by SIGKILL: files closed, locks gone, nothing written; it can be used no more."""
        for fd in list(self._open):
            self.close(fd)
        self._alive = False

    def open(
        self, path: Path, *, write: bool = False, create: bool = False, new: bool = False, within: int | None = None
    ) -> int:
        self._within(path, within)
        try:
            number = self.machine.find(path)
        except FileNotFoundError:
            if not (create or new):
                raise
            number = self.machine.make(path, directory=False)
        else:
            if new:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            if number in self.machine.directories:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return self._opened(number, write=write)

    def open_dir(self, path: Path, *, within: int | None = None, follow: bool = False) -> int:  # noqa: ARG002
        self._within(path, within)
        return self._opened(self.machine.directory(path), write=False)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        return bytes(memoryview(self.machine.files[self._file(fd)])[offset : offset + size])

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self.machine.write(self._file(fd, write=True), offset, bytes(data))
        return len(data)

    def append(self, path: Path, data: bytes) -> None:
        fd = self.open(path, write=True, create=True)
        self.write_some(fd, data, self.fstat(fd).st_size)
        self.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        self.machine.resize(self._file(fd, write=True), size)

    def datasync(self, fd: int) -> None:
        self.machine.sync(self._file(fd))

    def sync(self, fd: int) -> None:
        self.machine.sync(self._file(fd))

    def kernel_flushes(self) -> None:
        """Give none: no kernel flushes these files."""

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:  # noqa: ARG002 - it is the one of that path
        self.machine.sync(self.machine.directory(path))
        return True

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        self._within(source, within)
        self.machine.rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self.machine.link(source, target)

    def unlink(self, path: Path, *, within: int | None = None) -> None:
        self._within(path, within)
        self.machine.unlink(path)

    def rmdir(self, path: Path) -> None:
        self.machine.rmdir(path)

    def mkdir(self, path: Path, *, within: int | None = None) -> None:
        self._within(path, within)
        if path.name in self.machine.directories[self.machine.directory(path.parent)]:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self.machine.make(path, directory=True)

    def fchmod(self, fd: int, mode: int) -> None:
        """Do nothing: here everybody may do everything."""

    def stat(self, path: Path | str, *, within: int | None = None) -> os.stat_result:
        self._within(path, within)
        return self.machine.status(self.machine.find(path))

    def fstat(self, fd: int) -> os.stat_result:
        return self.machine.status(self._file(fd))

    def links_and_size(self, fd: int) -> tuple[int, int]:
        found = self.fstat(fd)
        return found.st_nlink, found.st_size

    def is_link(self, path: Path) -> bool:  # noqa: ARG002 - the seam's signature
        """Say no: there are no symbolic links here."""
        return False

    def list(self, path: Path) -> list[str]:
        """List a directory, in an order that depends on nothing but the names."""
        return sorted(self.machine.directories[self.machine.directory(path)])

    def close(self, fd: int) -> None:
        """Close a file, and drop its lock. What a dead process forgot to close is closed already."""
        if not self._alive:
            return
        number = self._file(fd)
        del self._open[fd]
        self.machine.locks.get(number, {}).pop(fd, None)

    def writable(self, path: Path) -> bool:  # noqa: ARG002 - the seam's signature
        return True

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Lock as flock does: one exclusive holder, or any number of shared ones."""
        held = self.machine.locks.setdefault(self._file(fd), {})
        if any(other != fd and not (shared and theirs) for other, theirs in held.items()):
            return False
        held[fd] = shared
        return True

    def unlock(self, fd: int) -> None:
        self.machine.locks.get(self._file(fd), {}).pop(fd, None)

    def mounts(self) -> str:
        """Say that everything is on an ext4 disk."""
        return _MOUNTS

    def absolute(self, path: Path) -> Path:
        return path

    def real(self, path: Path) -> str:
        return str(path)

    def uid(self) -> int:
        return 0

    def pid(self) -> int:
        return self._pid

    def host(self) -> str:
        return "simulated"

    def alive(self, pid: int) -> bool:
        """Say that a holder lives: only its lock counts."""
        return pid > 0

    def now(self) -> datetime:
        """Give a time a second after the one given before."""
        return _SINCE + timedelta(seconds=next(self._seconds))

    def pause(self, seconds: float) -> None:
        """Go on at once."""

    def random(self, size: int) -> str:
        return self.machine.random(size)

    def _within(self, path: Path | str, within: int | None) -> None:
        """Insist that the directory is the one that the path names: there are no links here that could differ."""
        if within is not None and self._file(within) != self.machine.directory(str(path).rpartition("/")[0]):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    def _opened(self, number: int, *, write: bool) -> int:
        fd = _FIRST_FD * self._pid + next(self._seconds)
        self._open[fd] = (number, write)
        return fd

    def _file(self, fd: int, *, write: bool = False) -> int:
        if fd not in self._open or (write and not self._open[fd][1]):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._open[fd][0]
