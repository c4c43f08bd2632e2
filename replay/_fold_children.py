"""What events about child runs do to their parent's state.

A child's spend is a total, and the parent adds what it grew by: so it counts once, however often it is reported. Only a
child that rests is reported or carried on, and only while its call has no result.
"""

from datetime import datetime

from msgspec.structs import replace

from replay import events as e
from replay._fold_calls import open_call, put
from replay._rules import Transitions, present, require, shared
from replay._state_parts import Child
from replay.state import Draft

transitions = Transitions()


@transitions.on(e.ChildStarted)
def started(state: Draft, event: e.ChildStarted, at: datetime) -> None:
    """A child runs. Started again, it is the same run."""
    call = open_call(state, event.call)
    require(not call.attempts, "a call that was tried is no child run")
    require((event.arguments is None) != (call.child is None), "the first start has the arguments, and no other")
    if call.child is None:
        state.tried = state.tried | {call.call.tool: state.tried.get(call.call.tool, 0) + 1}
        put(state, replace(call, child=Child(**shared(Child, event)), bound=event.arguments))
    else:
        require(not call.child.running, "this child is running")
        same = (call.child.run, call.child.uid, call.child.agent) == (event.run, event.uid, event.agent)
        require(same, f"the child of this call is {call.child.run}")
        child = replace(call.child, limits=event.limits, running=True, questions=(), until=None, stop=None, at=None)
        put(state, replace(call, child=child))
    state.wait = None


@transitions.on(e.ChildRested)
def rested(state: Draft, event: e.ChildRested, at: datetime) -> None:
    """A child rests. A resume after a life in which one came further, or was answered, need not count."""
    call = open_call(state, event.call)
    was = present(call.child, "this call is no child run")
    child = replace(was, **shared(Child, event), running=False, at=at)
    answered = not was.running and was.questions != event.questions
    further = event.turns_used > was.turns_used or event.phase == "done" or answered
    put(state, replace(call, child=child))
    state.wait = None
    state.spent = state.spent.grown(was.spent, event.spent)
    state.child_turns += event.turns_used - was.turns_used
    state.uncounted = state.uncounted or further
