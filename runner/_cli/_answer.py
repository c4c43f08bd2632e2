"""`refold approve`, `refuse`, `settle` and `stop`: what a person says to a run that no process is running.

The log has one writer. On a live run these commands wait two seconds for the lock and then say who holds it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

import eventlog
import runner
from replay import State
from runner._cli import _options, _out
from runner._cli._errors import Refused, Status

WAIT = 2.0
"""Seconds for which a live run's lock is waited for."""

_BETWEEN = 0.05


@click.command()
@_options.run
@_options.question
@_options.runs
@_options.by
def approve(run: str, question: str, runs: Path, who: str) -> None:
    """Say yes to a QUESTION of RUN: this call may run.

    The yes covers exactly the arguments that were shown. The call runs at the next resume.
    """
    _said(when_free(lambda: runner.approve(run, question, who, runs=runs)), f"question {question}: approved by {who}")


@click.command()
@_options.run
@_options.question
@_options.runs
@_options.by
@click.option("--reason", default="", metavar="TEXT", help="Why not; the model reads it.")
def refuse(run: str, question: str, runs: Path, who: str, reason: str) -> None:
    """Say no to a QUESTION of RUN: the call does not run.

    The model reads the reason as the call's result.
    """
    state = when_free(lambda: runner.refuse(run, question, who, reason, runs=runs))
    _said(state, f"question {question}: refused by {who}")


@click.command()
@_options.run
@_options.question
@click.argument("verdict", type=click.Choice(["rerun", "done"]))
@_options.runs
@_options.by
@click.option("--found", metavar="TEXT", help="With done: what was found; it becomes the call's result.")
@click.option("--answer", default="", metavar="TEXT", help="With rerun: what the question asks for; the tool reads it.")
def settle(run: str, question: str, verdict: str, runs: Path, who: str, found: str | None, answer: str) -> None:
    """Settle a QUESTION of RUN about an open call.

    `rerun` says that it did not happen and may run again; `done` says that it did, and `--found` what it came to. About
    a call that a fork's parent made, `rerun` lets it run once more, and `done` alone takes the parent's result.
    """
    if verdict == "done" and found is None and not _offered(run, question, runs):
        raise click.UsageError("done needs --found TEXT: what was found becomes the call's result")
    if verdict == "rerun" and found is not None:
        raise click.UsageError("rerun has no --found: nothing was found")
    if verdict == "done" and answer:
        raise click.UsageError("done has no --answer: the call does not run again, so no tool would read it")
    if verdict == "rerun":
        state = when_free(lambda: runner.settle(run, question, who, "rerun", answer, runs=runs))
    else:
        state = when_free(lambda: runner.settle(run, question, who, "done", found or "", runs=runs))
    _said(state, f"question {question}: settled as {verdict} by {who}")


def _offered(run: str, question: str, runs: Path) -> bool:
    """Whether `done` needs no words, because the question offers the result of the fork's parent."""
    state = runner.read(run, runs)
    asked = state.questions.get(question)
    return asked is not None and asked.fenced is not None and state.fence[asked.fenced].happened


@click.command()
@_options.run
@_options.runs
@_options.by
def stop(run: str, runs: Path, who: str) -> None:
    """Stop RUN for good and list its open calls.

    An open call may have happened: nothing that is left says whether it did.
    """
    state = when_free(lambda: runner.stop(run, who, runs=runs))
    _out.out(f"{run} is stopped for good, by {who}.")
    if not state.open:
        _out.out("No call is open: everything that was tried is known.")
    for call in state.calls:
        if call.open:
            last = call.attempts[-1]
            _out.out(f"open: {call.call.id} {call.call.tool} may have happened (attempt {last.n}, key {last.key})")
            _out.out(f"    {call.call.arguments}")


def when_free(write: Callable[[], State]) -> State:
    """What `write` returns, once the run's lock is free. Raises `Refused` when it is not within `WAIT` seconds."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            return write()
        except eventlog.RunLocked as held:
            if time.monotonic() >= deadline:
                why = f"{held}; waited {WAIT:g} s for it"
                hint = "Answer when that process has ended; Ctrl-C or SIGTERM parks it within seconds."
                raise Refused(why, hint, Status.LOCKED) from held
        time.sleep(_BETWEEN)


def _said(state: State, what: str) -> None:
    _out.out(f"{what}.")
    if state.waiting:
        _out.out(f"Still open: {', '.join(question.id for question in state.waiting)}.")
    else:
        _out.out("Every question is answered: the run goes on at its next resume.")
