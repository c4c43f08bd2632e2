"""The small files of a job's world: private, replaced as a whole, and never reached through a link or a pipe.

One of them is a place for the kernel's lock: its content only names the holder, and the lock ends with the process,
however it dies. A lock on a file that is no longer the one in the directory protects nothing, so the holder can ask
whether it still is.
"""

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from eventlog import DISK


def open_to_write(file: Path) -> int:
    """A descriptor of `file`, made (0600) if it is absent.

    Raises:
        OSError: it can't be opened, is a link, a pipe or anything but a file, or has another name too. Opening never
            blocks.
    """
    descriptor = DISK.open(file, write=True, create=True)
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file with one name", str(file))
    return descriptor


def read(file: Path) -> bytes:
    """What `file` holds, through no link and no pipe."""
    with os.fdopen(DISK.open(file), "rb") as stream:
        return stream.read()


def make_private(folder: Path) -> None:
    """Make `folder` and the one it is in, if they are absent, for their owner only."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def replace(file: Path, data: bytes) -> None:
    """Put `data` (0600) where `file` is: a temporary file beside it, synced, renamed, the directory synced."""
    beside = file.with_name(f".tmp-{file.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(DISK.open(beside, write=True, new=True), "wb") as stream:
            stream.write(data)
            stream.flush()
            DISK.sync(stream.fileno())
        beside.replace(file)
    except BaseException:  # whatever ends this leaves no half-made file, and goes on up
        beside.unlink(missing_ok=True)
        raise
    DISK.sync_dir(file.parent)


def sync(path: Path) -> None:
    """Make what `path` (a file or a directory) holds durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Held:
    """A lock that this process holds until `release`, or until it dies. Use `take` to get one."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self.descriptor = descriptor

    def still(self) -> bool:
        """Whether the locked file is the one in the directory."""
        try:
            there = self._file.stat(follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self.descriptor))

    def release(self) -> None:
        """Let the next one in. A second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def take(file: Path) -> Held | None:
    """The lock at `file`, which is created if absent (0600); None when another process or thread holds it.

    Raises `OSError` as `open_to_write`.
    """
    held = Held(file, open_to_write(file))
    try:
        # The holder before us may have moved the directory away between our open and our lock.
        if DISK.try_lock(held.descriptor) and held.still():
            os.ftruncate(held.descriptor, 0)
            os.pwrite(held.descriptor, b"%d\n" % os.getpid(), 0)
            return held
    except BaseException:  # whatever ends this leaves no lock
        held.release()
        raise
    held.release()
    return None


def holder(file: Path) -> int | None:
    """The process id that the holder wrote, if it can be read. It may be out of date: only the kernel knows."""
    with suppress(OSError, ValueError):
        return int(read(file))
    return None
