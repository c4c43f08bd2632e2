"""The disk of a simulated process: every operation that changes something is a point where the process can die.

The run's directory is on a `Machine`, the workspace in a real folder, so that tools may read its files as they always
do. Only the machine can lose power; the folder's syncs are points and nothing else, because a death loses nothing that
was written.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import eventlog
from runner.crashtest._passing import Passing

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from runner.crashtest._points import Points
    from runner.crashtest._process import Process

T = TypeVar("T")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Routed(Passing):
    """Sends what is under `folder` to the real disk and all else to a simulated process, as long as it lives."""

    def __init__(self, process: Process, folder: Path, points: Points) -> None:
        """Begin with no file open."""
        super().__init__(process)
        self._process, self._folder, self._points = process, f"{folder}/", points
        self._real: set[int] = set()

    def die(self) -> None:
        """Close what the process had open in the real folder; the simulated files go with the simulated process."""
        for fd in self._real:
            with contextlib.suppress(OSError):
                eventlog.DISK.close(fd)
        self._real.clear()
        self._process.die()

    def is_real(self, path: Path | str) -> bool:
        """Tell where a path is."""
        return f"{path}/".startswith(self._folder)

    def _at(self, path: Path | str) -> eventlog.Disk:
        self._points.alive()
        return eventlog.DISK if self.is_real(path) else self._process

    def _of(self, fd: int) -> eventlog.Disk:
        self._points.alive()
        return eventlog.DISK if fd in self._real else self._process

    def open(self, path: Path, *, write: bool = False, create: bool = False, new: bool = False) -> int:
        """Open a file where it is."""
        fd = self._at(path).open(path, write=write, create=create, new=new)
        if self.is_real(path):
            self._real.add(fd)
        self._names[fd] = path.name
        return fd

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Read."""
        return self._of(fd).pread(fd, size, offset)

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write."""
        return self._of(fd).write_some(fd, data, offset)

    def truncate(self, fd: int, size: int) -> None:
        """Cut or extend."""
        self._of(fd).truncate(fd, size)

    def datasync(self, fd: int) -> None:
        """Sync where power can be lost."""
        if (disk := self._of(fd)) is self._process:
            disk.datasync(fd)

    def sync(self, fd: int) -> None:
        """Sync where power can be lost."""
        if (disk := self._of(fd)) is self._process:
            disk.sync(fd)

    def sync_dir(self, path: Path) -> bool:
        """Sync where power can be lost."""
        disk = self._at(path)
        return disk.sync_dir(path) if disk is self._process else True

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._at(target).rename(source, target)
        self._names = {fd: target.name if name == source.name else name for fd, name in self._names.items()}

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        self._at(path).unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make a directory."""
        self._at(path).mkdir(path)

    def chmod(self, path: Path, mode: int) -> None:
        """Set who may do what."""
        self._at(path).chmod(path, mode)

    def stat(self, path: Path | str) -> os.stat_result:
        """Look at a name."""
        return self._at(path).stat(path)

    def fstat(self, fd: int) -> os.stat_result:
        """Look at an open file."""
        return self._of(fd).fstat(fd)

    def shape(self, fd: int) -> tuple[int, int]:
        """Look at an open file."""
        return self._of(fd).shape(fd)

    def is_link(self, path: Path) -> bool:
        """Tell whether a name is a link."""
        return self._at(path).is_link(path)

    def list(self, path: Path) -> list[str]:
        """List names."""
        return self._at(path).list(path)

    def close(self, fd: int) -> None:
        """Close; a dead process closes nothing, and raises nothing at it."""
        if self._points.dead:
            return
        self._of(fd).close(fd)
        self._real.discard(fd)

    def writable(self, path: Path) -> bool:
        """Tell whether files can be made there."""
        return self._at(path).writable(path)

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        """Lock."""
        return self._of(fd).try_lock(fd, shared=shared)

    def real(self, path: Path) -> str:
        """Give the absolute path."""
        return self._at(path).real(path)


class Counted(Passing):
    """A disk whose changes are points: before and after each, and inside each write."""

    def __init__(self, inner: Passing, points: Points) -> None:
        """Count for one life."""
        super().__init__(inner)
        self._points = points

    def _do(self, what: str, act: Callable[[], T]) -> T:
        self._points.before_a_file(what)
        result = act()
        self._points.behind_a_file(what)
        return result

    def name(self, fd: int) -> str:
        """Give the name of an open file."""
        inner = self.inner
        assert isinstance(inner, Passing)
        return inner.name(fd)

    def open(self, path: Path, *, write: bool = False, create: bool = False, new: bool = False) -> int:
        """Open; only an open that may make a file is a point."""
        if not (create or new):
            return self.inner.open(path, write=write)
        return self._do(
            f"make {_called(path.name)}", lambda: self.inner.open(path, write=write, create=create, new=new)
        )

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write; a death inside leaves the first half."""
        what = f"write {_called(self.name(fd))}"
        self._points.before_a_file(what)
        half = len(data) // 2
        if self._points.dies_next and half:
            self.inner.write_some(fd, memoryview(data)[:half], offset)
        self._points.at(f"{what}, inside")
        wrote = self.inner.write_some(fd, data, offset)
        self._points.behind_a_file(what)
        return wrote

    def truncate(self, fd: int, size: int) -> None:
        """Cut or extend."""
        self._do(f"cut {_called(self.name(fd))}", lambda: self.inner.truncate(fd, size))

    def datasync(self, fd: int) -> None:
        """Sync."""
        self._do(f"sync {_called(self.name(fd))}", lambda: self.inner.datasync(fd))

    def sync(self, fd: int) -> None:
        """Sync."""
        self._do(f"sync {_called(self.name(fd))}", lambda: self.inner.sync(fd))

    def sync_dir(self, path: Path) -> bool:
        """Sync a directory."""
        return self._do(f"sync directory {path.name or '/'}", lambda: self.inner.sync_dir(path))

    def rename(self, source: Path, target: Path) -> None:
        """Rename."""
        self._do(f"rename {_called(target.name)}", lambda: self.inner.rename(source, target))

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        self._do(f"remove {_called(path.name)}", lambda: self.inner.unlink(path))

    def mkdir(self, path: Path) -> None:
        """Make a directory."""
        self._do(f"make directory {path.name}", lambda: self.inner.mkdir(path))


def _called(name: str) -> str:
    """A file's name in a point's: without a digest, which depends on where the workspace is."""
    return _DIGEST.sub("(digest)", name)
