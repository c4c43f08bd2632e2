"""Who carries runs here: each process that does holds a lock on a file of its own, which the kernel frees when it dies.

So the others learn of a death at once, and then look for the runs that it left. Like the doorbell it is a hint: a
process that cannot make its file is not seen, and its runs are found by the next look at all of them.
"""

import contextlib
from pathlib import Path
from typing import Final

from eventlog._disk import Disk
from eventlog._in_child import not_for_children
from eventlog._own import Within

_TRIES: Final = 20


class Presence(contextlib.AbstractContextManager["Presence"]):
    """One that carries runs, until it leaves, its process ends, or this is dropped."""

    def __init__(self, disk: Disk, place: Path) -> None:
        """Be seen in a directory by everybody who looks."""
        self._disk, self._place, self._seen = disk, place, set[str]()
        self._fd, self._folder, self._name = -1, -1, ""
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
