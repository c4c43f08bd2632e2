"""Safeguards of the runner taken out, each in one place, for the sweep to find."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

import runner
from replay import (
    AttemptEnded,
    AttemptMarked,
    CallState,
    Event,
    LookupAnswered,
    LookupAsked,
    ReplySaved,
    ResultRecorded,
    RunResumed,
    State,
)
from runner import _ladder
from runner._loop import Life
from runner._perform import World
from runner._tools import Tool

OUTCOMES = (ReplySaved, ResultRecorded, AttemptEnded, LookupAnswered)


def no_marker(patch: pytest.MonkeyPatch) -> None:
    """Have no line say that a call is about to be tried."""
    save = Life.save

    async def without(life: Life, state: State, now: datetime, events: Sequence[Event]) -> State:
        kept = [event for event in events if not isinstance(event, AttemptMarked)]
        return await save(life, state, now, kept) if kept else state

    patch.setattr(Life, "save", without)


def a_key_per_attempt(patch: pytest.MonkeyPatch) -> None:
    """Have every attempt of a call send a key of its own."""
    mark = _ladder.mark

    def fresh(state: State, tool: Tool, call: CallState) -> list[Event]:
        (marked,) = mark(state, tool, call)
        assert isinstance(marked, AttemptMarked)
        return [replace(marked, key=runner.key(state.run, f"{call.call.id} {marked.n}"))]

    patch.setattr(_ladder, "mark", fresh)


def missing_believed_at_once(patch: pytest.MonkeyPatch) -> None:
    """Have every `Missing` believed, however early it was asked."""
    look = _ladder.SERVICE.act

    def hasty(tool: Tool, call: CallState, state: State, now: datetime) -> list[Event]:
        events = look(tool, call, state, now)
        return [replace(event, believes=True) if isinstance(event, LookupAsked) else event for event in events]

    rungs = tuple(r._replace(act=hasty) if r is _ladder.SERVICE else r for r in _ladder.RUNGS)
    patch.setattr(_ladder, "RUNGS", rungs)


def a_no_settles_all(patch: pytest.MonkeyPatch) -> None:
    """Have an attempt that did nothing settle the call, whatever became of the attempts before it."""
    patch.setattr(CallState, "open", property(_last_may_have_acted))


def _last_may_have_acted(call: CallState) -> bool:
    return call.result is None and bool(call.attempts) and call.attempts[-1].did != "nothing"


def results_before_replies(patch: pytest.MonkeyPatch) -> None:
    """Have a reply saved no sooner than the result of its first call."""
    save = Life.save
    held: dict[Life, list[Event]] = {}

    async def late(life: Life, state: State, now: datetime, events: Sequence[Event]) -> State:
        due = [*held.pop(life, []), *events]
        asks = any(isinstance(event, ReplySaved) and event.reply.calls for event in events)
        if asks and not any(isinstance(event, ResultRecorded) for event in events):
            held[life] = due
            return state
        return await save(life, state, now, due)

    patch.setattr(Life, "save", late)


def resumes_counted_late(patch: pytest.MonkeyPatch) -> None:
    """Have a resume counted when something came of it, and not before anything else happens."""
    save = Life.save
    held: dict[Life, list[Event]] = {}

    async def late(life: Life, state: State, now: datetime, events: Sequence[Event]) -> State:
        due = [*held.pop(life, []), *events]
        if isinstance(due[0], RunResumed) and not any(isinstance(event, OUTCOMES) for event in due):
            held[life] = due
            return state
        return await save(life, state, now, due)

    patch.setattr(Life, "save", late)


def overtaken_threads(patch: pytest.MonkeyPatch) -> None:
    """Have a tool whose time is up left behind, though its thread still runs and may act."""
    in_thread = World._in_thread  # noqa: SLF001 (the safeguard itself)

    async def left(world: World, tool: Tool, body: Any, *, abandon: bool) -> object:
        return await in_thread(world, tool, body, abandon=abandon or True)

    patch.setattr(World, "_in_thread", left)
