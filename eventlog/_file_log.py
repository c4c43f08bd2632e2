"""The writer of a run in a directory.

The rule of a save, in the order of `FileLog.append`: the same process and thread at rest, alive; build the line and
read it back; the lock and the file are as this writer left them; lay zeros if needed; write; sync; the lock again; the
head; return. Only then may an effect start.

Anything that goes wrong between the write and the return leaves the writer dead. There is no retry, because a failed
sync marks its pages clean and a second one would lie; and no further effect, because nobody knows whether the line is
on disk. The next opener finds out. Two exceptions: a full disk whose own bytes could be taken back and that cut be
synced; and the head, which is only a witness: when it cannot be written after the line is durable, that is logged as a
warning.

A roll writes the next segment whole under a temporary name first. What goes wrong until then leaves the log alive, as
it was. A snapshot is written only after a roll, when all that it was made of is durable. It is a cache, so whatever
goes wrong with its own file leaves the log alive too.

Many threads may append (a tool's thread logs its files); `_writer` puts their lines in order, and keeps forked children
and signal handlers out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from msgspec import UnsetType
from msgspec.structs import replace

from eventlog import _inbox, _snapshot, _status
from eventlog._disk import DISK, Disk
from eventlog._frame import build, digest, parse
from eventlog._head import Head
from eventlog._in_child import not_for_children
from eventlog._log import Log, asked
from eventlog._names import INBOX, MAX_SEGMENT, snapshot_name
from eventlog._os_errors import pass_on, refused, said
from eventlog._writer import CUT_OFF
from eventlog.errors import LockLost, NotStorable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from pathlib import Path

    from eventlog._flushes import Flush, Flushes
    from eventlog._head import Witness
    from eventlog._line import Line, Torn
    from eventlog._lock import Lock
    from eventlog._log import Status
    from eventlog._preallocate import OpenSegment
    from eventlog._scan import Reading
    from eventlog._snapshot import Snapshot
    from eventlog._writer import Begun

_LOGGER = logging.getLogger(__name__)
_FRAME: Final = 256
"""More bytes than a line has besides its events."""


class FileLog(Log):
    """One run in a directory, open for writing. Torn bytes are kept as an evidence file, `status` as a file."""

    def __init__(
        self,
        path: Path,
        reading: Reading,
        life: int,
        *,
        lock: Lock,
        segment: OpenSegment,
        witness: Witness,
        cut: Torn | None = None,
        disk: Disk = DISK,
    ) -> None:
        """Go on after what was read or made; all of it must be durable already."""
        super().__init__(reading.run, life, disk)
        self.lines, self.snapshot, self.findings = reading.lines, reading.snapshot, reading.findings
        first, last = self.lines[0], self.lines[-1]
        assert first.header is not None  # a reading begins with a segment's first line
        self.path, self.cut, self._header, self._box = path, cut, first.header, path / INBOX
        self._sealed = sum(part.end for part in reading.segments[:-1])
        self.seq, self.at, self._sum = last.seq, last.at, last.sum
        self._lock, self._segment, self._witness, self._disk = lock, segment, witness, disk
        not_for_children(self)

    def begin(
        self, flushes: Flushes, at: datetime, events: Sequence[bytes], *, room: int = 0, status: Status = None
    ) -> Begun[Line] | None:
        """As `append`, with a flush that the kernel carries on: on the system's own disk, while zeros are laid."""
        size = sum(map(len, events)) + len(events) + _FRAME + max(room, 0)
        if self._disk.kernel_flushes != DISK.kernel_flushes or not self._segment.reaches(size):
            return None

        def first() -> tuple[Flush | None, Callable[[], Line]]:
            line, written, flush = self._written(at, events, room, flushes)
            return flush, lambda: self._acknowledged(line, written, flush, status)

        return self._writer.begin("a save", first)

    @property
    def lease_lost(self) -> bool:
        return self._lock.lease_lost

    @property
    def bytes_since_snapshot(self) -> int:
        return self._sealed + self._segment.end

    def holds(self, seconds: float = 0.0) -> bool:  # noqa: ARG002 (the kernel's lock has no end)
        try:
            self._lock.check()
        except (LockLost, OSError):
            return False
        return True

    def inbox(self) -> list[str]:
        return _inbox.unread(self._disk, self._box).requests

    def request(self, name: str) -> bytes | str | None:
        return _inbox.read(self._disk, self.path, name)

    def acknowledge(self, names: Collection[str]) -> set[str]:
        if self._writer.dead:  # the inbox is the next holder's
            return set()
        return _inbox.remove(self._disk, self.path, names)

    def close_copies(self) -> None:
        """Close the files in a forked child, which may write nothing; the lock does the same for itself."""
        for part in (self._segment, self._witness):
            part.release()

    def _save(self, at: datetime, events: Sequence[bytes], room: int, status: Status) -> Line:
        """Write the line and sync it, once. `room` is laid as synced zeros before the line is written."""
        line, size, _ = self._written(at, events, room)
        return self._acknowledged(line, size, None, status)

    def _written(
        self, at: datetime, events: Sequence[bytes], room: int, flushes: Flushes | None = None
    ) -> tuple[Line, int, Flush | None]:
        """Write the line; give its bytes and its flush, if the kernel carries that on."""
        data, line = self._composed(at, events)
        self._writer.dead = CUT_OFF
        self._lock.check()
        self._segment.guard()
        self._segment.preallocate(len(data) + max(room, 0))
        return line, len(data), self._segment.write(data, flushes)

    def _acknowledged(self, line: Line, size: int, flush: Flush | None, status: Status) -> Line:
        """Have a line that was written synced, and count it."""
        self._segment.sync(size, flush)
        # Whoever took the lock before the line was visible has not seen it: then it must not be acknowledged.
        self._lock.check()
        self._advance(line)
        self.status = status
        self._writer.done()
        return line

    def _keep(self, snapshot: Snapshot, data: bytes) -> None:
        """Roll, then write the snapshot beside the segments. Every segment is kept."""
        self._roll(digest(snapshot.state))
        try:
            _snapshot.keep(self._disk, self.path, snapshot.seq, data, self._lock)
        except OSError as error:  # the roll is durable: nothing can hurt the log
            raise refused(error, self.run, self.path / snapshot_name(snapshot.seq)) from error
        self._sealed = 0

    def _advance(self, line: Line) -> None:
        """Count a durable line as the last one, and have the head say so."""
        self.seq, self.at, self._sum = line.seq, line.at, line.sum
        try:
            self._witness.claim(Head(line.seq, line.sum, self._segment.number, self._segment.end, closed=False))
        except OSError as error:  # an older head is normal after a power cut, so the line counts
            pass_on(error)
            _LOGGER.warning("run %s: the head cannot be written: %s", self.run, said(error))

    def _roll(self, snapshot: str | UnsetType) -> None:
        """Seal the segment, and begin the next one with a header that names a snapshot's digest."""
        number = self._segment.number + 1
        if number > MAX_SEGMENT:
            raise NotStorable(self.run, f"it has {MAX_SEGMENT} segments, the most there may be")
        data = build(
            self.seq + 1, self.life, self.at, self._sum, replace(self._header, segment=number, snapshot=snapshot)
        )
        line = parse(data)
        self._writer.dead = "a roll was cut off"
        sealed = self._segment
        self._segment = sealed.roll(self.path, data, self._lock)
        self._sealed += sealed.end
        sealed.release()
        self._lock.check()
        self._advance(line)
        self._writer.done()

    def _end(self) -> None:
        """Cut the zeros, sync, have the head say closed, sync that."""
        self._writer.dead = "it could not be closed"
        self._lock.check()
        self._segment.guard()
        self._segment.cut()
        if (words := asked(self.status)) is not None:
            _status.write(self._disk, self.path, self.run, self.seq, self._sum, words)
        self._witness.claim(Head(self.seq, self._sum, self._segment.number, self._segment.end, closed=True))
        self._witness.settle()
        self._lock.wipe()

    def _let_go(self) -> None:
        for part in (self._segment, self._witness, self._lock):
            part.release()
