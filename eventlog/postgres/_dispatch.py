"""What a database tells workers: which runs somebody must carry on, and the hints that save them asking all the time.

A run is due when its time has come, or its lease ran out. Whoever asks is given runs that nobody else is given for a
while, because the time in their rows is put off: so workers that ask at the same moment do not meet at each run, and a
run whose asker dies is given again. A run that is opened has no such time. `now()` is the time of the statement; a
clock that may move within it would have all waiting rows read.

A ring of the doorbell is a notification of the server's. Where a pooler stands between, nobody can listen. Nobody is
seen alive or dead in a database; leases run out instead.
"""

import contextlib
import time
from collections.abc import Collection
from datetime import timedelta
from typing import Final

import psycopg

from eventlog._bell import Bell
from eventlog._in_child import not_for_children
from eventlog._names import check_id, is_id
from eventlog.errors import LogError
from eventlog.postgres._connections import LEFT, Connections, boot
from eventlog.postgres._place import Connection

_AGAIN: Final = 1.0
"""Seconds between two tries to listen."""
PUT_OFF: Final = timedelta(seconds=30)
"""How long a run is given to nobody else."""
_DUE: Final = """
with due as (
  select found.run from unnest(%(agents)s::text[]) as a (name) cross join lateral (
    select run from refold.run where agent = a.name and wake <= now() and expires < now()
    order by wake limit %(limit)s for update skip locked) as found),
lost as (
  select run from refold.run where owner is not null and expires < now() and not closed
    and (wake is null or wake <= now()) and (agent is null or agent = any(%(agents)s))
  limit %(limit)s for update skip locked)
update refold.run r set wake = now() + %(put_off)s
from (select run from lost union select run from due limit %(limit)s) as found where r.run = found.run
returning r.run, clock_timestamp()"""


def due(connections: Connections, agents: Collection[str], limit: int) -> list[str]:
    """Give up to `limit` runs of these agents, and of those that died before they named one."""
    values = {"agents": list(agents), "limit": limit, "put_off": PUT_OFF}
    sent, found = boot(), connections.rows(_DUE, values) if limit > 0 else []
    for _, now in found[:1]:
        connections.heard(now, sent)  # whoever was given a run compares its time with this one
    return [run for run, _ in found]


class Rings(Bell):
    """The doorbell of a database."""

    def __init__(self, connections: Connections) -> None:
        """Listen from the first time on that somebody asks what was heard."""
        self._connections = connections
        self._connection: Connection | None = None
        self._tried = -_AGAIN
        not_for_children(self)

    def ring(self, run: str) -> None:
        with contextlib.suppress(LogError):
            self._connections.rows("select pg_notify('refold', %s)", (check_id(run),))

    def heard(self) -> list[str]:
        """Give what was notified since the last time; through a pooler, nothing."""
        found: list[str] = []
        try:
            if (connection := self._listening()) is not None:
                found = [notified.payload for notified in connection.notifies(timeout=0)]
        except (psycopg.Error, LogError):
            self.close()
        return [run for run in dict.fromkeys(found) if is_id(run)]

    def close(self) -> None:
        """Listen no more."""
        if self._connection is not None:
            self._connection.close()

    def close_copies(self) -> None:
        """Forget the connection: in a forked child, which must not close what its parent listens with."""
        LEFT.extend([self._connection] if self._connection is not None else [])
        self._connection = None

    def __del__(self) -> None:
        """A bell is dropped, not closed."""
        with contextlib.suppress(Exception):
            self.close()

    def _listening(self) -> "Connection | None":
        """The connection that hears notifications; one that was lost is made anew now and then."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self._connections.pooled or time.monotonic() - self._tried < _AGAIN:
            return None
        self._tried = time.monotonic()
        with contextlib.suppress(psycopg.Error, LogError):
            self._connection = self._connections.fresh()
            if not self._connections.pooled:
                self._connection.execute("listen refold")
                return self._connection
            self.close()
        return None
