"""The torture: hundreds of runs, while everything that can go wrong on several machines does, at random.

`STORM=1000 make test-full` has that many runs. Nothing here is judged by how quick a process was: only a run that never
ends is found by a deadline.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from tests.postgres.clerk import Clerk
from tests.postgres.crowd import SHARES, THREADS, Crowd
from tests.postgres.fleet import PATIENCE, Fleet, Member
from tests.postgres.judge import Verdict, judge
from tests.postgres.pooler import pooler
from tests.postgres.witness import witness
from tests.support.figures import FIGURES
from tests.support.postgres import Cluster

TROUBLES = ("kill", "terminate", "freeze", "cut", "crash", "backends", "hang")
WORKERS = 3
SKEWS = (-90.0, 0.0, 90.0)
RUNS = int(os.environ.get("STORM", "400"))
PACE = 0.1
"""Seconds between two runs that are made: about as long as the troubles last, so that each finds many."""
EACH = 150
"""Runs for which each trouble comes once; it comes twice in any case."""
LONGEST = 4.0
"""Leases that a worker is frozen or cut off for, at most."""


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
        member.process.send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.2, LONGEST) * self.team.lease)
        member.process.send_signal(signal.SIGCONT)

    def cut(self, member: Member) -> None:
        """A machine that lives and does not reach the server."""
        self.team.cut(member)
        time.sleep(self.rng.uniform(0.2, LONGEST) * self.team.lease)
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

    def hang(self, _member: Member) -> None:
        """Half of the server's processes stand still, some within a save, for longer than leases or not."""
        query = "select pid from pg_stat_activity where datname = %s and random() < 0.5"
        pids = [pid for (pid,) in self.team.cluster.execute(query, self.team.database)]
        for how, pause in ((signal.SIGSTOP, self.rng.uniform(0.2, LONGEST) * self.team.lease), (signal.SIGCONT, 0.0)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, how)
            time.sleep(pause)

    def watch(self, over: threading.Event) -> None:
        """Look again and again for a run that nobody would look at any more."""
        while not over.wait(0.5):
            with contextlib.suppress(psycopg.Error):
                self.could_forget.update(self.team.forgotten())


def rage(team: Fleet, crowd: Crowd, seed: int, troubles: tuple[str, ...], times: int, patience: float) -> Storm:
    """Have the workers carry the runs while each trouble comes so often, until every run is over or `patience` ends."""
    storm, over = Storm(team, random.Random(seed)), threading.Event()  # noqa: S311 (it can be repeated)
    watching = threading.Thread(target=storm.watch, args=(over,))
    for n in range(WORKERS):
        team.begin(SKEWS[n % len(SKEWS)])
    watching.start()
    crowd.begin()
    try:
        while not crowd.has_made_all or min(storm.done[name] for name in troubles) < times:
            least = min(storm.done[name] for name in troubles)
            name = storm.rng.choice([name for name in troubles if storm.done[name] == least])
            act: Callable[[Member], None] = getattr(storm, name)
            act(storm.rng.choice(team.members))
            storm.done[name] += 1
            time.sleep(storm.rng.random())
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not crowd.failed and not (crowd.is_done and not team.open_runs()):
            time.sleep(0.2)
    finally:
        over.set()
        watching.join()
        crowd.end()
    return storm


def tortured(
    cluster: Cluster,
    count: int,
    seed: int,
    troubles: tuple[str, ...] = TROUBLES,
    *,
    times: int = 2,
    patience: float = PATIENCE,
    shares: tuple[str, ...] = SHARES,
    **options: Any,
) -> tuple[list[str], str]:
    """A whole torture on a database of its own: what is wrong, and what was tried, in a line."""
    database = options.pop("database", None) or cluster.database()
    with witness() as seen, Fleet(cluster, database, seen, **options) as team:
        crowd = Crowd(team.store(), Clerk(seen.url).agent(), count, seed, PACE * THREADS, shares)
        storm = rage(team, crowd, seed, troubles, max(times, count // EACH), patience)
        verdict = judge(team, crowd)
    verdict.wrong += [f"{run} was left to nobody" for run in sorted(storm.could_forget)]
    verdict.wrong += [f"somebody was told {error!r}" for error in crowd.failed]
    return verdict.wrong, told(storm, crowd, verdict)


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
def test_hundreds_of_runs_end_right_whatever_happens_to_the_machines(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Every effect once, every answer and message applied once, every log whole, no run forgotten."""
    wrong, said = tortured(postgres, RUNS, 20)
    record_property(FIGURES, said)
    assert wrong == []


@pytest.mark.full
@pytest.mark.fault("several machines in trouble")
def test_so_do_runs_whose_workers_reach_the_server_through_a_pooler(
    postgres: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """Each statement is another server process there: no session holds anything."""
    with pooler(postgres) as port:
        troubles = tuple(trouble for trouble in TROUBLES if trouble != "cut")  # all workers have one role at the server
        wrong, said = tortured(postgres, RUNS // 4, 21, troubles, port=port)
    record_property(FIGURES, said)
    assert wrong == []


def told(storm: Storm, crowd: Crowd, verdict: Verdict) -> str:
    """What was tried, in a line."""
    said = Counter(f"{one.kind} {one.came}" for one in crowd.said)
    troubles = ", ".join(f"{name} {times}" for name, times in sorted(storm.done.items()))
    lives = verdict.events["run_resumed"]
    return (
        f"{len(crowd.runs)} runs ({crowd.forks} forks); {troubles}; {dict(said)}; {lives} resumes; "
        f"{verdict.late} doubled by a request that was late; wrong: {len(verdict.wrong)}"
    )
