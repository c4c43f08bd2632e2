"""The disk of a simulated process: every operation that changes something is a crash point.

The run's directory is on a simulated `Machine`. The workspace is a real folder, so that tools read its files as usual.
Only the machine can lose power. A sync of the folder is a point and does nothing, because the death of a process loses
nothing that was written.
"""

import contextlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import eventlog
from eventlog.simdisk import DiskProxy, Process
from runner.testing._points import CrashPoints

T = TypeVar("T")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def _routed(verb: str) -> Any:
    """A verb of whichever disk a path or an open file is on; on the real one, a sync is done with at once."""

    def routed(self: Any, file: int | Path, *given: Any, **named: Any) -> Any:
        disk = self.of(file) if isinstance(file, int) else self.at(file)
        return True if disk is eventlog.DISK and "sync" in verb else getattr(disk, verb)(file, *given, **named)

    return routed


def _changing(verb: str, what: str) -> Any:
    """A verb that changes a file or a path, between two points."""

    def change(self: Any, file: int | Path, *given: Any, **named: Any) -> Any:
        name = self.name(file) if isinstance(file, int) else file.name or "/"
        return self.between(f"{what} {_called(name)}", lambda: getattr(self.inner, verb)(file, *given, **named))

    return change


class RoutedDisk(DiskProxy):
    """Sends what is under `folder` to the real disk and all else to a simulated process, while it is alive."""

    def __init__(self, process: Process, folder: Path, points: CrashPoints) -> None:
        """Start with no open file."""
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

    def at(self, path: Path | str) -> eventlog.Disk:
        """The disk that a path is on."""
        self._points.alive()
        return eventlog.DISK if self.is_real(path) else self._process

    def of(self, fd: int) -> eventlog.Disk:
        """The disk that an open file is on."""
        self._points.alive()
        return eventlog.DISK if fd in self._real else self._process

    def open(self, path: Path, **how: Any) -> int:
        """Open a file where it is."""
        fd = self.at(path).open(path, **how)
        if self.is_real(path):
            self._real.add(fd)
        self._names[fd] = path.name
        return fd

    def open_dir(self, path: Path, **how: Any) -> int:
        """Open a directory where it is."""
        fd = self.at(path).open_dir(path, **how)
        if self.is_real(path):
            self._real.add(fd)
        return fd

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Rename."""
        self.at(target).rename(source, target, within=within)
        self._names = {fd: target.name if name == source.name else name for fd, name in self._names.items()}

    def close(self, fd: int) -> None:
        """Close; a dead process closes nothing, and raises nothing at it."""
        if self._points.dead:
            return
        self.of(fd).close(fd)
        self._real.discard(fd)


for _verb, _what in vars(eventlog.Disk).items():
    _first = [*inspect.signature(_what).parameters][1:2] if inspect.isfunction(_what) else []
    if _first in (["fd"], ["path"], ["source"]) and _verb not in {*vars(RoutedDisk), "pwrite"}:
        setattr(RoutedDisk, _verb, _routed(_verb))


class CrashPointDisk(DiskProxy):
    """A disk whose changes are points: before and after each, and inside each write."""

    def __init__(self, inner: DiskProxy, points: CrashPoints) -> None:
        """Count the points of one process."""
        super().__init__(inner)
        self._points = points

    def between(self, what: str, act: Callable[[], T]) -> T:
        """Do something between two points."""
        self._points.before_file_operation(what)
        result = act()
        self._points.after_file_operation(what)
        return result

    def name(self, fd: int) -> str:
        """Give the name of an open file."""
        inner = self.inner
        assert isinstance(inner, DiskProxy)
        return inner.name(fd)

    def open(self, path: Path, **how: Any) -> int:
        """Open; only an open that may make a file is a point."""
        if not (how.get("create") or how.get("new")):
            return self.inner.open(path, **how)
        return self.between(
            f"make {_called(path.name)}",
            lambda: self.inner.open(path, **how),
        )

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write; a death inside leaves the first half."""
        what = f"write {_called(self.name(fd))}"
        self._points.before_file_operation(what)
        half = len(data) // 2
        if self._points.dies_next and half:
            self.inner.write_some(fd, memoryview(data)[:half], offset)
        self._points.at(f"{what}, inside")
        wrote = self.inner.write_some(fd, data, offset)
        self._points.after_file_operation(what)
        return wrote

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Rename."""
        self.between(f"rename {_called(target.name)}", lambda: self.inner.rename(source, target, within=within))

    def link(self, source: Path, target: Path) -> None:
        """Give one more name."""
        self.between(f"link {_called(target.name)}", lambda: self.inner.link(source, target))

    truncate, datasync, sync = _changing("truncate", "cut"), _changing("datasync", "sync"), _changing("sync", "sync")
    unlink, mkdir = _changing("unlink", "remove"), _changing("mkdir", "make directory")
    rmdir = _changing("rmdir", "remove directory")
    sync_dir = _changing("sync_dir", "sync directory")


def _called(name: str) -> str:
    """A file's name in a point's: without a digest, which depends on where the workspace is."""
    return _DIGEST.sub("(digest)", name)
