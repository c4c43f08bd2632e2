"""Safeguards of the runner taken out, each in one place, for the sweep to find."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

import runner
from eventlog.simdisk import DiskProxy
from replay import CallState, Event, State
from replay.events import (
    AttemptEnded,
    AttemptMarked,
    LookupAnswered,
    LookupAsked,
    ReplySaved,
    ResultRecorded,
)
from runner._agent.tools import Tool
from runner._engine.loop import Life
from runner._engine.mailbox import Mailbox
from runner._engine.perform import Executor
from runner._policy import ladder
from runner._policy.pending import Pending
from runner.testing._leased_disk import LeasedDisk

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
    mark = ladder.mark

    def fresh(call: Pending) -> AttemptMarked:
        marked = mark(call)
        return replace(marked, key=runner.key(call.state.uid, f"{call.id} {marked.n}"))

    patch.setattr(ladder, "mark", fresh)


def missing_believed_at_once(patch: pytest.MonkeyPatch) -> None:
    """Have every `Missing` believed, however early it was asked."""
    look = ladder.SERVICE.act

    def hasty(tool: Tool, call: Pending, now: datetime) -> Event:
        event = look(tool, call, now)
        return replace(event, believes=True) if isinstance(event, LookupAsked) else event

    rungs = tuple(replace(r, act=hasty) if r is ladder.SERVICE else r for r in ladder.RUNGS)
    patch.setattr(ladder, "RUNGS", rungs)


def a_no_settles_all(patch: pytest.MonkeyPatch) -> None:
    """Have an attempt that did nothing settle the call, whatever became of the attempts before it."""
    patch.setattr(CallState, "in_doubt", property(_last_may_have_acted))


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


def overtaken_threads(patch: pytest.MonkeyPatch) -> None:
    """Have a tool whose time is up left behind, though its thread still runs and may act."""
    in_thread = Executor._in_thread  # noqa: SLF001 (the safeguard itself)

    async def left(executor: Executor, tool: Tool, body: Any, *, abandon: bool) -> object:
        return await in_thread(executor, tool, body, abandon=abandon or True)

    patch.setattr(Executor, "_in_thread", left)


def no_token(patch: pytest.MonkeyPatch) -> None:
    """Have a holder never learn that somebody else has taken its lease, neither by a token nor by its own clock."""
    patch.setattr(LeasedDisk, "is_stale", lambda _disk, _lease: False)
    patch.setattr(LeasedDisk, "stat", DiskProxy.stat)


def no_check(patch: pytest.MonkeyPatch) -> None:
    """Have what was saved begin, however long ago that was."""
    patch.setattr(Executor, "hold", lambda _executor, _seconds=0.0: math.inf)


def no_longer_wait(patch: pytest.MonkeyPatch) -> None:
    """Have a holder that was lost act no longer than one that died."""
    patch.setattr(ladder, "_within", lambda tool, _attempt: timedelta(seconds=tool.visible_within))


def mail_only_at_open(patch: pytest.MonkeyPatch) -> None:
    """Have whoever holds a run read its inbox only when it opens the run."""
    patch.setattr(Mailbox, "take", lambda _mailbox, _state, _now: [])
