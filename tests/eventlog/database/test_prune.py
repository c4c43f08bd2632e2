"""Pruning a database: a hundred runs in one statement, none of them held, and every id stays taken."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

import eventlog
from eventlog import _tombstone
from tests.eventlog.making import AT, OPENING, event

if TYPE_CHECKING:
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
