"""Directories that are this user's alone, and work within one by its descriptor.

A run says what was approved and what is done, so whoever can write to it decides what happens next. Therefore a writer
takes no directory that belongs to somebody else or that others may write to, as ssh takes no such keys. The owner is
asked of an open directory, and files are then opened, renamed and removed within that: whatever its path leads to by
then, nothing is written elsewhere.
"""

import contextlib
import stat
from pathlib import Path
from typing import Any, Final

from eventlog._disk import Disk
from eventlog.errors import Untrusted

_ROOT: Final = 0


def open_run(disk: Disk, runs: Path, directory: Path, *, force: bool, make: bool = False) -> int:
    """Open a run's directory within that of the runs; `make` it first, unless it is there.

    Raises `Untrusted` unless both are this user's (or root's) alone, or `force` insists.
    """
    top = disk.open_dir(runs, follow=True)
    try:
        _refuse(disk, top, runs, force=force)
        if make:
            with contextlib.suppress(FileExistsError):
                disk.mkdir(directory, within=top)
        own = disk.open_dir(directory, within=top)
    finally:
        let_go(disk, top)
    try:
        _refuse(disk, own, directory, force=force)
    except BaseException:  # whatever ends this, nobody else knows the descriptor
        let_go(disk, own)
        raise
    return own


def let_go(disk: Disk, fd: int) -> None:
    """Close a directory."""
    with contextlib.suppress(OSError):  # nothing was written through it
        disk.close(fd)


def _refuse(disk: Disk, fd: int, path: Path, *, force: bool) -> None:
    found = disk.fstat(fd)
    who = {stat.S_IWGRP: "its group may write there", stat.S_IWOTH: "everybody may write there"}
    why = [says for bit, says in who.items() if found.st_mode & bit]
    if found.st_uid not in {disk.uid(), _ROOT}:
        why.append(f"it belongs to user {found.st_uid}")
    if why and not force:
        raise Untrusted(str(path), why[-1])


class Within(Disk):
    """A disk that reaches the files of one directory through a descriptor of it; any other verb is the disk's own."""

    def __init__(self, disk: Disk, directory: Path, fd: int) -> None:
        """Work within a directory, open as `fd`."""
        for verb in dir(Disk):
            if not verb.startswith("_") and verb not in vars(Within):
                setattr(self, verb, getattr(disk, verb))
        self._disk, self._directory, self._fd = disk, directory, fd

    def open(self, path: Path, *, within: int | None = None, **options: Any) -> int:
        return self._disk.open(path, **options, within=within or self._at(path))

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        self._disk.rename(source, target, within=within or self._at(source))

    def unlink(self, path: Path, *, within: int | None = None) -> None:
        self._disk.unlink(path, within=within or self._at(path))

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        return self._disk.sync_dir(path, fd=self._fd if path == self._directory else fd)

    def _at(self, path: Path) -> int | None:
        return self._fd if path.parent == self._directory else None
