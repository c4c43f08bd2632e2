"""The fence of a fork: what its parent did behind the line it was forked at, and is not done again by itself.

The fork's model does not know what the parent went on to do. So a call of the same tool with the same intent, or with
the same arguments where no intent is named, is not run: the parent's result is offered, and a person decides. `done`
takes the parent's result, or what the person found instead; `rerun` lets the call run, with the approval its tool asks
for, since none given in the parent behind the line counts here. Until then nothing is marked, whatever rung of the
ladder would run the call. A call that the fork itself holds as open goes up the ladder first: what it sends is the key
in its marker. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from replay import AttemptMarked, CallState, Event, Fenced, PhaseChanged, QuestionAsked, ResultRecorded, State, ToolCall
from runner import _arguments, _keys, _ladder
from runner._agent import Agent
from runner._arguments import InvalidArguments
from runner._tools import Tool

SHOWN = 300
"""Characters of the parent's result that a question shows."""


def due(agent: Agent, state: State, calls: Sequence[CallState]) -> list[Event]:
    """The questions about those of `calls`, all runnable and never tried, that repeat what the parent did."""
    asked = [(call, place(state, agent.tool(call.call.tool), call)) for call in calls if state.fence]
    return [_question(state, agent.tool(call.call.tool), call, found) for call, found in asked if found is not None]


def settled(state: State, call: CallState) -> ResultRecorded | None:
    """The result of a call that a person called done: what they found, or else what the parent's came to."""
    effect = state.passed(call.call.id, "done")
    if effect is None:
        return None
    said = next(
        q.answer.text
        for q in state.questions.values()
        if q.call == call.call.id and q.fenced is not None and q.answer is not None and q.answer.answer == "done"
    )
    return ResultRecorded(call=call.call.id, how="told", text=said or effect.text)


def guarded(state: State, tool: Tool | None, call: CallState, chosen: list[Event]) -> list[Event]:
    """What the ladder chose, unless the fence holds what it would do; a question it asks then offers the result."""
    found = place(state, tool, call) if state.fence else None
    if found is None:
        return chosen
    if not call.open and any(_denies(event, state.fence[found], call) for event in chosen):
        return [_question(state, tool, call, found), PhaseChanged(phase="paused")]
    return [
        replace(event, fenced=found, why=f"{event.why}; {_says(state, tool, call, found)}")
        if isinstance(event, QuestionAsked) and event.kind == "settle"
        else event
        for event in chosen
    ]


def _denies(event: Event, effect: Fenced, call: CallState) -> bool:
    """Whether this would make the effect again, or call this very call failed although it came to something."""
    failed = isinstance(event, ResultRecorded) and event.how == "failed"
    return isinstance(event, AttemptMarked) or (failed and effect.happened and effect.call == call.call.id)


def place(state: State, tool: Tool | None, call: CallState) -> int | None:
    """Where the fence holds what this call would repeat; None once a person let it run.

    Of several the newest that is known to have happened, else the newest: one result is offered, and a known one first.
    """
    if state.passed(call.call.id, "rerun") is not None:
        return None
    found = _repeated(state, tool, call)
    return max(found, key=lambda index: (state.fence[index].happened, index), default=None)


def _repeated(state: State, tool: Tool | None, call: CallState) -> list[int]:
    return [index for index, effect in enumerate(state.fence) if _repeats(effect, tool, call)]


def _repeats(effect: Fenced, tool: Tool | None, call: CallState) -> bool:
    if effect.tool != call.call.tool:
        return False
    if effect.arguments == call.call.arguments:
        return True
    mine = _identity(tool, call)
    theirs = _identity(tool, CallState(call=ToolCall(tool=effect.tool, arguments=effect.arguments)))
    return mine is not None and mine in (theirs, effect.intent)


def _identity(tool: Tool | None, call: CallState) -> str | None:
    """The intent of a call, or the same made of all its arguments; None when they can't be read."""
    try:
        values = _arguments.parse(call.call.arguments)
        if tool is None:
            return _keys.intent(call.call.tool, values, sorted(values))
        if not tool.given:
            values = _arguments.bind(tool.signature.type, values)
    except InvalidArguments:
        return None
    return _ladder.intent(tool, call) or _keys.intent(tool.name, values, sorted(values))


def _question(state: State, tool: Tool | None, call: CallState, found: int) -> QuestionAsked:
    asked = _ladder.ask(call, _says(state, tool, call, found))[0]
    assert isinstance(asked, QuestionAsked)  # the pause comes behind it
    return replace(asked, fenced=found)


def _says(state: State, tool: Tool | None, call: CallState, found: int) -> str:
    """Every call that it would repeat, and what the one at `found` came to."""
    effect = state.fence[found]
    whose = ", ".join(f"{f.call} of {f.run}" for f in (state.fence[i] for i in _repeated(state, tool, call)))
    where = f"the same call was made behind the line that this run was forked at ({whose[:SHOWN]})"
    if not effect.happened:
        return f"{where} and may have happened"
    text = effect.text if len(effect.text) <= SHOWN else f"{effect.text[:SHOWN]}..."
    return f"{where} and came to: {text}"
