"""The doorbell and the presence of a database: hints, so that a worker need not ask for what is due all the time.

A ring is a notification of the server's. Where a pooler stands between, nobody can listen. Nobody is seen alive or dead
in a database; leases run out instead.
"""

import contextlib
import time
from typing import Final

import psycopg

from eventlog._bell import Bell
from eventlog._names import is_id
from eventlog._presence import Presence
from eventlog.errors import LogError
from eventlog.postgres._connections import Connections
from eventlog.postgres._place import Connection

_AGAIN: Final = 1.0
"""Seconds between two tries to listen."""


class Rings(Bell):
    """The doorbell of a database."""

    def __init__(self, connections: Connections) -> None:
        """Listen from the first time on that somebody asks what was heard."""
        self._connections = connections
        self._connection: Connection | None = None
        self._tried = -_AGAIN

    def ring(self, run: str) -> None:
        """Notify every process that listens."""
        with contextlib.suppress(LogError):
            self._connections.rows("select pg_notify('refold', %s)", (run,))

    def heard(self) -> list[str]:
        """Give what was notified since the last time; through a pooler, nothing."""
        found: list[str] = []
        try:
            if self._listens():
                assert self._connection is not None
                found = [notified.payload for notified in self._connection.notifies(timeout=0)]
        except (psycopg.Error, LogError):
            self.close()
        return [run for run in dict.fromkeys(found) if is_id(run)]

    def close(self) -> None:
        """Listen no more."""
        if self._connection is not None:
            self._connection.close()

    def __del__(self) -> None:
        """A bell is dropped, not closed."""
        with contextlib.suppress(Exception):
            self.close()

    def _listens(self) -> bool:
        """Whether notifications are heard; a connection that was lost is made anew now and then."""
        if self._connection is not None and not self._connection.closed:
            return True
        if self._connections.pooled or time.monotonic() - self._tried < _AGAIN:
            return False
        self._tried = time.monotonic()
        with contextlib.suppress(psycopg.Error, LogError):
            self._connection = self._connections.fresh()
            if not self._connections.pooled:
                self._connection.execute("listen refold")
                return True
            self.close()
        return False


class Carriers(Presence):
    """Who carries runs of a database: nobody knows, but `due` gives the runs whose lease ran out."""

    def __init__(self) -> None:
        """Be seen by nobody."""

    def departed(self) -> bool:
        """Say no."""
        return False

    def leave(self, *_: object) -> None:
        """Do nothing: nobody was seen."""

    __exit__ = leave

    def close_copies(self) -> None:
        """Do nothing: there is no file."""
