"""The same saves by others, each at a setting that survives a power cut: SQLite, langgraph's checkpoints, dbos's steps.

`make bench-full` runs this with the packages of the group `peers`, pinned, in a venv of their own. What each does
for a save: a row, inserted (SQLite WAL, synchronous FULL); the whole state put in the place of the last (the same);
langgraph's `SqliteSaver.put` of a checkpoint with the whole conversation (its own default: WAL, and SQLite's default
FULL); a step of a dbos workflow on SQLite (its own default: a rollback journal, FULL). All of them keep what they
acknowledged through a power cut; only refold also notices when a disk gave back something else.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import queue
import sqlite3
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import replay
from benchmarks import append, arms, history, table, writers
from benchmarks.arms import Save, Timed, us

SIZES = {142: 142, 1_000: 100}
"""Saves, and how many of them the arms are timed at whose saves grow with the history."""
QUICK = {142: 142}
ONE_BY_ONE = {append.OWN, append.OWN + arms.AGAIN, "SQLite insert", "dbos step"}
"""The arms whose saves do not grow: they do every save."""


@contextlib.contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """SQLite in WAL mode, with a flush at every commit."""
    with contextlib.closing(sqlite3.connect(path / "db.sqlite", isolation_level=None)) as base:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=FULL")
        yield base


@contextlib.contextmanager
def insert(events: writers.Events, path: Path) -> Iterator[Save]:
    """A row for each save."""
    with database(path) as base:
        base.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body BLOB NOT NULL)")

        def save(number: int) -> None:
            body = b",".join(replay.encode(event) for event in events[number])
            base.execute("INSERT INTO events VALUES (?, ?)", (number, body))

        yield save


@contextlib.contextmanager
def upsert(events: writers.Events, path: Path) -> Iterator[Save]:
    """The whole state in one row."""
    whole: list[Any] = []
    done = 0
    with database(path) as base:
        base.execute("CREATE TABLE states (run TEXT PRIMARY KEY, state BLOB NOT NULL)")

        def save(number: int) -> None:
            nonlocal done
            whole.extend(plain(events, done, number))
            done = number + 1
            base.execute("INSERT OR REPLACE INTO states VALUES ('r', ?)", (writers.dumped(whole),))

        yield save


def plain(events: writers.Events, done: int, number: int) -> list[Any]:
    """The events from one save up to another, as plain values."""
    return [msgspec.to_builtins(event) for line in events[done : number + 1] for event in line]


@contextlib.contextmanager
def langgraph(events: writers.Events, path: Path) -> Iterator[Save]:
    """A checkpoint with the whole conversation at each save, as its loop makes one at each step."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    whole: list[Any] = []
    done = 0
    with SqliteSaver.from_conn_string(str(path / "checkpoints.sqlite")) as saver:
        saver.setup()
        config: Any = {"configurable": {"thread_id": "r", "checkpoint_ns": ""}}

        def save(number: int) -> None:
            nonlocal config, done
            whole.extend(plain(events, done, number))
            done = number + 1
            checkpoint = empty_checkpoint()
            checkpoint["id"] = str(uuid.uuid4())
            checkpoint["channel_values"] = {"messages": whole}
            checkpoint["channel_versions"] = {"messages": number}
            metadata: Any = {"source": "loop", "step": number, "parents": {}}
            config = saver.put(config, checkpoint, metadata, {"messages": number})

        yield save


@contextlib.contextmanager
def dbos(events: writers.Events, path: Path) -> Iterator[Save]:
    """A step of one long workflow for each save, its result the save's text."""
    from dbos import DBOS

    bodies = [json.dumps([replay.encode(event).decode() for event in line]) for line in events]
    given: queue.SimpleQueue[int] = queue.SimpleQueue()
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    name = f"sqlite:///{path}/dbos.sqlite"
    DBOS(config={"name": "benchmark", "system_database_url": name, "run_admin_server": False, "log_level": "ERROR"})

    @DBOS.step(name=f"step-{path.name}")
    def step(number: int) -> str:
        return bodies[number]

    @DBOS.workflow(name=f"run-{path.name}")
    def run() -> None:
        while (number := given.get()) >= 0:
            step(number)
            ended.put(None)

    DBOS.launch()
    thread = threading.Thread(target=run)
    thread.start()

    def save(number: int) -> None:
        given.put(number)
        ended.get()

    try:
        yield save
    finally:
        given.put(-1)
        thread.join()
        DBOS.destroy()


PEERS = {
    "SQLite insert": insert,
    "SQLite snapshot upsert": upsert,
    "langgraph SqliteSaver.put": langgraph,
    "dbos step": dbos,
}


def made(count: int) -> dict[str, arms.Arm]:
    """The arms, over one history."""
    events = list(history.saves(count))
    own = functools.partial(writers.append, events)
    found: dict[str, arms.Arm] = {append.OWN: own, append.OWN + arms.AGAIN: own}
    for name, arm in PEERS.items():
        found[name] = functools.partial(arm, events)
    return found


def row(name: str, timed: Timed, own: Timed, calls: arms.Calls | None, count: int) -> list[str]:
    """One arm's figures."""
    times = "" if timed is own else f"{arms.ratio(timed.p50, own.p50):.2f}"
    flushes = f"{calls.flushes / count:.2f}" if calls else "-"
    return [name, us(arms.middle(timed.p50)), us(arms.middle(timed.p99)), times, flushes]


def main() -> None:
    """Answer, for both sizes."""
    short = table.quick(__doc__)
    packages = ("dbos", "langgraph", "langgraph-checkpoint-sqlite")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    for count, timed in (QUICK if short else SIZES).items():
        found = made(count)
        saves = {name: range(count) if name in ONE_BY_ONE else append.sampled(count, timed) for name in found}
        figures = arms.rounds(found, saves, 5 if short else arms.ROUNDS)
        own = figures[append.OWN]
        calls = {name: arms.traced("benchmarks.peers", name, "142") for name in found}
        rows = [row(name, figures[name], own, calls[name], 142) for name in found]
        notes = [f"SQLite {sqlite3.sqlite_version}, {versions}", "flushes are counted over 142 saves"]
        if timed < count:
            notes.append(f"the arms that grow are timed at {timed} saves, evenly spread over the {count:,}")
        plot = {
            "x": list(found),
            "series": {"p50": [arms.middle(figures[name].p50) * 1e6 for name in found]},
            "ylabel": "µs a save (p50)",
            "log": True,
        }
        head = ["arm", "p50 µs", "p99 µs", "times refold", "flushes a save"]
        question = f"The same {count:,} saves by others"
        table.report(f"peers-{count}", question, head, rows, notes=notes, plot=plot, short=short)


def counted(name: str, count: int, path: Path) -> None:
    """Do one arm's saves between marks, for strace."""
    with made(count)[name](path) as save, arms.marked():
        for number in range(count):
            save(number)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        counted(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
