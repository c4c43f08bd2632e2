"""What a server, a database, a role or a caller has set changes nothing of what rows mean."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest
from psycopg.rows import dict_row

import eventlog
from eventlog.postgres import Postgres, migrate
from tests.eventlog.making import AT, OPENING, event

if TYPE_CHECKING:
    from tests.support.postgres import Cluster

SETTINGS = ("timezone=Asia/Kolkata", "timezone=America/New_York", "datestyle=German", "client_encoding=SQL_ASCII")
URLS = (
    "me:sec@ret@127.0.0.1:1/db",
    "me:12/se@ret@127.0.0.1:1/db",
    "me:sec/ret@127.0.0.1:1/db",
    "me:s@127.0.0.1:sec/db",
)


@pytest.mark.full
@pytest.mark.fault("clock set back")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_log_is_the_same_whatever_the_session_has_set(database: str, setting: str) -> None:
    """A line after a step back of the clock has the time of the line before it, and a log's times are in UTC."""
    runs = Postgres(f"{database}?options={quote('-c ' + setting)}")
    runs.create("r", at=AT, events=[OPENING]).close()
    with runs.open("r") as log:
        assert log.append(AT - timedelta(hours=12), [event(1)]).at == AT
        with pytest.raises(eventlog.RunLocked) as held:
            runs.open("r")
    assert held.value.hint == eventlog.RunLocked.HERE
    assert held.value.since is not None
    assert held.value.since.utcoffset() == timedelta(0)
    assert runs.verify("r").ok
    runs.open("r").close()
    runs.connections.close()


@pytest.mark.full
def test_a_database_that_knows_no_encoding_keeps_runs(postgres: Cluster) -> None:
    """A server that was set up under the locale C makes such databases; they give text as bytes to who asks no more."""
    postgres.execute("create database plain encoding 'SQL_ASCII' template template0")
    migrate(postgres.url("plain"))
    runs = Postgres(postgres.url("plain"))
    runs.create("r", at=AT, events=[OPENING]).close()
    with runs.open("r"):
        assert runs.holder("r") is not None
    assert runs.verify("r").ok
    runs.connections.close()
    postgres.drop("plain")


@pytest.mark.full
@pytest.mark.parametrize("end", ["rollback", "commit"])
def test_a_run_is_made_within_a_transaction_of_the_callers(database: str, database_runs: Postgres, end: str) -> None:
    """It is there when the caller's rows are, or neither is; what the caller wants rows to be is the caller's."""
    with psycopg.connect(database, row_factory=dict_row, options="-c timezone=Asia/Kolkata") as connection:
        assert connection.execute("select 1 as n").fetchone() == {"n": 1}
        with database_runs.within(connection):
            with database_runs.create("r", at=AT, events=[OPENING]) as log:
                log.append(AT, [event(1)])
            with database_runs.open("r") as log:
                assert log.append(AT - timedelta(hours=1), [event(2)]).at == AT
            assert connection.execute("select 1 as n").fetchone() == {"n": 1}
        assert database_runs.names() == []
        getattr(connection, end)()
    assert database_runs.names() == (["r"] if end == "commit" else [])
    if end == "commit":
        assert database_runs.verify("r").ok
        assert database_runs.holder("r") is None


@pytest.mark.fault("a database password in a message")
@pytest.mark.parametrize("url", URLS)
def test_a_url_whose_password_was_not_escaped_is_quoted_nowhere(url: str) -> None:
    """Half of the password is taken for the host, the port or the database, which every message names."""
    with pytest.raises(eventlog.NotARunsDirectory, match="%40 for @") as refused:
        Postgres(f"postgresql://{url}")
    for part in ("sec", "ret", "12"):
        assert part not in str(refused.value)
    assert str(Postgres("postgresql://me:s%40e%2Fc@[::1]:1,h:2/a%40b")) == "postgresql://me@::1,h:1,2/a@b"


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan"), 1e12])
def test_a_lease_that_leaves_no_time_is_refused(lease: float) -> None:
    """Its holder could begin nothing, and nobody was told why."""
    with pytest.raises(eventlog.NotARunsDirectory, match="a lease of"):
        Postgres("postgresql://127.0.0.1:1/db", lease=lease)
