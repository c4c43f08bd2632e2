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

from replay import _codec, _fold_asks, _fold_calls, _fold_life
from replay import events as e
from replay._rules import Broken, draft_of, state_of
from replay.errors import IllegalEvent
from replay.state import NEW, Draft, State

TRANSITIONS = {**_fold_life.transitions, **_fold_asks.transitions, **_fold_calls.transitions}


def step(state: State, event: e.AnyEvent, at: datetime, *, seq: int | None = None) -> State:
    """The state after one event that was written at `at`.

    Raises `IllegalEvent`, which names line `seq`, when the table does not allow the event here. `state` is untouched.
    """
    return fold(state, at, (event,), seq=seq)


def fold(state: State, at: datetime, events: Iterable[e.AnyEvent], *, seq: int | None = None) -> State:
    """The state after several events of one moment. Raises `IllegalEvent`. `state` is untouched."""
    draft = draft_of(state)
    _apply(draft, at, events, seq)
    return state_of(draft)


def _apply(draft: Draft, at: datetime, events: Iterable[e.AnyEvent], seq: int | None) -> None:
    """Changes a draft by events of one moment. After `IllegalEvent` nothing may use it."""
    for event in events:
        phase = draft.phase
        if isinstance(event, e.UnknownEvent):
            if not event.ignorable:
                draft.unknown = (*draft.unknown, event.tag)
            continue
        if phase not in event.legal:
            raise IllegalEvent(seq, _codec.tag(event), phase, f"it belongs to {', '.join(sorted(event.legal))}")
        if draft.stopped is not None and not event.stopped:
            raise IllegalEvent(seq, _codec.tag(event), phase, f"the run is stopped ({draft.stopped.reason})")
        try:
            TRANSITIONS[type(event)](draft, event, at)
        except Broken as broken:
            raise IllegalEvent(seq, _codec.tag(event), phase, str(broken)) from None


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
    last, draft = None, draft_of(state)
    for last in lines:
        _apply(draft, last.at, _codec.decode_all(last.events, last.seq), last.seq)
    if last is not None:
        draft.seq, draft.life, draft.at = last.seq, last.life, last.at
    return state_of(draft)
