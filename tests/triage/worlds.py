"""What the tests of the triage job share: a world to break, trackers that end, a job in a process of its own."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import eventlog
import replay
import runner
from runner import triage
from runner.triage import _files, _tracker_process
from tests.support import stage
from tests.triage import rerecord

TASK, BATCH = "m1-done-after-delete", "batch"
TOOLS = (
    "crash_list",
    "code_read",
    "code_search",
    "code_patch",
    "test_write",
    "test_run",
    "issue_search",
    "issue_file",
)


class Done(NamedTuple):
    """A finished run of the job."""

    job: triage.Job
    run: str

    def failed(self, *only: str) -> dict[str, str]:
        """The names of the checks that fail, with their reasons."""
        return {outcome.name: outcome.why for outcome in self.job.check(self.run, *only) if not outcome.ok}

    def copy(self, place: Path) -> Done:
        """The same in another place, to be broken there."""
        shutil.copytree(self.job.runs, place / "runs")
        task = self.job.task.name
        shutil.copytree(self.job.world.path, place / "runs.world" / task)
        return Done(triage.Job.of(task, place / "runs"), self.run)

    def sql(self, statement: str, *values: object) -> None:
        """Change the tracker's file."""
        with closing(sqlite3.connect(self.job.world.tracker)) as db, db:
            db.execute(statement, values)

    def file(self, path: str) -> Path:
        """A file of the workspace."""
        return self.job.world.workspace / path

    def events(self) -> list[replay.AnyEvent]:
        """What the log holds."""
        return [event for line in stage.lines(self.job.runs, self.run) for event in line]

    def rewrite(self, edit: Callable[[list[replay.AnyEvent]], Sequence[replay.AnyEvent]]) -> None:
        """Write the log anew, line by line, with what `edit` makes of each line's events; its chain holds."""
        lines = [line for line in eventlog.store(self.job.runs).read(self.run).lines if line.events]
        edited = [
            (line.at, [replay.encode(e) for e in edit([replay.decode(r) for r in line.events])]) for line in lines
        ]
        shutil.rmtree(self.job.runs / self.run)
        with eventlog.store(self.job.runs).create(self.run, at=edited[0][0], events=edited[0][1]) as log:
            for at, events in edited[1:]:
                if events:
                    log.append(at, events)


async def carry_on(runs: str, task: str = TASK, resumes: int = 10, **options: Any) -> None:
    """Carry the job on, in a fork that may die; `options` are those of `Job.of`."""
    await triage.Job.of(task, runs, limits=runner.Limits(turns=120, resumes=resumes), **options).run()


def finish(runs: Path, task: str = TASK, **options: Any) -> Done:
    """Carry the job on in this process; it must finish."""
    job = triage.Job.of(task, runs, approve="off", **options)
    result = asyncio.run(job.run())
    assert isinstance(result, runner.Finished)
    return Done(job, result.run)


def recorded(task: str, place: Path) -> Done:
    """A run that has finished at `place`, made there unless it is; its replies are in `place`/recording.jsonl."""
    job = triage.Job.of(task, place / "runs", approve="off")
    if not (place / "runs").exists():
        place.mkdir(exist_ok=True)
        asyncio.run(job.run(model=rerecord.recorder(task, place / "recording.jsonl")))
    run = job.newest()
    assert run is not None
    assert runner.read_state(run, job.runs).phase == "done"
    return Done(job, run)


def tracker_pid(world: Path) -> int | None:
    """The process that said it is the world's tracker."""
    words = _files.said(world / "tracker.lock")
    return int(words[0]) if words else None


def end_trackers(place: Path) -> None:
    """Kill every tracker of a world somewhere under `place`."""
    for lock in place.rglob("tracker.lock"):
        with suppress(OSError):  # a test may have put something else there
            _tracker_process.kill(lock.parent)


def is_locked(file: Path) -> bool:
    """Whether somebody lives who locked this file: a lock ends with its holder, even where nobody reaps it."""
    held = _files.take(file)
    if held is not None:
        held.close()
    return held is None
