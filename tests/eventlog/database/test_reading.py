"""A run's rows read as a log: damage is found by both readers, and what is good of it can be taken elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import eventlog
from eventlog import _snapshot
from eventlog.postgres import Postgres
from tests.eventlog.making import AT, OPENING, event

pytestmark = pytest.mark.full


def made(runs: Postgres, run: str = "r", saves: int = 5) -> list[eventlog.Line]:
    """Make a run of some lines."""
    with runs.create(run, at=AT, events=[OPENING]) as log:
        for number in range(saves):
            log.append(AT, [event(number)])
    return runs.read(run).lines


DAMAGE = {
    "a row is gone": ("delete from refold.line where seq = 3", 3, 3),
    "the last row is gone": ("delete from refold.line where seq = 6", 6, 0),
    "the first row is gone": ("delete from refold.line where seq = 0", 0, 6),
    "a byte was changed": ("update refold.line set data = set_byte(data, 60, 65) where seq = 4", 4, 2),
    "a row is another's": (
        "update refold.line l set data = s.data from refold.line s where l.run < s.run and (l.seq, s.seq) = (2, 2)",
        2,
        5,
    ),
    "a line was added": ("update refold.run set seq = 5 where run = 'r'", 7, 0),
    "the row names another end": ("update refold.run set sum = repeat('0', 32) where run = 'r'", 7, 0),
}


@pytest.mark.fault("damage in a database")
def test_damage_is_found_where_it_is_by_both_readers(database_runs: Postgres) -> None:
    """Nothing is written then, and the run is as free as it was."""
    for what, (statement, seq, good) in DAMAGE.items():
        for run in ("r", "s"):
            made(database_runs, run)
        database_runs.connections.rows(statement)
        with pytest.raises(eventlog.LogDamaged) as damaged:
            database_runs.read("r")
        assert (damaged.value.expected_seq, damaged.value.good_after) == (seq, good), what
        with pytest.raises(eventlog.LogDamaged):
            database_runs.open("r")
        assert database_runs.holder("r") is None
        assert not database_runs.verify("r").ok, what
        with database_runs.salvage("r", "saved") as saved:
            assert saved.lines[0].header is not None
            assert saved.lines[0].header.salvaged is not None
        assert database_runs.verify("saved").ok
        database_runs.connections.rows("truncate refold.run, refold.line")


@pytest.mark.fault("forged snapshot")
def test_a_snapshot_of_another_line_is_passed_over(database_runs: Postgres) -> None:
    """It is a cache: the lines alone say what the run is."""
    lines = made(database_runs)
    for data in (
        b"nonsense",
        _snapshot.encode("r", 4, "0" * 32, 1, b"{}"),
        _snapshot.encode("s", 4, lines[4].sum, 1, b"{}"),
    ):
        database_runs.connections.rows("delete from refold.snapshot")
        database_runs.connections.rows("insert into refold.snapshot values ('r', 4, %b)", (data,))
        with database_runs.open("r", accept=lambda _: True) as log:
            assert (log.snapshot, len(log.lines)) == (None, 7)
            assert "passed over" in log.findings[0]
    with database_runs.open("r") as log:
        for number in range(4):
            log.compact(b"%d" % number, 1)
            log.append(AT, [event(number)])
    assert database_runs.connections.rows("select seq from refold.snapshot order by seq") == [(8,), (9,)]


def test_a_copy_in_a_directory_is_the_same_log(database_runs: Postgres, tmp_path: Path) -> None:
    """Byte for byte, and every reader of directories reads it."""
    lines = made(database_runs, saves=300)
    database_runs.copy("r", tmp_path / "copies")
    data = (tmp_path / "copies/r/seg-000001.jsonl").read_bytes()
    assert data == b"".join(database_runs.raw(database_runs.read("r")))
    copy = eventlog.store(tmp_path / "copies")
    assert copy.read("r").lines == lines
    assert copy.verify("r", expect=lines[-1].sum).ok
    (tmp_path / "copies/r/copy").unlink()
    with copy.open("r") as log:  # whoever lost the database goes on here
        assert log.append(AT, [event(1)]).seq == len(lines)


def test_a_reader_sees_one_moment_while_a_writer_is_at_work(database_runs: Postgres) -> None:
    """Its row and its lines are of one transaction, so a line that comes in between damages nothing."""
    log = database_runs.create("r", at=AT, events=[OPENING])
    for number in range(50):
        log.append(AT, [event(number)])
        assert database_runs.read("r").lines[-1].seq == log.seq
        assert database_runs.verify("r").seq == log.seq
    assert database_runs.verify("r").head == "open"
    log.close()
    assert database_runs.verify("r").head == "closed"


def test_a_pruned_run_leaves_its_tombstone(database_runs: Postgres) -> None:
    """Its id is never a run's again until that is forgotten."""
    lines = made(database_runs)
    held = database_runs.create("held", at=AT, events=[OPENING])
    left = dict(database_runs.prune({"r": {"answer": "x"}, "held": {}}))
    assert left["r"] is None
    assert isinstance(left["held"], eventlog.RunLocked)
    held.close()
    for act in (lambda: database_runs.open("r"), lambda: database_runs.read("r"), lambda: made(database_runs)):
        with pytest.raises(eventlog.RunPruned) as pruned:
            act()
        assert (pruned.value.sum, pruned.value.words) == (lines[-1].sum, {"answer": "x"})
    assert database_runs.connections.rows("select count(*) from refold.line where run = 'r'") == [(0,)]
    assert database_runs.forget(AT, dry=True) == []
    assert database_runs.forget(lines[-1].at.replace(year=3000)) == ["r"]
    made(database_runs)
