"""The ladder: how a call that may have acted is settled.

Each rung is tried only if the one before can't decide.

(a) *Run again* when a repeat is safe: the call reads, is idempotent, or sent a key that the service still
    remembers. At most the tool's `attempts` that ended in their own life; those ended by a death are bounded by the
    limit on resumes.
(b) *Ask the service* through the tool's lookup. `Missing` is believed only when it was asked after `visible_within` had
    passed since the last attempt ended; before that the run waits and asks again. When what held the run before may
    still act (`lease_lost`), an attempt ends no sooner than the resume, and its `timeout` must have passed too. A
    lookup that raises is asked again twice.
(c) *Ask a person*, who answers `rerun`, or `done` with what they found.

Waits follow one schedule: after n tries that ended in their own life 4^n seconds, at most 60, or what the service asked
for if that is longer. A try that ended by a death is not waited for: the death took its time. When the current code
declares another effect than the marker, has no such tool or would run it with other arguments, nothing is known about a
repeat, and a person decides. So does a person at once when the last attempt ended because its service wants an answer
from one. Other arguments than the marker's are never sent with its key: where a repeat was certain to be safe, the
model reads that it was not run and may call anew, past every gate.

`RUNGS` is the ladder: one table that `climb` acts by and `runner.review.guarantees` describes, so that what is
promised of a tool is what happens to it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec

from replay import CallState, Event, State
from replay.events import AttemptMarked, LookupAsked, ResultRecorded, WaitUntil
from replay.state import Attempt
from runner._agent import keys
from runner._agent.tools import Tool
from runner._policy import pending as _pending
from runner._policy.pending import Pending

LONGEST_BACKOFF = 60.0
LOOKUPS_THAT_RAISE = 3


def backoff(tries: int, retry_after: float | None = None) -> timedelta:
    """How long to wait after `tries` tries in a row that ended in their own life."""
    longest = min(4.0 ** min(tries, 8), LONGEST_BACKOFF)
    return timedelta(seconds=max(longest, retry_after or 0.0))


def once(state: State, wait: WaitUntil) -> list[Event]:
    """The wait, unless the run waits for it already."""
    logged = state.wait is not None and (state.wait.until, state.wait.call) == (wait.until, wait.call)
    return [] if logged else [wait]


def mark(call: Pending) -> AttemptMarked:
    """The next attempt's marker. A retry uses the key in the first marker."""
    tool, attempts = call.tool, call.call.attempts
    assert tool is not None  # a gate or the ladder has said so otherwise
    return AttemptMarked(
        call=call.id,
        n=len(attempts) + 1,
        key=attempts[0].key if attempts else keys.key(call.state.uid, call.id),
        effect=tool.effect,
        key_ttl=tool.key_ttl,
        intent=call.intent,
        arguments=None if attempts else call.arguments.text,
    )


def remembered(tool: Tool, attempts: Sequence[Attempt], now: datetime) -> bool:
    """Whether the service still knows the key, and will until another attempt has ended and taken effect.

    An attempt that timed out may still be under way for as long as the tool's lookup declares. Where the current code
    and the first marker name different times, the shorter one counts: a declaration may have been corrected.
    """
    first = attempts[0]
    if first.key_ttl is None or tool.key_ttl is None or any(a.expired for a in attempts):
        return False
    age = (now - first.marked).total_seconds()  # a difference: a key kept for ever has no date at which it ends
    return age + under_way(tool) <= min(first.key_ttl, tool.key_ttl)


def under_way(tool: Tool) -> float:
    """Seconds after an attempt's start in which it may still take effect."""
    return tool.timeout + (tool.visible_within if tool.find is not None else 0.0)


def is_safe_to_repeat(tool: Tool, call: CallState, now: datetime) -> bool:
    """Whether running the call again does no more than it may already have done."""
    if tool.effect == "keyed":
        return remembered(tool, call.attempts, now)
    return tool.effect in ("reads", "idempotent")


def climb(call: Pending, now: datetime) -> Event:
    """What comes next for a call that has attempts, none of them in flight, and no result."""
    last = call.call.attempts[-1]
    stated = _stated(call)
    if stated is not None:
        return stated
    if not call.call.in_doubt or (last.effect == "reads" and last.did == "nothing"):  # a read that raised has failed
        return _again(call, now)
    if call.tool is not None and call.misfit is not None and all(a.effect == "reads" for a in call.call.attempts):
        return _not_again(call, f"the current tool {call.misfit}")
    changed, tool = _changed(call), call.tool
    if tool is None or changed is not None:
        return call.question("settle", f"the call was marked as {last.effect}, and {changed}")
    if last.asks:
        return call.question("settle", last.error)
    rung = next(rung for rung in RUNGS if rung.offered(tool) and rung.decides(tool, call.call, now))
    return rung.act(tool, call, now)


def _why(tool: Tool, call: CallState, now: datetime) -> str:
    """Why no rung below the person could decide."""
    if tool.find is not None:
        return f"the service can't say whether it happened{f': {call.lookups.why}' if call.lookups.why else ''}"
    if is_safe_to_repeat(tool, call, now):
        return f"{call.attempts_used} attempts ended without an answer, and the tool has no lookup"
    return "a repeat may do it twice, and the tool has no lookup"


def _changed(call: Pending) -> str | None:
    """How the current tool differs from the one that was tried, or None."""
    if call.tool is None:
        return "the current code has no such tool"
    if call.tool.effect != call.call.attempts[-1].effect:
        return f"the current code declares the effect {call.tool.effect}"
    earlier = call.state.earlier_effect(call.tool.name)
    if earlier is not None:
        return f"an earlier life of this run declared the effect {earlier}"
    return None if call.misfit is None else f"the current tool {call.misfit}"


def _again(call: Pending, now: datetime) -> Event:
    """Every attempt so far did nothing: try again where that is worth it, else the call has failed."""
    last, tool = call.call.attempts[-1], call.tool
    if tool is None or call.arguments.problem is not None:
        return _not_again(call, call.arguments.problem if tool is not None else "there is no such tool any more")
    at_once = call.call.cleared == "person" or last.withdrawn
    worth_it = call.call.cleared == "missing" or last.retry_after is not None
    if not at_once and not (worth_it and call.call.attempts_used < tool.attempts):
        why = last.error or "every attempt did nothing"
        return ResultRecorded(call=call.id, how="failed", text=f"The call failed: {why}", n=last.n, raw=last.raw)
    if call.misfit is not None:
        return _not_again(call, f"the current tool {call.misfit}")
    return mark(call) if at_once else _rerun(tool, call, now)


def _not_again(call: Pending, why: str | None) -> ResultRecorded:
    return ResultRecorded(call=call.id, how="invalid", text=f"The call was not run again: {why}.")


def _rerun(tool: Tool, call: Pending, now: datetime) -> Event:
    last = call.call.attempts[-1]
    if last.ended is not None and not last.died:
        due = last.ended + backoff(call.call.attempts_used, min(last.retry_after or 0.0, tool.max_wait))
        if now < due:
            return WaitUntil(until=due, why="backoff", call=call.id)
    return mark(call)


def _look(tool: Tool, call: Pending, now: datetime) -> Event:
    lookups = call.call.lookups
    visible = max(a.ended + _within(tool, a) for a in call.call.attempts if a.ended is not None)
    if lookups.said == "unsure":
        due = (lookups.at or now) + backoff(lookups.raised, min(lookups.retry_after or 0.0, tool.max_wait))
        if now < due:
            return WaitUntil(until=due, why="lookup", call=call.id)
    if lookups.said == "missing" and now < visible:
        return WaitUntil(until=visible, why="visible", call=call.id)
    return LookupAsked(call=call.id, n=lookups.asked + 1, believes=now >= visible)


def _within(tool: Tool, attempt: Attempt) -> timedelta:
    """How long after its end an attempt may come to be seen."""
    return timedelta(seconds=max(tool.visible_within, tool.timeout) if attempt.lease_lost else tool.visible_within)


def _stated(call: Pending) -> ResultRecorded | None:
    """The result a person gave by answering `done`, or `failed`."""
    question = call.state.questions.get(_pending.settle_id(call.call, call.call.settle_questions))
    answer = question.answer if question is not None else None
    if answer is None or answer.answer == "rerun":
        return None
    if answer.answer == "done":
        return ResultRecorded(call=call.id, how="stated", text=answer.text)
    text = f"The call failed: {answer.who} says that it did nothing{f': {answer.text}' if answer.text else ''}"
    return ResultRecorded(call=call.id, how="failed", text=text, n=call.call.attempts[-1].n)


def operator_notes(call: CallState, state: State) -> tuple[tuple[str, str], ...]:
    """Every question about this call that a person answered with `rerun`, as it was asked, and what they said."""
    asked = [state.questions.get(_pending.settle_id(call, n)) for n in range(1, call.settle_questions + 1)]
    return tuple(
        (question.why, question.answer.text)
        for question in asked
        if question is not None and question.answer is not None and question.answer.answer == "rerun"
    )


class Rung(msgspec.Struct, frozen=True):
    """One way to settle a call in doubt.

    `offered`: whether the tool's declaration has this rung at all; `decides`: whether it can settle this call now;
    `act`: what comes next then. `description` says it, with `last` the tools whose calls never get beyond this rung,
    and `repeats` those whose effect it may bring about once more.
    """

    offered: Callable[[Tool], bool]
    decides: Callable[[Tool, CallState, datetime], bool]
    act: Callable[[Tool, Pending, datetime], Event]
    description: Callable[[Tool], str]
    last: Callable[[Tool], bool] = lambda _: False
    repeats: Callable[[Tool], bool] = lambda _: False


AGAIN = Rung(
    offered=lambda tool: tool.effect != "non_idempotent" and (tool.key_ttl is None or tool.key_ttl > under_way(tool)),
    decides=lambda tool, call, now: is_safe_to_repeat(tool, call, now) and call.attempts_used < tool.attempts,
    act=_rerun,
    description=lambda tool: "runs again" + (f" with its key for {span(tool.key_ttl)}" if tool.key_ttl else ""),
    last=lambda tool: tool.effect == "reads",  # a read that raised has failed, and deaths have a limit of their own
    repeats=lambda tool: tool.effect == "idempotent",
)
SERVICE = Rung(
    offered=lambda tool: tool.find is not None,
    decides=lambda _tool, call, _now: call.lookups.said != "unsure" or 0 < call.lookups.raised < LOOKUPS_THAT_RAISE,
    act=_look,
    description=lambda _: "asks the service",
)
PERSON = Rung(
    offered=lambda _: True,
    decides=lambda _tool, _call, _now: True,
    act=lambda tool, call, now: call.question("settle", _why(tool, call.call, now)),
    description=lambda _: "asks a person",
    last=lambda _: True,
)
RUNGS = (AGAIN, SERVICE, PERSON)
"""The ladder, from the rung that disturbs nobody to the one that always decides."""


def reachable_rungs(tool: Tool) -> tuple[Rung, ...]:
    """The rungs that a call of this tool may come to, in their order, as long as its declaration stays what it is."""
    offered = [rung for rung in RUNGS if rung.offered(tool)]
    end = next(n for n, rung in enumerate(offered, start=1) if rung.last(tool))
    return tuple(offered[:end])


def span(seconds: float) -> str:
    """A stretch of time as a person says it: in the largest unit of which it is at least two, hours for a day."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:g} s"
