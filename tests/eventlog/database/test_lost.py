"""Connections and servers that go away under writers: every line stands once, and in order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator

import psycopg
import pytest

import eventlog
from eventlog.postgres import Postgres
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage
from tests.support.postgres import Cluster

pytestmark = pytest.mark.full
WRITERS = 4


@contextlib.contextmanager
def writing(runs: Postgres) -> Iterator[None]:
    """Have threads save numbered events meanwhile, each in a run of its own; then look at what stands there."""
    failed: list[BaseException] = []
    enough = threading.Event()

    def write(log: eventlog.Log) -> None:
        try:
            while not enough.is_set():
                log.append(AT, [event(log.seq, 500)])
        except BaseException as error:  # noqa: BLE001 (the test raises it)
            failed.append(error)

    logs = [runs.create(f"r{number}", at=AT, events=[OPENING]) for number in range(WRITERS)]
    threads = [threading.Thread(target=write, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    if failed:
        raise failed[0]
    for log in logs:
        log.close()
        lines = runs.read(log.run).lines
        assert [bytes(line.events[0]) for line in lines[2:]] == [event(n, 500) for n in range(1, log.seq)]
        assert {line.life for line in lines} == {1}
        assert runs.verify(log.run).ok


@pytest.mark.fault("a save whose connection was lost")
def test_no_line_is_lost_or_doubled_while_connections_are_ended(database: str, postgres: Cluster) -> None:
    """Whether a save was done is asked, and never guessed; other requests are made again."""
    runs = Postgres(database, lease=120.0)
    query = """select count(pg_terminate_backend(pid)) from (
        select pid from pg_stat_activity where datname = %s and random() < 0.5) chosen"""
    with writing(runs), psycopg.connect(postgres.url(), autocommit=True) as connection:
        ended = 0
        while ended < 100:
            row = connection.execute(query, (database.rpartition("/")[2],)).fetchone()
            ended += row[0] if row else 0
    runs.connections.close()


@pytest.mark.fault("a server that crashes under a save")
def test_a_server_that_crashes_and_comes_back_loses_no_acknowledged_line(power_safe_postgres: Cluster) -> None:
    """The writers wait for it as long as their leases last."""
    server = power_safe_postgres
    name = server.database()
    runs = Postgres(server.url(name), lease=120.0)
    with writing(runs):
        for _ in range(3):
            server.stop(signal.SIGQUIT)
            server.start()
    with pytest.raises(eventlog.RunExists):
        runs.create("r0", at=AT, events=[])
    runs.connections.close()
    server.drop(name)


def test_a_server_that_is_not_there_is_a_sentence(postgres: Cluster) -> None:
    """At once, where no lease is held."""
    runs = Postgres(postgres.url("nothing"))
    with pytest.raises(
        eventlog.DiskFailed, match=r'postgresql://refold@127.0.0.1:\d+/nothing .* "nothing" does not exist'
    ):
        runs.names()
    with pytest.raises(eventlog.DiskFailed, match="refused"):
        Postgres("postgresql://refold@127.0.0.1:1/nothing").open("r")


@contextlib.contextmanager
def silent(pid: int) -> Iterator[None]:
    """A connection that nobody answers any more, and nobody ends."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.fault("a connection that falls silent")
def test_whoever_comes_next_to_a_server_that_answered_nobody_does_not_wait_for_it_again() -> None:
    """A worker of a hundred runs would wait a hundred times, and leave after minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        runs = Postgres(f"postgresql://127.0.0.1:{server.getsockname()[1]}/nothing", lease=6.0)
        for _ in range(3):
            with pytest.raises(eventlog.DiskFailed, match=r"timeout|nobody answered"):
                runs.names()
        server.accept()[0].close()
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.fault("a connection that falls silent")
def test_a_save_that_nobody_answers_is_made_on_another_connection(database_runs: Postgres) -> None:
    """And once, though the server comes to what it was sent first after all."""
    log = database_runs.create("r", at=AT, events=[OPENING])
    database_runs.connections.close()
    database_runs.connections._options["silence"] = 1  # noqa: SLF001 (of a lease of three seconds, which would run out)
    ((pid,),) = database_runs.connections.rows("select pg_backend_pid()")
    with silent(pid):
        log.append(AT, [event(1)])
    log.append(AT, [event(2)])
    log.close()
    assert [bytes(line.events[0]) for line in database_runs.read("r").lines[2:]] == [event(1), event(2)]


@pytest.mark.fault("a connection that falls silent")
def test_leases_are_renewed_though_nobody_answers_on_the_connection_that_renews(database: str) -> None:
    """Or each run of the process would be lost, and each that it opens later."""
    runs = Postgres(database, lease=6.0)
    renews = """select pid from pg_stat_activity where datname = current_database()
        and (query like '%%skip locked%%' or query like 'select run, token, mail%%') and pid <> pg_backend_pid()"""

    def renewing() -> set[int]:
        return {pid for (pid,) in runs.connections.rows(renews)}

    with runs.create("r", at=AT, events=[OPENING]):
        stage.within(60, renewing)
        (pid,) = renewing()
        with silent(pid):
            stage.within(60, lambda: renewing() - {pid})
    runs.connections.close()
