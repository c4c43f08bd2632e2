"""What each statement does for each holder: its token, its place in the log, the end of its lease, and a repeat."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

import msgspec
import psycopg
import pytest

import eventlog
from eventlog import _store as _store_of_all
from eventlog.postgres import Postgres, _connections, _store
from eventlog.postgres._connections import boot
from tests.eventlog.database.conftest import expire
from tests.eventlog.making import AT, OPENING, event

pytestmark = pytest.mark.full


@pytest.mark.fault("two writers of one run")
@pytest.mark.parametrize("lost", ["", "before", "after"])
def test_a_line_is_written_once_by_the_holder_after_the_last_line(
    database_runs: Postgres, cut: Callable[[str], None], lost: str
) -> None:
    """Whatever else is wrong nothing is; an expired lease whose token stands may write, for nobody read in between."""
    for number, (token, seq, expired) in enumerate(itertools.product((0, -1, 1), (0, -1, 1), (False, True))):
        run, holds = f"r{number}", (token, seq) == (0, 0)
        database_runs.create(run, at=AT, events=[OPENING]).close()
        log = database_runs.open(run)
        log.append(AT, [event(0)])
        log.lease.token += token
        log.seq += seq
        if expired:
            expire(database_runs)
        if lost:
            cut(lost)
        if holds:
            assert log.append(AT, [event(1)]).seq == 3
            assert log.append(AT, [event(2)]).seq == 4
        else:
            with pytest.raises(eventlog.LockLost):
                log.append(AT, [event(1)])
            assert not log.holds()
        log.abandon()
        written = [bytes(line.events[0]) for line in database_runs.read(run).lines[2:]]
        assert written == [event(n) for n in range(3 if holds else 1)]


@pytest.mark.fault("two writers of one run")
def test_a_holder_that_lost_its_lease_to_another_writes_nothing_more(database_runs: Postgres) -> None:
    """Its lease ran out, and another has read the log since: a line of the old one would be one that it did not see."""
    first = database_runs.create("r", at=AT, events=[OPENING])
    expire(database_runs)
    with database_runs.open("r") as second:
        assert second.lease_lost
        with pytest.raises(eventlog.LockLost, match="another process has taken the run"):
            first.append(AT, [event(1)])
        with pytest.raises(eventlog.LogDead):
            first.compact(b"1", 1)
        second.append(AT, [event(2)])
        first.close()
        assert database_runs.holder("r") is not None
    assert [line.life for line in database_runs.read("r").lines] == [1, 1, 2]


def test_a_lease_that_ran_out_unnoticed_still_writes(database_runs: Postgres) -> None:
    """Nobody has read the log in between; the save renews it, and a proper end is one."""
    with database_runs.create("r", at=AT, events=[OPENING]) as log:
        expire(database_runs)
        log.append(AT, [event(1)])
        with pytest.raises(eventlog.RunLocked, match=r"held by process \d+ on") as refused:
            database_runs.open("r")
    assert refused.value.until is not None
    with database_runs.open("r") as log:
        assert not log.lease_lost


@pytest.mark.fault("clock set back")
def test_the_time_is_the_servers_whatever_becomes_of_this_machines_clock(
    database_runs: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine often starts its services first and sets its clock then: a wait would end an hour early, or late."""

    def is_off() -> bool:
        theirs: datetime = rows("select clock_timestamp()")[0][0]
        return abs(database_runs.now() - theirs) > timedelta(minutes=30)

    class Set(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(hours=1)

    rows, heard = database_runs.connections.rows, database_runs.connections.heard
    database_runs.create("r", at=AT, events=[OPENING]).close()
    rows("update refold.run set wake = now(), agent = 'a'")
    for module in (_store, _connections, _store_of_all):
        monkeypatch.setattr(module, "datetime", Set)
    assert not is_off()
    heard(AT, boot() - 60)  # whoever asked may have stood still; what was heard before is nearer
    assert not is_off()
    for asks in (lambda: database_runs.open("r").close(), lambda: database_runs.due(["a"], 1)):
        heard(AT, boot())
        assert is_off()
        asks()
        assert not is_off()


@pytest.mark.fault("lease lost")
def test_that_a_lease_ran_out_is_told_until_a_line_says_so(database_runs: Postgres) -> None:
    """Who opens a run in between, to say something to it, gives it back properly, and what was lost may still act."""
    database_runs.create("r", at=AT, events=[OPENING])
    expire(database_runs)
    for _ in range(2):
        with database_runs.open("r") as log:
            assert log.lease_lost
    with database_runs.open("r") as log:
        log.note_lease_lost()
    with database_runs.open("r") as log:
        assert not log.lease_lost


@pytest.mark.parametrize("lost", ["before", "after"])
def test_whatever_else_is_asked_for_once_is_done_once(
    database_runs: Postgres, cut: Callable[[str], None], lost: str
) -> None:
    """The answer was lost, and asking again finds what was done."""
    cut(lost)
    log = database_runs.create("r", at=AT, events=[OPENING])
    cut(lost)
    assert log.compact(b'{"n":1}', 1) is not None
    cut(lost)
    assert database_runs.post("r", "stop", b"{1}")
    assert not database_runs.post("r", "stop", b"{2}")
    log.append(AT, [event(1)])
    assert log.inbox() == ["stop"]
    assert log.request("stop") == b"{1}"
    cut(lost)
    log.acknowledge(["stop"])
    assert database_runs.inbox("r").requests == []
    cut(lost)
    log.close()
    assert database_runs.holder("r") is None
    cut(lost)
    with database_runs.open("r", accept=lambda _: True) as log:
        assert (log.life, log.snapshot is not None, len(log.lines)) == (2, True, 1)


@pytest.mark.fault("an error whose save is unknown is taken for a failed one")
def test_an_error_of_the_server_wrote_nothing_and_the_log_goes_on(database_runs: Postgres) -> None:
    """The server says that it rolled back: nothing is unknown."""
    with database_runs.create("r", at=AT, events=[OPENING]) as log:
        rows = database_runs.connections.rows
        rows("""create function refuse() returns trigger language plpgsql as $$ begin
            raise exception 'no space is left' using errcode = (case when new.seq = 2 then '53100' else 'P0001' end);
            end $$""")
        rows("create trigger refuse before insert on refold.line for each row execute function refuse()")
        with pytest.raises(eventlog.DiskFull, match="no space is left"):
            log.append(AT, [event(1)])
        rows("update refold.run set seq = seq")  # the row was rolled back too
        rows("drop trigger refuse on refold.line")
        assert log.append(AT, [event(2)]).seq == 2
        rows("create trigger refuse before insert on refold.line for each row execute function refuse()")
        with pytest.raises(eventlog.DiskFailed, match="no space is left"):
            log.append(AT, [event(3)])
        rows("drop trigger refuse on refold.line")
        assert log.append(AT, [event(4)]).seq == 3


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_statement_that_the_server_undid_for_another_is_done_again(database_runs: Postgres, state: str) -> None:
    """A run that stopped for it would have stopped for nothing."""
    rows = database_runs.connections.rows
    rows("create sequence times")
    rows(f"""create function undone() returns trigger language plpgsql as $$ begin
        if nextval('times') = 1 then raise exception 'undone' using errcode = '{state}'; end if; return new; end $$""")
    with database_runs.create("r", at=AT, events=[OPENING]) as log:
        rows("create trigger undone before insert on refold.line for each row execute function undone()")
        assert log.append(AT, [event(1)]).seq == 2
    assert rows("select last_value from times") == [(2,)]


def test_a_fork_and_the_stop_of_its_parent_are_one_transaction(database_runs: Postgres) -> None:
    """What goes wrong at the last moment leaves neither, and the parent goes on where it was."""
    parent = database_runs.create("r", at=AT, events=[OPENING])
    lines = list(parent.lines)

    def stopped() -> None:
        parent.append(AT, [event(1)])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database_runs.fork(lines, "f", keep=1, at=AT, events=[event(5)], ready=stopped)
    assert database_runs.runs() == ["r"]
    assert parent.append(AT, [event(2)]).seq == 2

    def ended() -> None:
        parent.append(AT, [event(3)])

    with database_runs.fork(lines, "f", keep=1, at=AT, events=[event(5)], ready=ended):
        parent.close()
    assert [bytes(line.events[0]) for line in database_runs.read("r").lines[2:]] == [event(2), event(3)]
    assert database_runs.parents() == {"f": "r"}


@pytest.mark.fault("a save whose connection was lost")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fork_whose_connection_breaks_at_its_commit_is_made_once(
    database: str, database_runs: Postgres, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It is begun again, and so is the stop of its parent: whichever of the two tries was done, both stand once."""
    parent = database_runs.create("r", at=AT, events=[OPENING])
    transaction, left = psycopg.Connection.transaction, [when]
    rows = Postgres(database).connections.rows

    def ended() -> None:
        parent.append(AT, [event(1)])

    @contextlib.contextmanager
    def breaks(connection: psycopg.Connection[Any]) -> Iterator[None]:
        with transaction(connection):
            yield
            if left == ["before"]:
                left.clear()
                rows("select pg_terminate_backend(%s, 60000)", (connection.info.backend_pid,))
        if left == ["after"]:
            left.clear()
            connection.close()
            raise psycopg.OperationalError("the connection was lost")

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "transaction", breaks)
        fork = database_runs.fork(list(parent.lines), "f", keep=1, at=AT, events=[event(5)], ready=ended)
    fork.close()
    assert parent.append(AT, [event(2)]).seq == 3
    parent.close()
    assert [bytes(line.events[0]) for line in database_runs.read("r").lines[2:]] == [event(1), event(2)]
    assert [len(database_runs.read("f").lines), database_runs.verify("f").ok] == [3, True]


def test_an_opening_that_was_cut_off_leaves_the_run_to_others(
    database_runs: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its holder was lost, and somebody must carry it on; or a request came meanwhile, which nobody would take."""

    class Told(msgspec.Struct):
        agent: str = "a"

    def interrupted(*_: object, **__: object) -> None:
        if asked == "r":
            database_runs.post("r", "stop", b"{}")
        raise KeyboardInterrupt

    for run in ("lost", "r"):
        log = database_runs.create(run, at=AT, events=[OPENING])
        log.append(AT, [event(1)], status=Told())
        log.close() if run == "r" else expire(database_runs)
    monkeypatch.setattr(_store, "load", interrupted)
    for asked in ("lost", "r"):
        with pytest.raises(KeyboardInterrupt):
            database_runs.open(asked)
        assert database_runs.holder(asked) is None
    assert sorted(database_runs.due(["a"], 5)) == ["lost", "r"]
