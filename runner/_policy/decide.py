"""Decide: from a state and the time, what comes next.

Every choice the runner makes is made here or in the files of this folder. None of them reads a clock, a disk or a
service, so a retrace can ask the same question of an old history.

1. A stopped or done run does nothing. Nothing begins after the deadline. A pause ends when every question has its
   answer.
2. `model`: a final reply ends the run; a limit stops it; a failed ask is retried at most five times in a row; a summary
   comes before the turn it makes room for.
3. `tools`: the questions about the whole reply first, then its calls, in waves. A call runs once it has passed the
   gates; one that was tried climbs the ladder, each by itself. Calls that child runs do are waves of their own.
4. While something is in flight, only a call that is not may go on. All it needs stands in the state: which calls are in
   flight, and what the others came to. So a retrace decides the same, in whichever order outcomes were saved.
5. In the run of a program with a loop of its own, only what the program demands is due.

What `decide` returns is written to the log before anything acts on it.
"""

import itertools
from datetime import datetime

import replay
from replay import Event, State
from replay.events import ChildStarted, ModelAsked, PhaseChanged, RunStopped, WaitUntil
from replay.state import Failures
from runner._agent.agent import AnyAgent
from runner._policy import approvals, children, demands, gates, ladder, limits, pending, replies, request, waves
from runner._policy.demands import NOTHING, Demands
from runner._policy.pending import Pending

ASKS_IN_A_ROW = 6
ACTS = frozenset((ModelAsked, *waves.ACTS, ChildStarted))
"""The events that somebody outside must answer before anything else is decided."""


def decide(agent: AnyAgent, state: State, now: datetime, demanded: Demands = NOTHING) -> list[Event]:
    """The events to write next, folded one after another until one needs an answer from outside.

    Empty when nothing is due: the run is done, stopped, waits for a time or for a person. `state` is untouched.
    `demanded` is what the program waits for whose run it is, if it is one.
    """
    intents: list[Event] = []
    while True:
        chosen = _next(agent, state, now, demanded)
        if agent.answer_within is not None:
            chosen = approvals.timed(chosen, now + agent.answer_within)
        intents += chosen
        if not chosen or not ACTS.isdisjoint(map(type, chosen)):
            return intents
        state = replay.fold(state, now, chosen)


def _next(agent: AnyAgent, state: State, now: datetime, demanded: Demands) -> list[Event]:
    if state.stopped is not None or state.phase in ("done", "new") or state.ask is not None:
        return []
    until = state.limits.until
    if until is not None and until <= now and not replies.ends(agent, state):
        detail = f"it was to be done by {until:%Y-%m-%d %H:%M:%S} UTC"
        return [] if state.busy else [RunStopped(reason="Deadline", detail=detail)]
    if state.phase == "paused":
        return approvals.paused(agent, state, now)
    if state.phase == "model":
        return demands.due(agent, state, demanded) if state.framework else _ask(agent, state, now)
    return _calls(agent, state, now, demanded)


def _ask(agent: AnyAgent, state: State, now: datetime) -> list[Event]:
    if state.stop is not None and not state.queue:
        return replies.final(agent, state)
    stop = limits.exceeded(state, state.limits)
    if stop is not None:
        return [stop]
    failed = state.failures
    if failed.at is not None:
        if failed.refused_conversation and not failed.transient:
            return replies.refused_conversation(agent, state, now)
        if not failed.transient or failed.count >= ASKS_IN_A_ROW:
            return [RunStopped(reason="ModelUnavailable", detail=_tried(failed))]
        due = failed.at + ladder.backoff(failed.count, failed.retry_after)
        if now < due:
            return ladder.once(state, WaitUntil(until=due, why="model"))
    return [request.asked(agent, state, now)]


def _tried(failed: Failures) -> str:
    """Whether the last request failed for good, or how many did and for how long; and the last error."""
    if not failed.transient:
        return f"a request failed for good: {failed.error}"
    seconds = (failed.at - failed.since).total_seconds() if failed.at is not None and failed.since is not None else 0.0
    return f"{failed.count} requests in a row failed, tried for {ladder.span(round(seconds, 1))}: {failed.error}"


def _calls(agent: AnyAgent, state: State, now: datetime, demanded: Demands) -> list[Event]:
    if state.questions and state.unanswered:
        return [PhaseChanged(phase="paused")]
    left = [call for call in state.calls if call.result is None]
    others = left if agent.answers is None else [call for call in left if not replies.is_output(agent, call)]
    if not others:
        return [replies.output(pending.Pending(agent, state, left[0]))]
    is_fresh = len(left) == len(state.calls) and not any(call.tried for call in left)
    if not (is_fresh or state.framework):
        others = others[: agent.parallel]  # a reply may have thousands of them
    calls = [pending.Pending(agent, state, call) for call in others]
    if state.framework:
        calls, events = demands.calls(calls, demanded)
        if events or not calls:
            return events
        is_fresh = is_fresh and len(calls) == len(left)
    questions = gates.questions(calls) if is_fresh else []
    if questions:
        return questions
    if children.is_child(calls[0]):
        return [] if state.busy else _children(calls[: agent.parallel], now)
    return waves.chosen(calls, now)


def _children(calls: list[Pending], now: datetime) -> list[Event]:
    """What comes next for the first calls if child runs do them: a gate's word on the first, or a wave of those after.

    A call that a gate is closed for ends the wave, as one that is no child run does.
    """
    together: list[Pending] = []
    for call in itertools.takewhile(children.is_child, calls):
        closed = gates.closed(call)
        if closed is not None:
            return children.wave(together, now) if together else gates.questions([call]) or [closed]
        together.append(call)
    return children.wave(together, now)
