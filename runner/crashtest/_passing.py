"""A disk before another one, that hands every verb on: where a test puts a fault in, or takes a safeguard out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import eventlog

if TYPE_CHECKING:
    import os
    from datetime import datetime


class Passing(eventlog.Disk):
    """Hands every verb on to `inner`. Subclass it and change a few.

    `pwrite` alone is not handed on: it stays a loop over `write_some`, so that a part taken here is completed here.
    """

    def __init__(self, inner: eventlog.Disk) -> None:
        """Stand before `inner`."""
        self.inner = inner
        self._names: dict[int, str] = {}

    def name(self, fd: int) -> str:
        """Give the name of an open file: the one it was opened by, or was renamed to since."""
        return self._names.get(fd, "")

    def open(self, path: Path, *, write: bool = False, create: bool = False, new: bool = False) -> int:
        """Hand on, and remember the name."""
        fd = self.inner.open(path, write=write, create=create, new=new)
        self._names[fd] = path.name
        return fd

    def rename(self, source: Path, target: Path) -> None:
        """Hand on, and remember the name."""
        self.inner.rename(source, target)
        self._names = {fd: target.name if name == source.name else name for fd, name in self._names.items()}

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Hand on."""
        return self.inner.pread(fd, size, offset)

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Hand on."""
        return self.inner.write_some(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Hand on."""
        self.inner.truncate(fd, size)

    def datasync(self, fd: int) -> None:
        """Hand on."""
        self.inner.datasync(fd)

    def sync(self, fd: int) -> None:
        """Hand on."""
        self.inner.sync(fd)

    def sync_dir(self, path: Path) -> bool:
        """Hand on."""
        return self.inner.sync_dir(path)

    def unlink(self, path: Path) -> None:
        """Hand on."""
        self.inner.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Hand on."""
        self.inner.mkdir(path)

    def chmod(self, path: Path, mode: int) -> None:
        """Hand on."""
        self.inner.chmod(path, mode)

    def stat(self, path: Path | str) -> os.stat_result:
        """Hand on."""
        return self.inner.stat(path)

    def fstat(self, fd: int) -> os.stat_result:
        """Hand on."""
        return self.inner.fstat(fd)

    def shape(self, fd: int) -> tuple[int, int]:
        """Hand on."""
        return self.inner.shape(fd)

    def is_link(self, path: Path) -> bool:
        """Hand on."""
        return self.inner.is_link(path)

    def list(self, path: Path) -> list[str]:
        """Hand on."""
        return self.inner.list(path)

    def close(self, fd: int) -> None:
        """Hand on."""
        self.inner.close(fd)

    def writable(self, path: Path) -> bool:
        """Hand on."""
        return self.inner.writable(path)

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Hand on."""
        return self.inner.try_lock(fd, shared=shared)

    def mounts(self) -> str:
        """Hand on."""
        return self.inner.mounts()

    def real(self, path: Path) -> str:
        """Hand on."""
        return self.inner.real(path)

    def pid(self) -> int:
        """Hand on."""
        return self.inner.pid()

    def host(self) -> str:
        """Hand on."""
        return self.inner.host()

    def alive(self, pid: int) -> bool:
        """Hand on."""
        return self.inner.alive(pid)

    def now(self) -> datetime:
        """Hand on."""
        return self.inner.now()

    def pause(self, seconds: float) -> None:
        """Hand on."""
        self.inner.pause(seconds)

    def random(self, size: int) -> str:
        """Hand on."""
        return self.inner.random(size)
