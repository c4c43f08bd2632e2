"""Waves: which calls of a reply run side by side, and what each of them does next.

1. Calls run in order. Consecutive calls that only read, or whose tools are declared `parallel`, are a wave: at most the
   agent's `parallel`, marked in one line. A wave ends before a call that may not run now, and before one that repeats
   what another of it does: the same intent, or the same effect in the fork guard. The next begins when every call of
   it has its result.
2. A call that was tried goes up the ladder by itself, also while others of its wave are in flight. What it waits for
   holds up no other: the run sleeps until the earliest of the waits.
3. A person is asked when no call can go on by itself, about all of the wave in one line.
"""

from collections.abc import Sequence
from datetime import datetime

from replay import Event, State
from replay.events import AttemptMarked, LookupAsked, ResultRecorded, WaitUntil
from runner._agent.agent import AnyAgent
from runner._policy import children, fork_guard, gates, ladder
from runner._policy import pending as _pending
from runner._policy.pending import Pending

ACTS = (AttemptMarked, LookupAsked)


def chosen(calls: Sequence[Pending], now: datetime) -> list[Event]:
    """What comes next for the calls of a reply that have no result; nothing when all that can go on is in flight."""
    tried = [call for call in calls if call.call.attempts][: calls[0].agent.parallel]
    if not tried:
        return _wave(calls, now)
    events = _each(tried, now)
    acts: list[Event] = [event for event in events if isinstance(event, ACTS)]
    if acts or tried[0].state.busy:
        return acts
    waits = [event for event in events if isinstance(event, WaitUntil)]
    return ladder.once(tried[0].state, min(waits, key=lambda wait: wait.until)) if waits else events


def due(agent: AnyAgent, state: State, now: datetime) -> datetime | None:
    """When a call goes on by itself while others are in flight, or None."""
    tried = [call for call in state.calls if call.result is None and call.attempts][: agent.parallel]
    rest = [_pending.Pending(agent, state, call) for call in tried if not call.busy]
    if not rest or not state.busy:
        return None
    return min((event.until for event in _each(rest, now) if isinstance(event, WaitUntil)), default=None)


def _each(tried: Sequence[Pending], now: datetime) -> list[Event]:
    """What comes next for each call that is not in flight; a result alone, since others may follow from it."""
    events: list[Event] = []
    for call in tried:
        if not call.call.busy:
            events += (more := _next(call, now))
            if any(isinstance(event, ResultRecorded) for event in more):
                return more
    return events


def _wave(calls: Sequence[Pending], now: datetime) -> list[Event]:
    """The markers of the calls that run side by side from now on, or what stands in for the first call."""
    wave: list[Event] = []
    does: set[object] = set()
    for call in calls[: calls[0].agent.parallel]:
        if wave and (not _is_parallel(call) or does & _does(call)):
            break
        events = _next(call, now)
        if not isinstance(events[0], AttemptMarked):
            return wave or events
        wave += events
        if len(calls) == 1 or not _is_parallel(call):
            break
        does |= _does(call)
    return wave


def _is_parallel(call: Pending) -> bool:
    return call.tool is not None and not children.is_child(call) and (call.tool.parallel or call.tool.effect == "reads")


def _does(call: Pending) -> set[object]:
    """What no other call of a wave may do: its intent, and its matches in the fork guard."""
    return {*([call.intent] if call.intent is not None else []), *fork_guard.repeated(call)}


def _next(call: Pending, now: datetime) -> list[Event]:
    """The result or question that a closed gate gives, the next rung of the ladder, or the first attempt."""
    closed = gates.closed(call)
    if closed is not None:
        return gates.questions([call]) or [closed]
    return [fork_guard.guarded(call, ladder.climb(call, now)) if call.call.attempts else ladder.mark(call)]
