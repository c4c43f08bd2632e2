"""The disk of a simulated process: every operation that changes something is a crash point.

The run's directory is on a simulated `Machine`. The workspace is a real folder, so that tools read its files as usual.
Only the machine can lose power. A sync of the folder is a point and does nothing, because the death of a process loses
nothing that was written.
"""

import contextlib
import inspect
import re
from pathlib import Path
from typing import Any, Final

import eventlog
from eventlog.simdisk import DiskProxy, Process
from runner.testing._points import CrashPoints

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class RoutedDisk(DiskProxy):
    """Sends what is under `folder` to the real disk and all else to a simulated process, while it is alive."""

    def __init__(self, process: Process, folder: Path, points: CrashPoints) -> None:
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

    def close(self, fd: int) -> None:
        """Close; a dead process closes nothing, and raises nothing at it."""
        if not self._points.dead:
            (eventlog.DISK if fd in self._real else self._process).close(fd)
            self._real.discard(fd)


def _routed(verb: str) -> Any:
    """A verb of whichever disk a path or an open file is on; on the real one, a sync is done with at once."""

    def routed(self: Any, file: int | Path | str, *given: Any, **named: Any) -> Any:
        self._points.alive()
        is_real = file in self._real if isinstance(file, int) else f"{file}/".startswith(self._folder)
        if is_real and "sync" in verb:
            return True
        found = getattr(eventlog.DISK if is_real else self._process, verb)(file, *given, **named)
        if is_real and verb in ("open", "open_dir"):
            self._real.add(found)
        return found

    return routed


for _verb, _what in vars(eventlog.Disk).items():
    _first = [*inspect.signature(_what).parameters][1:2] if inspect.isfunction(_what) else []
    if _first in (["fd"], ["path"], ["source"]) and _verb not in ("close", "pwrite"):
        setattr(RoutedDisk, _verb, _routed(_verb))


def _between(verb: str, word: str) -> Any:
    """A verb that changes something, between two points named by it: by the second of two paths."""

    def between(self: Any, *given: Any, **named: Any) -> Any:
        changed = given[-1] if verb in ("rename", "link") else given[0]
        what = f"{word} {_called(self.name(changed) if isinstance(changed, int) else changed.name or '/')}"
        self._points.before_file_operation(what)
        result = getattr(DiskProxy, verb)(self, *given, **named)
        self._points.after_file_operation(what)
        return result

    return between


class CrashPointDisk(DiskProxy):
    """A disk whose changes are points: before and after each, and inside each write."""

    def __init__(self, inner: eventlog.Disk, points: CrashPoints) -> None:
        super().__init__(inner)
        self._points = points

    truncate, datasync, sync = _between("truncate", "cut"), _between("datasync", "sync"), _between("sync", "sync")
    unlink, rename, link = _between("unlink", "remove"), _between("rename", "rename"), _between("link", "link")
    mkdir, rmdir = _between("mkdir", "make directory"), _between("rmdir", "remove directory")
    sync_dir, _make = _between("sync_dir", "sync directory"), _between("open", "make")

    def open(self, path: Path, **how: Any) -> int:
        """Open; only an open that may make a file is a point."""
        return (self._make if how.get("create") or how.get("new") else super().open)(path, **how)

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


def _called(name: str) -> str:
    """A file's name in a point's: without a digest, which depends on where the workspace is."""
    return _DIGEST.sub("(digest)", name)
