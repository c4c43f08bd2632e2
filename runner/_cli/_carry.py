"""Carrying a run on, for the commands that do: what it came to is printed, and becomes the exit status.

Every end that is not the last one names the command that goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import runner
from replay import State
from runner._cli import _hook, _out, _questions
from runner._cli._ask import Terminal, View, at_terminal
from runner._cli._errors import Refused, Status
from runner._cli._options import account
from runner._cli._watch import view

Result = runner.Finished | runner.Paused
Go = Callable[..., Coroutine[Any, Any, Result]]

RAISES = {
    "TurnLimit": " --max-turns N",
    "DollarLimit": " --max-dollars X",
    "TooManyResumes": " --max-resumes N",
    "WorkspaceChanged": " --accept-workspace",
}
"""What the command that goes on needs after a stop: without it the run stops again at once."""


def carry(go: Go, runs: Path, again: Callable[[str], str], *, command: str | None = None) -> Result:
    """Run to where the run finishes or pauses, and print that.

    `go` is given `watch` and `on_question`; `command` is asked what a person must decide, else whoever sits at the
    terminal; `again` makes the command that goes on with a run. Raises `Refused` when the run stopped, and what else
    `go` raises.
    """
    with view() as watch:
        hook = _chosen(command, watch)
        try:
            result = asyncio.run(go(watch=watch, on_question=hook))
        except runner.RunStopped as stopped:
            raise _stopped(stopped, again) from stopped
        except KeyboardInterrupt:
            raise _at_once(watch.state, again) from None
    told(result, runs)
    if isinstance(result, runner.Paused):
        _out.out(f"Then go on: {again(result.run)}")
    return result


def _chosen(command: str | None, watch: View) -> runner.OnQuestion | None:
    if command is not None:
        return _hook.Command(command, watch)
    return Terminal(watch, account()) if at_terminal() else None


def _stopped(stopped: runner.RunStopped, again: Callable[[str], str]) -> Refused:
    """A stop as a sentence, with the command that goes on unless the stop is for good."""
    if isinstance(stopped, runner.StoppedByPerson):
        return Refused(str(stopped), stopped.hint)
    needs = RAISES.get(stopped.reason, "")
    return Refused(str(stopped), f"{stopped.hint} Go on: {again(stopped.run)}{needs}")


def _at_once(state: State | None, again: Callable[[str], str]) -> Refused:
    """A stop that was asked for twice: nothing was waited for."""
    if state is None:
        return Refused("stopped before anything was saved")
    why = f"{state.run} stopped at once; a call that was running may have happened and is open"
    return Refused(why, f"Go on: {again(state.run)}")


def told(result: Result, runs: Path) -> None:
    """The answer, or the questions with the commands that answer them."""
    if isinstance(result, runner.Finished):
        _out.out(result.answer)
        return
    _out.out(f"{result.run} waits for a person:")
    for text in _questions.lines(result.state, runs):
        _out.out(f"  {text}")


def status(result: Result) -> Status:
    """The exit status of a run that did not stop."""
    return Status.FINISHED if isinstance(result, runner.Finished) else Status.WAITING
