"""The small files of a job's world: private, replaced as a whole, and never reached through a link or a pipe.

Some of them are places for the kernel's lock, which ends with the process that holds it, however that dies. What such a
file says is its holder's word: believe it only while somebody holds the lock.
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
        sync(beside)
        beside.replace(file)
    except BaseException:  # whatever ends this leaves no half-made file, and goes on up
        beside.unlink(missing_ok=True)
        raise
    sync(file.parent)


def sync(path: Path) -> None:
    """Make what `path` (a file or a directory) holds durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        DISK.sync(descriptor)
    finally:
        os.close(descriptor)


class Held:
    """The lock at `file`, on an open `descriptor`. It is held until each process that has that closed it or died."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self.descriptor = descriptor

    def close(self) -> None:
        """Let the next one in."""
        os.close(self.descriptor)

    def still(self) -> bool:
        """Whether the locked file is the one in the directory: a lock on another protects nothing."""
        with suppress(OSError):
            return os.path.samestat(self._file.stat(follow_symlinks=False), os.fstat(self.descriptor))
        return False

    def say(self, *words: object) -> None:
        """Write what others may know of the holder, in place of what the file said before."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, " ".join(map(str, words)).encode(), 0)


def take(file: Path) -> Held | None:
    """The lock at `file`, which is created if absent (0600) and says nothing; None while somebody holds it.

    Raises `OSError` as `open_to_write`.
    """
    held = Held(file, open_to_write(file))
    try:
        # The holder before us may have moved the directory away between our open and our lock.
        if DISK.try_lock(held.descriptor) and held.still():
            held.say()
            return held
    except BaseException:  # whatever ends this leaves no lock
        held.close()
        raise
    held.close()
    return None


def said(file: Path) -> list[str]:
    """What the holder of a lock said, word by word, or whoever held it last; nothing if that can't be read."""
    with suppress(OSError, ValueError):
        return read(file).decode().split()
    return []
