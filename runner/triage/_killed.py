"""The task `sweep` under real SIGKILL: a real process, real syncs, a real workspace, and the tracker behind HTTP.

Every death takes the tracker's process too, so that the next life has to start it before it can ask what happened.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

import runner
from runner.triage import _tracker_store
from runner.triage._job import Job
from runner.triage._tracker_process import Address

if TYPE_CHECKING:
    from runner import crashtest

TASK = "sweep"


class Place:
    """The job's world in a folder, opened by whichever process lives in it."""

    def __init__(self, folder: Path) -> None:
        """Lay it out unless it is there."""
        self.job = Job.of(TASK, folder / "runs", folder, approve="off")
        self.job.world.lay(self.job.task)

    def agent(self) -> runner.Agent:
        """The job's own agent."""
        return self.job.agent()

    def effects(self) -> dict[str, int]:
        """How often each thing the job is to do has been done: in the tracker's file, and in the workspace."""
        world, done = self.job.world, {}
        done["issue"] = len(_tracker_store.issues(world.tracker))
        done["comment"] = len(_tracker_store.comments(world.tracker))
        for fix in self.job.task.expected.fixes:
            patched = (world.workspace / fix.patch.path).read_text(encoding="utf-8")
            done[f"patch {fix.crash}"] = patched.count(fix.patch.new)
            done[f"test {fix.crash}"] = int((world.workspace / fix.test).exists())
        return done


def killed(
    points: int = 30,
    *,
    seed: int = 0,
    only: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> crashtest.Swept:
    """Kill the job at so many of its points, once and twice, and count. The arguments are those of `crashtest.killed`.

    A scenario takes a second or so; all of this lies in `TMPDIR`.
    """
    import httpx  # noqa: F401, PLC0415 (late, as in the tools; here, so that no life has to import it)

    from runner import crashtest  # noqa: PLC0415 (late: nothing else of the job needs it)

    return crashtest.killed(
        world=Place,
        agent=Place.agent,
        task=TASK,
        effects=Place.effects,
        points=points,
        seed=seed,
        only=only,
        between=lambda place: kill_tracker(place.job),
        progress=progress,
    )


def kill_tracker(job: Job) -> None:
    """End the tracker of a job's world by SIGKILL, if it has one."""
    with suppress(OSError, msgspec.MsgspecError):
        address = msgspec.json.decode((job.world.path / "tracker.address").read_bytes(), type=Address)
        os.kill(address.pid, signal.SIGKILL)
