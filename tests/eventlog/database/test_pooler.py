"""Through pgbouncer in transaction mode: each statement may run in another process of the server."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

import eventlog
from eventlog.postgres import Postgres
from eventlog.postgres._dispatch import Rings
from tests.eventlog.making import AT, OPENING, event
from tests.postgres.pooler import pooler
from tests.support.postgres import Cluster

pytestmark = pytest.mark.full
WRITERS = 8


class Said(msgspec.Struct):
    """What a writer says of its run."""

    agent: str = "ann"


def heard(bell: Rings, count: int) -> list[str]:
    """Listen until so many rings were heard."""
    found: list[str] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += bell.heard()
        time.sleep(0.01)
    return found


@pytest.fixture
def pooled(postgres: Cluster) -> Iterator[Postgres]:
    """A store behind a pooler of four connections."""
    name = postgres.database()
    with pooler(postgres, 4) as port:
        store = Postgres(postgres.url(name, port=port), lease=60.0)
        yield store
        store.connections.close()
    postgres.drop(name)


@pytest.mark.fault("a pooler between us and the server")
def test_more_writers_than_the_pooler_has_connections(pooled: Postgres) -> None:
    """No statement needs what another left in its connection; a lease excludes, as no lock of a session would."""

    def write(run: str) -> None:
        with pooled.create(run, at=AT, events=[OPENING]) as log:
            for number in range(30):
                log.append(AT, [event(number)])
            with pytest.raises(eventlog.RunLocked):
                pooled.open(run)

    threads = [threading.Thread(target=write, args=(f"r{number}",)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pooled.connections.pooled
    for number in range(WRITERS):
        assert len(pooled.read(f"r{number}").lines) == 32
    lines = pooled.read("r0").lines
    with pooled.open("r0") as log:

        def ended() -> None:
            log.append(AT, [event(99)])

        pooled.fork(lines, "f", keep=1, at=AT, events=[event(5)], ready=ended).close()
    assert pooled.parents() == {"f": "r0"}


def test_what_is_due_is_found_without_listening(pooled: Postgres) -> None:
    """A pooler passes no notifications on; the rows say it."""
    with pooled.create("r", at=AT, events=[OPENING]) as log:
        log.status = Said()
    assert pooled.bell().heard() == pooled.due(["ann"], 9) == []
    assert pooled.post("r", "stop", b"{}")
    assert pooled.due(["ben"], 9) == []
    assert pooled.due(["ann"], 9) == ["r"]


def test_a_direct_connection_listens(database_runs: Postgres) -> None:
    """A ring is heard by every process, and what rang before somebody listened is not."""
    database_runs.bell().ring("before")
    one, other = database_runs.bell(), database_runs.bell()
    assert one.heard() == other.heard() == []
    for run in ("a", "b", "a", "No Run"):
        other.ring(run)
    assert not database_runs.connections.pooled
    for bell in (one, other):
        assert sorted(heard(bell, 2)) == ["a", "b"]
        bell.close()


@pytest.mark.fault("a connection that falls silent")
def test_what_only_listens_asks_whether_the_server_is_there(database: str) -> None:
    """A machine that vanished ends no connection, and to what only listens nothing else would tell."""
    runs = Postgres(database, lease=12.0)
    bell = runs.bell()
    assert bell.heard() == []
    assert bell._connection is not None  # noqa: SLF001 (the kernel asks, so only it can tell)
    with socket.socket(fileno=os.dup(bell._connection.fileno())) as listening:  # noqa: SLF001
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for seconds in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            assert listening.getsockopt(socket.IPPROTO_TCP, seconds) == 4
    bell.close()
    runs.connections.close()


def test_a_forked_child_does_not_end_what_its_parent_listens_with(database_runs: Postgres) -> None:
    """The child drops its copy of the bell, and the parent goes on hearing."""
    bell = database_runs.bell()
    assert bell.heard() == []
    child = os.fork()
    if child == 0:
        bell.close()
        os._exit(0)
    os.waitpid(child, 0)
    database_runs.bell().ring("a")
    assert heard(bell, 1) == ["a"]
    bell.close()
