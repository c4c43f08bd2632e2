"""Every error becomes a sentence, a hint and an exit status here, and nowhere else.

    0  finished
    1  stopped or failed
    2  usage: the command line can't be meant
    3  waiting for a person
    4  another process holds the run
    5  the log is damaged
    6  finished, and a result could not be kept as it came

Bad input never gives a traceback. An error that no rule here knows is one sentence too; `--verbose` adds its traceback.
"""

from enum import IntEnum
from typing import NoReturn

import click

import eventlog
import replay
import runner
from runner._cli._io.out import err
from runner._cli._render.escape import one_line

MAX_SAID = 2_000


class Status(IntEnum):
    """What the exit status means."""

    FINISHED = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    LOCKED = 4
    DAMAGED = 5
    LOSSY = 6


WORST_FIRST = (Status.DAMAGED, Status.FAILED, Status.LOCKED, Status.WAITING, Status.LOSSY, Status.FINISHED)
"""The order in which the status of many runs is decided: the first one that any of them had."""


class Refused(Exception):
    """The command can't do what it was asked: a sentence, a hint, and the status to end with."""

    def __init__(self, why: str, hint: str = "", status: Status = Status.FAILED) -> None:
        super().__init__(why, hint, status)
        self.why = why
        self.hint = hint
        self.exit_status = status

    def __str__(self) -> str:
        return self.why


def leave(status: Status) -> NoReturn:
    """End the command with this status."""
    raise click.exceptions.Exit(int(status))


def status(error: BaseException) -> int:
    """The exit status that an error ends the command with: its own `exit_status`, or the one that our rules give it."""
    own = getattr(error, "exit_status", None)
    if isinstance(own, int):
        return own
    if isinstance(error, eventlog.LogDamaged | replay.IllegalEvent | replay.Undecodable):
        return Status.DAMAGED
    if isinstance(error, eventlog.RunLocked):
        return Status.LOCKED
    if isinstance(error, eventlog.BadRunId | runner.BadAgent | runner.BadTool | runner.errors.OtherAgent):
        return Status.USAGE
    return Status.FAILED


def say(error: BaseException) -> None:
    """The sentence and the hint, on stderr."""
    known = hasattr(error, "exit_status") or isinstance(error, eventlog.LogError | replay.ReplayError | runner.RunError)
    text = str(error) or type(error).__name__
    if isinstance(error, OSError):
        text = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    elif not known:
        text = f"{type(error).__name__}: {text}"
    err(f"refold: {one_line(text, MAX_SAID)}")
    hint = getattr(error, "hint", "") if known else "`refold --verbose ...` shows where it comes from."
    if hint and not isinstance(error, OSError):
        err(f"  {one_line(hint, MAX_SAID)}")
