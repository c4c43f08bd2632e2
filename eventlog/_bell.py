"""The doorbell: whoever made a run due for somebody else says so, and who waits for work hears it by one `stat`.

It is a hint: a ring that is lost costs the time until the next look at all runs, so nothing here raises. Run ids are
appended to one file, a line each; a file that grew long is begun anew.
"""

import contextlib
from pathlib import Path
from typing import Final

from eventlog._disk import Disk
from eventlog._names import is_id

MOST: Final = 64 * 1024
"""Bytes after which the file is begun anew, and that are read at a time."""


class Bell:
    """The doorbell of a place for runs. It hears what rings after it was made."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Begin to listen."""
        self._disk, self._path = disk, path
        self._file, self._at = self._look()

    def ring(self, run: str) -> None:
        """Say that somebody should look at a run."""
        with contextlib.suppress(OSError):
            if self._look()[1] > MOST:
                self._disk.unlink(self._path)
            self._disk.append(self._path, f"{run}\n".encode())

    def heard(self) -> list[str]:
        """Give the ids that were named since the last time, each once. They may be anything, so look at each."""
        file, size = self._look()
        if (file, size) == (self._file, self._at):
            return []
        start = self._at if file == self._file and size > self._at else 0
        data = b""
        with contextlib.suppress(OSError):
            fd = self._disk.open(self._path)
            try:
                data = self._disk.pread(fd, MOST, max(start, size - MOST))
            finally:
                self._disk.close(fd)
        whole = data.rfind(b"\n") + 1
        self._file, self._at = file, max(start, size - MOST) + whole
        return [run for run in dict.fromkeys(data[:whole].decode(errors="replace").split("\n")) if is_id(run)]

    def _look(self) -> tuple[int, int]:
        """Give which file it is, and its bytes."""
        try:
            found = self._disk.stat(self._path)
        except OSError:
            return 0, 0
        return found.st_ino, found.st_size
