"""What events about child runs do to their parent's state.

A child's spend is a total, and the parent adds what it grew by: so it counts once, however often it is reported. Only a
child that rests is reported or carried on, and only while its call has no result.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._rules import Transitions, present, require, shared
from replay._state_parts import Child
from replay.state import CallState, State

transitions = Transitions()


def _call(state: State, call: str) -> CallState:
    found = present(state.find(call), f"there is no call {call} in the current reply")
    require(found.result is None, f"call {call} has a result")
    return found


def _with(state: State, call: CallState, **more: object) -> State:
    calls = tuple([call if c.call.id == call.call.id else c for c in state.calls])
    return replace(state, calls=calls, wait=None, **more)


@transitions.on(e.ChildStarted)
def started(state: State, event: e.ChildStarted, at: datetime) -> State:
    """A child runs. Started again, it is the same run."""
    call = _call(state, event.call)
    require(not call.attempts, "a call that was tried is no child run")
    require((event.arguments is None) != (call.child is None), "the first start has the arguments, and no other")
    if call.child is None:
        tried = state.tried | {call.call.tool: state.tried.get(call.call.tool, 0) + 1}
        child = Child(**shared(Child, event))
        return _with(state, replace(call, child=child, bound=event.arguments), tried=tried)
    require(not call.child.running, "this child is running")
    same = (call.child.run, call.child.uid, call.child.agent) == (event.run, event.uid, event.agent)
    require(same, f"the child of this call is {call.child.run}")
    child = replace(call.child, limits=event.limits, running=True, questions=(), until=None, stop=None, at=None)
    return _with(state, replace(call, child=child))


@transitions.on(e.ChildRested)
def rested(state: State, event: e.ChildRested, at: datetime) -> State:
    """A child rests. A resume after a life in which one came further, or was answered, need not count."""
    call = _call(state, event.call)
    was = present(call.child, "this call is no child run")
    child = replace(was, **shared(Child, event), running=False, at=at)
    answered = not was.running and was.questions != event.questions
    further = event.turns_used > was.turns_used or event.phase == "done" or answered
    return _with(
        state,
        replace(call, child=child),
        spent=state.spent.grown(was.spent, event.spent),
        child_turns=state.child_turns + event.turns_used - was.turns_used,
        uncounted=state.uncounted or further,
    )
