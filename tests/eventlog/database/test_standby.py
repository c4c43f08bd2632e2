"""A server whose standby takes its place: what was acknowledged is there, or its loss is noticed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import eventlog
from eventlog.postgres import Postgres
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


def began(act: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do something in a thread; what comes of it is in the list."""
    came: list[Any] = []
    thread = threading.Thread(target=lambda: came.append(act()))
    thread.start()
    return thread, came


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
