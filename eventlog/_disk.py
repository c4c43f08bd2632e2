"""The disk: the only file that touches the operating system, and the seam at which tests put another one.

What is assumed of a disk, and written down: a sync that returned keeps its promise; a sector being written may be
lost or torn off, its neighbours are not garbled. What is not assumed: that a write writes all it was given, that a
failed sync can be tried again (the page cache calls its pages clean afterwards), that a name is durable before its
directory is synced, or that a file of the right name is a file (a FIFO would hang, a symbolic link would write
elsewhere).
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import portalocker

if TYPE_CHECKING:
    from collections.abc import Callable

if sys.platform == "win32":
    raise ImportError("the event log needs flock and synced directories: use Linux, macOS, or WSL on Windows")
if sys.platform == "darwin":
    import fcntl
if sys.platform != "linux":
    import subprocess

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a write that mean no room, as opposed to a disk that fails."""
NO_WRITING: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors that mean this user may not write here."""
SECTOR: Final = 512
"""Bytes that a disk writes whole or not at all."""
_CANNOT_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS})
_AT_EMPTY_PATH: Final = 0x1000
_STATX_NLINK: Final = 0x4
_STATX_SIZE: Final = 0x200
_STATX_ROOM: Final = 256
_NLINK: Final = struct.Struct("=I")
_SIZE: Final = struct.Struct("=Q")
"""Where statx puts them does not depend on the processor: bytes 16 and 40."""
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class NotAFile(OSError):
    """A name that should be a regular file is a link, a FIFO, a directory or a device."""


class Disk:
    """The system's files, locks, clock and randomness, in verbs. Every verb raises `OSError` unless it says otherwise.

    An interrupted system call is tried again by Python itself (PEP 475).
    """

    def open(self, path: Path, *, write: bool = False, create: bool = False, new: bool = False) -> int:
        """Open a regular file without following a link or waiting for a FIFO.

        `create` makes it when it is missing, `new` insists that it was; one made here is 0600 whatever the umask.
        Raises `NotAFile` when something else has the name.
        """
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        if create or new:
            try:
                return _made(path, flags)
            except FileExistsError:
                if new:
                    raise
        try:
            fd = os.open(path, flags)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
                raise NotAFile(error.errno, "not a regular file", str(path)) from error
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise NotAFile(errno.EINVAL, "not a regular file", str(path))
        return fd

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`; fewer only at the end of the file or when the system chooses."""
        return os.pread(fd, size, offset)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`; a short write is completed, an impossible count is an error."""
        written = self.write_some(fd, data, offset)
        if written == len(data):
            return
        rest = memoryview(data)
        while True:
            if not 0 < written <= len(rest):
                raise OSError(errno.EIO, f"a write of {len(rest)} bytes said it wrote {written}")
            rest, offset = rest[written:], offset + written
            if not rest:
                return
            written = self.write_some(fd, rest, offset)

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Make one system call of `pwrite`, and say how much it took."""
        return os.pwrite(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut or extend the file to `size` bytes."""
        os.ftruncate(fd, size)

    def datasync(self, fd: int) -> None:
        """Make the file's bytes and size durable. macOS: ask the drive to empty its cache."""
        if sys.platform == "darwin":
            _flush(fd)
        else:
            os.fdatasync(fd)

    def sync(self, fd: int) -> None:
        """Make the file durable whole, its times too. macOS: ask the drive to empty its cache."""
        _flush(fd)

    def sync_dir(self, path: Path) -> bool:
        """Make the names in a directory durable; False when this file system refuses to sync directories."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _flush(fd)
        except OSError as error:
            if error.errno in _CANNOT_SYNC:
                return False
            raise
        finally:
            os.close(fd)
        return True

    def rename(self, source: Path, target: Path) -> None:
        """Give `source` the name `target`, replacing what has it, in one step."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        path.unlink()

    def mkdir(self, path: Path) -> None:
        """Make one directory, 0700 whatever the umask."""
        path.mkdir(_DIRECTORY_MODE)
        path.chmod(_DIRECTORY_MODE)

    def chmod(self, path: Path, mode: int) -> None:
        """Set who may do what with a file or directory that is not the log's own."""
        path.chmod(mode)

    def stat(self, path: Path | str) -> os.stat_result:
        """Look at what has a name, a link itself included."""
        return os.lstat(path)

    def fstat(self, fd: int) -> os.stat_result:
        """Look at an open file."""
        return os.fstat(fd)

    def shape(self, fd: int) -> tuple[int, int]:
        """Give an open file's count of names and its size in bytes, and have the system look at nothing else.

        For a look before every write: since Linux 6.13 the first write after somebody was told a file's times must
        give it new ones, and the flush that follows takes half as long again (multigrain timestamps).
        """
        return _shape(fd)

    def is_link(self, path: Path) -> bool:
        """Tell whether a name is a symbolic link. Never raises."""
        return os.path.islink(path)

    def list(self, path: Path) -> list[str]:
        """List the names in a directory."""
        return os.listdir(path)

    def close(self, fd: int) -> None:
        """Close a file; a lock on it ends with its last descriptor."""
        os.close(fd)

    def writable(self, path: Path) -> bool:
        """Tell whether this user could make files in a directory. Never raises."""
        return os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Take the kernel's lock on an open file at once, or return False when another descriptor holds it."""
        kind = portalocker.LockFlags.SHARED if shared else portalocker.LockFlags.EXCLUSIVE
        try:
            portalocker.lock(fd, kind | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.AlreadyLocked:
            return False
        except portalocker.exceptions.LockException as error:
            raise OSError(errno.ENOLCK, f"the file system refuses to lock: {error}") from error
        return True

    def mounts(self) -> str:
        """Give the system's table of mounts as text: mountinfo on Linux, mount(8)'s output elsewhere."""
        if sys.platform == "linux":
            return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        else:  # noqa: RET505 - the type checker skips a branch for another platform, not what follows one
            return subprocess.run(["/sbin/mount"], capture_output=True, check=False, text=True).stdout

    def real(self, path: Path) -> str:
        """Give the absolute path without links; what does not exist yet is taken as it stands."""
        return os.path.realpath(path)

    def pid(self) -> int:
        """Give this process's id."""
        return os.getpid()

    def host(self) -> str:
        """Give this machine's name."""
        return os.uname().nodename

    def alive(self, pid: int) -> bool:
        """Tell whether a process of this machine has that id now. Only for naming a holder, never for deciding."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except (OSError, OverflowError):
            return True
        return True

    def now(self) -> datetime:
        """Give the time, for the lock's `since` alone; a line's time is always the caller's."""
        return datetime.now(UTC)

    def pause(self, seconds: float) -> None:
        """Wait a moment."""
        time.sleep(seconds)

    def random(self, size: int) -> str:
        """Give `size` random bytes in hex."""
        return os.urandom(size).hex()


def _made(path: Path, flags: int) -> int:
    fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    os.fchmod(fd, _FILE_MODE)
    return fd


@functools.cache
def _statx() -> Callable[[int], tuple[int, int] | None] | None:
    """The look at an open file that tells only what it is asked for; None where the system has none."""
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 - only a writer needs it, and every import of the package would wait for it

    call = getattr(ctypes.CDLL(None), "statx", None)
    if call is None:
        return None
    room = ctypes.c_char * _STATX_ROOM

    def look(fd: int) -> tuple[int, int] | None:
        found = room()
        if call(fd, b"", _AT_EMPTY_PATH, _STATX_NLINK | _STATX_SIZE, found) != 0:
            return None
        return _NLINK.unpack_from(found, 16)[0], _SIZE.unpack_from(found, 40)[0]

    return look


def _shape(fd: int) -> tuple[int, int]:
    look = _statx()
    shape = look(fd) if look is not None else None
    if shape is None:  # an older kernel; and where it was an error, this says which
        told = os.fstat(fd)
        shape = told.st_nlink, told.st_size
    return shape


def _flush(fd: int) -> None:
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise
        else:
            return
    os.fsync(fd)


DISK: Final = Disk()
