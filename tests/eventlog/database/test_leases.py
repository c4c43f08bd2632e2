"""The thread that renews the leases of a process: what holds it up, and what it must not renew."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

import eventlog
from eventlog.postgres import Postgres
from eventlog.postgres._connections import Connections
from eventlog.postgres._log import Row
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage
from tests.support.postgres import PASSWORD, Cluster

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


@pytest.mark.fault("lease lost")
def test_a_process_that_stands_still_while_it_forks_holds_its_run_up_no_longer_than_a_lease(
    database: str, database_runs: Postgres
) -> None:
    """The run's row is locked by its transaction: nobody could open it, or leave a request there."""
    runs = Postgres(database, lease=3.0)
    parent = runs.create("r", at=AT, events=[OPENING])

    def stands_still() -> None:
        parent.append(AT, [event(1)])
        pid = runs.connections.rows("select pg_backend_pid()")[0][0]
        stage.within(60, lambda: not database_runs.connections.rows("select from pg_stat_get_activity(%s)", (pid,)))

    with pytest.raises(eventlog.LogError):
        runs.fork(list(parent.lines), "f", keep=1, at=AT, events=[event(5)], ready=stands_still)
    assert database_runs.post("r", "stop", b"{}")
    assert database_runs.names() == ["r"]
    assert parent.append(AT, [event(2)]).seq == 2
    parent.close()


@pytest.mark.fault("lease lost")
def test_leases_are_renewed_where_a_server_allows_no_more_connections(database: str, postgres: Cluster) -> None:
    """Those that nobody uses are given up for the one that renews, or a run that saves nothing for a while is lost."""
    name = database.rpartition("/")[2]
    postgres.execute("create role few login password 'few' connection limit 2")
    try:
        postgres.execute("grant all on schema refold to few", database=name)
        postgres.execute("grant all on all tables in schema refold to few", database=name)
        runs = Postgres(database.replace(f"refold:{PASSWORD}", "few:few"), lease=3.0)
        for connection in [runs.connections.fresh() for _ in range(2)]:
            runs.connections._give_back(connection)  # noqa: SLF001 (as two threads would that used them)
        with runs.create("r", at=AT, events=[OPENING]) as log:
            assert isinstance(log, Row)
            until = log.lease.until
            stage.within(120, lambda: log.lease.until > until)
        runs.connections.close()
    finally:
        postgres.execute("drop owned by few", database=name)
        postgres.execute("drop role few")
