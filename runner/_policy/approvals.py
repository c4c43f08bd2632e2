"""Approvals: which calls a person must approve before they run, and what follows from the answer.

None is asked for an invalid call or for an intent that already happened. A predicate that raises means ask. The answer
covers every attempt of its call, and only what was shown: where other arguments would run, or the tool's description or
schema changed since, the question is asked anew. A tool that needed a yes in an earlier life of the run needs it still,
because its declaration may come from a server that changed its mind.
"""

import copy
from datetime import datetime

from msgspec.structs import replace

import replay
from replay import Event, State
from replay.events import PhaseChanged, QuestionAnswered, QuestionAsked, ResultRecorded
from replay.state import Question
from runner._agent import json_text, sanitize
from runner._agent.agent import AnyAgent
from runner._agent.arguments import Arguments
from runner._agent.tools import Tool
from runner._policy.pending import Pending

POLICY = f"{sanitize.POLICY_NAME} approve off"
LAPSED = f"{sanitize.POLICY_NAME} nobody answered in time, which"


def closed(call: Pending) -> QuestionAsked | ResultRecorded | None:
    """The question whether this call may run, or the result of one that was refused; None when it may."""
    given = call.given
    if given is not None and given.answer == "refuse":
        reason = f": {given.text}" if given.text else "."
        return ResultRecorded(call=call.id, how="refused", text=f"{given.who} refused this call{reason}")
    if given is not None and given.answer == "respond":
        return ResultRecorded(call=call.id, how="responded", text=given.text)
    why = _why(call) if given is None else _not_covered(call, call.approvals[-1])
    return call.question("approve", why) if why else None


def _why(call: Pending) -> str:
    """Why a call that nobody approved needs a yes; empty when it needs none."""
    tool = call.tool
    assert tool is not None  # an earlier gate has made sure
    loosened = call.state.loosened.get(tool.name)
    if needed(tool, call.arguments):
        return "the tool needs a yes"
    if loosened is not None and loosened.approval:
        return "the tool needed a yes in an earlier life of this run, and the current code declares that it needs none"
    return ""


def _not_covered(call: Pending, asked: Question) -> str:
    """Why an approval does not cover this call; empty when it does."""
    if not call.edited and asked.digest != replay.digest(call.arguments.text.encode()):
        return "its arguments are others than those that were approved"
    if asked.declared not in ("", call.state.declared(call.call.call.tool)):
        return "the tool's description or schema is another than when the call was approved"
    return ""


def needed(tool: Tool, arguments: Arguments) -> bool:
    """Whether a call with these arguments, which are valid, needs a yes."""
    if not callable(tool.approval):
        return tool.approval
    try:
        return bool(tool.approval(copy.deepcopy(arguments.plain)))
    except Exception:  # noqa: BLE001 (the user's predicate: whatever it raises means ask)
        return True


def timed(chosen: list[Event], expires: datetime) -> list[Event]:
    """What was chosen, with the time until which an approval may be given."""
    return [replace(e, expires=expires) if isinstance(e, QuestionAsked) and e.kind == "approve" else e for e in chosen]


def by_policy(asked: QuestionAsked | Question) -> QuestionAnswered:
    """The answer that "approve off" gives, in the policy's name."""
    return QuestionAnswered(id=asked.id, answer="approve", who=POLICY, digest=asked.digest)


def by_rule(call: Pending, asked: QuestionAsked) -> QuestionAnswered | None:
    """The answer that a standing rule of a person's gives, in its name; None when none says yes to this call."""
    given, declared = call.arguments.plain, call.state.declared(asked.tool)
    for rule in call.state.rules:
        same = (name in given and json_text.same(given[name], value) for name, value in rule.arguments.items())
        if (rule.tool, rule.declared) == (asked.tool, declared) and all(same):
            who = f"{sanitize.POLICY_NAME} a rule of {rule.who}"
            return QuestionAnswered(id=asked.id, answer="approve", who=who, digest=asked.digest)
    return None


def paused(agent: AnyAgent, state: State, now: datetime) -> list[Event]:
    """What follows a pause: nothing while a question is open, unless approvals are off or nobody answered in time.

    A child's questions are answered there: a pause over them ends once one child can go on.
    """
    policy = [q for q in state.unanswered if q.kind == "approve"] if agent.approve == "off" else []
    if policy:
        return [by_policy(q) for q in policy]
    lapsed = [q for q in state.unanswered if q.expires is not None and q.expires <= now]
    if lapsed:
        return [QuestionAnswered(id=q.id, answer="refuse", who=LAPSED, digest=q.digest) for q in lapsed]
    goes_on = not state.waiting or state.child_is_due or (state.due is not None and state.due <= now)
    return [PhaseChanged(phase="tools")] if goes_on and not state.unanswered else []
