"""SIGKILLs at random moments, at the agent, at its tracker or at both, while a job is carried on again and again.

Nothing is simulated: every life is a process of its own, forked from this one because imports take longer than a short
life; the disk syncs, and the tracker is behind HTTP. Each blow falls on a life that has written at least one line, a
random while later, and counts as one scenario; moments can't be repeated, so a run that went wrong is left where it is,
to be looked at.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import replay
import runner
from runner.triage import _tracker_store
from runner.triage._job import Job
from runner.triage._killed import kill_tracker

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from runner import crashtest

TASKS = ("m1-done-after-delete", "batch")
LATER = 0.8
"""A blow falls at most so many seconds after the life's first line, so that a life can get past the longest tool."""

_PATIENCE = 120.0
_FALLS = 3
"""Lives that may end in a row without having been killed and without having finished."""


def random_kills(
    seconds: float = 60.0,
    *,
    tasks: Iterable[str] = TASKS,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
    failed: Callable[[str], None] | None = None,
) -> list[crashtest.Row]:
    """Let blows fall on each task for its share of `seconds`; then the run at hand may finish. A row for each task.

    `scenarios` are the blows, `paid_twice` the asks whose reply no line holds, `questions` what a person was asked by
    the ladder. `progress` is called with the seconds that have passed, `failed` with a sentence for each run that is
    unfinished or fails a check of its catalogue; such a run's folder is kept and named.
    """
    chance = random.Random(seed)  # noqa: S311 (blows, no secrets)
    names = tuple(tasks)
    began = time.monotonic()
    rows = []
    for task in names:
        storm = _Storm(task, chance, time.monotonic() + seconds / len(names))
        while storm.rages():
            storm.carry_through(lambda: progress(time.monotonic() - began) if progress is not None else None, failed)
        rows.append(storm.row())
    return rows


class _Storm:
    """What falls on one task, and what was counted."""

    def __init__(self, task: str, chance: random.Random, until: float) -> None:
        self._task = task
        self._chance = chance
        self._until = until
        self._counts: Counter[str] = Counter()

    def rages(self) -> bool:
        """Whether blows still fall."""
        return time.monotonic() < self._until

    def row(self) -> crashtest.Row:
        """What was counted."""
        from runner import crashtest  # noqa: PLC0415 (late: nothing else of the job needs it)

        names = ("scenarios", "duplicates", "lost", "paid_twice", "questions", "unfinished", "failures")
        return crashtest.Row(mode=f"random {self._task}", without="", **{name: self._counts[name] for name in names})

    def carry_through(self, progress: Callable[[], None], failed: Callable[[str], None] | None) -> None:
        """One run, from its start to its end, under blows."""
        folder = Path(tempfile.mkdtemp(prefix="refold-random-"))
        limits = runner.Limits(turns=1_000, dollars=10_000.0, resumes=10_000)
        job = Job.of(self._task, folder / "runs", approve="off", limits=limits)
        whole = True
        try:
            finished = self._rage(job, progress)
            whole = self._count(job, finished=finished)
        finally:
            kill_tracker(job)
            if whole:
                shutil.rmtree(folder, ignore_errors=True)
        if not whole and failed is not None:
            failed(f"a run of {self._task} went wrong under random SIGKILLs; it is kept in {folder}")

    def _rage(self, job: Job, progress: Callable[[], None]) -> bool:
        """Life after life; whether the run finished."""
        falls = 0
        while falls < _FALLS:
            progress()
            life, struck = _begun(job), False
            try:
                while not struck and self.rages() and self._is_due(job, life):
                    struck = self._strike(job, life)
                life.join(_PATIENCE)
            finally:
                life.kill()
                life.join()
            if life.exitcode == 0:
                return True
            falls = 0 if struck else falls + 1
        return False

    def _is_due(self, job: Job, life: BaseProcess) -> bool:
        """Wait until the log grows and a random while more; False when the life ended before."""
        before, deadline = _written(job), time.monotonic() + _PATIENCE
        while _written(job) == before:
            if not life.is_alive() or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        life.join(self._chance.random() * LATER)
        return life.is_alive()

    def _strike(self, job: Job, life: BaseProcess) -> bool:
        """One blow; whether the agent was hit."""
        whom = self._chance.choice(("agent", "agent", "tracker", "both"))
        self._counts["scenarios"] += 1
        if whom != "agent":
            kill_tracker(job)
        if whom != "tracker":
            life.kill()
        return whom != "tracker"

    def _count(self, job: Job, *, finished: bool) -> bool:
        """Add up what the world and the log hold; whether all is as promised."""
        run = job.newest()
        causes = Counter(issue.cause for issue in _tracker_store.issues(job.world.tracker))
        notes = Counter((note.issue, note.text) for note in _tracker_store.comments(job.world.tracker))
        expected = job.task.expected
        self._counts["duplicates"] += sum((causes + Counter(map(str, notes.elements()))).values())
        self._counts["duplicates"] -= len(causes) + len(notes)
        self._counts["lost"] += len({fix.cause for fix in expected.fixes} - set(causes))
        self._counts["lost"] += max(0, expected.comments - len(notes))
        self._counts["unfinished"] += not finished
        if run is None:
            self._counts["failures"] += 1
            return False
        state = runner.read(run, job.runs)
        self._counts["paid_twice"] += state.spent.lost_asks
        self._counts["questions"] += sum(question.kind == "settle" for question in state.questions.values())
        whole = finished and all(outcome.ok for outcome in job.check(run))
        self._counts["failures"] += not whole
        return whole


def _written(job: Job) -> int:
    """A number that changes whenever the run's log is written to."""
    logs = job.runs.glob("*/seg-*.jsonl") if job.runs.exists() else ()
    return sum(log.stat().st_mtime_ns for log in logs)


def _begun(job: Job) -> BaseProcess:
    """A life that has begun."""
    import multiprocessing  # noqa: PLC0415 (late: no other life of the job needs it)

    import httpx  # noqa: F401, PLC0415 (late, as in the tools; here, so that no life has to import it)

    life = multiprocessing.get_context("fork").Process(target=_live, args=(job,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of this process are not in the fork
        life.start()
    return life


def _live(job: Job) -> None:
    """One life: carry the task's newest run on, however often it was resumed.

    What it prints goes beside the runs. When the ladder asks, the tracker's file says what is true.
    """
    said = os.open(job.runs.parent / "said", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for descriptor in (1, 2):
        os.dup2(said, descriptor)

    def truth(question: replay.Question) -> runner.Answer:
        key = runner.key(job.newest() or "", question.call)
        for filed in (issue for issue in _tracker_store.issues(job.world.tracker) if issue.key == key):
            return runner.Answer("done", "the truth", f'{{"issue": {filed.id}, "cause": "{filed.cause}"}}')
        for noted in (comment for comment in _tracker_store.comments(job.world.tracker) if comment.key == key):
            return runner.Answer("done", "the truth", f'{{"issue": {noted.issue}, "comment": {noted.id}}}')
        return runner.Answer("rerun", "the truth")

    asyncio.run(job.run(on_question=truth))
