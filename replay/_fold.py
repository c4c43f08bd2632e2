"""The fold: events to state, by one table.

`TRANSITIONS` says for each event in which phases it is legal and what it does. Where it is not legal the history is
wrong, and `IllegalEvent` names the line. Five rules hold beyond the phases:

1. The first event of a run is `run_started`; nothing else is legal before it.
2. A stopped run does nothing: only a new life, a fork, new limits, an answer or another stop may follow.
3. What is in flight ends as an outcome of its own, or by a new life that calls it open.
4. A call of a reply has at most one result, and the model is asked again only when each has one (spec row 16).
5. `phase_changed` is checked against the state, never trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol, cast

import msgspec
from msgspec.structs import replace

from replay import _codec, _fold_asks, _fold_calls, _fold_life
from replay import _events as e
from replay._rules import Broken
from replay._state import NEW, State
from replay.errors import IllegalEvent

MODEL = frozenset({"model"})
TOOLS = frozenset({"tools"})
ALIVE = frozenset({"model", "tools", "paused"})

Move = Callable[[State, e.Event, datetime], State]


def _row(phases: Iterable[str], move: object) -> tuple[frozenset[str], Move]:
    return frozenset(phases), cast("Move", move)


TRANSITIONS: dict[type[e.Event], tuple[frozenset[str], Move]] = {
    e.RunStarted: _row({"new"}, _fold_life.started),
    e.RunForked: _row(ALIVE | {"done"}, _fold_life.forked),
    e.RunResumed: _row(ALIVE, _fold_life.resumed),
    e.LimitsChanged: _row(ALIVE, _fold_life.limits_changed),
    e.WorkspaceAccepted: _row(ALIVE, _fold_life.accepted),
    e.ModelAsked: _row(MODEL, _fold_asks.asked),
    e.ReplySaved: _row(MODEL, _fold_asks.replied),
    e.ModelFailed: _row(MODEL, _fold_asks.failed),
    e.AttemptMarked: _row(TOOLS, _fold_calls.marked),
    e.AttemptEnded: _row(TOOLS, _fold_calls.ended),
    e.ResultRecorded: _row(TOOLS, _fold_calls.recorded),
    e.LookupAsked: _row(TOOLS, _fold_calls.lookup_asked),
    e.LookupAnswered: _row(TOOLS, _fold_calls.lookup_answered),
    e.QuestionAsked: _row(TOOLS, _fold_calls.question_asked),
    e.QuestionAnswered: _row({"tools", "paused"}, _fold_calls.question_answered),
    e.FileIntended: _row(TOOLS, _fold_calls.file_intended),
    e.FileWritten: _row(TOOLS, _fold_calls.file_written),
    e.WaitUntil: _row({"model", "tools"}, _fold_life.waited),
    e.PhaseChanged: _row(ALIVE, _fold_life.phase_changed),
    e.RunStopped: _row(ALIVE, _fold_life.stopped),
}

EVEN_WHEN_STOPPED = (e.RunResumed, e.RunForked, e.LimitsChanged, e.QuestionAnswered, e.RunStopped)


def step(state: State, event: e.Any, at: datetime, *, seq: int | None = None) -> State:
    """The state after one event that was written at `at`.

    Raises `IllegalEvent`, which names line `seq`, when the table does not allow the event here. `state` is untouched.
    """
    if isinstance(event, e.Unknown):
        return state if event.ignorable else replace(state, unknown=(*state.unknown, event.tag))
    phases, move = TRANSITIONS[type(event)]
    if state.phase not in phases:
        raise IllegalEvent(seq, _codec.tag(event), state.phase, f"it belongs to {', '.join(sorted(phases))}")
    if state.stopped is not None and not isinstance(event, EVEN_WHEN_STOPPED):
        raise IllegalEvent(seq, _codec.tag(event), state.phase, f"the run is stopped ({state.stopped.reason})")
    try:
        return move(state, event, at)
    except Broken as broken:
        raise IllegalEvent(seq, _codec.tag(event), state.phase, str(broken)) from None


def fold(state: State, at: datetime, events: Iterable[e.Any], *, seq: int | None = None) -> State:
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
