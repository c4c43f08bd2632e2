"""What can go wrong around the triage job, outside the run itself.

`exit_status` is what `refold` ends with: 2 for what can't be meant, 4 for what another process holds, else 1.
"""

import runner


class NoSuchTask(runner.RunError):
    """There is no data for a task of that name."""

    exit_status = 2
    sentence = "there is no task {task!r}"
    hint = "The tasks are: {known}."
    task: str
    known: tuple[str, ...]


class NoSuchTool(runner.RunError):
    """A tool to die at that the job does not have, so that it could never be called."""

    exit_status = 2
    sentence = "the job has no tool {tool!r}, so nothing can die there"
    hint = "The tools are: {known}."
    tool: str
    known: tuple[str, ...]


class WorldHeld(runner.RunError):
    """Another process works in this world; nothing was touched. `pid` is None when it left no readable name."""

    exit_status = 4
    hint = (
        "Wait for that process to end, or end it; the kernel drops the lock when it dies. Do not delete the lock file."
    )
    world: str
    pid: int | None

    def __str__(self) -> str:
        holder = "a process that left no name" if self.pid is None else f"process {self.pid}"
        return f"the world {self.world} is held by {holder}"


class WrongWorld(runner.RunError):
    """The directory can't be this task's world."""

    sentence = "{world} can't be the world of this task: {why}"
    hint = "Give another directory with `--world DIR`, or `--new`: then this one is kept under another name."
    world: str
    why: str


class TrackerDown(runner.RunError):
    """The tracker does not listen, though it was started."""

    sentence = "the tracker of {world} was started and does not listen"
    hint = "`tracker.log` in the world says what it said when it was started."
    world: str
