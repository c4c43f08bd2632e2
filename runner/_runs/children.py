"""A child run and its parent, each as the other's log says.

Only whoever holds a parent carries its children on. So a child's log stands still while its parent is opened, but for
what people said to the child, and the parent's log is told how each of its children rests.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

import eventlog
import replay
from replay import Event, State
from replay.events import ChildRested, QuestionAsked, RunStopped

Read = Callable[[str], State]
UNREADABLE: Final = (eventlog.LogError, replay.ReplayError, OSError)
_ASKED = tuple(name for name in QuestionAsked.__struct_fields__ if name != "guarded")


def rests(call: str, child: State) -> ChildRested:
    """What a parent's log says of a child in this state, which nobody carries on."""
    waiting = child.waiting if not child.over else ()
    return ChildRested(
        call=call,
        phase=child.phase,
        spent=child.spent,
        turns_used=child.turns_used,
        questions=tuple(QuestionAsked(**{name: getattr(q, name) for name in _ASKED}) for q in waiting),
        until=child.due if child.wait is not None else None,
        stop=child.stopped,
    )


def news(state: State, read: Read) -> list[Event]:
    """How children rest otherwise than their parent's log says. Nobody else may hold the parent now.

    A child that can't be read keeps nobody from opening its parent, as to stop it.
    """
    found: list[Event] = []
    for call in state.calls if not state.over else ():
        if call.result is not None or call.child is None:
            continue
        try:
            child = read(call.child.run)
            said = news(child, read)
            child = replay.fold(child, child.at, said) if child.at is not None else child
        except UNREADABLE:  # also one that was never made: its process died before
            continue
        rested = rests(call.call.id, child)
        was = {name: getattr(call.child, name) for name in ChildRested.__struct_fields__ if name != "call"}
        known = replace(rested, **was) == rested and not call.child.running
        if child.uid == call.child.uid and child.phase != "new" and not known:
            found.append(rested)
    return found


def closed_parent(child: State, read: Read) -> RunStopped | None:
    """The stop of a child that nobody carries on any more, or None."""
    parent = child.parent_call
    if parent is None or child.over or child.phase == "new":
        return None
    try:
        state = read(parent.run)
    except eventlog.NoSuchRun:
        why = "is gone"
    except UNREADABLE:
        return None
    else:
        call = state.find(parent.call)
        goes_on = state.uid == parent.uid and not state.over and call is not None and call.result is None
        why = "" if goes_on else "is over" if state.over else f"has the result of call {parent.call}"
    return RunStopped(reason="ParentClosed", final=True, detail=f"{parent.run} {why}") if why else None
