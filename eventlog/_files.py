"""The files of one run, read only: their names, and their bytes in pieces. Every read loop of the log is here.

The verdict, salvage, listings and `cat` work on this alone. A store that keeps no directory gives a run as one segment
and its snapshots, and all of these work there too.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eventlog._disk import Disk

CHUNK: Final = 1024 * 1024
"""Bytes read at a time."""


class Files:
    """The files in the directory of one run."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Look at a directory, which need not exist."""
        self._disk, self._path = disk, path

    def names(self) -> list[str]:
        """List the names, in no order."""
        return self._disk.list(self._path)

    @contextlib.contextmanager
    def opened(self, name: str) -> Iterator[int]:
        """Open a file. Raises `OSError`, `NotAFile` for what is no regular file."""
        fd = self._disk.open(self._path / name)
        try:
            yield fd
        finally:
            with contextlib.suppress(OSError):  # it was only read; and an abandoned generator could tell nobody
                self._disk.close(fd)

    def pieces(self, name: str, start: int = 0, end: int | None = None, *, size: int = CHUNK) -> Iterator[bytes]:
        """Give the bytes of a file from `start` up to `end` or the end of the file, `size` at a time."""
        with self.opened(name) as fd:
            yield from chunks(self._disk, fd, start, end, size)

    def end(self, name: str, size: int) -> bytes:
        """Give the last `size` bytes of a file, or all of a shorter one."""
        with self.opened(name) as fd:
            length = self._disk.links_and_size(fd)[1]
        return b"".join(self.pieces(name, max(0, length - size), length))

    def content(self, name: str, most: int) -> bytes:
        """Give a whole file; one that is longer is cut off after byte `most` + 1."""
        return b"".join(self.pieces(name, end=most + 1))


def chunks(disk: Disk, fd: int, start: int, end: int | None = None, size: int = CHUNK) -> Iterator[bytes]:
    """Give the bytes of an open file from `start` up to `end` or the end of the file, `size` at a time."""
    while piece := disk.pread(fd, size if end is None else min(size, end - start), start):
        start += len(piece)
        yield piece


class OpenFile:
    """A file that is open until it is released."""

    def __init__(self, disk: Disk, fd: int) -> None:
        self._disk, self.fd = disk, fd

    def release(self) -> None:
        """Close the file, once. What a failing close could tell, the sync before it has told."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            with contextlib.suppress(OSError):
                self._disk.close(fd)
