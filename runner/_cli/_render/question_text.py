"""Open questions, as a person reads them: what would run, the exact arguments, and the commands that answer."""

import shlex
from collections.abc import Callable, Iterable, Iterator

import eventlog
import replay
import runner
from replay import Question, State
from runner._cli import options
from runner._cli._render import escape


def of_all(
    found: Iterable[runner.RunInfo],
    read: Callable[[runner.RunInfo], State],
    unreadable: Callable[[str, Exception], None] = lambda _run, _error: None,
) -> list[tuple[State, Question]]:
    """The open questions of all these runs, the oldest first; those of child runs are asked by their parents.

    Only runs whose statuses say that they ask are read; `unreadable` is told of one that can't be.
    """
    asked = list[tuple[State, Question]]()
    for info in found:
        status = info.status
        if status is None or not status.open_questions or status.closed or status.parent_call is not None:
            continue
        try:
            state = read(info)
        except (eventlog.LogError, replay.ReplayError) as error:
            unreadable(info.run, error)
            continue
        asked += [(state, question) for question in state.waiting if not state.over]
    return sorted(asked, key=lambda one: (one[1].at, one[0].run))


def commands(state: State, question: Question, runs: str) -> list[str]:
    """The commands that answer a question; each can be pasted into a shell."""
    rest = f"{shlex.quote(state.run)} {shlex.quote(question.id)} --runs {options.shown(runs)}"
    if question.kind == "approve":
        return [f"refold approve {rest}", f"refold refuse {rest} --reason TEXT"]
    call = state.find(question.call)
    answer = " --answer TEXT" if call is not None and call.attempts and call.attempts[-1].asks else ""
    found = "" if is_offered(state, question) else " --found TEXT"
    return [f"refold settle {rest} rerun{answer}", f"refold settle {rest} done{found}"]


def is_offered(state: State, question: Question | None) -> bool:
    """Whether `done` needs no words, because the question offers the result of the fork's parent."""
    return question is not None and question.guarded is not None and state.fork_guard[question.guarded].happened


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


def prompt(question: "Question | replay.stories.QuestionStory") -> str:
    """What is asked, with the tool's name where the story of its call does not say it."""
    tool = escape.name(question.tool) if isinstance(question, Question) else "it"
    if question.kind == "approve":
        return f"may {tool} run?"
    return f"did {tool} happen?" if question.guarded is None else f"is {tool} done with that?"
