"""The fold: from events to a state.

The class of an event says in which phases it is legal, a function of a `_fold_*` file what it does. Where it is not
legal the history is wrong, and `IllegalEvent` names the line. Five rules hold in every phase:

1. The first event of a run is `run_started`; nothing else is legal before it.
2. A stopped run does nothing: only a new life, a fork, new limits, an answer or another stop may follow.
3. What is in flight ends by an outcome of its own, or is in doubt from the next life on.
4. A call of a reply has at most one result, and the model is asked again only when each has one.
5. `phase_changed` is checked against the state, never trusted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

import msgspec
from msgspec.structs import replace

from replay import _codec, _fold_asks, _fold_calls, _fold_children, _fold_life
from replay import events as e
from replay._rules import Broken
from replay.errors import IllegalEvent
from replay.state import NEW, State

TRANSITIONS = {
    **_fold_life.transitions,
    **_fold_asks.transitions,
    **_fold_calls.transitions,
    **_fold_children.transitions,
}


def step(state: State, event: e.AnyEvent, at: datetime, *, seq: int | None = None) -> State:
    """The state after one event that was written at `at`.

    Raises `IllegalEvent`, which names line `seq`, when the table does not allow the event here. `state` is untouched.
    """
    if isinstance(event, e.UnknownEvent):
        return state if event.ignorable else replace(state, unknown=(*state.unknown, event.tag))
    if state.phase not in event.legal:
        raise IllegalEvent(seq, _codec.tag(event), state.phase, f"it belongs to {', '.join(sorted(event.legal))}")
    if state.stopped is not None and not event.stopped:
        raise IllegalEvent(seq, _codec.tag(event), state.phase, f"the run is stopped ({state.stopped.reason})")
    try:
        return TRANSITIONS[type(event)](state, event, at)
    except Broken as broken:
        raise IllegalEvent(seq, _codec.tag(event), state.phase, str(broken)) from None


def fold(state: State, at: datetime, events: Iterable[e.AnyEvent], *, seq: int | None = None) -> State:
    """The state after several events of one moment. Raises `IllegalEvent`."""
    for event in events:
        state = step(state, event, at, seq=seq)
    return state


class Line(Protocol):
    """What the fold needs of a log's line; `eventlog.Line` has it."""

    @property
    def seq(self) -> int: ...
    @property
    def life(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def events(self) -> list[msgspec.Raw]: ...


def load(lines: Iterable[Line], state: State = NEW) -> State:
    """The state that a log's lines tell, going on from `state`.

    Raises `IllegalEvent` or `Undecodable`, each naming the line. Header lines carry no events and only move `seq`.
    """
    last = None
    for last in lines:
        at, seq = last.at, last.seq
        for raw in last.events:
            state = step(state, _codec.decode(raw, seq=seq), at, seq=seq)
    return state if last is None else replace(state, seq=last.seq, life=last.life, at=last.at)
