"""A server that refuses for a while what it is asked: whoever holds a run waits a little, and all go on afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

import eventlog
from eventlog.postgres import Postgres
from tests.eventlog.database.conftest import began
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage

if TYPE_CHECKING:
    from tests.support.postgres import Cluster

pytestmark = pytest.mark.full
REFUSES = "alter database {} set default_transaction_read_only = {}"
ENDS = """select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database()
    and pid <> pg_backend_pid()"""


def refusing(postgres: Cluster, database: str, setting: str) -> None:
    """Have whoever connects from now on write nothing, or write again; nobody stays connected."""
    name = database.rpartition("/")[2]
    postgres.execute(REFUSES.format(name, setting))
    if setting == "on":
        postgres.execute(ENDS, database=name)


@pytest.mark.fault("a server that refuses for a while")
def test_connections_made_while_nothing_could_be_written_are_not_kept(
    postgres: Cluster, database: str, database_runs: Postgres
) -> None:
    """What was set for a role or a database when a connection was made holds as long as that connection lives."""
    refusing(postgres, database, "on")
    for _ in range(2):
        with pytest.raises(eventlog.ReadOnly, match="accepts no writes"):
            database_runs.create("r", at=AT, events=[OPENING])
    assert database_runs.names() == []
    refusing(postgres, database, "off")
    database_runs.create("r", at=AT, events=[OPENING]).close()


@pytest.mark.fault("a server that refuses for a while")
@pytest.mark.parametrize("state", ["25006", "55P03", "57014"])
def test_a_save_that_is_refused_for_a_moment_is_made_again(
    postgres: Cluster, database: str, database_runs: Postgres, state: str
) -> None:
    """What it saves may be a reply that was paid for: only a lease's time is waited, as for a server that is away."""
    log = database_runs.create("r", at=AT, events=[OPENING])
    refuse(database_runs, state)
    thread, came = began(lambda: log.append(AT, [event(1)]))
    tried = "select last_value > 2 from refold.tried"
    stage.within(60, lambda: postgres.execute(tried, database=database.rpartition("/")[2]) == [(True,)])
    assert came == []
    postgres.execute("drop trigger refuses on refold.line", database=database.rpartition("/")[2])
    thread.join()
    log.append(AT, [event(2)])
    log.close()
    assert [bytes(line.events[0]) for line in database_runs.read("r").lines[2:]] == [event(1), event(2)]


def refuse(runs: Postgres, state: str) -> None:
    """Have the server refuse every line with this state, and count how often."""
    runs.connections.rows("create sequence refold.tried")
    body = f"begin perform nextval('refold.tried'); raise exception 'not now' using errcode = '{state}'; end"
    runs.connections.rows(f"create function refold.refuses() returns trigger language plpgsql as $$ {body} $$")
    runs.connections.rows(
        "create trigger refuses before insert on refold.line for each row execute function refold.refuses()"
    )


@pytest.mark.fault("a server that refuses for a while")
@pytest.mark.parametrize(("state", "why"), [("57014", "not now"), ("25006", "the server accepts no writes")])
def test_a_save_that_is_refused_for_good_ends_with_the_lease_that_it_began_with(
    database: str, state: str, why: str
) -> None:
    """Other statements renew the lease meanwhile, and nobody waits for ever."""
    runs = Postgres(database, lease=3.0)
    log = runs.create("r", at=AT, events=[OPENING])
    refuse(runs, state)
    with pytest.raises(eventlog.DiskFailed) as refused:
        log.append(AT, [event(1)])
    assert str(refused.value) == f"{runs} can't be used: {why}"
    runs.connections.rows("drop trigger refuses on refold.line")
    log.append(AT, [event(2)])
    log.close()
    assert runs.verify("r").ok
    runs.connections.close()


@pytest.mark.fault("a server that refuses for a while")
def test_a_save_that_waits_for_a_lock_longer_than_its_role_may_is_made_again(postgres: Cluster, database: str) -> None:
    """Somebody leaves a request in a long transaction of their own."""
    runs = Postgres(f"{database}?options=-cstatement_timeout%3D100", lease=600.0)
    log = runs.create("r", at=AT, events=[OPENING])
    with psycopg.connect(database) as connection:
        connection.execute("select from refold.run for update")
        thread, came = began(lambda: log.append(AT, [event(1)]))
        waits = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = %s"
        for _ in range(2):
            stage.within(60, lambda: postgres.execute(waits, connection.info.dbname) == [(1,)])
            stage.within(60, lambda: postgres.execute(waits, connection.info.dbname) == [(0,)])
        assert came == []
    thread.join()
    assert came
    log.close()
    runs.connections.close()
