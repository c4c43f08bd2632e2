"""Approvals: who must say yes before a call runs, and what was said (spec row 25).

All approvals of a reply are asked in one line before its first call runs. None is asked for an invalid call or for an
intent that already happened. A predicate that raises means ask. The answer covers every attempt of that call, and only
the arguments that were shown.
"""

from __future__ import annotations

import replay
from replay import CallState, Event, PhaseChanged, Question, QuestionAnswered, QuestionAsked, State
from runner import _arguments
from runner._agent import Agent
from runner._tools import Tool

POLICY = "policy: approve off"


def question_id(call: str) -> str:
    """The id of the approval of a call."""
    return f"{call}-approve"


def needed(tool: Tool, arguments: str) -> bool:
    """Whether this call needs a yes. `arguments` are valid."""
    if not callable(tool.approval):
        return tool.approval
    try:
        return bool(tool.approval(_arguments.parse(arguments)))
    except Exception:  # noqa: BLE001 (the user's predicate: whatever it raises means ask)
        return True


def question(call: CallState) -> QuestionAsked:
    """The question whether this call may run."""
    return QuestionAsked(
        id=question_id(call.call.id),
        kind="approve",
        call=call.call.id,
        tool=call.call.tool,
        arguments=call.call.arguments,
        digest=replay.digest(call.call.arguments.encode()),
        why="the tool needs a yes",
    )


def by_policy(asked: QuestionAsked | Question) -> QuestionAnswered:
    """The answer that "approve off" gives, in the policy's name."""
    return QuestionAnswered(id=asked.id, answer="approve", who=POLICY, digest=asked.digest)


def due(agent: Agent, state: State, calls: list[CallState]) -> list[Event]:
    """The questions that `calls`, all runnable and never tried, still have to be asked.

    They come with the pause, or with the policy's yes.
    """
    asked = [
        question(call)
        for call in calls
        if question_id(call.call.id) not in state.questions
        and (tool := agent.tool(call.call.tool)) is not None
        and needed(tool, call.call.arguments)
    ]
    if not asked:
        return []
    if agent.approve == "off":
        return [*asked, *(by_policy(q) for q in asked)]
    return [*asked, PhaseChanged(phase="paused")]


def paused(agent: Agent, state: State) -> list[Event]:
    """What a pause comes to: nothing while a question is open, unless it is an approval and approvals are off."""
    policy = [q for q in state.waiting if q.kind == "approve"] if agent.approve == "off" else []
    if policy:
        return [by_policy(q) for q in policy]
    return [] if state.waiting else [PhaseChanged(phase="tools")]
