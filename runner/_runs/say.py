"""What a person says to a run that nobody asked about: a standing rule, a message."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

import msgspec

import eventlog
import replay
from replay import Question, State
from runner._clock import Clock
from runner._policy import resume_check
from runner._runs import load, posting, requests
from runner._runs.posting import Receipt, post
from runner._runs.questions import Answer, rule
from runner.errors import BadRule, NotSendable


def allow(run: str, tool: str, who: str, arguments: Mapping[str, Any], *, runs: eventlog.Runs) -> Receipt:
    """Say yes, in the name of `who`, to every later call of a tool in this run that has these values of arguments.

    Returns as `approve`. Raises `BadRule` when a value is no JSON, or the run has no such tool.
    """
    return _allow(eventlog.store(runs), run, tool, who, arguments)


def _allow(
    store: eventlog.Store, run: str, tool: str, who: str, arguments: Mapping[str, Any], clock: Clock | None = None
) -> Receipt:
    state = load.read(store, run)
    resume_check.check(state, run)
    made, mark = rule(state, tool, arguments, who), store.disk.random(requests.MARK)
    tools = state.definitions.tools if state.definitions is not None and not state.framework else {made.tool: None}
    if made.tool not in {*tools, *(question.tool for question in state.questions.values())}:
        known = f"when it was last carried on, it had {', '.join(sorted(tools)) or 'none'}"
        raise BadRule(run, f"its agent has no tool {made.tool!r:.60} ({known})")
    values = {name: msgspec.Raw(value.encode()) for name, value in made.arguments.items()}
    how = {"who": made.who, "tool": tool, "arguments": values}
    return post(store, run, f"rule-{mark}", _gone, mark, clock, kind="rule", **how)


def send(run: str, text: str, who: str, *, runs: eventlog.Runs) -> Receipt:
    """Write to a run, in the name of `who`: its next request to the model takes the message.

    It comes after the results of the current calls; a final answer before it is none. It wakes and answers nothing.

    Args:
        run: The run's id.
        text: At most 64 KiB.
        who: Who writes.
        runs: Where runs live, as for `runner.start`.

    Returns as `approve`. Raises `NotSendable` when the run is over, a hundred messages wait, or the text is empty or
    too long.
    """
    store = eventlog.store(runs)
    state = load.read(store, run)
    if state.phase == "done":
        raise NotSendable(run, "it is done; start a new run with after= (refold run --after) to go on from there")
    resume_check.check(state, run)
    mark = store.disk.random(requests.MARK)
    name = f"message-{mark}"
    try:
        made = requests.message(state, name, who, text)
        replay.step(state, made, state.at or datetime.now(UTC))
    except (ValueError, replay.IllegalEvent) as error:
        raise NotSendable(run, getattr(error, "why", str(error))) from None
    return post(store, run, name, _gone, mark, kind="message", who=made.who, text=made.text)


def answer(store: eventlog.Store, run: str, question: Question, given: Answer, clock: Clock) -> None:
    """Give the hook's answer to a question of a child, which is named by the path to it. Raises as `approve`.

    It is saved at the time of the process that carries both: a child whose log ran ahead would wait by another time.
    """
    text = json.dumps(given.arguments, default=str) if given.verdict == "edit" else given.text
    posting.answer(store, run, question.id, given.verdict, given.who, text, clock)
    if given.always is not None and given.verdict == "approve":
        _allow(store, posting.at_path(store, run, question.id)[0], question.tool, given.who, given.always, clock)


def _gone(state: State, first: str) -> NoReturn:  # noqa: ARG001 (the name is nobody else's)
    raise NotSendable(state.run, "it is over")
