"""The ladder: how a call that may have acted is settled (spec row 23).

Each rung is tried only if the one before can't decide.

(a) *Run again* when a repeat is harmless: the call reads, is idempotent, or sent a key that the service still
    remembers. At most the tool's `attempts` that ended in their own life; those ended by a death are bounded by the
    limit on resumes.
(b) *Ask the service* through the tool's lookup. `Missing` is believed only when it was asked after `lands_within` had
    passed since the last attempt became open; before that the run waits and asks again. A lookup that raises is asked
    again twice.
(c) *Ask a person*, who answers `rerun`, or `done` with what they found.

Waits follow one schedule: after n tries that ended in their own life 4^n seconds, at most 60, or what the service asked
for if that is longer. A try that ended by a death is not waited for: the death took its time. When today's code
declares another effect than the marker, or has no such tool, nothing is known about a repeat, and a person decides. So
does a person at once when the last attempt ended because its service wants an answer from one.

`RUNGS` is the ladder: one table that `climb` acts by and `runner.guarantees` reads aloud, so that what is said of a
tool is what happens to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import replay
from replay import (
    Attempt,
    AttemptMarked,
    CallState,
    Event,
    LookupAsked,
    PhaseChanged,
    QuestionAsked,
    ResultRecorded,
    State,
    WaitUntil,
)
from runner import _arguments, _keys
from runner._tools import Tool

LONGEST_BACKOFF = 60.0
LOOKUPS_THAT_RAISE = 3


def backoff(tries: int, retry_after: float | None = None) -> timedelta:
    """How long to wait after `tries` tries in a row that ended in their own life."""
    longest = min(4.0 ** min(tries, 8), LONGEST_BACKOFF)
    return timedelta(seconds=max(longest, retry_after or 0.0))


def wait(state: State, until: datetime, why: str, call: str | None) -> list[Event]:
    """Log the wait, once."""
    if state.wait is not None and state.wait.until == until and state.wait.call == call:
        return []
    return [WaitUntil(until=until, why=why, call=call)]  # type: ignore[arg-type] # callers pass the literals


def mark(state: State, tool: Tool, call: CallState) -> list[Event]:
    """The next attempt's marker. A retry uses the key in the first marker (spec row 17)."""
    key = call.attempts[0].key if call.attempts else _keys.key(state.run, call.call.id)
    return [
        AttemptMarked(
            call=call.call.id,
            n=len(call.attempts) + 1,
            key=key,
            effect=tool.effect,
            remembers=tool.remembers,
            intent=intent(tool, call),
        )
    ]


def intent(tool: Tool, call: CallState) -> str | None:
    """The intent of a call whose arguments are valid, or None when its tool names none.

    It is made of what the function gets: a default left out and the same value written out are one intent.
    """
    if not tool.once_per:
        return None
    values = _arguments.parse(call.call.arguments)
    if not tool.given:
        values = _arguments.bind(tool.signature.type, values)
    return _keys.intent(tool.name, values, tool.once_per)


def remembered(tool: Tool, attempts: Sequence[Attempt], now: datetime) -> bool:
    """Whether the service still knows the key, and will until another attempt has ended and landed (spec row 20).

    An attempt that timed out may still be on its way for as long as the tool's lookup declares.
    """
    first = attempts[0]
    if first.remembers is None or any(a.expired for a in attempts):
        return False
    under_way = tool.timeout + (tool.lands_within if tool.find is not None else 0.0)
    return now + timedelta(seconds=under_way) <= first.marked + timedelta(seconds=first.remembers)


def harmless(tool: Tool, call: CallState, now: datetime) -> bool:
    """Whether running the call again does no more than it may already have done."""
    if tool.effect == "keyed":
        return remembered(tool, call.attempts, now)
    return tool.effect in ("reads", "idempotent")


def climb(tool: Tool | None, call: CallState, state: State, now: datetime) -> list[Event]:
    """What comes next for a call that has attempts, none of them in flight, and no result."""
    last = call.attempts[-1]
    if not call.open or (last.effect == "reads" and last.did == "nothing"):  # a read that raised has simply failed
        return _again(tool, call, state, now)
    told = _told(call, state)
    if told is not None:
        return [told]
    changed = _changed(tool, call)
    if tool is None or changed is not None:
        return ask(call, f"the call was marked as {call.attempts[-1].effect}, and {changed}")
    if last.asks:
        return ask(call, last.error)
    rung = next(rung for rung in RUNGS if rung.offered(tool) and rung.decides(tool, call, now))
    return rung.act(tool, call, state, now)


def _why(tool: Tool, call: CallState, now: datetime) -> str:
    """Why no rung below the person could decide."""
    if tool.find is not None:
        return f"the service can't say whether it happened{f': {call.lookups.why}' if call.lookups.why else ''}"
    if harmless(tool, call, now):
        return f"{call.ended} attempts ended without an answer, and the tool has no lookup"
    return "a repeat may do it twice, and the tool has no lookup"


def _changed(tool: Tool | None, call: CallState) -> str | None:
    """What makes today's tool another than the one that was tried, or None."""
    if tool is None:
        return "today's code has no such tool"
    if tool.effect != call.attempts[-1].effect:
        return f"today's code declares the effect {tool.effect}"
    problem = tool.problem(call.call.arguments)
    return None if problem is None else f"today's tool can't take its arguments ({problem})"


def _again(tool: Tool | None, call: CallState, state: State, now: datetime) -> list[Event]:
    """Every attempt so far did nothing: try again where that is worth it, else the call has failed."""
    last = call.attempts[-1]
    problem = tool.problem(call.call.arguments) if tool is not None else "there is no such tool any more"
    if tool is None or problem is not None:
        return [ResultRecorded(call=call.call.id, how="invalid", text=f"The call was not run again: {problem}.")]
    if call.cleared == "person":
        return mark(state, tool, call)
    if call.ended < tool.attempts and (call.cleared == "missing" or last.retry_after is not None):
        return _rerun(tool, call, state, now)
    why = last.error or "every attempt did nothing"
    return [ResultRecorded(call=call.call.id, how="failed", text=f"The call failed: {why}", n=last.n)]


def _rerun(tool: Tool, call: CallState, state: State, now: datetime) -> list[Event]:
    last = call.attempts[-1]
    if last.ended is not None and not last.died:
        due = last.ended + backoff(call.ended, last.retry_after)
        if now < due:
            return wait(state, due, "backoff", call.call.id)
    return mark(state, tool, call)


def _look(tool: Tool, call: CallState, state: State, now: datetime) -> list[Event]:
    lookups = call.lookups
    lands = max(a.ended for a in call.attempts if a.ended is not None) + timedelta(seconds=tool.lands_within)
    if lookups.said == "unsure":
        due = (lookups.at or now) + backoff(lookups.raised)
        if now < due:
            return wait(state, due, "lookup", call.call.id)
    if lookups.said == "missing" and now < lands:
        return wait(state, lands, "lands", call.call.id)
    return [LookupAsked(call=call.call.id, n=lookups.asked + 1, believes=now >= lands)]


def _told(call: CallState, state: State) -> ResultRecorded | None:
    """The result a person gave by answering `done`."""
    question = state.questions.get(question_id(call, call.settles))
    if question is None or question.answer is None or question.answer.answer != "done":
        return None
    return ResultRecorded(call=call.call.id, how="told", text=question.answer.text)


def said(call: CallState, state: State) -> str:
    """What a person last said with a `rerun` of this call; empty when nobody said anything."""
    asked = [state.questions.get(question_id(call, n)) for n in range(call.settles, 0, -1)]
    answers = [question.answer for question in asked if question is not None and question.answer is not None]
    return next((answer.text for answer in answers if answer.answer == "rerun" and answer.text), "")


def question_id(call: CallState, n: int) -> str:
    """The id of the ladder's `n`-th question about a call."""
    return f"{call.call.id}-settle-{n}"


def ask(call: CallState, why: str) -> list[Event]:
    """A person decides: the question, and the pause."""
    return [
        QuestionAsked(
            id=question_id(call, call.settles + 1),
            kind="settle",
            call=call.call.id,
            tool=call.call.tool,
            arguments=call.call.arguments,
            digest=replay.digest(call.call.arguments.encode()),
            why=why,
        ),
        PhaseChanged(phase="paused"),
    ]


class Rung(NamedTuple):
    """One way to settle an open call.

    `offered`: whether the tool's declaration has this rung at all; `decides`: whether it can settle this call now;
    `act`: what comes next then. `words` say it, with `last` the tools whose calls never get beyond this rung, and
    `repeats` those whose effect it may bring about once more.
    """

    offered: Callable[[Tool], bool]
    decides: Callable[[Tool, CallState, datetime], bool]
    act: Callable[[Tool, CallState, State, datetime], list[Event]]
    words: Callable[[Tool], str]
    last: Callable[[Tool], bool] = lambda _: False
    repeats: Callable[[Tool], bool] = lambda _: False


AGAIN = Rung(
    offered=lambda tool: tool.effect != "once",
    decides=lambda tool, call, now: harmless(tool, call, now) and call.ended < tool.attempts,
    act=_rerun,
    words=lambda tool: "runs again" + (f" with its key for {span(tool.remembers)}" if tool.remembers else ""),
    last=lambda tool: tool.effect == "reads",  # a read that raised has failed, and deaths have a limit of their own
    repeats=lambda tool: tool.effect == "idempotent",
)
SERVICE = Rung(
    offered=lambda tool: tool.find is not None,
    decides=lambda _tool, call, _now: call.lookups.said != "unsure" or 0 < call.lookups.raised < LOOKUPS_THAT_RAISE,
    act=_look,
    words=lambda _: "asks the service",
)
PERSON = Rung(
    offered=lambda _: True,
    decides=lambda _tool, _call, _now: True,
    act=lambda tool, call, _state, now: ask(call, _why(tool, call, now)),
    words=lambda _: "asks a person",
    last=lambda _: True,
)
RUNGS = (AGAIN, SERVICE, PERSON)
"""The ladder, from the rung that disturbs nobody to the one that always decides."""


def ahead(tool: Tool) -> tuple[Rung, ...]:
    """The rungs that a call of this tool may come to, in their order, as long as its declaration stays what it is."""
    offered = [rung for rung in RUNGS if rung.offered(tool)]
    end = next(n for n, rung in enumerate(offered, start=1) if rung.last(tool))
    return tuple(offered[:end])


def span(seconds: float) -> str:
    """A stretch of time as a person says it: in the largest unit of which it is at least two, hours for a day."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{round(seconds / size, 1):g} {unit}"
    return f"{seconds:g} s"
