"""The writer: a log open for appending.

The order of a save is the promise: guards (same process, alive, lock and file as this writer left them) → build the
line, read it back, compare → lay zeros if needed → write all → sync → head → return. Only then may an effect start.
Anything that goes wrong between the write and the return leaves the writer dead: no retry, because a failed sync
marks its pages clean and a second one would lie; no further effect, because nobody knows whether the line is on disk.
The next opener finds out. The one exception is a full disk whose own bytes could be taken back and that cut be
synced.

A snapshot is written only behind a roll (`_roll`), when all that it was made of is durable; it is a cache, so whatever
goes wrong with its own file leaves the log alive.

Many threads may append (a tool's thread logs its files); one mutex puts their lines in order. A forked child may do
nothing: it shares the parent's lock and files, and two writers are one too many.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from eventlog import _snapshot
from eventlog._disk import DISK, FULL, Disk
from eventlog._frame import build, checked, in_utc, parse
from eventlog._head import Head
from eventlog._names import MAX_SEGMENT, snapshot_name
from eventlog._roll import behind
from eventlog._snapshot import Snapshot
from eventlog._words import said
from eventlog.errors import DiskFailed, DiskFull, LockLost, LogDead, NotStorable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType

    from eventlog._ahead import Ahead
    from eventlog._head import Witness
    from eventlog._line import Line, Torn
    from eventlog._lock import Lock

_CUT_OFF = "a save was cut off between its write and its return"


@dataclass(slots=True)
class Since:
    """The snapshot that a log was opened behind, if any, the bytes of the segments sealed since, and what was wrong."""

    snapshot: Snapshot | None = None
    sealed: int = 0
    findings: list[str] = field(default_factory=list)


class Log:
    """One run, open for writing; made by `create` and `open`. `seq`, `life` and `at` are those of the last line.

    `lines` are those found when it was opened (or written by `create`), for folding; appended lines are not added.
    When `snapshot` is not None, they are those behind it. `findings` say which snapshots were passed over, and why.
    `life` is the number this opening writes into its lines. `cut` is what `open` cut as torn, kept as an evidence
    file. As a context manager it closes itself.
    """

    def __init__(
        self,
        run: str,
        path: Path,
        lines: list[Line],
        life: int,
        *,
        lock: Lock,
        segment: Ahead,
        witness: Witness,
        since: Since | None = None,
        cut: Torn | None = None,
        disk: Disk = DISK,
    ) -> None:
        """Put the parts together; their content must be durable already."""
        last, since = lines[-1], since or Since()
        assert lines[0].header is not None  # a reading begins with a segment's first line
        self._header = lines[0].header
        self.run, self.path, self.lines, self.cut = run, path, lines, cut
        self.snapshot, self.findings = since.snapshot, since.findings
        self._sealed = since.sealed
        self.seq, self.life, self.at = last.seq, life, last.at
        self._sum = last.sum
        self._lock, self._segment, self._witness, self._disk = lock, segment, witness, disk
        self._pid = disk.pid()
        self._mutex = threading.Lock()
        self._dead = ""
        self._closed = False

    def append(self, at: datetime, events: Sequence[bytes], *, room: int = 0) -> Line:
        """Save one line of `events` (each the bytes of one JSON object) and return it once it is durable.

        `at` must know its zone; one earlier than the last line's is raised to it. At least `room` bytes of synced
        zeros remain after the line, laid before it is written, so that a full disk refuses a marker and not its
        result. One save is one sync (and one more when zeros are laid).

        Raises `NotStorable` and `DiskFull` with nothing written and the log alive. Raises `LogDead`, `LockLost` or
        lets an interrupt through with the writer dead; whether the line is on disk is then unknown (spec 7, hazards
        17-25).
        """
        if self._disk.pid() != self._pid:
            raise LogDead(self.run, "this process was forked from the writer")
        before = self.seq
        try:
            with self._mutex:
                line = self._save(at, events, room)
        except (NotStorable, DiskFull):
            raise
        except (LogDead, LockLost) as error:
            self._dead = self._dead or str(error)
            raise
        except OSError as error:
            self._dead = self._dead or f"a save could not begin: {said(error)}"
            raise LogDead(self.run, self._dead) from error
        except BaseException:  # an interrupt at any point ends the writer, and goes on up
            if self.seq != before:  # an interrupt on the way out: the caller will never see this line
                self._dead = self._dead or _CUT_OFF
            raise
        return line

    @property
    def bytes_since_snapshot(self) -> int:
        """Bytes of lines behind the newest snapshot that was accepted or made; all of them when there is none."""
        return self._sealed + self._segment.end

    def roll(self) -> Line:
        """Seal the segment, begin the next one, and return its header's line, once it is durable.

        Raises `DiskFull` or `NotStorable` (it is the last segment there may be) with the log alive; otherwise as
        `append` does, with the writer dead (design, "Roll and close").
        """
        with self._alone("a roll"):
            return self._roll()

    def compact(self, state: bytes, version: int, *, seq: int | None = None) -> Snapshot | None:
        """Roll, then keep `state`, one JSON value made of all lines so far, as a snapshot; return it once durable.

        `version` says how it was made; a reader that makes states otherwise passes it over. The last two snapshots
        are kept, and every segment. `seq` is the last line that `state` holds: when another was saved since, nothing
        is done and None returned. Raises `NotStorable`, `DiskFull` and `DiskFailed` with the log alive, and what
        `roll` raises (spec 14).
        """
        with self._alone("a compaction"):
            if seq is not None and seq != self.seq:
                return None
            data = _snapshot.encode(self.run, self.seq, self._sum, version, state)
            snapshot = Snapshot(self.run, self.seq, self._sum, version, state, len(data))
            self._roll()
        with self._mutex:  # the roll is durable: from here on nothing can hurt the log
            try:
                _snapshot.keep(self._disk, self.path, snapshot.seq, data)
            except OSError as error:
                if error.errno in FULL:
                    raise DiskFull(self.run, said(error)) from error
                raise DiskFailed(str(self.path / snapshot_name(snapshot.seq)), said(error)) from error
            self._sealed, self.snapshot = 0, snapshot
        return snapshot

    def close(self) -> None:
        """End the log properly: cut the zeros, sync, have the head say closed, sync that, release the lock.

        On a dead log, and in a forked child, it only lets go. Calling it again does nothing. Raises `LogDead` or
        `LockLost` when the end could not be written; the lock is released all the same, and the next opener sees an
        unclean end.
        """
        if self._disk.pid() != self._pid:
            self._let_go()
            return
        with self._mutex:
            try:
                if not (self._closed or self._dead):
                    self._end()
            except OSError as error:
                raise LogDead(self.run, f"it could not be closed: {said(error)}") from error
            finally:
                self._dead = self._dead or "it was closed"
                self._let_go()

    def abandon(self) -> None:
        """Release the lock and the files without writing anything, as the death of the process would."""
        if self._disk.pid() != self._pid:
            self._let_go()
            return
        with self._mutex:  # a save in flight must not find its files closed, and their numbers given to others
            self._dead = self._dead or "it was abandoned"
            self._let_go()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, whatever happened inside: what was acknowledged is durable either way."""
        self.close()

    def _save(self, at: datetime, events: Sequence[bytes], room: int) -> Line:
        if self._dead:
            raise LogDead(self.run, self._dead)
        at = max(in_utc(self.run, at), self.at)
        data = build(self.seq + 1, self.life, at, self._sum, events)
        line = checked(self.run, data, events)
        self._lock.check()
        self._segment.guard()
        self._dead = _CUT_OFF
        try:
            self._segment.lay(len(data) + max(room, 0))
            self._segment.write(data)
        except DiskFull:
            self._dead = ""
            raise
        except OSError as error:
            self._dead = f"a save failed: {said(error)}"
            raise
        # Whoever took the lock from us before the line was visible has not seen it: then it must not be acknowledged.
        self._lock.check()
        self._witness.claim(Head(line.seq, line.sum, self._segment.number, self._segment.end, closed=False))
        self.seq, self.at, self._sum = line.seq, line.at, line.sum
        self._dead = ""
        return line

    @contextlib.contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """Keep other threads out. `DiskFull` and `NotStorable` leave the log alive, anything else leaves it dead."""
        if self._disk.pid() != self._pid:
            raise LogDead(self.run, "this process was forked from the writer")
        with self._mutex:
            if self._dead:
                raise LogDead(self.run, self._dead)
            self._dead = f"{what} was cut off"
            try:
                yield
            except (NotStorable, DiskFull):
                self._dead = ""
                raise
            except (LogDead, LockLost) as error:
                self._dead = str(error)
                raise
            except OSError as error:
                self._dead = f"{what} failed: {said(error)}"
                raise LogDead(self.run, self._dead) from error
            self._dead = ""

    def _roll(self) -> Line:
        number = self._segment.number + 1
        if number > MAX_SEGMENT:
            raise NotStorable(self.run, f"it has {MAX_SEGMENT} segments, the most there may be")
        data = build(self.seq + 1, self.life, self.at, self._sum, replace(self._header, segment=number))
        line = parse(data)
        self._lock.check()
        self._segment.guard()
        sealed = self._segment
        self._segment = behind(self._disk, self.path, sealed, data, self._lock, self.run)
        self._sealed += sealed.end
        self.seq, self._sum = line.seq, line.sum
        self._witness.claim(Head(line.seq, line.sum, number, self._segment.end, closed=False))
        with contextlib.suppress(OSError):  # what a failing close could tell, the sync before it has told
            sealed.release()
        return line

    def _end(self) -> None:
        self._dead = "it could not be closed"
        self._lock.check()
        self._segment.guard()
        self._segment.cut()
        self._witness.claim(Head(self.seq, self._sum, self._segment.number, self._segment.end, closed=True))
        self._witness.settle()
        self._lock.wipe()
        self._dead = ""

    def _let_go(self) -> None:
        self._closed = True
        for part in (self._segment, self._witness, self._lock):
            with contextlib.suppress(OSError):  # what a failing close could tell, the sync before it has told
                part.release()
