"""What can go wrong around the triage job, outside the run itself.

runner.RunError
└── TriageError
    ├── NoSuchTask        there is no data for a task of that name
    ├── NoSuchTool        `die_before` or `die_after` names a tool the job does not have
    ├── WorldHeld         another process works in this world
    ├── WrongWorld        the world was laid out for another task, or is no directory of ours
    └── TrackerDown       the tracker could not be started
"""

from __future__ import annotations

import runner


class TriageError(runner.RunError):
    """The root of this job's own errors."""


class NoSuchTask(TriageError):
    """There is no data for a task of that name."""

    def __init__(self, task: str, known: tuple[str, ...]) -> None:
        super().__init__(task, known)
        self.task = task
        self.known = known
        self.hint = f"The tasks are: {', '.join(known)}."

    def __str__(self) -> str:
        return f"there is no task {self.task!r}"


class NoSuchTool(TriageError):
    """A tool to die at that the job does not have, so that it could never be called."""

    def __init__(self, tool: str, known: tuple[str, ...]) -> None:
        super().__init__(tool, known)
        self.tool = tool
        self.known = known
        self.hint = f"The tools are: {', '.join(known)}."

    def __str__(self) -> str:
        return f"the job has no tool {self.tool!r}, so nothing can die there"


class WorldHeld(TriageError):
    """Another process works in this world; nothing was touched. `pid` is None when it left no readable name."""

    hint = (
        "Wait for that process to end, or end it; the kernel drops the lock when it dies. Do not delete the lock file."
    )

    def __init__(self, world: str, pid: int | None) -> None:
        super().__init__(world, pid)
        self.world = world
        self.pid = pid

    def __str__(self) -> str:
        holder = "a process that left no name" if self.pid is None else f"process {self.pid}"
        return f"the world {self.world} is held by {holder}"


class WrongWorld(TriageError):
    """The directory can't be this task's world."""

    hint = "Give another directory with `--world DIR`, or `--new`: then this one is kept under another name."

    def __init__(self, world: str, why: str) -> None:
        super().__init__(world, why)
        self.world = world
        self.why = why

    def __str__(self) -> str:
        return f"{self.world} can't be the world of this task: {self.why}"


class TrackerDown(TriageError):
    """The tracker did not answer within `seconds`, though it was started."""

    hint = "`tracker.log` in the world says what it said when it was started."

    def __init__(self, world: str, seconds: float) -> None:
        super().__init__(world, seconds)
        self.world = world
        self.seconds = seconds

    def __str__(self) -> str:
        return f"the tracker of {self.world} did not answer within {self.seconds:g} s"
