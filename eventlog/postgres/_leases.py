"""Leases: until when this process may begin effects for the runs that it holds, and the thread that renews them.

A lease ends here before it ends at the server: it is counted from before the request was sent, and a tenth is taken
off. The clock counts while the machine is suspended, where the system has such a clock. All leases of a process are
renewed by one statement, each third of their length, on a connection that nothing else uses, and a row that another
transaction has locked is passed over until the next look: a save that hangs holds no renewal up, nor does a caller's
transaction. A renewal that comes after its run was given back renews nothing, or nobody would hold the run and nobody
could. Between renewals the thread asks which of the runs have mail.
"""

import contextlib
import threading
import time
from datetime import timedelta
from typing import Final

from eventlog._in_child import not_for_children
from eventlog.postgres._connections import Connections, boot
from eventlog.postgres._place import Connection

_TICK: Final = 0.5
_IDLE: Final = 5.0
"""Seconds without a lease after which the thread ends."""
_RENEW: Final = """
with held as (select * from unnest(%(runs)s::text[], %(tokens)s::bigint[]) as h (run, token)),
free as (select r.run from refold.run r join held using (run, token) where r.owner is not null
  for update of r skip locked),
renewed as (update refold.run r set expires = greatest(expires, clock_timestamp() + %(length)s)
  from free where r.run = free.run returning r.run, r.mail)
select held.run, held.token, renewed.mail, clock_timestamp()
from held join refold.run r using (run, token) left join renewed on renewed.run = held.run where r.owner is not null"""
_MAIL: Final = "select run, token, mail, clock_timestamp() from refold.run where run = any(%s) and mail > 0"


class Lease:
    """One holding of a run. `mail` is how many requests lie in its inbox, as far as is known.

    `was_lost` tells that a lease before it ran out, and that no line says so.
    """

    def __init__(self, run: str, token: int, until: float, mail: int = 0, *, was_lost: bool = False) -> None:
        self.run, self.token, self.until, self.mail, self.was_lost = run, token, until, mail, was_lost
        self.lost = False

    def holds(self, seconds: float = 0.0) -> bool:
        """Whether it lasts for so many seconds more."""
        return not self.lost and boot() + seconds < self.until


class Leases:
    """The leases of this process."""

    def __init__(self, connections: Connections, seconds: float) -> None:
        self.seconds = seconds
        self.length = timedelta(seconds=seconds)
        self._connections = connections
        self._held: dict[tuple[str, int], Lease] = {}
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        not_for_children(self)

    def end(self, sent: float) -> float:
        """When a lease ends that was asked for at a moment of `boot`."""
        return sent + 0.9 * self.seconds

    def hold(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        with self._mutex:
            if self._thread is None:
                thread = threading.Thread(target=self._renew, name="refold leases", daemon=True)
                thread.start()  # a machine may have no thread left: then nothing is held
                self._thread = thread
            self._held[lease.run, lease.token] = lease

    def drop(self, lease: Lease) -> None:
        """Renew a lease no more."""
        with self._mutex:
            self._held.pop((lease.run, lease.token), None)

    def close_copies(self) -> None:
        """Hold nothing: in a forked child, where the thread is not."""
        self._mutex, self._held, self._thread = threading.Lock(), {}, None

    def _renew(self) -> None:
        connection: Connection | None = None
        renewed, busy = boot(), time.monotonic()
        tick = min(_TICK, self.seconds / 6)
        try:
            while True:
                time.sleep(tick)
                with self._mutex:
                    held = list(self._held.values())
                    if held:
                        busy = time.monotonic()
                    elif time.monotonic() - busy > _IDLE:
                        self._thread = None
                        return
                if not held:
                    continue
                try:
                    if connection is None or connection.closed:
                        connection = self._connections.fresh()
                    if (sent := boot()) - renewed > self.seconds / 3 - tick:
                        renewed = sent if self._extend(connection, held) else renewed
                    else:
                        self._look(connection, held)
                except Exception:  # noqa: BLE001 (whatever it is: without this thread every lease would run out)
                    if connection is not None:
                        connection.close()
                    self._connections.close()  # the server may allow no more of them
        finally:
            if connection is not None:
                connection.close()

    def _extend(self, connection: Connection, held: list[Lease]) -> bool:
        """Renew what nobody has locked; give whether that is all of it."""
        sent = boot()
        given = {
            "length": self.length,
            "runs": [lease.run for lease in held],
            "tokens": [lease.token for lease in held],
        }
        found = {(run, token): (mail, now) for run, token, mail, now in connection.execute(_RENEW, given)}
        for lease in held:
            mail, now = found.get((lease.run, lease.token), (None, None))
            if now is None:
                lease.lost = True
            elif mail is not None:
                lease.mail, lease.until = mail, max(lease.until, self.end(sent))
                self._connections.heard(now, sent)
        return all(mail is not None for mail, _ in found.values())

    def _look(self, connection: Connection, held: list[Lease]) -> None:
        mine = {(lease.run, lease.token): lease for lease in held}
        for run, token, mail, _ in connection.execute(_MAIL, ([lease.run for lease in held],)):
            with contextlib.suppress(KeyError):
                mine[run, token].mail = mail
