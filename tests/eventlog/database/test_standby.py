"""A server whose standby takes its place: what was acknowledged is there, or its loss is noticed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

import eventlog
from eventlog.postgres import Postgres
from eventlog.postgres._log import Row
from tests.eventlog.database.conftest import began
from tests.eventlog.making import AT, OPENING, event
from tests.support import stage
from tests.support.postgres import PASSWORD, Cluster

pytestmark = pytest.mark.full


class Pair:
    """A server, and the standby that follows it; runs in a database of both."""

    def __init__(self) -> None:
        self.primary = Cluster()
        self.database = self.primary.database()
        self.standby = Cluster(standby_of=self.primary)

    def runs(self, lease: float = 600.0, more: str = "") -> Postgres:
        """The runs, wherever they can be written at the time."""
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return Postgres(
            f"postgresql://refold:{PASSWORD}@{hosts}/{self.database}?target_session_attrs=read-write{more}",
            lease=lease,
        )

    def confirm(self) -> None:
        """Have each commit wait for the standby from now on."""
        self.primary.execute("alter system set synchronous_standby_names = 'standby'")
        self.primary.execute("select pg_reload_conf()")
        states = "select sync_state from pg_stat_replication"
        stage.within(60, lambda: self.primary.execute(states) == [("sync",)])

    def fall_behind(self) -> None:
        """Have the standby know all that was saved, and nothing from now on."""
        ((end,),) = self.primary.execute("select pg_current_wal_insert_lsn()")
        query = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
        stage.within(60, lambda: self.standby.execute(query, end) == [(True,)])
        self.standby.stop(signal.SIGQUIT)

    def waiting(self) -> int:
        """End the commits that wait for the standby, and give how many those were."""
        query = "select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'"
        ((count,),) = self.primary.execute(query)
        return int(count)

    def fail_over(self) -> None:
        """Lose the first server for good, and have the standby, which may be down, take its place."""
        self.primary.stop(signal.SIGQUIT)
        self.standby.stop()
        self.standby.start()
        self.standby.execute("select pg_promote()")

    def close(self) -> None:
        """End both."""
        self.standby.close()
        self.primary.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two servers of a test's own."""
    with closing(Pair()) as two:
        yield two


@pytest.mark.fault("a standby without the last lines")
@pytest.mark.parametrize("what", ["save", "create"])
def test_what_a_standby_has_not_confirmed_is_not_acknowledged(pair: Pair, what: str) -> None:
    """Also where the wait for it was ended: whoever looks sees the line, and the standby has it not."""
    runs = pair.runs()
    log = runs.create("r", at=AT, events=[OPENING])
    pair.confirm()
    pair.standby.stop(signal.SIGQUIT)
    act = {"save": lambda: log.append(AT, [event(1)]), "create": lambda: runs.create("s", at=AT, events=[OPENING])}
    thread, came = began(act[what])
    for _ in range(2):
        stage.within(60, pair.waiting)
    assert came == []
    pair.standby.start()
    thread.join()
    pair.fail_over()
    assert len(runs.read("r" if what == "save" else "s").lines) == (3 if what == "save" else 2)
    runs.connections.close()


@pytest.mark.fault("a standby without the last lines")
@pytest.mark.parametrize("setting", ["local", "remote_write", "off"])
def test_a_role_that_does_not_wait_for_the_standby_is_overruled(pair: Pair, setting: str) -> None:
    """A run waits until the standby has kept a line, whatever others do on that server."""
    pair.primary.execute(f"alter role refold set synchronous_commit = '{setting}'")
    runs = pair.runs()
    assert runs.connections.rows("show synchronous_commit") == [("on",)]
    runs.connections.close()


@pytest.mark.fault("a standby without the last lines")
def test_an_opening_that_the_standby_never_heard_of_holds_nothing_there(pair: Pair) -> None:
    """Two holders of one number would renew each other's lease, and write lines into each other's log."""
    first, second = pair.runs(), pair.runs()
    first.create("r", at=AT, events=[OPENING]).close()
    pair.fall_behind()
    lost = first.open("r")
    lost.append(AT, [event(1)])
    pair.fail_over()
    with second.open("r") as log:
        log.append(AT, [event(2)])
        assert isinstance(lost, Row)
        with first.connections.fresh() as connection:
            first._leases._extend(connection, [lost.lease])  # noqa: SLF001 (as its thread would)
        assert not lost.holds()
        with pytest.raises(eventlog.LockLost, match="lost lines that it had acknowledged"):
            lost.append(AT, [event(3)])
    assert second.verify("r").ok
    assert len(second.read("r").lines) == 3
    for runs in (first, second):
        runs.connections.close()


@pytest.mark.fault("a standby without the last lines")
def test_a_log_that_goes_on_from_a_line_that_the_standby_never_had_is_refused(pair: Pair) -> None:
    """Its own lease stands there, and what it wants to write fits nowhere."""
    runs = pair.runs()
    log = runs.create("r", at=AT, events=[OPENING])
    pair.fall_behind()
    log.append(AT, [event(1)])
    pair.fail_over()
    with pytest.raises(eventlog.LockLost, match="lost lines that it had acknowledged"):
        log.append(AT, [event(2)])
    assert runs.verify("r").ok
    assert len(runs.read("r").lines) == 2
    runs.connections.close()
