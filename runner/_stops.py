"""Stops: why a run goes no further. Each is logged under its class's name, then raised.

RunStopped                        beside the phase; a resume clears it, except a final one (spec row 2)
├── TurnLimit, TokenLimit, DollarLimit, TooManyResumes
├── WorkspaceChanged, ModelUnavailable
└── Interrupted, StoppedByPerson, Forked
"""

from __future__ import annotations

from runner.errors import RunError


class RunStopped(RunError):
    """The run stopped and its log says so. `reason` is the class's name; `detail` says more."""

    hint = "Resume it."

    def __init__(self, run: str, detail: str = "") -> None:
        super().__init__(run, detail)
        self.run = run
        self.detail = detail

    @property
    def reason(self) -> str:
        """The word that the log holds for this stop."""
        return type(self).__name__

    def __str__(self) -> str:
        return (
            f"{self.run} stopped ({self.reason}): {self.detail}"
            if self.detail
            else f"{self.run} stopped ({self.reason})"
        )


class TurnLimit(RunStopped):
    """The run used its turns (spec row 3)."""

    hint = "Resume it with a higher limit of turns."


class TokenLimit(RunStopped):
    """The run used its tokens (spec row 3)."""

    hint = "Resume it with a higher limit of tokens."


class DollarLimit(RunStopped):
    """The run used its dollars, the bounds of lost asks included (spec row 3)."""

    hint = "Resume it with a higher limit of dollars."


class TooManyResumes(RunStopped):
    """The run was resumed as often as it may be (spec row 4)."""

    hint = "Find out why it keeps ending; then resume it with a higher limit of resumes."


class WorkspaceChanged(RunStopped):
    """Files the run wrote no longer hold what it wrote (spec row 5). `detail` names them."""

    hint = "Restore the files, or resume accepting the workspace as it is."


class ModelUnavailable(RunStopped):
    """The model could not be asked: five retries in a row failed, or the failure was permanent."""

    hint = "See to the cause, then resume it."


class Interrupted(RunStopped):
    """A signal or a cancellation parked the run (spec row 9)."""

    hint = "Resume it when you like; nothing that had returned is lost."


class StoppedByPerson(RunStopped):
    """A person stopped the run for good (spec row 2)."""

    hint = "It stays stopped. Start a new one."


class Forked(RunStopped):
    """The run was stopped for good because a fork of it goes on in its place (spec row 2). `detail` names the fork."""

    hint = "Resume the fork. If it is not there, its making was cut off: fork this run again."


STOPS: dict[str, type[RunStopped]] = {
    c.__name__: c
    for c in (
        TurnLimit,
        TokenLimit,
        DollarLimit,
        TooManyResumes,
        WorkspaceChanged,
        ModelUnavailable,
        Interrupted,
        StoppedByPerson,
        Forked,
    )
}
"""Every reason a log may name, and the error it is raised as."""
