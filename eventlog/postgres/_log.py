"""A run's log that is open for writing: what a save does, and what is known when it fails.

A save is one statement: it raises the end of the log in the run's row, if the row still has this holder's token and the
line before, and then inserts the line; it renews the lease, and brings back how much mail there is. No row: either an
earlier try of this save was done (the row then names its sum), or another has taken the run (`LockLost`). An expired
lease whose token still stands may write: nobody has read the log in between.

A connection that breaks leaves the fate of a save unknown, so it is sent again until the lease ends here; a repeat
changes nothing. Whether it was done is asked with a lock, whose commit waits for a standby as the save's did: what only
reads sees lines for which that wait was ended. An error that the server reports is a rollback: the log goes on, and a
save is made again that a lock, a limit of time or a server without writes kept back: it may hold a reply that was paid.

A log that is dead gives nothing back: its lease runs out, and who opens the run then knows that a holder was lost.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec
import psycopg
from psycopg.types.numeric import Int8

from eventlog._log import Log, asked
from eventlog._snapshot import KEPT
from eventlog._writer import CUT_OFF
from eventlog.errors import DiskFailed, DiskFull, LockLost, LogDead, LogError, OtherSchema, ReadOnly
from eventlog.postgres._connections import boot

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from eventlog._disk import Disk
    from eventlog._line import Line
    from eventlog._log import Status
    from eventlog._snapshot import Snapshot
    from eventlog.postgres._connections import Connections
    from eventlog.postgres._leases import Lease, Leases
    from eventlog.postgres._read import End

_APPEND: Final = """
with held as (
  update refold.run set seq = %(seq)s, sum = %(sum)s, life = %(life)s, at = %(at)s, bytes = bytes + %(size)s,
    status = %(status)b, closed = %(closed)s,
    agent = coalesce(%(agent)s, agent), expires = greatest(expires, clock_timestamp() + %(length)s)
  where run = %(run)s and token = %(token)s and seq = %(before)s returning run, mail)
insert into refold.line select run, %(seq)s, %(data)b from held returning (select mail from held)"""
_WAS: Final = """
select mail from refold.run where run = %(run)s and token = %(token)s and seq = %(seq)s and sum = %(sum)s for update"""
_RELEASE: Final = """
update refold.run set expires = '-infinity', owner = null, lost = %(lost)s, status = coalesce(%(status)b, status),
  closed = closed or %(closed)s, agent = coalesce(%(agent)s, agent),
  wake = case when mail > 0 then clock_timestamp() else %(wake)s end
where run = %(run)s and token = %(token)s"""
_SNAPSHOT: Final = """
with kept as (insert into refold.snapshot select run, %(seq)s, %(data)b from refold.run
  where run = %(run)s and token = %(token)s on conflict do nothing returning run)
delete from refold.snapshot s using kept where s.run = kept.run and s.seq < (
  select seq from refold.snapshot where run = %(run)s and seq < %(seq)s order by seq desc offset %(before)s limit 1)"""
_TAKE: Final = """
with gone as (delete from refold.inbox where run = %(run)s and name = any(%(names)s) returning name),
  told as (update refold.run set mail = greatest(0, mail - (select count(*) from gone)) where run = %(run)s
    returning mail)
select name, (select mail from told) from gone"""
_TAKEN: Final = "another process has taken the run, or the server lost lines that it had acknowledged"
_FULL: Final = {"53100", "53000"}
_UNKNOWN: Final = ("08", "57P", "40003")
"""What a server says whose statement may have been done all the same."""


class Row(Log):
    """One run in a database, open for writing. `weight` are the bytes of its lines since its snapshot."""

    weight = 0
    wake: datetime | None = None
    """When somebody must look at the run once it is given back, if no status says another time."""

    def __init__(
        self, life: int, lease: Lease, end: Line | End, connections: Connections, leases: Leases, disk: Disk
    ) -> None:
        """Go on after the end of a log whose lease was taken."""
        super().__init__(lease.run, life, disk)
        self.lease, self._connections, self._leases = lease, connections, leases
        self.lines, self.snapshot, self.findings = [], None, []
        self.seq, self._sum, self.at = end.seq, end.sum, end.at
        self._untold = lease.was_lost

    @property
    def lease_lost(self) -> bool:
        return self.lease.was_lost

    def note_lease_lost(self) -> None:
        self._untold = False

    @property
    def bytes_since_snapshot(self) -> int:
        return self.weight

    def holds(self, seconds: float = 0.0) -> bool:
        """Tell whether the lease lasts so long, by this machine's clock; also while another thread saves."""
        return self.lease.holds(seconds)

    def append(self, at: datetime, events: Sequence[bytes], *, room: int = 0, status: Status = None) -> Line:
        """Ask for the status first: it is written with the line."""
        return super().append(at, events, room=room, status=asked(status))

    def inbox(self) -> list[str]:
        """List the rows of the inbox; only if the last save, or the thread of the leases, saw mail."""
        query = "select name from refold.inbox where run = %s order by name"
        with contextlib.suppress(LogError):
            return [row[0] for row in self._rows(query, (self.run,))] if self.lease.mail else []
        return []

    def request(self, name: str) -> bytes | str | None:
        query = "select data from refold.inbox where run = %s and name = %s"
        with contextlib.suppress(LogError):  # it lies there, and is read once the server answers
            found = self._rows(query, (self.run, name))
            return found[0][0] if found else None
        return None

    def acknowledge(self, names: Collection[str]) -> set[str]:
        given = {"run": self.run, "names": list(names)}
        if names and not self._writer.dead:
            with contextlib.suppress(LogError):
                found = self._rows(_TAKE, given)
                self.lease.mail = found[0][1] if found else self.lease.mail
                return {row[0] for row in found}
        return set()

    def _save(self, at: datetime, events: Sequence[bytes], room: int, status: Status) -> Line:  # noqa: ARG002
        """Write the line, the run's end and its status, and renew the lease. A database has no use for `room`."""
        assert not callable(status)
        data, line = self._composed(at, events)
        self._writer.dead = CUT_OFF
        values: dict[str, Any] = {
            "run": self.run,
            "token": Int8(self.lease.token),
            "before": Int8(self.seq),
            "seq": Int8(line.seq),
            "sum": line.sum,
            "life": Int8(line.life),
            "at": line.at,
            "size": Int8(len(data)),
            "data": data,
            "length": self._leases.length,
            **_said(status),
        }
        sent = boot()
        found = self._sure(_APPEND, values) or self._sure(_WAS, values)
        if not found:
            self.lease.lost = True
            raise LockLost(self.run, _TAKEN)
        was = {"seq": self.seq, "_sum": self._sum, "at": self.at, "status": self.status}
        self._connections.undo(functools.partial(vars(self).update, was))
        self.lease.mail = found[0][0]
        if not self._connections.is_joined:  # what a caller's transaction renews may be rolled back
            self.lease.until = max(self.lease.until, self._leases.end(sent))
        self.seq, self._sum, self.at = line.seq, line.sum, line.at
        self.weight += len(data)
        self.status = status
        self._writer.done()
        return line

    def _sure(self, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run a statement of a save. Raises `DiskFull`, `DiskFailed` when nothing was changed, else `LogDead`."""
        try:
            return self._rows(query, values)
        except LogError as error:
            cause = error.__cause__
            state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
            if state is None or state.startswith(_UNKNOWN):
                raise LogDead(self.run, f"whether its last line was saved is unknown: {error}") from error
            if state in _FULL:
                raise DiskFull(self.run, str(error)) from error
            if isinstance(error, OtherSchema | ReadOnly):
                raise DiskFailed(error.path, error.why) from error
            raise

    def _rows(self, query: str, values: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
        until = self.lease.until  # renewals may put it off for ever
        return self._connections.rows(query, values, patient=lambda: not self.lease.lost and boot() < until)

    def _keep(self, snapshot: Snapshot, data: bytes) -> None:
        values = {"run": self.run, "token": self.lease.token, "seq": snapshot.seq, "data": data, "before": KEPT - 2}
        self._rows(_SNAPSHOT, values)
        self.weight = 0

    def _end(self) -> None:
        """Give the lease back, and say when somebody must look at the run again."""
        self._writer.dead = "it could not be closed"
        status = asked(self.status)
        values = {"run": self.run, "token": self.lease.token, "lost": self._untold, **_said(status)}
        if status is None:
            values["wake"] = self.wake
        try:
            self._connections.rows(_RELEASE, values)
        except LogError as error:
            raise LogDead(self.run, f"it could not be given back, and its lease runs out: {error}") from error

    def _let_go(self) -> None:
        self._leases.drop(self.lease)


def _said(status: msgspec.Struct | None) -> dict[str, Any]:
    """What a row says of a run after its last line."""
    return {
        "wake": getattr(status, "wake", None),
        "agent": getattr(status, "agent", None),
        "closed": bool(getattr(status, "closed", False)),
        "status": None if status is None else msgspec.json.encode(status),
    }
