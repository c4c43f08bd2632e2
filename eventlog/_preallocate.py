"""A segment open for writing, with zeros laid ahead.

The writer lays zeros ahead of the last line and syncs them, then overwrites them in place: a save changes no file
size and needs no metadata, so it costs one flush, the physical limit. A line is only ever written over synced zeros,
and at least one synced zero stays after it: whatever a crash leaves there is a line, or holds a NUL, or lacks its
newline.

When there is no room, the writer's own unacknowledged bytes are cut off again and that cut is synced, so a later
reader never meets them; only if that works is the log still alive.

A roll: one segment ends at its last newline, and only then the next one has a name. That one is written whole under a
temporary name first: whatever goes wrong until then (no room, no descriptor left) leaves the log alive in a segment
that still ends in zeros. Then the lock and the segment are checked, the segment is cut to its last newline and the cut
is synced, even if nothing was cut; then comes the rename. A reader that sees the next segment takes the end of this one
for final. From the cut on an error leaves the writer dead: nobody knows what the disk has, and a segment that grew
again from where it was cut could show a deleted file's bytes after a power cut. The directory is synced before anything
is written into the next segment, because a line in a file whose name is lost is lost.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from eventlog._atomic_write import write_atomically
from eventlog._disk import FULL, SECTOR, Disk
from eventlog._files import OpenFile
from eventlog._names import segment_name
from eventlog._os_errors import pass_on, refused
from eventlog.errors import DiskFull, LogDead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from eventlog._flushes import Flush, Flushes
    from eventlog._lock import Lock

LAID: Final = 64 * 1024
"""Bytes of zeros laid at a time."""
_PAGE: Final = 4096
_ZEROS: Final = bytes(1024 * 1024)


class OpenSegment(OpenFile):
    """One open segment: its lines end at `end`, synced zeros follow up to `laid`, which is the file's size."""

    def __init__(self, disk: Disk, fd: int, number: int, end: int, laid: int, run: str) -> None:
        """Keep an open file whose content is durable. Made by `resumed` and `rewrite_segment`."""
        super().__init__(disk, fd)
        self._run = run
        self.number, self.end, self.laid = number, end, laid

    def guard(self) -> None:
        """Raise `LogDead` when the file is no longer as this writer left it: its name gone, linked, cut or grown."""
        names, size = self._disk.links_and_size(self.fd)
        if names != 1:
            raise LogDead(self._run, f"{segment_name(self.number)} was deleted, replaced or linked ({names} names)")
        if size != self.laid:
            raise LogDead(self._run, f"{segment_name(self.number)} has {size} bytes where this writer left {self.laid}")

    def preallocate(self, ahead: int) -> None:
        """Have `ahead` bytes of synced zeros, and one more, after the last line. Raises `DiskFull`, unchanged."""
        wanted = self.end + ahead + 1
        if wanted <= self.laid:
            return
        target, at = _rounded(wanted), self.laid
        try:
            for piece in _zeros(target - self.laid):
                self._disk.pwrite(self.fd, piece, at)
                at += len(piece)
        except OSError as error:
            self._take_back(self.laid, error)
        self._disk.datasync(self.fd)
        self.laid = target

    def reaches(self, ahead: int) -> bool:
        """Tell whether zeros for `ahead` bytes, and one more, are laid already."""
        return self.end + ahead + 1 <= self.laid

    def write(self, data: bytes, flushes: Flushes | None = None) -> Flush | None:
        """Write one line over the zeros, and order its flush there. Raises `DiskFull` when it was taken back.

        What ends at a sector's edge is not taken back: cut there, no zero would stand after the last line while the
        file grows again. The error goes on up, and the next opener writes the segment anew.
        """
        try:
            self._disk.pwrite(self.fd, data, self.end)
        except OSError as error:
            if self.end % SECTOR == 0:
                raise
            self._take_back(self.end, error)
        return None if flushes is None else flushes.begin(self.fd)

    def sync(self, size: int, flush: Flush | None) -> None:
        """Sync a line of this size that was written, by waiting for its flush if one was ordered."""
        if flush is None or not flush.wait():
            self._disk.datasync(self.fd)
        self.end += size

    def cut(self) -> None:
        """End the file at its last newline and sync that, even if nothing was cut."""
        self._disk.truncate(self.fd, self.end)
        self._disk.sync(self.fd)
        self.laid = self.end

    def roll(self, directory: Path, header: bytes, lock: Lock) -> OpenSegment:
        """Seal this segment, and begin the next one with its header's line.

        Raises `DiskFull` or `DiskFailed` with this one still good to write in; after any other error nobody knows.
        """
        is_sealing = False

        def seal() -> None:
            nonlocal is_sealing
            lock.check()
            self.guard()
            is_sealing = True
            self.cut()

        number = self.number + 1
        try:
            return rewrite_segment(self._disk, directory, number, [header], self._run, seal)
        except OSError as error:
            if is_sealing:
                raise
            raise refused(error, self._run, directory / segment_name(number)) from error

    def _take_back(self, size: int, error: OSError) -> None:
        """Cut own bytes and sync that, then raise `DiskFull`; an error of another kind, or in the cut, goes on up."""
        pass_on(error)
        if error.errno not in FULL:
            raise error
        self._disk.truncate(self.fd, size)
        self._disk.datasync(self.fd)
        self.laid = size
        raise DiskFull(self._run, error.strerror or str(error)) from error


def resumed(disk: Disk, directory: Path, number: int, end: int, run: str) -> OpenSegment:
    """Go on in the same file: only for a log that was closed, whose file ends at its last newline."""
    return OpenSegment(disk, disk.open(directory / segment_name(number), write=True), number, end, end, run)


def rewrite_segment(
    disk: Disk,
    directory: Path,
    number: int,
    content: Iterable[bytes],
    run: str,
    ready: Callable[[], None] | None = None,
) -> OpenSegment:
    """Write a segment whole (content, then zeros), synced before it gets its name, and then its name.

    Until the rename the old file, if any, is untouched; after it, a writer that still has the old file open writes
    into a file without a name. `ready` is called just before the rename.
    """
    end = laid = 0

    def pieces() -> Iterator[bytes | memoryview]:
        nonlocal end, laid
        for piece in content:
            end += len(piece)
            yield piece
        laid = _rounded(end + 1)
        yield from _zeros(laid - end)

    fd = write_atomically(disk, directory, segment_name(number), pieces(), ready)
    segment = OpenSegment(disk, fd, number, end, laid, run)
    with contextlib.ExitStack() as undo:
        undo.callback(segment.release)
        disk.sync_dir(directory)
        undo.pop_all()
    return segment


def _rounded(wanted: int) -> int:
    """Where the zeros should end when they must reach `wanted`: whole pages, and enough for many saves."""
    return -(-wanted // _PAGE) * _PAGE + LAID


def _zeros(size: int) -> Iterator[memoryview]:
    while size > 0:
        piece = memoryview(_ZEROS)[:size]
        yield piece
        size -= len(piece)
