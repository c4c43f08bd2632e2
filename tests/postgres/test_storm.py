"""The torture: a thousand runs, while everything that can go wrong on several machines does, at random.

`python -m tests.postgres.test_storm RUNS SEED` is a bigger one.
"""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg
import pytest

from tests.postgres.clerk import Clerk
from tests.postgres.crowd import Crowd
from tests.postgres.fleet import Fleet, Member, until
from tests.postgres.judge import Verdict, judge
from tests.postgres.pooler import pooler
from tests.postgres.witness import witness
from tests.support.figures import FIGURES
from tests.support.postgres import Cluster

WORKERS = 3
SKEWS = (-90.0, 0.0, 90.0)
EACH = 2
"""How often each trouble comes at least."""


@dataclass
class Storm:
    """Everything that goes wrong, drawn by `rng`. `could_forget` are the runs that were left to nobody, if any."""

    team: Fleet
    rng: random.Random
    done: Counter[str] = field(default_factory=Counter)
    could_forget: set[str] = field(default_factory=set)

    def kill(self, member: Member) -> None:
        """Power off for one machine."""
        self.team.end(member, signal.SIGKILL)
        self.team.begin(self.rng.choice(SKEWS))

    def terminate(self, member: Member) -> None:
        """A deploy."""
        self.team.end(member, signal.SIGTERM)
        self.team.begin(self.rng.choice(SKEWS))

    def freeze(self, member: Member) -> None:
        """A machine that stands still, for longer than its leases or not."""
        since = self.team.freeze(member)
        time.sleep(self.rng.uniform(0.2, 2.5) * self.team.lease)
        self.team.thaw(member, since)

    def cut(self, member: Member) -> None:
        """A machine that lives and does not reach the server."""
        self.team.cut(member)
        time.sleep(self.rng.uniform(0.2, 2.5) * self.team.lease)
        self.team.mend(member)

    def crash(self, _member: Member) -> None:
        """The server dies, and comes back."""
        self.team.cluster.stop(signal.SIGQUIT)
        time.sleep(self.rng.random())
        self.team.cluster.start()

    def backends(self, _member: Member) -> None:
        """A connection is ended every 10 ms, of whoever it is."""
        query = (
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = %s and pid <> pg_backend_pid() order by random() limit 1"
        )
        with psycopg.connect(self.team.cluster.url(), autocommit=True) as connection:
            for _ in range(150):
                connection.execute(query, (self.team.database,))
                time.sleep(0.01)

    def watch(self, over: threading.Event) -> None:
        """Look again and again for a run that nobody would look at any more."""
        while not over.wait(0.5):
            with contextlib.suppress(psycopg.Error):
                self.could_forget.update(self.team.forgotten())


def rage(team: Fleet, crowd: Crowd, seed: int, troubles: tuple[str, ...]) -> Storm:
    """Have the workers carry the runs while troubles come, until every run is over."""
    storm, over = Storm(team, random.Random(seed)), threading.Event()  # noqa: S311 (it can be repeated)
    watching = threading.Thread(target=storm.watch, args=(over,))
    for n in range(WORKERS):
        team.begin(SKEWS[n % len(SKEWS)])
    watching.start()
    crowd.begin()
    try:
        while not crowd.has_made_all or min(storm.done[name] for name in troubles) < EACH:
            least = min(storm.done[name] for name in troubles)
            name = storm.rng.choice([name for name in troubles if storm.done[name] == least])
            act: Callable[[Member], None] = getattr(storm, name)
            act(storm.rng.choice(team.members))
            storm.done[name] += 1
            time.sleep(storm.rng.random())
        until("the people have said all", lambda: crowd.is_done or crowd.failed, 0.2)
        if crowd.failed:
            return storm
        until("every run has ended", lambda: not team.open_runs(), 0.2)
    finally:
        over.set()
        watching.join()
        crowd.end()
    return storm


def tortured(
    cluster: Cluster, count: int, seed: int, troubles: tuple[str, ...], port: int | None = None
) -> tuple[Storm, Crowd, Verdict]:
    """A whole torture on a database of its own."""
    database = cluster.database()
    with witness() as seen, Fleet(cluster, database, seen, port=port) as team:
        crowd = Crowd(team.store(), Clerk(seen.url).agent(), count, seed, pace=0.03 * 8)
        storm = rage(team, crowd, seed, troubles)
        return storm, crowd, judge(team, crowd)


TROUBLES = ("kill", "terminate", "freeze", "cut", "crash", "backends")


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
def test_a_thousand_runs_end_right_whatever_happens_to_the_machines(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Every effect once, every answer applied once, every log whole, no run forgotten."""
    storm, crowd, verdict = tortured(postgres, 1000, 20, TROUBLES)
    record_property(FIGURES, told(storm, crowd, verdict))
    assert verdict.wrong == []
    assert storm.could_forget == set()


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
def test_so_do_runs_whose_workers_reach_the_server_through_a_pooler(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Each statement is another server process there: no session holds anything."""
    with pooler(postgres) as port:
        troubles = ("kill", "terminate", "freeze", "crash", "backends")  # all workers have one role at the server
        storm, crowd, verdict = tortured(postgres, 100, 21, troubles, port)
    record_property(FIGURES, told(storm, crowd, verdict))
    assert verdict.wrong == []
    assert storm.could_forget == set()


def told(storm: Storm, crowd: Crowd, verdict: Verdict) -> str:
    """What was tried, in a line."""
    said = Counter(f"{one.kind} {one.came}" for one in crowd.said)
    troubles = ", ".join(f"{name} {times}" for name, times in sorted(storm.done.items()))
    lives = verdict.events["run_resumed"]
    return (
        f"{len(crowd.runs)} runs ({crowd.forks} forks); {troubles}; {dict(said)}; {lives} resumes; "
        f"{verdict.after_a_freeze} doubled after a freeze behind the last check; wrong: {len(verdict.wrong)}"
    )


def _servers() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.close()


if __name__ == "__main__":
    for _cluster in _servers():
        _storm, _crowd, _verdict = tortured(_cluster, int(sys.argv[1]), int(sys.argv[2]), TROUBLES)
        sys.stdout.write(f"{told(_storm, _crowd, _verdict)}\nforgotten: {sorted(_storm.could_forget)}\n")
        sys.stdout.write("\n".join(_verdict.wrong[:50]) + "\n")
