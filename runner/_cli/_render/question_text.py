"""Open questions, as a person reads them: what would run, the exact arguments, and the commands that answer."""

import shlex
from collections.abc import Iterator

from replay import Question, State
from runner._cli import options
from runner._cli._render import escape


def commands(state: State, question: Question, runs: str) -> list[str]:
    """The commands that answer a question; each can be pasted into a shell."""
    rest = f"{shlex.quote(state.run)} {shlex.quote(question.id)} --runs {options.shown(runs)}"
    if question.kind == "approve":
        return [f"refold approve {rest}", f"refold refuse {rest} --reason TEXT"]
    call = state.find(question.call)
    answer = " --answer TEXT" if call is not None and call.attempts and call.attempts[-1].asks else ""
    offered = question.guarded is not None and state.fork_guard[question.guarded].happened
    return [f"refold settle {rest} rerun{answer}", f"refold settle {rest} done{'' if offered else ' --found TEXT'}"]


def lines(state: State, runs: str) -> Iterator[str]:
    """Every open question of a run, one below the other."""
    for question in state.waiting:
        yield from asked(question)
        for command in commands(state, question, runs):
            yield f"    {command}"


def asked(question: Question) -> Iterator[str]:
    """One question: what is asked in our own words, why in marked lines, and the arguments on one line."""
    yield f"{escape.name(question.id)}: {prompt(question)}"
    if question.why:
        yield from (f"    {line}" for line in escape.marked(question.why))
    yield f"    {escape.arguments(question.arguments)}"


def prompt(question: Question) -> str:
    """What is asked, with the tool's name."""
    tool = escape.name(question.tool)
    if question.kind == "approve":
        return f"may {tool} run?"
    return f"did {tool} happen?" if question.guarded is None else f"is {tool} done with that?"
