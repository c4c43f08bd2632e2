"""Carries a run on for a command: prints the answer or the open questions, and gives the exit status.

What is not finished names the command that goes on.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import runner
from runner._cli import options
from runner._cli._io import out
from runner._cli._io.ask import Command, Terminal, at_terminal
from runner._cli._io.errors import Refused, Status
from runner._cli._io.progress import Watch, is_drawable
from runner._cli._render import question_text

Result = runner.Outcome
Go = Callable[..., Coroutine[Any, Any, Result]]

RAISES = {
    "TurnLimit": " --max-turns N",
    "DollarLimit": " --max-dollars X",
    "TooManyResumes": " --max-resumes N",
    "Deadline": " --until TIME",
    "WorkspaceChanged": " --accept-workspace",
}
"""What the command that goes on needs after a stop: without it the run stops again at once."""


def carry_on(go: Go, runs: str, again: Callable[[str], str], *, command: str | None = None) -> Result:
    """Run to where the run finishes or pauses, and print that.

    `go` is given `watch` and `on_question`; `command` is asked what a person must decide, else the person at the
    terminal; `again` makes the command that goes on with a run. Raises `Refused` when the run stopped, and what else
    `go` raises.
    """
    with _view(runs) as watch:
        terminal = Terminal(watch, options.account()) if at_terminal() else None
        hook = terminal if command is None else Command(command, watch)
        try:
            result = asyncio.run(go(watch=watch, on_question=hook))
        except runner.Stopped as stopped:
            if isinstance(stopped, runner.errors.Interrupted):
                _park(stopped.run, runs)
            raise Refused(str(stopped), _hint(stopped, again)) from stopped
        except KeyboardInterrupt:  # asked for twice: nothing was waited for
            if watch.state is None:
                where = f"What was begun is in: refold ls --runs {options.shown(runs)}"
                raise Refused("stopped at once, before it was known what was saved", where) from None
            run = watch.state.run
            _park(run, runs)
            why = f"{run} stopped at once; a call that was running may have happened and is in doubt"
            raise Refused(why, f"Go on: {again(run)}") from None
    told(result, runs)
    if isinstance(result, runner.Paused):
        out.out(f"Then go on: {again(result.run)}")
    return result


@contextmanager
def _view(runs: str) -> Iterator[Watch]:
    """The view of a run in `runs` that fits where stderr goes."""
    if not is_drawable(sys.stderr):
        yield Watch()
        return
    from runner._cli._io.live import Live

    with Live(runs) as live:
        yield live


def _park(run: str, runs: str) -> None:
    """Keep a run that a person at the terminal ended from being carried on by a worker of the same directory."""
    if at_terminal() and not runner.read_state(run, runs).over:
        runner.park(run, options.account(), runs=runs)


def _hint(stopped: runner.Stopped, again: Callable[[str], str]) -> str:
    """What to do after a stop, with the command that goes on unless the stop is for good."""
    if isinstance(stopped, runner.errors.StoppedByPerson):
        return stopped.hint
    return f"{stopped.hint} Go on: {again(stopped.run)}{RAISES.get(stopped.reason, '')}"


def told(result: Result, runs: str) -> None:
    """The answer, or the questions with the commands that answer them."""
    if isinstance(result, runner.Finished):
        out.out(result.answer)
        if result.state.lossy:
            calls = ", ".join(result.state.lossy)
            out.err(f"refold: the results of {calls} could not be kept as they came; each says what is lost")
        return
    out.out(f"{result.run} waits for a person:")
    for text in question_text.lines(result.state, runs):
        out.line(f"  {text}")


def status(result: Result) -> Status:
    """The exit status of a run that did not stop."""
    if not isinstance(result, runner.Finished):
        return Status.WAITING
    return Status.LOSSY if result.state.lossy else Status.FINISHED
