"""The disk of a simulated process: every operation that changes something is a crash point.

The run's directory is on a simulated `Machine`. The workspace is a real folder, so that tools read its files as usual.
Only the machine can lose power. A sync of the folder is a point and does nothing, because the death of a process loses
nothing that was written.
"""

import contextlib
import re
from pathlib import Path
from typing import Any, Final

import eventlog
from eventlog.simdisk import DiskProxy, Process
from runner.testing._points import CrashPoints

_OF_NO_FILE: Final = ("alive", "pause", "random")
"""Verbs that take something else than a path or an open file."""
_CHANGES: Final = {
    "truncate": "cut",
    "datasync": "sync",
    "sync": "sync",
    "unlink": "remove",
    "rename": "rename",
    "link": "link",
    "mkdir": "make directory",
    "rmdir": "remove directory",
    "sync_dir": "sync directory",
}
"""What a point calls a verb that changes something. An `open` that may make a file is one, too, and a write."""
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

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Have the disk do it that a path or an open file is on; on the real one, a sync is done with at once.

        A dead process closes nothing, and raises nothing at it.
        """
        if not given or verb in _OF_NO_FILE:
            return super().forward(verb, *given, **named)
        if verb == "close" and self._points.dead:
            return None
        self._points.alive()
        file = given[0]
        is_real = file in self._real if isinstance(file, int) else f"{file}/".startswith(self._folder)
        if is_real and "sync" in verb:
            return True
        found = getattr(eventlog.DISK if is_real else self._process, verb)(*given, **named)
        if is_real and verb in ("open", "open_dir"):
            self._real.add(found)
        elif verb == "close":
            self._real.discard(file)
        return found


class CrashPointDisk(DiskProxy):
    """A disk whose changes are points: before and after each, and inside each write."""

    def __init__(self, inner: eventlog.Disk, points: CrashPoints) -> None:
        super().__init__(inner)
        self._points = points

    def forward(self, verb: str, *given: Any, **named: Any) -> Any:
        """Do what changes something between two points named by it: by the second of two paths."""
        word = _CHANGES.get(verb, "make" if verb == "open" and (named.get("create") or named.get("new")) else "")
        if not word:
            return super().forward(verb, *given, **named)
        changed = given[1 if verb in ("rename", "link") else 0]
        what = f"{word} {_called(self.name(changed) if isinstance(changed, int) else changed.name or '/')}"
        self._points.before_file_operation(what)
        result = super().forward(verb, *given, **named)
        self._points.after_file_operation(what)
        return result

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
