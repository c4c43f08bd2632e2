"""The thread that renews the leases of a process: what holds it up, and what it must not renew."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from eventlog.postgres import Postgres
from eventlog.postgres._connections import Connections
from eventlog.postgres._log import Row
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage

pytestmark = pytest.mark.full


@pytest.mark.fault("lease lost")
def test_a_row_that_another_transaction_has_locked_keeps_no_other_run_from_its_renewal(
    database: str, database_runs: Postgres
) -> None:
    """A caller's transaction may be open for longer than a lease; the locked run is renewed once it is over."""
    logs = [database_runs.create(run, at=AT, events=[OPENING]) for run in ("a", "b")]
    leases = [log.lease for log in logs if isinstance(log, Row)]
    before = [lease.until for lease in leases]
    with database_runs.connections.fresh() as ours, psycopg.connect(database) as connection:
        ours.execute("set lock_timeout = '60s'")
        with database_runs.within(connection):
            logs[0].append(AT, [event(1)])
        assert not database_runs._leases._extend(ours, leases)  # noqa: SLF001 (as its thread would)
        assert [lease.until > old for lease, old in zip(leases, before, strict=True)] == [False, True]
        assert not any(lease.lost for lease in leases)
        connection.commit()
        assert database_runs._leases._extend(ours, leases)  # noqa: SLF001
        assert leases[0].until > before[0]
    for log in logs:
        log.close()


@pytest.mark.fault("a renewal comes after the run was given back")
def test_a_renewal_that_comes_too_late_holds_nothing(database_runs: Postgres) -> None:
    """The thread asks for all leases at once, and one of them may be given back meanwhile."""
    log = database_runs.create("r", at=AT, events=[OPENING])
    assert isinstance(log, Row)
    log.close()
    with database_runs.connections.fresh() as connection:
        database_runs._leases._extend(connection, [log.lease])  # noqa: SLF001 (as its thread would)
    assert log.lease.lost
    database_runs.open("r").close()


@pytest.mark.fault("a renewal fails for whatever reason")
@pytest.mark.parametrize(
    "error", [psycopg.OperationalError("gone"), OSError(24, "too many open files"), MemoryError(), ValueError("odd")]
)
def test_a_renewal_that_failed_is_made_again(database: str, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The thread that renews goes on, or every run of the process would be lost."""
    runs, fresh, errors = Postgres(database, lease=3.0), Connections.fresh, [error]

    def unwell(connections: Connections) -> Any:
        if errors and threading.current_thread().name == "refold leases":
            raise errors.pop()
        return fresh(connections)

    monkeypatch.setattr(Connections, "fresh", unwell)
    with runs.create("r", at=AT, events=[OPENING]) as log:
        assert isinstance(log, Row)
        until = log.lease.until
        stage.within(120, lambda: log.lease.until > until)
    assert not errors
