"""The connections of one process to one database, and what becomes of a statement whose connection was lost.

Each statement is a transaction, so an error that the server reports has changed nothing. It is raised, unless it may be
otherwise in a moment: then the statement is tried again. A connection that breaks leaves it unknown whether the
statement was done. So everything that is run here can be run again, and finds out by itself that it was done before:
the row of a run names the sum of its last line, and who holds it.

A connection through a pooler (as pgbouncer) is another server process for each statement. It shows by its process id,
which is not the server's; then nothing is prepared, set or listened to. A forked child must not even close a connection
that it inherited: it forgets them.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import psycopg
from psycopg.pq import TransactionStatus

from eventlog._in_child import not_for_children
from eventlog._line import Storage
from eventlog.errors import DiskFailed, OtherSchema
from eventlog.postgres._place import Borrowed
from eventlog.postgres._schema import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from eventlog.postgres._place import Connection, Place

T = TypeVar("T")
_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_KEPT: Final = 16
"""Connections that are kept when nobody uses them."""
_PATIENCE: Final = 2.0
"""Seconds in which something is begun again on a fresh connection, unless its caller has longer."""
_LONG: Final = 1.0
_PAUSE: Final = 0.02
_LONGEST: Final = 0.2
_AGAIN: Final = {"40001", "40P01", "25006", "55P03", "57014"}
"""What may be otherwise in a moment: two transactions met, nothing can be written just now, or it took too long."""
LEFT: Final[list[Connection]] = []
"""What a forked child inherited, and must neither use nor close."""
_HELLO: Final = """
select pg_backend_pid(), clock_timestamp(), (select version from refold.version), current_setting('server_version'),
  current_setting('default_transaction_isolation') = 'read committed'
    and current_setting('synchronous_commit') in ('on', 'remote_apply'),
  array(select name from unnest(array['fsync', 'full_page_writes', 'synchronous_commit']) as t (name)
    where current_setting(name) = 'off')"""


def boot() -> float:
    """Seconds since this machine was started; where the system can say, those in which it was suspended are counted."""
    return time.clock_gettime(_BOOT)


class _Joined(threading.local):
    """The transaction that a thread is in: its connection, and what undoes in memory what is rolled back there."""

    connection: Connection | None = None
    undo: list[Callable[[], None]]


class Connections:
    """The connections of this process."""

    def __init__(self, place: Place, seconds: float) -> None:
        self.place = place
        self.pooled = False
        self.storage = Storage("postgresql", "killed process", "it was not asked yet")
        hears = ("silence", "connect_timeout", "keepalives_idle", "keepalives_interval")  # the last are for listening
        self._options = {**dict.fromkeys(hears, max(2, int(seconds / 3))), "tcp_user_timeout": int(seconds * 500)}
        self._met = False
        self._deaf = 0.0
        self._heard = datetime.min.replace(tzinfo=UTC)
        self._idle: list[Connection] = []
        self._mutex = threading.Lock()
        self._joined = _Joined()
        weakref.finalize(self, _close_all, self._idle)
        not_for_children(self)

    def fresh(self) -> Connection:
        """Open a connection of the caller's own. Raises `psycopg.Error`, `OtherSchema`."""
        connection = self.place.connect(**self._options, prepare_threshold=None)
        try:
            self._greet(connection)
        except BaseException:  # an interrupt too leaves no connection open
            connection.close()
            raise
        return connection

    def run(self, act: Callable[[Connection], T], *, patient: Callable[[], bool] = lambda: False) -> T:
        """Do one thing, which can be done again: on a fresh connection, when the first is lost meanwhile.

        Args:
            act: Raises what psycopg raises.
            patient: Whether to try for longer than a moment.

        Raises:
            LogError: The server refused it: nothing was changed. Or it can't be reached.
        """
        if self._joined.connection is not None:
            with self.place.errors():
                return act(self._joined.connection)
        return self._tried(act, patient)

    def _tried(self, act: Callable[[Connection], T], patient: Callable[[], bool]) -> T:
        began, pause = time.monotonic(), _PAUSE
        while True:
            connection, tried = None, time.monotonic()
            if tried < self._deaf and not patient():  # each of many would wait as long, one after the other
                raise DiskFailed(str(self.place), "nobody answered there a moment ago")
            try:
                connection = self._taken()
                return act(connection)
            except psycopg.Error as error:
                if connection is None and time.monotonic() - tried > _LONG:
                    self._deaf = time.monotonic() + _PATIENCE
                lost = connection is None or connection.closed or error.sqlstate in _AGAIN
                if connection is not None:
                    connection.close()  # what its role or database had set for it may be otherwise for the next
                if not lost or not (patient() or time.monotonic() - began < _PATIENCE):
                    raise self.place.refused(error) from error
                self.close()  # a server that ended one connection has often ended all
            finally:
                if connection is not None:
                    self._give_back(connection)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    def rows(
        self, query: str, values: Mapping[str, Any] | Sequence[Any] = (), *, patient: Callable[[], bool] = lambda: False
    ) -> list[tuple[Any, ...]]:
        """Run one statement, as `run` does, and give its rows."""

        def act(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description is not None else []

        return self.run(act, patient=patient)

    @contextlib.contextmanager
    def joined(self, connection: Connection) -> Iterator[None]:
        """Do all that this thread does meanwhile in one transaction, on this connection."""
        if self._joined.connection is not None:
            raise DiskFailed(str(self.place), "this thread is in a transaction already")
        self._joined.connection, self._joined.undo = cast("Connection", Borrowed(connection)), []
        try:
            yield
        except BaseException:  # whatever ends the block ends the transaction, and what it made must not be believed
            for undo in reversed(self._joined.undo):
                undo()
            raise
        finally:
            self._joined.connection = None

    @property
    def is_joined(self) -> bool:
        """Whether this thread is in a transaction."""
        return self._joined.connection is not None

    def undo(self, change: Callable[[], None]) -> None:
        """Note what to change back in memory if the transaction that this thread is in comes to nothing."""
        if self._joined.connection is not None:
            self._joined.undo.append(change)

    def heard(self, now: datetime, sent: float) -> None:
        """Note the server's time, which was asked for at a moment of `boot`.

        An answer that took long says little: when this process stood still meanwhile, its half is no way of the answer.
        """
        took = boot() - sent
        if took < _LONG or not self._met:
            self._heard = now - timedelta(seconds=sent + took / 2)

    def now(self) -> datetime:
        """Give the server's time: what was heard last, and what has passed since on a clock that nobody sets."""
        if not self._met:
            self._tried(lambda _: None, lambda: False)
        return self._heard + timedelta(seconds=boot())

    def close(self) -> None:
        """Close the connections that nobody uses; others are made when they are needed."""
        with self._mutex:
            idle, self._idle[:] = self._idle[:], []
        _close_all(idle)

    def close_copies(self) -> None:
        """Forget every connection: in a forked child, which must not close what its parent uses."""
        LEFT.extend(self._idle)
        self._idle.clear()
        self._mutex = threading.Lock()
        self._joined = _Joined()

    def _taken(self) -> Connection:
        with self._mutex:
            if self._idle:
                return self._idle.pop()
        return self.fresh()

    def _give_back(self, connection: Connection) -> None:
        is_usable = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        with self._mutex:
            if is_usable and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def _greet(self, connection: Connection) -> None:
        sent = boot()
        row = connection.execute(_HELLO).fetchone()
        assert row is not None
        pid, now, version, server, is_set, off = row
        if version != VERSION:
            raise OtherSchema(str(self.place), f"has tables of another version ({version}; this one: {VERSION})")
        self.heard(now, sent)
        self.pooled = pid != connection.info.backend_pid
        if not self.pooled:
            connection.prepare_threshold = 0
            if not is_set:
                connection.execute("set synchronous_commit = on")
                connection.execute("set default_transaction_isolation = 'read committed'")
                off = [name for name in off if name != "synchronous_commit"]
        why = ", ".join(f"{name} is off" for name in off)
        self.storage = Storage(f"postgresql {server.split()[0]}", "killed process" if off else "power loss", why)
        self._met = True


def _close_all(idle: list[Connection]) -> None:
    for connection in idle:
        connection.close()
