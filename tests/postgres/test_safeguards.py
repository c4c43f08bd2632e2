"""Two processes and one run, which the first has lost: nothing happens twice, and each safeguard is missed.

No moment is left to chance: a body stops its own process, or waits for a word of the test's.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

import eventlog
import runner
from tests.postgres import fleet
from tests.postgres.clerk import Clerk
from tests.postgres.fleet import Fleet, until
from tests.postgres.witness import Witness, witness
from tests.support.postgres import Cluster

pytestmark = pytest.mark.full


@pytest.fixture
def seen() -> Iterator[Witness]:
    """The service that the tools call."""
    with witness() as found:
        yield found


@pytest.fixture
def named(postgres: Cluster) -> Iterator[str]:
    """A database's name."""
    name = postgres.database()
    yield name
    postgres.drop(name)


def frozen_before_its_check(team: Fleet, shape: str, missed: Callable[[], bool]) -> None:
    """A body stops its own process; another worker carries the run to its end; then the first one wakes.

    `missed` says whether the harm is done that the safeguard keeps away; without the safeguard it is waited for.
    """
    first = team.begin()
    enqueued(team, shape)
    until("the body has stopped its process", lambda: team.witness.begun and fleet.is_stopped(first.pid))
    team.witness.open_gate.set()
    second = team.begin()
    until("the other worker has ended the run", lambda: not team.open_runs())
    first.process.send_signal(signal.SIGCONT)
    assert second.process.poll() is None
    if team.without != "-":
        until("the harm is done", missed)
    team.end(first, signal.SIGTERM)


def cut_off_in_its_body(team: Fleet, *, waits: bool, between: Callable[[str], object]) -> int:
    """A worker is cut off from the server while a body works; it may send once another worker has asked the service.

    `between` is done once the lease has ended. Where nobody waits for the body, it takes as long as it needs. How often
    the service acted is counted when nothing of either worker is under way any more.
    """
    first = team.begin()
    run = enqueued(team, "gate" if waits else "long")
    until("the body has begun", lambda: team.witness.begun)
    team.cut(first)
    until("the lease has ended", lambda: not team.holds(first, run))
    between(run)
    second = team.begin()
    until("the other worker has asked the service", lambda: team.witness.looked)
    team.witness.open_gate.set()
    until("the run has ended", lambda: not team.open_runs())
    if not waits:
        until("the first body has sent too", lambda: first.pid in {one.pid for one in team.witness.sent})
    for member in (first, second):
        team.end(member, signal.SIGTERM)
    (times,) = team.witness.effects("once").values()
    return times


def is_whole(team: Fleet) -> bool:
    """Whether the run's log verifies."""
    try:
        return team.store().verify("r").ok
    except eventlog.LogError:
        return False


def enqueued(team: Fleet, shape: str) -> str:
    """A run of a shape, made and left to the workers."""
    return runner.enqueue(Clerk(team.witness.url).agent(), shape, runs=team.store(), run="r")


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("without", ["-", "check"])
def test_a_worker_that_was_frozen_sends_nothing_that_another_sent(
    postgres: Cluster, named: str, seen: Witness, without: str
) -> None:
    """The check is the last thing before the request."""
    with Fleet(postgres, named, seen, without=without) as team:
        frozen_before_its_check(team, "frozen", lambda: seen.effects("once").total() > 1)
        assert (seen.effects("once").total() > 1) is (without == "check")


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("without", ["-", "wait"])
@pytest.mark.parametrize("between", ["nothing", "a message"])
def test_what_a_lost_holder_still_sends_is_waited_for(
    postgres: Cluster, named: str, seen: Witness, without: str, between: str
) -> None:
    """What it had begun ends by its timeout; until then no answer of the service says that it did not happen.

    Whoever writes to the run in between holds it for a moment, and gives it back as one should.
    """

    def said(run: str) -> None:
        if between == "a message":
            assert runner.send(run, "Hello.", "Ada", runs=team.store()).written

    with Fleet(postgres, named, seen, without=without) as team:
        times = cut_off_in_its_body(team, waits=without != "wait", between=said)
        assert (times > 1) is (without == "wait")


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("without", ["-", "token"])
def test_a_worker_that_was_frozen_writes_nothing_into_a_log_that_another_has_written(
    postgres: Cluster, named: str, seen: Witness, without: str
) -> None:
    """A save names its token."""
    with Fleet(postgres, named, seen, without=without) as team:
        frozen_before_its_check(team, "late", lambda: not is_whole(team))
        assert is_whole(team) is (without == "-")


@pytest.mark.fault("lease lost")
@pytest.mark.parametrize("without", ["-", "mail"])
def test_a_stop_reaches_a_run_that_a_worker_holds(postgres: Cluster, named: str, seen: Witness, without: str) -> None:
    """The holder reads its mail, not only whoever opens the run next."""
    with Fleet(postgres, named, seen, lease=60.0, without=without) as team:  # a slow machine takes no run from it
        first = team.begin()
        run = enqueued(team, "loops")
        until("the worker holds the run", lambda: team.holds(first, run) and runner.read_state(run, team.store()).turns)
        receipt = runner.stop(run, "Ada", runs=team.store())
        assert not receipt.written
        if without == "-":
            until("the run was stopped", lambda: not team.open_runs())
            return
        turns = receipt.state.turns + 20
        until("the run has gone on", lambda: runner.read_state(run, team.store()).turns > turns)
        assert team.open_runs()
