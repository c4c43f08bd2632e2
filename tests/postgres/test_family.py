"""A parent and its child runs on a real server: the process that carries them dies or freezes, and another goes on."""

import signal

import pytest

import runner
from tests.postgres import fleet
from tests.postgres.clerk import Clerk
from tests.postgres.fleet import Fleet, until
from tests.postgres.witness import witness
from tests.support.postgres import Cluster


@pytest.mark.full
@pytest.mark.fault("SIGKILL in a child run")
@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("how", ["killed", "frozen"])
def test_another_worker_carries_a_family_on_whose_worker_is_gone(postgres: Cluster, how: str) -> None:
    """Each run has a lease of its own; the next holder of the parent waits for those of its children.

    One child's body stops its own process in front of its effect, while the parent waits for both children. A worker
    that is frozen there wakes when all is done, and finds that none of its runs is its any more.
    """
    name = postgres.database()
    with witness() as seen, Fleet(postgres, name, seen) as team:
        first = team.begin()
        runner.enqueue(Clerk(seen.url).lead("frozen", "keeps"), "Have both done.", runs=team.store(), run="p")
        until("a child's body has stopped its process", lambda: seen.begun and fleet.is_stopped(first.pid))
        seen.open_gate.set()
        if how == "killed":
            team.end(first, signal.SIGKILL)
        second = team.begin()
        until("the family is done", lambda: not team.open_runs())
        if how == "frozen":
            first.process.send_signal(signal.SIGCONT)
            team.end(first, signal.SIGTERM)
        team.end(second, signal.SIGTERM)
        store = team.store()
        assert [runner.read_state(run, store).phase for run in store.names()] == ["done"] * 3
        assert all(store.verify(run).ok for run in store.names())
        assert sorted(seen.effects("keyed").values()) == sorted(seen.effects("once").values()) == [1]
        store.connections.close()
    postgres.drop(name)
