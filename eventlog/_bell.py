"""Two hints for processes that share a place: which runs somebody should look at, and whether another process is gone.

Nothing here raises: a hint that is lost costs the time until the next look at all runs.

The doorbell: whoever made a run due for somebody else says so, and who waits for work hears it by one `stat`. Run ids
are appended to one file, a line each; a file that grew long is begun anew.

The presence: each process that carries runs holds a lock on a file of its own, which the kernel frees when it dies. So
the others learn of a death at once, and then look for the runs that it left.
"""

import contextlib
from pathlib import Path
from typing import Final

from eventlog._disk import Disk
from eventlog._files import Files
from eventlog._in_child import not_for_children
from eventlog._names import check_id, is_id
from eventlog._own import Within
from eventlog.errors import BadRunId

MOST: Final = 64 * 1024
"""Bytes after which the file is begun anew, and that are read at a time."""
_TRIES: Final = 20


class Bell:
    """The doorbell of a place for runs. It hears what rings after it was made."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Begin to listen."""
        self._disk, self._path = disk, path
        self._file, self._at = self._look()

    def ring(self, run: str) -> None:
        """Say that somebody should look at a run."""
        with contextlib.suppress(OSError, BadRunId):
            if self._look()[1] > MOST:
                self._disk.unlink(self._path)
            self._disk.append(self._path, f"{check_id(run)}\n".encode())

    def heard(self) -> list[str]:
        """Give the ids that were named since the last time, each once. They may be anything, so look at each."""
        file, size = self._look()
        if (file, size) == (self._file, self._at):
            return []
        start = self._at if file == self._file and size > self._at else 0
        start, data = max(start, size - MOST), b""
        with contextlib.suppress(OSError):
            data = b"".join(Files(self._disk, self._path.parent).pieces(self._path.name, start, start + MOST))
        whole = data.rfind(b"\n") + 1
        self._file, self._at = file, start + whole
        return [run for run in dict.fromkeys(data[:whole].decode(errors="replace").split("\n")) if is_id(run)]

    def _look(self) -> tuple[int, int]:
        """Give which file it is, and its bytes."""
        try:
            found = self._disk.stat(self._path)
        except OSError:
            return 0, 0
        return found.st_ino, found.st_size


class Presence(contextlib.AbstractContextManager["Presence"]):
    """One that carries runs, until it leaves or its process ends; one that nobody sees, until it has a place."""

    _fd = _folder = -1
    _name = ""

    def __init__(self, disk: Disk, place: Path | None) -> None:
        """Be seen in a directory by everybody who looks; without one by nobody."""
        if place is None:
            return
        self._disk, self._place, self._seen = disk, place, set[str]()
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                disk.mkdir(place)
            self._folder = disk.open_dir(place)  # never through a link: what is free there is removed
            self._disk = Within(disk, place, self._folder)
            for _ in range(_TRIES):
                if self._is_seen(disk.random(8)):
                    break
        not_for_children(self)

    def departed(self) -> bool:
        """Tell whether one that was here is not any more, since the last time this was asked."""
        if self._folder < 0:
            return False
        try:
            names = {name for name in self._disk.list(self._place) if name != self._name}
        except OSError:
            return False
        free = {name for name in names if self._is_free(name)}
        gone = bool(free) or not self._seen <= names
        self._seen = names - free
        return gone

    def leave(self, *_: object) -> None:
        """Be seen no more."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._disk.unlink(self._place / self._name)
            self.close_copies()
        if self._folder >= 0:
            folder, self._folder = self._folder, -1
            with contextlib.suppress(OSError):
                self._disk.close(folder)

    __exit__ = leave

    def close_copies(self) -> None:
        """Close the file: in a forked child, which is another process."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):
                self._disk.close(fd)

    def _is_seen(self, name: str) -> bool:
        """Make a file and lock it; False when somebody took it for one whose process died, before it was locked."""
        self._fd, self._name = self._disk.open(self._place / name, write=True, new=True), name
        if self._disk.try_lock(self._fd) and self._disk.links_and_size(self._fd)[0]:
            return True
        self.close_copies()
        return False

    def _is_free(self, name: str) -> bool:
        """Whether nobody holds a file; then it is removed."""
        with contextlib.suppress(OSError):
            fd = self._disk.open(self._place / name)
            try:
                if self._disk.try_lock(fd, shared=True):
                    self._disk.unlink(self._place / name)
                    return True
            finally:
                self._disk.close(fd)
        return False
