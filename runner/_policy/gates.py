"""The gates: what must hold before a call runs, as one ordered table.

A call that was never tried passes every gate, in this order. The first that is closed says what is written instead: a
result, which the model reads and which takes no attempt, or a question, which pauses the run until a person answers.
A call that was tried climbs the ladder instead; only the first gate stands before that too.

All questions of a reply are asked in one line, before its first call runs, so that a person sees them together and
nothing has happened yet. Nobody is asked about a call that an earlier gate keeps from running.
"""

from collections.abc import Callable, Iterable

from replay import Event
from replay.events import QuestionAsked, ResultRecorded
from replay.messages import AssistantMessage
from runner._policy import approvals, fork_guard
from runner._policy.pending import Pending

Closed = ResultRecorded | QuestionAsked | None
"""The event that stands in for a call; None where a gate is open."""


def _cut_off(call: Pending) -> Closed:
    last = call.state.messages[-1]
    if isinstance(last, AssistantMessage) and last.reply.stop == "length":
        return call.invalid("the reply was cut off at its length limit, so its arguments may be incomplete")
    return None


def _unknown_tool(call: Pending) -> Closed:
    if call.tool is not None:
        return None
    known = ", ".join(t.name for t in call.agent.tools) or "none"
    return call.invalid(f"there is no tool named {call.call.call.tool!r} (there are: {known})")


def _unusable(call: Pending) -> Closed:
    problem, given = call.arguments.problem, call.given
    if problem is not None and given is not None and given.answer == "edit":
        return call.question("approve", f"the arguments that {given.who} gave can't be used, {call.arguments.reasons}")
    return call.invalid(f"its arguments can't be used, {problem}") if problem is not None else None


def _done_before(call: Pending) -> Closed:
    intent = call.intent
    happened = call.state.happened.get(intent) if intent is not None else None
    if happened is None:
        return None
    whose = f"{happened.call} of {happened.run}" if happened.run else happened.call
    text = f"Not run again: call {whose} already did this. Its result was: {happened.text}"
    return ResultRecorded(call=call.id, how="refused", text=text, first=happened.call)


def _too_many(call: Pending) -> Closed:
    most = call.tool.max_calls if call.tool is not None else None
    if most is None:
        return None
    name, ids = call.call.call.tool, [c.call.id for c in call.state.calls]
    before = [c for c in call.state.calls[: ids.index(call.id)] if c.call.tool == name and c.result is None]
    used = call.state.tried.get(name, 0) + sum(not c.tried for c in before)  # of those that run beside it
    text = f"Not run: {name} may be called {most} times in a run, and was."
    return ResultRecorded(call=call.id, how="refused", text=text) if used >= most else None


GATES: tuple[Callable[[Pending], Closed], ...] = (
    fork_guard.taken_over,  # a person took over what a fork's parent got for it
    _cut_off,
    _unknown_tool,
    _unusable,
    _done_before,
    _too_many,
    fork_guard.question,  # a fork's parent did the same
    approvals.closed,
)


def closed(call: Pending) -> Closed:
    """What the first closed gate says about a call; None when it may run."""
    if call.gate is None:
        asked = GATES[:1] if call.call.tried else GATES
        call.gate = (next((said for gate in asked if (said := gate(call)) is not None), None),)
    return call.gate[0]


def questions(calls: Iterable[Pending]) -> list[Event]:
    """The questions about some calls, repeats of a parent's effects first, and the policy's and the rules' answers."""
    said = [(call, q) for call in calls if isinstance(q := closed(call), QuestionAsked)]
    if not said:
        return []
    said.sort(key=lambda one: one[1].kind == "approve")
    yes = [(call, q) for call, q in said if q.kind == "approve"]
    return [*(q for _, q in said), *filter(None, (answered(call, q) for call, q in yes))]


def answered(call: Pending, asked: QuestionAsked) -> Event | None:
    """The policy's or a rule's answer to a question whether a call may run; None when a person decides."""
    return approvals.by_policy(asked) if call.agent.approve == "off" else approvals.by_rule(call, asked)
