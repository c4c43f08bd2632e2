"""The tables: made once, by any number of machines, and refused where another version made them."""

from __future__ import annotations

import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import eventlog
from eventlog.postgres import Postgres, _schema, migrate
from tests.eventlog.making import AT, OPENING, event
from tests.support import ROOT
from tests.support.postgres import PASSWORD, Cluster


@pytest.fixture
def bare(postgres: Cluster) -> Iterator[str]:
    """The URL of a database without tables."""
    name = postgres.database(tables=False)
    yield postgres.url(name)
    postgres.drop(name)


@pytest.mark.full
def test_the_tables_are_made_once_whoever_else_makes_them(bare: str) -> None:
    """Machines of one deployment migrate at the same time."""
    before: list[int] = []
    threads = [threading.Thread(target=lambda: before.append(migrate(bare)[0])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(before) == [0, *[_schema.VERSION] * 3]
    assert Postgres(bare).names() == []


@pytest.mark.full
def test_a_role_that_may_make_no_schema_migrates_one_that_was_made_for_it(bare: str, postgres: Cluster) -> None:
    """And again, when there is nothing to do."""
    postgres.execute("create role poor login password 'poor'")
    try:
        postgres.execute("create schema refold authorization poor", database=bare.rpartition("/")[2])
        url = bare.replace(f"refold:{PASSWORD}", "poor:poor")
        assert [migrate(url), migrate(url)] == [(0, _schema.VERSION), (_schema.VERSION, _schema.VERSION)]
    finally:
        postgres.execute("drop owned by poor", database=bare.rpartition("/")[2])
        postgres.execute("drop role poor")


@pytest.mark.full
@pytest.mark.fault("a database that another version has migrated")
def test_tables_of_another_version_are_refused_and_stay(bare: str) -> None:
    """Older ones and none are migrated by hand; later ones by nobody: a schema only goes forward."""
    with pytest.raises(eventlog.OtherSchema, match="lacks the tables") as none:
        Postgres(bare).names()
    assert "refold migrate" in none.value.hint
    migrate(bare)
    runs = Postgres(bare)
    runs.create("r", at=AT, events=[OPENING]).close()
    runs.connections.rows("update refold.version set version = version + 1")
    for act in (lambda: migrate(bare), lambda: Postgres(bare).read("r"), lambda: Postgres(bare).open("r")):
        with pytest.raises(eventlog.OtherSchema, match="version"):
            act()
    assert runs.connections.rows("select version from refold.version") == [(_schema.VERSION + 1,)]
    runs.connections.close()


@pytest.mark.full
def test_a_replica_is_read_and_not_written(database: str, postgres: Cluster) -> None:
    """It says that it is read-only, and nothing there is damaged or held."""
    Postgres(database).create("r", at=AT, events=[OPENING]).close()
    postgres.execute(f"alter database {database.rpartition('/')[2]} set default_transaction_read_only = on")
    replica = Postgres(database)
    assert replica.verify("r").ok
    assert [name for name, _, held in replica.statuses() if not held] == replica.runs() == ["r"]
    for act in (
        lambda: replica.open("r"),
        lambda: replica.create("s", at=AT, events=[]),
        lambda: replica.post("r", "a", b""),
    ):
        with pytest.raises(eventlog.ReadOnly, match="accepts no writes"):
            act()
    replica.connections.close()


@pytest.mark.full
@pytest.mark.fault("a database password in a message")
def test_the_password_is_said_nowhere(database: str, postgres: Cluster) -> None:
    """Not by a store, an error, a traceback, a log line or a table."""
    wrong = database.replace(PASSWORD, f"{PASSWORD}-wrong")
    said = []
    for url in (database, wrong, f"{database}?nonsense=1", database.replace("refold:", "nobody:"), f"{database}x"):
        try:
            runs = eventlog.store(url)
            said += [str(runs), repr(runs)]
            with runs.create("r", at=AT, events=[OPENING]) as log:
                log.append(AT, [event(1)])
            runs.open("missing")
        except eventlog.LogError as error:
            said += [str(error), repr(error), error.hint, "".join(traceback.format_exception(error))]
    assert len(said) > 12
    with_tables = Postgres(database).connections
    for table in ("run", "line", "snapshot", "inbox", "pruned", "version"):
        said += [str(with_tables.rows(f"select t::text from refold.{table} t"))]  # noqa: S608 (ours)
    assert "refold" in (postgres.folder / "log").read_text()
    said.append((postgres.folder / "log").read_text())
    for words in said:
        assert PASSWORD not in words
    with_tables.close()


def test_without_psycopg_a_url_is_a_sentence(tmp_path: Path) -> None:
    """The core needs no database; whoever names one is told what to install."""
    program = """
import sys
sys.modules["psycopg"] = None
import eventlog
try:
    eventlog.store("postgresql://me:secret@host/runs")
except eventlog.NotARunsDirectory as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip install 'refold[postgres]'" in found.stdout
    assert "secret" not in found.stdout
