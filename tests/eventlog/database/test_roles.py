"""Roles of a database of runs: with the rights that the guide grants each does its work, and no more."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import eventlog
from tests.docs import documents
from tests.eventlog.making import AT, OPENING, event
from tests.support.postgres import PASSWORD, Cluster
from tests.support.postgres_server import binaries

pytestmark = pytest.mark.full
(GRANTS,) = documents.section("eventlog/README.md", "Roles and backups of a database").blocks("sql")


@pytest.fixture
def roles(postgres: Cluster) -> Iterator[dict[str, str]]:
    """The URL of one database for each role."""
    name = postgres.database()
    names = ("app", "looker")
    for role in names:
        postgres.execute(f"create role {role} login password '{PASSWORD}'")
    postgres.execute(GRANTS, database=name)
    yield {role: postgres.url(name).replace("refold:", f"{role}:", 1) for role in names}
    postgres.drop(name)
    for role in names:
        postgres.execute(f"drop role {role}")


def used(runs: eventlog.Store, run: str) -> None:
    """All that a program does with a store."""
    with runs.create(run, at=AT, events=[OPENING]) as log:
        log.append(AT, [event(1)])
        log.compact(b"{}", 1)
    runs.post(run, "stop", b"{}")
    runs.note("told")
    runs.unnote(["told"])


def test_the_role_of_a_program_does_all_that_a_store_offers_but_make_tables(roles: dict[str, str]) -> None:
    """A web server need not own the tables, nor be able to change them."""
    runs = eventlog.store(roles["app"])
    used(runs, "r")
    assert dict(runs.prune({"r": {}})) == {"r": None}
    with pytest.raises(psycopg.errors.InsufficientPrivilege), psycopg.connect(roles["app"]) as connection:
        connection.execute("alter table refold.run add column mine int")


def test_the_role_of_a_reader_reads_and_dumps_everything_and_writes_nothing(
    roles: dict[str, str], tmp_path: Path
) -> None:
    """Somebody on call may look, and a backup be made, without the right to answer in anybody's name."""
    runs, reader = eventlog.store(roles["app"]), eventlog.store(roles["looker"])
    used(runs, "r")
    assert (reader.names(), len(reader.read("r").lines), reader.verify("r").seq) == (["r"], 3, 2)
    reader.copy("r", tmp_path)
    dump = [str(binaries() / "pg_dump"), "--schema=refold", "--data-only", roles["looker"]]
    assert b"COPY refold.line" in subprocess.run(dump, check=True, capture_output=True).stdout
    writes = (lambda: reader.open("r"), lambda: reader.post("r", "x", b"{}"), lambda: used(reader, "other"))
    for write in (*writes, lambda: dict(reader.prune({"r": {}}))):
        with pytest.raises(eventlog.DiskFailed, match="permission denied"):
            write()
