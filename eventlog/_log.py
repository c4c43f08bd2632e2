"""A run that is open for writing, whatever store it lives in. How a directory keeps the promises: `_file_log`."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Self

from eventlog import _snapshot
from eventlog._frame import compose, in_utc
from eventlog._snapshot import Snapshot
from eventlog._writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from types import TracebackType

    from msgspec import Struct

    from eventlog._disk import Disk
    from eventlog._flushes import Flushes
    from eventlog._line import Line, Torn
    from eventlog._writer import Begun

    Status = Struct | Callable[[], Struct] | None


def asked(status: Status) -> Struct | None:
    """Give a status, which may be a function that says it."""
    return status() if callable(status) else status


class Log(abc.ABC):
    """One run, open for writing; made by `Store.create` and `Store.open`. As a context manager it closes itself.

    Attributes:
        run: The run's id.
        seq: The number of the last line.
        at: The time of the last line.
        life: The number that this opening writes into its lines.
        lines: Those found when it was opened (or written by `create`), for folding; appended lines are not added.
        snapshot: When it is not None, `lines` are those after it.
        findings: Which snapshots were passed over, and why.
        cut: What opening a directory cut as torn.
        status: What the last `append` said of the run, or was set since; the store keeps it for `Store.statuses`.
    """

    run: str
    seq: int
    at: datetime
    life: int
    lines: list[Line]
    snapshot: Snapshot | None
    findings: list[str]
    cut: Torn | None = None
    status: Status = None
    _sum: str

    def __init__(self, run: str, life: int, disk: Disk) -> None:
        self.run, self.life = run, life
        self._writer = Writer(run, disk)

    @property
    @abc.abstractmethod
    def lease_lost(self) -> bool:
        """Whether a holder before this one did not give the run back, and may still act for it.

        In a directory that is a forked child of the holder that lives (a spawned one is not seen); in a database, a
        holder whose lease ran out.
        """

    def note_lease_lost(self) -> None:  # noqa: B027 (a directory asks anew each time)
        """Note that a line tells of `lease_lost`: until then, also whoever opens the run after this holder is told."""

    @property
    @abc.abstractmethod
    def bytes_since_snapshot(self) -> int:
        """Bytes of lines after the newest snapshot that was accepted or made; all of them when there is none."""

    @abc.abstractmethod
    def holds(self, seconds: float = 0.0) -> bool:
        """Tell whether an effect that takes so many seconds may begin now: this process holds the run that long."""

    def append(self, at: datetime, events: Sequence[bytes], *, room: int = 0, status: Status = None) -> Line:
        """Save one line of events and return it once it is durable.

        Args:
            at: The time of the line; it must know its zone. One earlier than the last line's is raised to it.
            events: Each the bytes of one JSON object.
            room: Bytes that the store keeps free for the line after this one, so that a full disk refuses a marker and
                not its result. A database has no use for it.
            status: What the run is after this line, in the caller's words, or a function that says so: a directory
                asks it when the log is closed. A database finds due runs by its attributes `wake`, `closed` and
                `agent`, if it has them.

        Raises:
            NotStorable, DiskFull, DiskFailed: Nothing was written; the log goes on.
            LogBusy: A signal handler called this inside a save; that save goes on.
            LogDead, LockLost: The writer is dead, and whether the line was saved is unknown. An interrupt that goes
                through does the same.
        """
        return self._writer.do("a save", lambda: self._save(at, events, room, status))

    def begin(
        self, flushes: Flushes, at: datetime, events: Sequence[bytes], *, room: int = 0, status: Status = None
    ) -> Begun[Line] | None:
        """Begin to `append`, and wait for nothing; `end` of what is given does the rest. None: `append` it instead."""
        del flushes, at, events, room, status  # only a log in a directory can
        return None

    def compact(self, state: bytes, version: int, *, seq: int | None = None) -> Snapshot | None:
        """Keep a state made of all lines so far as a snapshot, and return it once it is durable.

        The last two snapshots are kept, and every line.

        Args:
            state: One JSON value.
            version: How it was made; a reader that makes states otherwise passes it over.
            seq: The last line that `state` holds: when another was saved since, nothing is done and None returned.

        Raises:
            NotStorable, DiskFull, DiskFailed: There is no snapshot; the log goes on.
            LogError: As `append`.
        """
        return self._writer.do("a compaction", lambda: self._compacted(state, version, seq))

    @abc.abstractmethod
    def inbox(self) -> list[str]:
        """List the names of the requests that lie in the run's inbox. Never raises."""

    @abc.abstractmethod
    def request(self, name: str) -> bytes | str | None:
        """Read a request: its bytes, a sentence why it can't be one, or None: it is gone, or can't be read now."""

    @abc.abstractmethod
    def acknowledge(self, names: Collection[str]) -> set[str]:
        """Remove requests from the inbox, and give those that were. First save the line that says what became of them.

        Never raises.
        """

    def close(self) -> None:
        """End the log properly, and give the run back.

        On a dead log, and in a forked child, it only lets go. Calling it again does nothing, also from a signal handler
        that interrupts it.

        Raises:
            LogDead, LockLost: The end could not be written. The run is given back all the same, in a database when the
                lease ends, and the next opener sees an unclean end.
            LogBusy: A signal handler called this inside a save; that save goes on, and the log stays open.
        """
        self._writer.end(self._end, "it was closed", self._let_go)

    def abandon(self) -> None:
        """Let go without writing anything, as the death of the process would.

        Raises:
            LogBusy: As `close`.
        """
        self._writer.end(None, "it was abandoned", self._let_go)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, whatever happened inside: what was acknowledged is durable either way."""
        self.close()

    def _composed(self, at: datetime, events: Sequence[bytes]) -> tuple[bytes, Line]:
        """Make the next line."""
        return compose(self.run, self.seq + 1, self.life, max(in_utc(self.run, at), self.at), self._sum, events)

    def _compacted(self, state: bytes, version: int, seq: int | None) -> Snapshot | None:
        if seq is not None and seq != self.seq:
            return None
        data = _snapshot.encode(self.run, self.seq, self._sum, version, state)
        snapshot = Snapshot(self.run, self.seq, self._sum, version, state, len(data))
        self._keep(snapshot, data)
        self.snapshot = snapshot
        return snapshot

    @abc.abstractmethod
    def _save(self, at: datetime, events: Sequence[bytes], room: int, status: Status) -> Line:
        """Save a line, as the one that uses the writer."""

    @abc.abstractmethod
    def _keep(self, snapshot: Snapshot, data: bytes) -> None:
        """Make a snapshot's bytes durable."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Write the proper end."""

    @abc.abstractmethod
    def _let_go(self) -> None:
        """Give back what is held, in a forked child its copies; raise nothing."""
