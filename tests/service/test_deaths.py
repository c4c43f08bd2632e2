"""Workers die, leave and join; what they carried goes on in the others, and nothing happens twice."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import eventlog
import runner
from runner._service.worker import LOOK
from tests.service import scenes
from tests.support import stage
from tests.support.figures import FIGURES
from tests.support.forkserver import Child, ForkServer

PATIENCE = 120.0


class Workers:
    """Worker processes of one place."""

    def __init__(self, forks: ForkServer, runs: Path, which: str) -> None:
        self.effects = runs.parent / "effects"
        self.alive: list[Child] = []
        self.slowest = 0.0
        self._forks, self._runs, self._which = forks, runs, which
        self._up = runs.parent / "effects-up"

    def join(self) -> Child:
        """Begin one more, and wait until it is up."""
        began = time.monotonic()
        child = self._forks.begin(scenes.serve, runs=self._runs, effects=self.effects, which=self._which)
        self.alive.append(child)
        stage.within(PATIENCE, lambda: str(child.pid) in scenes.effects_of(self._up))
        self.slowest = max(self.slowest, time.monotonic() - began)
        return child

    def end(self, child: Child, number: int = signal.SIGTERM) -> None:
        """End one, and wait for it."""
        self.alive.remove(child)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)
        ended = child.end()
        assert ended.killed or ended.value == [], ended.value

    def end_all(self) -> None:
        """End those that are left."""
        for child in [*self.alive]:
            self.end(child)


def phases(runs: Path) -> Counter[str]:
    """How many runs are in which phase."""
    return Counter(info.status.phase if info.status else "unreadable" for info in runner.list_runs(runs))


@pytest.mark.fault("death of a worker")
def test_the_runs_of_a_worker_that_is_killed_go_on_in_the_other_at_once(
    runs: Path, forks: ForkServer, record_property: Callable[[str, object], None]
) -> None:
    """Whoever sees that it is gone looks at all runs at once, and not after the half minute that it takes otherwise."""
    workers = Workers(forks, runs, "patient")
    agent = scenes.patient(str(workers.effects))
    for number in range(10):
        runner.enqueue(agent, stage.TASK, runs=runs, run=f"r-{number}")
    first = workers.join()
    stage.within(PATIENCE, lambda: len(scenes.effects_of(workers.effects)) == 10)
    workers.join()
    workers.end(first, signal.SIGKILL)
    died = time.monotonic()
    stage.within(PATIENCE, lambda: phases(runs) == {"done": 10})
    took = time.monotonic() - died
    workers.end_all()
    record_property(FIGURES, f"{took:.1f} s after the death of a worker its runs are done")
    assert took < LOOK / 2, took
    attempts = [f"r-{number}-{attempt}" for number in range(10) for attempt in (1, 2)]
    assert sorted(scenes.effects_of(workers.effects)) == attempts


@pytest.mark.full
@pytest.mark.fault("death of a worker")
def test_a_run_that_kills_its_worker_each_time_stops_at_ten_and_its_neighbours_finish(
    runs: Path, forks: ForkServer
) -> None:
    """Lives that came to something are not counted, so the healthy ones outlive it."""
    workers = Workers(forks, runs, "poison healthy")
    runner.enqueue(scenes.poison(""), stage.TASK, runs=runs, run="poison")
    for number in range(20):
        runner.enqueue(scenes.healthy(""), stage.TASK, runs=runs, run=f"r-{number}")
    deaths = 0
    for _ in stage.ticks(2 * PATIENCE):
        if phases(runs)["done"] == 20 and runner.read_state("poison", runs).stopped:
            break
        if not workers.alive:
            workers.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(workers.alive[0].pid, 0)
            time.sleep(0.05)
            continue
        workers.end(workers.alive[0])
        deaths += 1
    workers.end_all()
    state = runner.read_state("poison", runs)
    assert state.stopped is not None
    assert (state.stopped.reason, state.resumes) == ("TooManyResumes", 10)
    assert phases(runs)["done"] == 20


@pytest.mark.full
@pytest.mark.fault("death of a worker")
def test_whatever_workers_do_every_effect_happens_once_and_nobody_is_asked_needlessly(
    runs: Path, forks: ForkServer, record_property: Callable[[str, object], None]
) -> None:
    """Three workers, killed and drained at random moments, while a person approves."""
    source = random.Random(7)  # noqa: S311 (a test's)
    workers = Workers(forks, runs, "shop")
    agent = scenes.shop(str(workers.effects))
    names = [f"r-{number}" for number in range(40)]
    for name in names:
        runner.enqueue(agent, stage.TASK, runs=runs, run=name)
    ends: Counter[int] = Counter()
    asked: set[str] = set()
    for _ in stage.ticks(2 * PATIENCE):
        while len(workers.alive) < 3:
            workers.join()
        infos = runner.list_runs(runs)
        if all(info.status and info.status.phase == "done" for info in infos):
            break
        for info in infos:
            for question in info.status.open_questions if info.status else ():
                asked.add(question.partition("-")[2])
                with contextlib.suppress(runner.RunLocked, runner.errors.AlreadyAnswered):
                    runner.approve(info.run, question, "olga", runs=runs)
        number = signal.SIGKILL if source.random() < 0.6 else signal.SIGTERM
        workers.end(source.choice(workers.alive), number)
        ends[number] += 1
        time.sleep(source.random() * max(0.5, 2 * workers.slowest))  # on a slow machine lives take longer, too
    workers.end_all()
    record_property(FIGURES, f"{ends[signal.SIGKILL]} killed, {ends[signal.SIGTERM]} drained")
    assert phases(runs) == {"done": len(names)}
    effects = Counter(word.partition("-")[0] for word in scenes.effects_of(workers.effects))
    assert effects == {"charge": 2 * len(names), "letter": len(names), "refund": len(names)}
    assert max(Counter(scenes.effects_of(workers.effects)).values()) == 1
    assert asked == {"approve"}
    assert max(runner.read_state(name, runs).resumes for name in names) < 10
    assert all(eventlog.store(runs).verify(name).ok for name in names)
