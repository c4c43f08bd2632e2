"""What does a save cost in PostgreSQL, on one connection and on many, and beside others on the same server?

The server is one of its own, power-safe (fsync, full_page_writes and synchronous_commit on), on the disk of the arms.
Each save is an event of 1.5 KB of text: refold's `Log.append` with a status, a step of a dbos workflow that returns the
text, langgraph's `PostgresSaver.put` of a checkpoint that holds it. The arms take turns, and every arm works with as
many threads as it has connections. It runs in the venv of the peers.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

import eventlog
from benchmarks import arms, table
from eventlog.postgres import Postgres
from tests.support.postgres_server import Cluster

TEXT = 1500
CONNECTIONS = {1: 600, 8: 150, 64: 30}
"""Connections, and the saves of each in a round."""
ROUNDS = 5
Saves = list[float]
Arm = Callable[[int, int], tuple[Saves, float]]
"""Does so many saves on each of so many connections: the seconds of each save, and of all."""


class Said(msgspec.Struct):
    """A status as refold's runner writes it, of about its size."""

    agent: str = "support"
    task: str = "t" * 300
    closed: bool = False
    wake: datetime | None = None
    phase: str = "tools"


def text() -> str:
    """A text of 1.5 KB that nothing compresses much."""
    return os.urandom(TEXT // 2).hex()


def together(connections: int, work: Callable[[int, Saves], None]) -> tuple[Saves, float]:
    """Do some work in as many threads."""
    took: list[Saves] = [[] for _ in range(connections)]
    threads = [threading.Thread(target=work, args=(number, took[number])) for number in range(connections)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [second for one in took for second in one], time.perf_counter() - began


def refold(runs: Postgres, connections: int, saves: int) -> tuple[Saves, float]:
    """A run for each thread."""
    logs = [runs.create(f"r-{uuid.uuid4()}", at=datetime.now(UTC), events=[b"{}"]) for _ in range(connections)]

    def work(number: int, took: Saves) -> None:
        for _ in range(saves):
            event = json.dumps({"type": "noted", "text": text()}).encode()
            began = time.perf_counter()
            logs[number].append(datetime.now(UTC), [event], status=Said())
            took.append(time.perf_counter() - began)

    found = together(connections, work)
    for log in logs:
        log.close()
    return found


@contextlib.contextmanager
def dbos(url: str) -> Iterator[Arm]:
    """A workflow for each thread, a step for each save."""
    from dbos import DBOS

    took: dict[str, Saves] = {}
    DBOS(config={"name": "benchmark", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})

    @DBOS.step()
    def step(given: str) -> str:
        return given

    @DBOS.workflow()
    def flow(saves: int) -> None:
        mine = took.setdefault(threading.current_thread().name, [])
        for _ in range(saves):
            given = text()
            began = time.perf_counter()
            step(given)
            mine.append(time.perf_counter() - began)

    DBOS.launch()

    def arm(connections: int, saves: int) -> tuple[Saves, float]:
        took.clear()
        began = time.perf_counter()
        for handle in [DBOS.start_workflow(flow, saves) for _ in range(connections)]:
            handle.get_result()
        return [second for one in took.values() for second in one], time.perf_counter() - began

    try:
        yield arm
    finally:
        DBOS.destroy()


@contextlib.contextmanager
def langgraph(url: str) -> Iterator[Arm]:
    """A thread of its for each of ours, each with a connection of its own; only the newest text is in a checkpoint."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()

    def arm(connections: int, saves: int) -> tuple[Saves, float]:
        def work(_: int, took: Saves) -> None:
            with PostgresSaver.from_conn_string(url) as saver:
                config: Any = {"configurable": {"thread_id": str(uuid.uuid4()), "checkpoint_ns": ""}}
                for number in range(saves):
                    checkpoint = empty_checkpoint()
                    checkpoint["id"] = str(uuid.uuid4())
                    checkpoint["channel_values"] = {"messages": [text()]}
                    checkpoint["channel_versions"] = {"messages": number}
                    metadata: Any = {"source": "loop", "step": number, "parents": {}}
                    began = time.perf_counter()
                    config = saver.put(config, checkpoint, metadata, {"messages": number})
                    took.append(time.perf_counter() - began)

        return together(connections, work)

    yield arm


def measured(found: dict[str, Arm], rounds: int, part: int) -> dict[tuple[str, int], list[tuple[float, float, float]]]:
    """The p50, the p99 and the saves a second of each arm on each number of connections, in each round."""
    figures: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for turn in range(rounds):
        names = [*found]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            for connections, saves in CONNECTIONS.items():
                took, seconds = found[name](connections, max(saves // part, 5))
                if turn:  # the first round warms caches and connections
                    row = (statistics.median(took), arms.quantile(took, 0.99), len(took) / seconds)
                    figures.setdefault((name, connections), []).append(row)
    return figures


def sizes(runs: Postgres, wal: float) -> list[str]:
    """What a save took: bytes of tables, of indexes and of the server's own log, and how rows were changed."""
    rows = runs.connections.rows
    (lines, table_bytes, index_bytes) = rows(
        "select count(*), pg_table_size('refold.line'), pg_indexes_size('refold.line') from refold.line"
    )[0]
    (run_bytes,) = rows("select pg_total_relation_size('refold.run')")[0]
    runs.connections.rows("select pg_stat_force_next_flush()")
    (updates, hot) = rows("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'run'")[0]
    return [
        f"refold: {table_bytes / lines:,.0f} bytes of table and {index_bytes / lines:,.0f} of index a line",
        f"refold: {wal:,.0f} bytes of WAL a save; the table of runs takes {run_bytes:,} bytes",
        f"{hot:,} of {updates:,} changes of a run's row touched no index (HOT)",
    ]


def main() -> None:
    """Answer."""
    short = table.quick(__doc__)
    load = os.getloadavg()[0]
    cluster = Cluster(power_safe=True)
    try:
        own, theirs, third = (cluster.database(tables=not number) for number in range(3))
        runs = Postgres(cluster.url(own))
        position = "select pg_current_wal_lsn() - '0/0'"
        with dbos(cluster.url(theirs)) as step, langgraph(cluster.url(third)) as put:
            found: dict[str, Arm] = {"refold": functools.partial(refold, runs), "dbos step": step}
            found["langgraph PostgresSaver.put"] = put
            figures = measured(found, 3 if short else ROUNDS, 4 if short else 1)
            before = runs.connections.rows(position)[0][0]
            lines = runs.connections.rows("select count(*) from refold.line")[0][0]
            refold(runs, 1, 1000)
            written = runs.connections.rows(position)[0][0] - before
            lines = runs.connections.rows("select count(*) from refold.line")[0][0] - lines
            notes = sizes(runs, written / lines)
        server = eventlog.store(runs).create("s", at=datetime.now(UTC), events=[])
        header = server.lines[0].header
        assert header is not None
        server.close()
        runs.connections.close()
    finally:
        cluster.close()
    own_p50 = {n: [row[0] for row in figures["refold", n]] for n in CONNECTIONS}
    rows = [
        [
            name,
            str(connections),
            f"{statistics.median(row[0] for row in of) * 1e3:.2f}",
            f"{statistics.median(row[1] for row in of) * 1e3:.2f}",
            f"{statistics.median(row[2] for row in of):,.0f}",
            "" if name == "refold" else f"{arms.ratio([row[0] for row in of], own_p50[connections]):.1f}",
        ]
        for (name, connections), of in sorted(figures.items(), key=lambda item: item[0][1])
    ]
    versions = [f"{p} {importlib.metadata.version(p)}" for p in ("dbos", "langgraph-checkpoint-postgres", "psycopg")]
    notes += [
        f"{header.storage.kind}, which survives {header.storage.survives}; {', '.join(versions)}",
        f"load average of the machine when it began: {load:.1f}",
    ]
    head = ["arm", "connections", "p50 ms", "p99 ms", "saves a second", "times refold"]
    table.report("database", "A save of 1.5 KB in PostgreSQL", head, rows, notes=notes, short=short)


if __name__ == "__main__":
    main()
