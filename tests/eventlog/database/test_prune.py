"""Pruning a database: a hundred runs in one statement, none of them held, and every id stays taken."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

import eventlog
from eventlog import _tombstone
from eventlog.postgres._read import Rows
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from eventlog.postgres import Postgres

pytestmark = pytest.mark.full
WORDS = {"uid": "1f", "answer": "ab"}


def made(runs: eventlog.Store, run: str) -> None:
    """A run with a line, a snapshot and a request."""
    with runs.create(run, at=AT, events=[OPENING]) as log:
        log.append(AT + timedelta(seconds=1), [event(1)])
        log.compact(b"{}", 1)
    runs.post(run, "stop", b"x")


def rows(runs: Postgres) -> list[int]:
    """How many rows each table has."""
    tables = ("run", "line", "snapshot", "inbox", "pruned")
    return [runs.connections.rows(f"select count(*) from refold.{table}")[0][0] for table in tables]  # noqa: S608


def test_a_pruned_run_is_one_row_that_says_what_a_directory_would(database_runs: Postgres, tmp_path: Path) -> None:
    """The same facts, and the same refusals."""
    for run in ("gone", "held", "other"):
        made(database_runs, run)
    made(eventlog.store(tmp_path), "gone")
    dict(eventlog.store(tmp_path).prune({"gone": WORDS}))
    with database_runs.open("held"):
        found = dict(database_runs.prune({"gone": WORDS, "held": WORDS, "never": WORDS}))
    kinds = {run: type(error) for run, error in found.items()}
    assert kinds == {"gone": type(None), "held": eventlog.RunLocked, "never": eventlog.NoSuchRun}
    held = found["held"]
    assert isinstance(held, eventlog.RunLocked)
    assert (held.host, held.pid) == database_runs.host()
    assert rows(database_runs) == [2, 6, 2, 2, 1]
    with pytest.raises(eventlog.RunPruned) as gone:
        database_runs.open("gone")
    data = database_runs.connections.rows("select data from refold.pruned")[0][0]
    theirs = _tombstone.decode("gone", (tmp_path / ".pruned/gone").read_bytes())
    ours = _tombstone.decode("gone", data)
    assert (ours.at, ours.words, gone.value.sum) == (theirs.at, theirs.words, ours.sum)
    for use in (database_runs.read, database_runs.verify, database_runs.inbox, lambda run: made(database_runs, run)):
        with pytest.raises(eventlog.RunPruned):
            use("gone")
    assert database_runs.forget(AT + timedelta(seconds=1)) == []
    assert (
        database_runs.forget(AT + timedelta(seconds=2), dry=True)
        == ["gone"]
        == database_runs.forget(AT + timedelta(seconds=2))
    )
    made(database_runs, "gone")


def test_a_run_whose_holder_goes_meanwhile_is_pruned_after_all(
    database_runs: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody could be named who held it."""
    made(database_runs, "r")
    log, holder = database_runs.open("r"), database_runs.holder

    def leaves(run: str) -> object:
        log.close()
        return holder(run)

    monkeypatch.setattr(database_runs, "holder", leaves)
    assert dict(database_runs.prune({"r": WORDS})) == {"r": None}


@pytest.mark.fault("a run is opened while it is pruned")
def test_a_run_that_is_opened_while_it_is_pruned_is_whole_or_gone(database_runs: Postgres) -> None:
    """Whoever is first wins, and nobody is given half a run."""
    names = [f"r-{number}" for number in range(100)]
    for run in names:
        made(database_runs, run)
    opened: dict[str, eventlog.Log] = {}
    start = threading.Barrier(2)

    def opens() -> None:
        start.wait()
        for run in reversed(names):
            try:
                opened[run] = database_runs.open(run)
            except eventlog.RunPruned:
                return

    thread = threading.Thread(target=opens)
    thread.start()
    start.wait()
    found = {
        run: error
        for first in range(0, 100, 10)
        for run, error in database_runs.prune(dict.fromkeys(names[first : first + 10], WORDS))
    }
    thread.join()
    stayed = {run for run, error in found.items() if error is not None}
    assert stayed == opened.keys() == set(database_runs.names())
    for log in opened.values():
        assert len(log.lines) == 3
        log.close()


@pytest.mark.fault("a run is opened while it is pruned")
@pytest.mark.parametrize("first", ["post", "prune"])
def test_a_request_and_a_pruning_at_the_same_time_leave_no_request_without_its_run(
    database: str, database_runs: Postgres, first: str
) -> None:
    """A later run of that name, once the id is free again, would find a stop in its inbox."""
    database_runs.create("r", at=AT, events=[OPENING]).close()
    acts: dict[str, Callable[[], object]] = {
        "post": lambda: database_runs.post("r", "stop", b"{}"),
        "prune": lambda: dict(database_runs.prune({"r": WORDS})),
    }
    came: list[object] = []

    def second() -> None:
        try:
            came.append(acts["prune" if first == "post" else "post"]())
        except eventlog.LogError as error:
            came.append(error)

    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    thread = threading.Thread(target=second)
    with psycopg.connect(database) as connection:
        with database_runs.within(connection):
            acts[first]()
        thread.start()
        stage.within(60, lambda: database_runs.connections.rows(waiting))
    thread.join()
    if first == "post":
        assert [type(error) for error in dict(came[0]).values()] == [eventlog.RunLocked]  # type: ignore[call-overload]
    else:
        assert type(came[0]) is eventlog.RunPruned
    assert rows(database_runs) == ([1, 2, 0, 1, 0] if first == "post" else [0, 0, 0, 0, 1])


@pytest.mark.parametrize("use", ["copy", "raw", "verify"])
def test_what_reads_a_run_while_it_is_pruned_is_told_so(
    database_runs: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """A copy of it was empty, and said to be good."""
    made(database_runs, "r")
    rows = Rows._rows  # noqa: SLF001 (the only place to prune it)

    def pruned_first(files: Rows, name: str, size: int) -> Iterator[bytes]:
        dict(database_runs.prune({"r": WORDS}))
        return rows(files, name, size)

    monkeypatch.setattr(Rows, "_rows", pruned_first)
    uses: dict[str, Callable[[], object]] = {
        "copy": lambda: database_runs.copy("r", tmp_path),
        "raw": lambda: list(database_runs.raw(database_runs.read("r"))),
        "verify": lambda: database_runs.verify("r"),
    }
    with pytest.raises(eventlog.RunPruned):
        uses[use]()
    assert list(tmp_path.iterdir()) == []
