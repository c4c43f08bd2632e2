"""The store that is a PostgreSQL database: making, opening, reading and listing runs.

A run is made by one statement, and taken by one, which raises its token if the lease before has ended. Its lines are
read by the statements after that: they see all that was saved under older tokens. Whoever takes a run names itself by a
value of this taking alone, so a taking whose connection was lost can be made again. A token rises by chance: a standby
that was promoted without the last takings gives none of their tokens once more.

A fork and the stop of its parent are one transaction: there is no moment in which both go on, or neither.
"""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from eventlog import _inbox
from eventlog._bell import Presence
from eventlog._inbox import Unread
from eventlog._line import Line
from eventlog._lock import Holder
from eventlog._names import check_id, is_id
from eventlog._new_run import Beginning
from eventlog._scan import Reading
from eventlog._snapshot import Snapshot
from eventlog._store import Store
from eventlog.errors import LogError, NotARunsDirectory, RunExists, RunPruned
from eventlog.postgres import _place, _prune, _read
from eventlog.postgres._connections import Connections, boot
from eventlog.postgres._dispatch import Rings, due
from eventlog.postgres._leases import Lease, Leases
from eventlog.postgres._log import Row
from eventlog.postgres._place import Connection
from eventlog.postgres._read import End, Rows, load

_LONGEST: Final = 86400.0
_ENDS: Final = "select set_config('idle_in_transaction_session_timeout', %s, true)"
"""A process that stands still within a transaction holds a run up no longer than a lease."""
_CREATE: Final = """
with made as (
  insert into refold.run (run, token, owner, since, expires, seq, sum, life, at, bytes, began, parent)
  select %(run)s, %(token)s, %(owner)s, clock_timestamp(), clock_timestamp() + %(length)s, %(seq)s, %(sum)s, %(life)s,
    %(at)s, %(size)s, %(began)s, %(parent)s where not exists (select from refold.pruned where run = %(run)s)
  on conflict do nothing returning run),
lines as (insert into refold.line
  select run, n, d from made, unnest(%(seqs)s::bigint[], %(datas)b::bytea[]) as t (n, d))
select exists (select from made)
  or exists (select from refold.run where run = %(run)s and owner = %(owner)s for update)"""
_TAKE: Final = """
with old as (select run, owner, since, expires, wake from refold.run where run = %(run)s for update),
taken as (
  update refold.run r set token = r.token + 1 + (random() * 1e9)::bigint, owner = %(owner)s, since = clock_timestamp(),
    expires = clock_timestamp() + %(length)s, wake = null, lost = r.lost or coalesce(old.owner <> %(owner)s, false)
  from old where r.run = old.run and (old.expires < clock_timestamp() or old.owner = %(owner)s)
  returning r.run, r.token, r.mail, r.lost, r.seq, r.sum, r.life, r.at, r.bytes, false)
select clock_timestamp(), old.owner, old.since, nullif(old.expires, '-infinity'), old.wake, taken.*
from old left join taken using (run)"""
_POST: Final = """
with there as (select run from refold.run where run = %(run)s for update),
box as (insert into refold.inbox select run, %(name)s, %(data)b from there on conflict do nothing returning run),
told as (update refold.run r set mail = mail + 1, wake = case when owner is null then clock_timestamp() else wake end
  from box where r.run = box.run returning r.run)
select exists (select from told), exists (select from there),
  (select data = %(data)b from refold.inbox where run = %(run)s and name = %(name)s)"""


class Postgres(Store):
    """A database of runs. `refold migrate` makes its tables.

    Args:
        url: As `postgresql://USER@HOST:PORT/DATABASE`. A password is better kept in `~/.pgpass` or `PGPASSWORD`.
        lease: Seconds after which a run is free whose holder died or was cut off. In the last tenth of them a holder
            begins nothing more.
        shared_workspace: Whether every machine has the workspaces of the runs under the same paths.

    Raises:
        NotARunsDirectory: It is no URL of a database, or no lease can be so long.
    """

    knows_due = True

    def __init__(self, url: str, *, lease: float = 30.0, shared_workspace: bool = False) -> None:
        self.shared_workspace, self.lease = shared_workspace, lease
        self._place = _place.read(url)
        if not 0 < lease <= _LONGEST:
            raise NotARunsDirectory(str(self), f"a lease of {lease} s is not between 0 and a day")
        self.connections = Connections(self._place, lease)
        self._leases = Leases(self.connections, lease)

    def __str__(self) -> str:
        """Give the URL without a password."""
        return str(self._place)

    def within(self, connection: Connection) -> contextlib.AbstractContextManager[None]:
        """Do what this thread does here meanwhile in the caller's own transaction, on the caller's connection.

        Its rows may come in any shape. A run is read outside. Undo a transaction by an error that ends this block too,
        as `psycopg.Rollback` does not; a log that stays open and was saved to there writes nothing more otherwise.

        Example:
            with runs.within(connection), connection.transaction(): ...  # a failed commit is undone too
        """
        return self.connections.joined(connection)

    def create_run(self, begin: Beginning, *, ready: Callable[[], None] | None = None) -> Row:
        """Insert the run and its lines, in one transaction with what `ready` does."""
        self.now()
        run = begin.run
        lines, datas = begin.framed(self.connections.storage, self.disk.random(16))
        last = lines[-1]
        parent = begin.parent.run if begin.parent is not None and begin.salvaged is None else None
        values: dict[str, Any] = {
            "run": run,
            "token": int(self.disk.random(4), 16),
            "owner": self._owner(),
            "length": self._leases.length,
            "parent": parent,
            "seq": last.seq,
            "sum": last.sum,
            "life": last.life,
            "at": last.at,
            "began": lines[0].at,
            "size": sum(map(len, datas)),
            "seqs": list(range(len(datas))),
            "datas": datas,
        }
        sent = boot()

        def make(connection: Connection) -> bool:
            ((is_made,),) = connection.execute(_CREATE, values).fetchall()
            if is_made and ready is not None:
                ready()
            return bool(is_made)

        def both(connection: Connection) -> bool:
            with self.connections.joined(connection), connection.transaction():  # a commit that fails is undone too
                connection.execute(_ENDS, (f"{1000 * self._leases.seconds:.0f}ms",))
                return make(connection)

        if not self.connections.run(make if ready is None else both):
            gone = _prune.missing(self.connections, run)
            raise gone if isinstance(gone, RunPruned) else RunExists(run, str(self))
        log = self._log(begin.life, Lease(run, values["token"], self._leases.end(sent)), last)
        log.lines, log.weight = lines, sum(map(len, datas))
        return log

    def open(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Row:
        check_id(run)
        sent = boot()
        values = {"run": run, "owner": self._owner(), "length": self._leases.length}
        found = self.connections.rows(_TAKE, values)
        if not found:
            raise _prune.missing(self.connections, run)
        now, owner, since, until, wake, _, token, mail, lost, *rest = found[0]
        self.connections.heard(now, sent)
        if token is None:
            raise _named(owner, since).refusal(run, self.disk, until)
        end = End(*rest)
        log = self._log(end.life + 1, Lease(run, token, self._leases.end(sent), mail, was_lost=lost), end)
        log.wake = self.now() if owner is not None else wake
        try:
            reading, log.weight = self.connections.run(functools.partial(load, run=run, end=end, accept=accept))
            if reading.damage is not None:
                raise reading.damage  # noqa: TRY301 (as it was found, like any other error)
        except BaseException:  # an interrupt too gives the run back, to be looked at when it would have been
            with contextlib.suppress(LogError):
                log.close()
            raise
        log.lines, log.snapshot, log.findings = reading.lines, reading.snapshot, reading.findings
        return log

    def scan(self, run: str, *, accept: Callable[[Snapshot], bool] | None = None) -> Reading:
        return _read.scan(self.connections, check_id(run), accept)

    def written(self, run: str, segment: int, offset: int, seq: int) -> bytes | None:  # noqa: ARG002 (a number is enough)
        query = "select seq, data from refold.line where run = %s and seq >= %s order by seq"
        found = self._rows(query, check_id(run), seq) if segment == 1 else []
        return b"\n" + b"".join(data for number, data in found if number > seq) if found else None

    def files(self, run: str) -> Rows:
        return Rows(self.connections, check_id(run))

    def due(self, agents: Collection[str], limit: int) -> list[str]:
        return due(self.connections, agents, limit)

    def names(self) -> list[str]:
        return [row[0] for row in self._rows("select run from refold.run")]

    def runs(self) -> list[str]:
        return [row[0] for row in self._rows("select run from refold.run order by began desc, run desc")]

    def parents(self) -> dict[str, str]:
        return dict(self._rows("select run, parent from refold.family"))

    def prune(self, ended: Mapping[str, dict[str, str]]) -> Iterator[tuple[str, LogError | None]]:
        return _prune.prune(self.connections, ended, self.holder)

    def forget(self, before: datetime, *, dry: bool = False) -> list[str]:
        return _prune.forget(self.connections, before, dry=dry)

    def statuses(self, among: Iterable[str] | None = None) -> Iterator[tuple[str, bytes | None, bool]]:
        """Read a column, which is as new as the log."""
        query = "select run, status, expires > clock_timestamp() from refold.run"
        if among is None:
            yield from self._rows(query)
        else:
            names = list(among)
            rows = self._rows(f"{query} where run = any(%s)", list(filter(is_id, names)))
            found = {row[0]: row for row in rows}
            yield from (found.get(name, (name, None, False)) for name in names)

    def holder(self, run: str) -> Holder | None:
        query = "select owner, since from refold.run where run = %s and expires > clock_timestamp()"
        found = self._rows(query, check_id(run))
        return _named(*found[0]) if found else None

    def bell(self) -> Rings:
        return Rings(self.connections)

    def notes(self) -> set[str]:
        return {row[0] for row in self._rows("select name from refold.note")}

    def note(self, name: str) -> None:
        self._rows("insert into refold.note values (%s) on conflict do nothing", check_id(name))

    def unnote(self, names: Collection[str]) -> None:
        if known := list(filter(is_id, names)):
            self._rows("delete from refold.note where name = any(%s)", known)

    def enter(self) -> Presence:
        """Be seen by nobody, and see nobody leave: `due` gives the runs whose lease ran out."""
        return Presence(self.disk, None)

    def post(self, run: str, name: str, request: bytes) -> bool:
        check_id(run)
        _inbox.check(run, name, request)
        values = {"run": run, "name": name, "data": request}
        won, exists, same = self.connections.rows(_POST, values)[0]
        if not exists:
            raise _prune.missing(self.connections, run)
        return bool(won or same)  # the same bytes: posted before, and the connection was lost

    def inbox(self, run: str) -> Unread:
        self.files(run)
        found = self._rows("select name from refold.inbox where run = %s order by name", run)
        return Unread([name for (name,) in found], [])

    def request(self, run: str, name: str) -> bytes | str | None:
        check_id(run)
        if not _inbox.is_name(name):
            return "no request has such a name"
        found = self._rows("select data from refold.inbox where run = %s and name = %s", run, name)
        return found[0][0] if found else None

    def now(self) -> datetime:
        """Give the server's time, as far as it is known here; setting this machine's clock changes nothing of it."""
        return self.connections.now()

    def _log(self, life: int, lease: Lease, end: Line | End) -> Row:
        log = Row(life, lease, end, self.connections, self._leases, self.disk)
        if not self.connections.is_joined:  # a row that is not committed yet would look lost
            self._leases.hold(lease)
        return log

    def _owner(self) -> str:
        host, pid = self.host()
        return f"{host}:{pid}:{self.disk.random(8)}"

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self.connections.rows(query, values)


def _named(owner: str, since: datetime) -> Holder:
    host, pid, _ = owner.rsplit(":", 2)
    return Holder(int(pid), host, since)


@functools.cache
def at(url: str) -> Postgres:
    """Give the store of a URL: one for a process, so that its connections are few and its leases renewed together."""
    return Postgres(url)
