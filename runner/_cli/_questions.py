"""Open questions, as a person reads them: what would run, the exact arguments, and the commands that answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from replay import Question, State


def commands(state: State, question: Question, runs: Path) -> list[str]:
    """The commands that answer a question; each can be pasted into a shell."""
    rest = f"{shlex.quote(state.run)} {shlex.quote(question.id)} --runs {shlex.quote(str(runs))}"
    if question.kind == "approve":
        return [f"refold approve {rest}", f"refold refuse {rest} --reason TEXT"]
    call = state.find(question.call)
    answer = " --answer TEXT" if call is not None and call.attempts and call.attempts[-1].asks else ""
    offered = question.fenced is not None and state.fence[question.fenced].happened
    return [f"refold settle {rest} rerun{answer}", f"refold settle {rest} done{'' if offered else ' --found TEXT'}"]


def lines(state: State, runs: Path) -> Iterator[str]:
    """Every open question of a run, one below the other."""
    for question in state.waiting:
        yield from asked(question)
        for command in commands(state, question, runs):
            yield f"    {command}"


def asked(question: Question) -> Iterator[str]:
    """One question with its exact arguments."""
    if question.kind == "approve":
        yield f"{question.id}: may {question.tool} run? {question.why}"
    elif question.fenced is not None:
        yield f"{question.id}: is {question.tool} done with that? {question.why}"
    else:
        yield f"{question.id}: did {question.tool} happen? {question.why}"
    yield f"    {question.arguments}"
