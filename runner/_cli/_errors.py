"""Every error becomes a sentence, a hint and an exit status here, and nowhere else.

    0  finished
    1  stopped or failed
    2  usage: the command line can't be meant
    3  waiting for a person
    4  another process holds the run
    5  the log is damaged

A traceback tells a person nothing to do, so nobody gets one for bad input; an error that no rule here knows is shown as
one sentence too, and its traceback with `--verbose`.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import NoReturn

import click

import eventlog
import replay
import runner
from runner._cli._out import err, line

MAX_SAID = 2_000


class Status(IntEnum):
    """What the command's end says to whoever started it."""

    FINISHED = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    LOCKED = 4
    DAMAGED = 5


WORST_FIRST = (Status.DAMAGED, Status.FAILED, Status.LOCKED, Status.WAITING, Status.FINISHED)
"""The order in which the status of many runs is decided: the first one that any of them had."""


class Refused(Exception):
    """The command can't do what it was asked: a sentence, a hint, and the status to end with."""

    def __init__(self, why: str, hint: str = "", status: Status = Status.FAILED) -> None:
        super().__init__(why, hint, status)
        self.why = why
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        return self.why


def leave(status: Status) -> NoReturn:
    """End the command with this status."""
    raise click.exceptions.Exit(int(status))


def status(error: BaseException) -> Status:
    """The exit status that an error ends the command with."""
    if isinstance(error, Refused):
        return error.status
    if isinstance(error, eventlog.LogDamaged | replay.IllegalEvent | replay.Undecodable):
        return Status.DAMAGED
    if isinstance(error, eventlog.RunLocked) or type(error).__name__ == "WorldHeld":
        return Status.LOCKED
    if isinstance(error, eventlog.BadRunId | runner.BadAgent | runner.BadTool | runner.OtherAgent):
        return Status.USAGE
    if type(error).__name__ in ("NoSuchTask", "NoSuchTool"):
        return Status.USAGE
    return Status.FAILED


def say(error: BaseException) -> None:
    """The sentence and the hint, on stderr."""
    known = isinstance(error, Refused | eventlog.LogError | replay.ReplayError | runner.RunError)
    text = str(error) or type(error).__name__
    if isinstance(error, OSError):
        text = ": ".join(str(part) for part in (error.filename, error.strerror or error) if part)
    elif not known:
        text = f"{type(error).__name__}: {text}"
    err(f"refold: {line(text, MAX_SAID)}")
    hint = getattr(error, "hint", "") if known else "`refold --verbose ...` shows where it comes from."
    if hint and not isinstance(error, OSError):
        err(f"  {line(hint, MAX_SAID)}")


def is_broken_pipe(error: BaseException) -> bool:
    """Whether whoever read our output has gone: that is no failure to talk about."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE
