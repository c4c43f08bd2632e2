"""`refold inbox`: what all runs ask of a person, oldest first, with the commands that answer."""

from collections.abc import Iterator

import click

import eventlog
import replay
import runner
from replay import Question, State
from runner._cli import options
from runner._cli._io import out
from runner._cli._render import as_json as _as_json
from runner._cli._render import audit_text, question_text
from runner._cli._render.escape import one_line


@click.command()
@options.runs
@options.json
def inbox(runs: str, *, as_json: bool) -> None:
    """List what all runs ask, oldest first.

    With the exact arguments, and the commands that answer. Runs that are over ask nothing.
    """
    found = sorted(_open(runs), key=lambda one: (one[1].at, one[0].run))
    if as_json:
        out.as_json([_facts(state, question, runs) for state, question in found])
        return
    for state, question in found:
        out.out(f"{audit_text.moment(question.at)}  {state.run}  {one_line(state.task, 60)}")
        for line in (*question_text.asked(question), *question_text.commands(state, question, runs)):
            out.out(f"    {line}")
    if not found:
        out.err("No run asks anything.")


def _open(runs: str) -> Iterator[tuple[State, Question]]:
    """The open questions, of the runs whose statuses say that they have some."""
    for info in runner.list_unfinished(runs):
        if info.status is None or not info.status.open_questions:
            continue
        try:
            state = runner.read_state(info.run, runs)
        except (eventlog.LogError, replay.ReplayError) as error:
            out.err(f"{info.run} can't be read: {error}")
            continue
        yield from ((state, question) for question in state.waiting if not state.over)


def _facts(state: State, question: Question, runs: str) -> dict[str, object]:
    commands = question_text.commands(state, question, runs)
    return {"run": state.run, "agent": state.agent, **_as_json.question(question), "commands": commands}
