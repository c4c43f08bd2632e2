"""A file that appears whole: written under a temporary name in the same directory, synced, then renamed.

So a name in a run's directory never stands for half a file. Temporary names start with `.tmp-` and are disposable at
any time. The name itself is durable only after the caller has synced the directory.
"""

import contextlib
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from eventlog._disk import Disk
from eventlog._names import TEMPORARY


def write_atomically(
    disk: Disk,
    directory: Path,
    name: str,
    pieces: Iterable[bytes | memoryview],
    ready: Callable[[], None] | None = None,
    *,
    sync: bool = True,
) -> int:
    """Make a file of `pieces` appear as `name`, replacing what has the name; return it open for writing.

    `ready` is called when the bytes are durable and the name is not there yet. Without `sync` a power cut may leave a
    part of the bytes under the name.
    When that fails nothing has the name that had not before, and the temporary file is removed if the disk still
    obeys.
    """
    temporary = directory / f"{TEMPORARY}{disk.random(4)}-{name}"
    fd = disk.open(temporary, write=True, new=True)
    try:
        end = 0
        for piece in pieces:
            disk.pwrite(fd, piece, end)
            end += len(piece)
        if sync:
            disk.sync(fd)
        if ready is not None:
            ready()
        disk.rename(temporary, directory / name)
    except BaseException as error:
        disk.close(fd)
        if isinstance(error, OSError):
            with contextlib.suppress(OSError):
                disk.unlink(temporary)
        raise
    return fd


def sweep(disk: Disk, directory: Path) -> None:
    """Remove temporary files that a dead writer left. Only under the lock, and only after the log was classified."""
    for name in disk.list(directory):
        if name.startswith(TEMPORARY):
            with contextlib.suppress(OSError):  # whatever cannot be removed (a directory, say) is in nobody's way
                disk.unlink(directory / name)


def remove(disk: Disk, path: Path) -> None:
    """Remove a file, or a directory with what it holds, through no link."""
    with contextlib.suppress(OSError):  # whatever stays is disposable
        if not stat.S_ISDIR(disk.stat(path).st_mode):
            disk.unlink(path)
            return
        for name in disk.list(path):
            remove(disk, path / name)
        disk.rmdir(path)
