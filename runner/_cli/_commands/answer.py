"""`refold approve`, `edit`, `settle`, `send`, `stop` and the like: what a person says to a run, whoever holds it.

A command says that it is written, or for which process it was left.
"""

import shlex
from typing import Any

import click

import runner
from runner._cli import options
from runner._cli._io import out
from runner._cli._render import question_text
from runner._cli._render.escape import arguments


@click.command()
@options.answers
def approve(run: str, question: str, runs: str, who: str) -> None:
    """Say yes to a QUESTION of RUN: this call may run.

    The yes covers exactly the arguments that were shown. The call runs in the process that holds the run, in a
    worker, or at the next resume; where the code has its tool no more, it does not run, and the model is told.
    """
    _said(runner.approve(run, question, who, runs=runs), f"question {question}: approved by {who}")


@click.command()
@options.answers
@click.option("--reason", default="", metavar="TEXT", help="Why not; the model reads it.")
def refuse(run: str, question: str, runs: str, who: str, reason: str) -> None:
    """Say no to a QUESTION of RUN: the call does not run.

    The model reads the reason as the call's result.
    """
    _said(runner.refuse(run, question, who, reason, runs=runs), f"question {question}: refused by {who}")


@click.command()
@options.answers
@click.argument("arguments_", metavar="JSON", type=options.json_object)
def edit(run: str, question: str, arguments_: dict[str, Any], runs: str, who: str) -> None:
    """Say yes to a QUESTION of RUN with other arguments.

    They take the place of the call's own, and the model is told. What the tool can't take is asked about anew.
    """
    _said(runner.edit(run, question, who, arguments_, runs=runs), f"question {question}: edited by {who}")
    out.out("If the tool can't take these arguments, they are asked about anew.")


@click.command()
@options.answers
@click.argument("text", metavar="TEXT")
def respond(run: str, question: str, text: str, runs: str, who: str) -> None:
    """Answer the call of a QUESTION of RUN yourself.

    TEXT is its result, and nothing runs.
    """
    _said(runner.respond(run, question, who, text, runs=runs), f"question {question}: answered by {who}")


@click.command()
@options.says
@click.argument("tool", metavar="TOOL")
@click.option(
    "--with",
    "values",
    default="{}",
    metavar="JSON",
    type=options.json_object,
    help="Only calls with these values of arguments.",
)
def allow(run: str, tool: str, values: dict[str, Any], runs: str, who: str) -> None:
    """Say yes to every later call of TOOL in RUN.

    Questions that are open stay open.
    """
    _said(runner.allow(run, tool, who, values, runs=runs), f"{tool} is allowed by {who}")


@click.command()
@options.says
@click.argument("text", metavar="TEXT")
def send(run: str, text: str, runs: str, who: str) -> None:
    """Write TEXT to RUN: its next request to the model takes it.

    It wakes nothing and answers nothing.
    """
    receipt = runner.send(run, text, who, runs=runs)
    if not _left(receipt, f"The message to {run} is"):
        out.out(f"The message to {run} waits for its next request.")


@click.command()
@options.answers
@click.argument("verdict", type=click.Choice(["rerun", "done", "failed"]))
@click.option("--found", metavar="TEXT", help="With done: what was found; it becomes the call's result.")
@click.option("--answer", default="", metavar="TEXT", help="With rerun: what the tool reads. With failed: why.")
def settle(run: str, question: str, verdict: str, runs: str, who: str, found: str | None, answer: str) -> None:
    """Settle a QUESTION of RUN about a call in doubt.

    `rerun` says that it did not happen and may run again; `done` says that it did, and `--found` what it came to;
    `failed` says that it did not happen, and the model is told so. About a call that a fork's parent made, `rerun` lets
    it run once more, and `done` alone takes the parent's result.
    """
    if verdict == "done" and found is None:
        state = runner.read_state(run, runs)
        if not question_text.is_offered(state, state.questions.get(question)):
            raise click.UsageError("done needs --found TEXT: what was found becomes the call's result")
    if verdict != "done" and found is not None:
        raise click.UsageError(f"{verdict} has no --found: nothing was found")
    if verdict == "done" and answer:
        raise click.UsageError("done has no --answer: the call does not run again, so no tool would read it")
    said: Any = verdict
    receipt = runner.settle(run, question, who, said, found or answer, runs=runs)
    _said(receipt, f"question {question}: settled as {verdict} by {who}")


@click.command()
@options.says
def stop(run: str, runs: str, who: str) -> None:
    """Stop RUN for good and list its calls in doubt.

    A call in doubt may have happened: nothing settles whether it did.
    """
    receipt = runner.stop(run, who, runs=runs)
    if _left(receipt, f"The stop of {run} by {who} is"):
        return
    out.out(f"{run} is stopped for good, by {who}.")
    state = receipt.state
    if not state.in_doubt:
        out.out("No call is in doubt: the outcome of every call is known.")
    for call in state.calls:
        if call.in_doubt:
            last = call.attempts[-1]
            out.out(f"in doubt: {call.call.id} {call.call.tool} may have happened (attempt {last.n}, key {last.key})")
            out.out(f"    {arguments(call.call.arguments)}")


@click.command()
@options.says
def park(run: str, runs: str, who: str) -> None:
    """Hold RUN back until somebody resumes it.

    What is running may end first. Nothing but `refold resume RUN` carries the run on.
    """
    receipt = runner.park(run, who, runs=runs)
    if not _left(receipt, f"The park of {run} by {who} is"):
        out.out(f"{run} stopped (Parked): by {who}")
        out.out(f"Go on: refold resume {shlex.quote(run)} --agent MODULE:ATTRIBUTE --runs {options.shown(runs)}")


def _left(receipt: runner.Receipt, what: str) -> bool:
    """Whether a request is not written yet; it is said for whom it was left."""
    if not receipt.written:
        whom = f"process {at.pid} on {at.host}" if (at := receipt.holder) and at.pid else "whoever carries the run on"
        out.out(f"{what} left for {whom}; `refold audit {shlex.quote(receipt.state.run)}` tells what came of it.")
    return not receipt.written


def _said(receipt: runner.Receipt, what: str) -> None:
    if _left(receipt, f"{what};"):
        return
    out.out(f"{what}.")
    if waiting := receipt.state.waiting:
        out.out(f"Still open: {', '.join(question.id for question in waiting)}.")
    else:
        out.out("No question is open: a worker, or the next resume, carries the run on.")
