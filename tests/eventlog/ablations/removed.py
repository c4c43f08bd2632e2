"""Safeguards taken out, each at the disk's seam or in one function of the log.

A disk here does what the log would do to the disk if that line of it were missing: the sync is not made, or is made
later, or is believed twice. The order of everything else stays.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _atomic_write, _head, _open, _preallocate, _snapshot, simdisk
from tests.eventlog.powerloss.story import RUN, RUNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from eventlog._head import Head, Witness
    from eventlog._lock import Lock
    from eventlog._preallocate import OpenSegment
    from eventlog._scan import Reading


def is_segment(name: str) -> bool:
    """Tell a segment from a temporary file that will become one."""
    return name.startswith("seg-")


class NoDatasync(simdisk.DiskProxy):
    """A save returns without its sync."""

    def datasync(self, fd: int) -> None:
        """Do nothing."""


class HeadBeforeSync(simdisk.DiskProxy):
    """The head claims a line before the line's sync."""

    _due = -1

    def datasync(self, fd: int) -> None:
        """Put a segment's sync off until the head was written."""
        if is_segment(self.name(fd)):
            self._due = fd
        else:
            self.inner.datasync(fd)

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write; after the head, make up for the sync."""
        if fd == self._due:  # the zeros were synced before the line, as ever
            self.inner.datasync(fd)
            self._due = -1
        wrote = self.inner.write_some(fd, data, offset)
        if self.name(fd) == "head" and self._due >= 0:
            self.inner.datasync(self._due)
            self._due = -1
        return wrote


class NoDirectorySync(simdisk.DiskProxy):
    """The names in the run's directory are never made durable."""

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Leave the run's directory out."""
        return path.name == RUN or self.inner.sync_dir(path, fd=fd)


class NoParentSync(simdisk.DiskProxy):
    """The run's own name is never made durable."""

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Leave the directory of runs out."""
        return path == RUNS or self.inner.sync_dir(path, fd=fd)


class RenameBeforeSync(simdisk.DiskProxy):
    """A file gets its name first, and is synced afterwards."""

    _due = -1

    def sync(self, fd: int) -> None:
        """Put the sync of a temporary file off."""
        if self.name(fd).startswith(".tmp-"):
            self._due = fd
        else:
            self.inner.sync(fd)

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Rename, then make up for the sync."""
        super().rename(source, target, within=within)
        self.inner.sync(self._due)


class RetriedSync(simdisk.DiskProxy):
    """A sync that failed is tried again, and the second answer believed."""

    def datasync(self, fd: int) -> None:
        """Try twice."""
        try:
            self.inner.datasync(fd)
        except OSError:
            self.inner.datasync(fd)


class CutNotSynced(simdisk.DiskProxy):
    """A segment is cut to its last newline, and the cut is not synced before a head says closed or a roll goes on."""

    def sync(self, fd: int) -> None:
        """Leave segments out: only their cut is synced so; a file that is written whole has another name then."""
        if not is_segment(self.name(fd)):
            self.inner.sync(fd)


class RollbackNotSynced(simdisk.DiskProxy):
    """The bytes of a line that found no room are cut off, and the cut is not synced."""

    _cut = -1

    def truncate(self, fd: int, size: int) -> None:
        """Cut, and remember where."""
        self.inner.truncate(fd, size)
        self._cut = fd

    def datasync(self, fd: int) -> None:
        """Leave out the sync that follows a cut."""
        if fd != self._cut:
            self.inner.datasync(fd)
        self._cut = -1


class ZerosNotSynced(simdisk.DiskProxy):
    """Zeros are laid and a line is written over them before they are durable."""

    _grew = False

    def write_some(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write, and notice that a segment grew."""
        if is_segment(self.name(fd)):
            self._grew = self._grew or offset + len(data) > self.inner.fstat(fd).st_size
        return self.inner.write_some(fd, data, offset)

    def datasync(self, fd: int) -> None:
        """Leave out the sync that follows a growth."""
        if not self._grew:
            self.inner.datasync(fd)
        self._grew = False


class NoLock(simdisk.DiskProxy):
    """Every opener is told that the lock is its own."""

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:  # noqa: ARG002 - the seam's signature
        """Say yes."""
        return True


class NoNameSync(simdisk.DiskProxy):
    """The rewritten segment's name is not synced before the head is renewed."""

    _renamed = False

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Rename, and notice whose name it was."""
        super().rename(source, target, within=within)
        self._renamed = is_segment(target.name)

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Leave the sync out that follows a segment's rename."""
        return (self._renamed and path.name == RUN) or self.inner.sync_dir(path, fd=fd)


class NoRollSync(simdisk.DiskProxy):
    """The name of a later segment is not synced before a line is written into it."""

    _rolled = False

    def rename(self, source: Path, target: Path, *, within: int | None = None) -> None:
        """Rename, and notice a segment that is not the first."""
        super().rename(source, target, within=within)
        self._rolled = is_segment(target.name) and target.name != "seg-000001.jsonl"

    def sync_dir(self, path: Path, *, fd: int | None = None) -> bool:
        """Leave out the sync that follows."""
        return self._rolled or self.inner.sync_dir(path, fd=fd)


def claims_at_once(patch: pytest.MonkeyPatch) -> None:
    """Have an opener's head claim every line that it found, and not only those that were claimed before."""
    write_head = _head.write_head

    def all_of_it(disk: eventlog.Disk, directory: Path, head: Head, ready: Callable[[], None]) -> Witness:
        found = eventlog.Directory(directory.parent, disk=disk).scan(directory.name)
        last, segment = found.lines[-1], found.segments[-1]
        return write_head(
            disk, directory, _head.Head(last.seq, last.sum, segment.number, segment.end, closed=head.closed), ready
        )

    patch.setattr(_open, "write_head", all_of_it)


def stays_closed(patch: pytest.MonkeyPatch) -> None:
    """Have an opener leave the head as it is: closed, until the first save says otherwise."""
    write_head = _head.write_head

    def as_it_was(disk: eventlog.Disk, directory: Path, head: Head, ready: Callable[[], None]) -> Witness:
        was = eventlog.Directory(directory.parent, disk=disk).scan(directory.name).head
        return write_head(disk, directory, was or head, ready)

    patch.setattr(_open, "write_head", as_it_was)


def same_file(patch: pytest.MonkeyPatch) -> None:
    """Have an opener go on in the file it finds, its torn bytes cut, whatever its end was like."""

    def end(disk: eventlog.Disk, directory: Path, reading: Reading, _lock: Lock) -> OpenSegment:
        last = reading.segments[-1]
        segment = _preallocate.resumed(disk, directory, last.number, last.end, reading.run)
        if not reading.closed:
            segment.cut()
        return segment

    patch.setattr(_open, "_safe_end", end)


def _torn(reading: Reading) -> tuple[eventlog.Torn, str] | None:
    torn = reading.torn
    return None if torn is None else (torn, f"torn-{reading.segments[-1].number:06d}-")


def linked_evidence(patch: pytest.MonkeyPatch) -> None:
    """Have an opener keep torn bytes by a second name of their file, and not by a copy."""

    def link(disk: eventlog.Disk, directory: Path, reading: Reading, _lock: Lock) -> eventlog.Torn | None:
        if (found := _torn(reading)) is None:
            return None
        torn, name = found
        machine = _machine(disk)
        data = bytes(machine.files[machine.find(directory / torn.file)])
        name += hashlib.sha256(data[torn.offset :][: torn.size]).hexdigest()
        if name not in disk.list(directory):
            machine.link(directory / torn.file, directory / name)
        disk.sync_dir(directory)
        return eventlog.Torn(torn.file, torn.offset, torn.size, name)

    patch.setattr(_open, "_kept", link)


def no_evidence(patch: pytest.MonkeyPatch) -> None:
    """Have an opener cut torn bytes without keeping them."""
    patch.setattr(_open, "_kept", lambda _disk, _directory, reading, _lock: reading.torn)


def unsynced_evidence(patch: pytest.MonkeyPatch) -> None:
    """Have an opener cut torn bytes before their copy is durable."""
    write_atomically = _atomic_write.write_atomically

    def unsynced(
        disk: eventlog.Disk, directory: Path, name: str, pieces: Iterable[bytes | memoryview], ready: Callable[[], None]
    ) -> int:
        return write_atomically(_NoSync(disk), directory, name, pieces, ready)

    patch.setattr(_open, "write_atomically", unsynced)


def unsynced_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Have a snapshot get its name before it is durable."""
    write_atomically = _atomic_write.write_atomically

    def unsynced(
        disk: eventlog.Disk, directory: Path, name: str, pieces: Iterable[bytes | memoryview], ready: Callable[[], None]
    ) -> int:
        return write_atomically(_NoSync(disk), directory, name, pieces, ready)

    patch.setattr(_snapshot, "write_atomically", unsynced)


def no_guard(patch: pytest.MonkeyPatch) -> None:
    """Have a writer believe that its file still has its name, and that the lock is still its own."""
    patch.setattr(_preallocate.OpenSegment, "guard", lambda _ahead: None)
    patch.setattr("eventlog._lock.Lock.check", lambda _lock: None)


class _NoSync(simdisk.DiskProxy):
    """Writes a file without syncing it."""

    def sync(self, fd: int) -> None:
        """Do nothing."""


def _machine(disk: eventlog.Disk) -> simdisk.Machine:
    while not isinstance(disk, simdisk.Process):
        disk = disk.inner if isinstance(disk, simdisk.DiskProxy) else vars(disk)["_disk"]
    assert isinstance(disk, simdisk.Process)
    return disk.machine
