"""The disk: the only file that touches the operating system, and the seam at which tests put another one.

What is assumed of a disk, and written down: a sync that returned keeps its promise; a sector being written may be
lost or torn off, its neighbours are not garbled. What is not assumed: that a write writes all it was given, that a
failed sync can be tried again (the page cache calls its pages clean afterwards), that a name is durable before its
directory is synced, or that a file of the right name is a file (a FIFO would hang, a symbolic link would write
elsewhere).
"""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eventlog._descriptor import above_standard, links_and_size
from eventlog._flushes import Flushes, made

if sys.platform == "win32":
    raise ImportError("the event log needs flock and synced directories: use Linux, macOS, or WSL on Windows")
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
_HELD: Final = frozenset({errno.EWOULDBLOCK, errno.EACCES})
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700


class NotAFile(OSError):
    """A name that should be a regular file is a link, a FIFO, a directory or a device."""


class Disk:
    """The system's files, locks, clock and randomness, in verbs. Every verb raises `OSError` unless it says otherwise.

    An interrupted system call is tried again by Python itself (PEP 475). `within` is an open directory, by descriptor:
    of the path only the name counts then, so that nobody can swap what is above it for a link.
    """

    def open(
        self, path: Path, *, write: bool = False, create: bool = False, new: bool = False, within: int | None = None
    ) -> int:
        """Open a regular file without following a link or waiting for a FIFO.

        `create` makes it when it is missing, `new` insists that it was; one made here is 0600 whatever the umask.
        Raises `NotAFile` when something else has the name.
        """
        flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        if create or new:
            try:
                return above_standard(_made(path, flags, within))
            except FileExistsError:
                if new:
                    raise
        try:
            fd = os.open(_name(path, within), flags, dir_fd=within)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
                raise NotAFile(error.errno, "not a regular file", str(path)) from error
            raise
        with _closed_on_error(fd):
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise NotAFile(errno.EINVAL, "not a regular file", str(path))
        return above_standard(fd)

    def open_dir(self, path: Path, *, within: int | None = None, follow: bool = False) -> int:
        """Open a directory, through a link only if told to `follow`: for a lock on it, or to work within it."""
        return os.open(_name(path, within), _DIRECTORY | (0 if follow else os.O_NOFOLLOW), dir_fd=within)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`; fewer only at the end of the file or when the system chooses."""
        return os.pread(fd, size, offset)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`; a short write is completed, an impossible count is an error."""
        while (written := self.write_some(fd, data, offset)) != len(data):
            if not 0 < written < len(data):
                raise OSError(errno.EIO, f"a write of {len(data)} bytes said it wrote {written}")
            data, offset = memoryview(data)[written:], offset + written

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Make one system call of `pwrite`, and say how much it took."""
        return os.pwrite(fd, data, offset)

    def append(self, path: Path, data: bytes) -> None:
        """Add bytes to the end of a regular file in one write, 0600 and made if it is missing. Others may do the same.

        Raises `NotAFile`.
        """
        fd = self.open(path, write=True, create=True)
        try:
            if os.fstat(fd).st_nlink != 1:
                raise NotAFile(errno.EMLINK, "another file's name, too", str(path))
            fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
            os.write(fd, data)
        finally:
            os.close(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut or extend the file to `size` bytes."""
        os.ftruncate(fd, size)

    def datasync(self, fd: int) -> None:
        """Make the file's bytes and size durable. macOS: ask the drive to empty its cache."""
        if sys.platform == "darwin":
            _flush(fd)
        else:
            os.fdatasync(fd)

    def kernel_flushes(self) -> Flushes | None:
        """Give a place for flushes like `datasync` that the kernel carries on by itself; None where it cannot."""
        return made()

    def sync(self, fd: int) -> None:
        """Make the file durable whole, its times too. macOS: ask the drive to empty its cache."""
        _flush(fd)

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Make the names in a directory, open as `fd` if given, durable; False when this file system refuses that."""
        own = os.open(path, _DIRECTORY) if fd is None else fd
        try:
            _flush(own)
        except OSError as error:
            if error.errno in _CANNOT_SYNC:
                return False
            raise
        finally:
            if fd is None:
                os.close(own)
        return True

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Give `source` the name `target`, replacing what has it, in one step."""
        os.replace(_name(source, within), _name(target, within), src_dir_fd=within, dst_dir_fd=within)

    def link(self, source: Path, target: Path) -> None:
        """Give the file `source` one more name. Raises `FileExistsError` when something has it."""
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: Path, *, within: int | None = None) -> None:
        """Remove a name."""
        os.unlink(_name(path, within), dir_fd=within)

    def rmdir(self, path: Path) -> None:
        """Remove a directory that is empty."""
        os.rmdir(path)

    def mkdir(self, path: Path, *, within: int | None = None) -> None:
        """Make one directory, 0700 whatever the umask."""
        os.mkdir(_name(path, within), _DIRECTORY_MODE, dir_fd=within)
        fd = Disk.open_dir(self, path, within=within)
        try:
            os.fchmod(fd, _DIRECTORY_MODE)
        finally:
            os.close(fd)

    def fchmod(self, fd: int, mode: int) -> None:
        """Set who may do what with an open file or directory that is not the log's own."""
        os.fchmod(fd, mode)

    def stat(self, path: Path | str, *, within: int | None = None) -> os.stat_result:
        """Look at what has a name, a link itself included."""
        return os.lstat(path if within is None else Path(path).name, dir_fd=within)

    def fstat(self, fd: int) -> os.stat_result:
        """Look at an open file."""
        return os.fstat(fd)

    def links_and_size(self, fd: int) -> tuple[int, int]:
        """Give an open file's count of names and its size in bytes, and have the system look at nothing else."""
        return links_and_size(fd)

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
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise OSError(errno.ENOLCK, f"the file system refuses to lock: {error}") from error
        return True

    def unlock(self, fd: int) -> None:
        """Give the kernel's lock back, for every process that has a copy of this descriptor."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def mounts(self) -> str:
        """Give the system's table of mounts as text: mountinfo on Linux, mount(8)'s output elsewhere."""
        if sys.platform == "linux":
            return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        else:  # noqa: RET505 - the type checker skips a branch for another platform, not what follows one
            return subprocess.run(["/sbin/mount"], capture_output=True, check=False, text=True).stdout

    def absolute(self, path: Path) -> Path:
        """Give a path that does not depend on the working directory any more."""
        return path.absolute()

    def real(self, path: Path) -> str:
        """Give the absolute path without links; what does not exist yet is taken as it stands."""
        return os.path.realpath(path)

    def uid(self) -> int:
        """Give the user that this process acts as."""
        return os.geteuid()

    def pid(self) -> int:
        """Give this process's id."""
        return os.getpid()

    def host(self) -> str:
        """Give this machine's name."""
        return os.uname().nodename

    def alive(self, pid: int) -> bool:
        """Tell whether a process of this machine has that id now. Only for naming a holder, never for deciding."""
        try:
            with contextlib.suppress(PermissionError, OverflowError):
                os.kill(pid, 0)
        except ProcessLookupError:
            return False
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


def _name(path: Path, within: int | None) -> Path | str:
    return path if within is None else path.name


def _made(path: Path, flags: int, within: int | None) -> int:
    fd = os.open(_name(path, within), flags | os.O_CREAT | os.O_EXCL, _FILE_MODE, dir_fd=within)
    with _closed_on_error(fd):
        os.fchmod(fd, _FILE_MODE)
    return fd


@contextlib.contextmanager
def _closed_on_error(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:  # whatever ends this, nobody else knows the descriptor
        os.close(fd)
        raise


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
