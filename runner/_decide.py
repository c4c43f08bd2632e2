"""Decide: from a state and the time, what comes next.

Every choice the runner makes is made here or in the pure files it names; none reads a clock, a disk or a service, so a
retrace can ask the same question of an old history.

1. A stopped or done run does nothing. A pause ends when every question has its answer.
2. `model`: a final reply ends the run; a limit stops it; a failed ask is retried at most five times in a row; a summary
   comes before the turn it makes room for.
3. `tools`: approvals of the whole reply first, then the calls in order. What can't run gets a result the model can read
   and no attempt. Consecutive calls that read run side by side, at most eight (one wave, one line).
4. A call that was tried climbs the ladder.

What `decide` returns is written before the world hears of it.
"""

from __future__ import annotations

from datetime import datetime

import replay
from replay import (
    AttemptMarked,
    CallState,
    Digests,
    Event,
    LookupAsked,
    ModelAsked,
    PhaseChanged,
    QuestionAsked,
    Replied,
    ResultRecorded,
    RunStopped,
    State,
)
from runner import _approvals, _context, _fence, _ladder, _limits
from runner._agent import Agent
from runner._model import Request
from runner.errors import BadAgent

WAVE = 8
ASKS_IN_A_ROW = 6
NEEDS_THE_WORLD = (ModelAsked, AttemptMarked, LookupAsked)


def decide(agent: Agent, state: State, now: datetime) -> list[Event]:
    """The events to write next, folded one after another until one needs the world.

    Empty when nothing is due: the run is done, stopped, waits for a time or for a person. `state` is untouched.
    """
    intents: list[Event] = []
    while True:
        chosen = _next(agent, state, now)
        intents += chosen
        if not chosen or any(isinstance(event, NEEDS_THE_WORLD) for event in chosen):
            return intents
        state = replay.fold(state, now, chosen)


def _next(agent: Agent, state: State, now: datetime) -> list[Event]:
    if state.stopped is not None or state.phase in ("done", "new") or state.busy:
        return []
    if state.phase == "paused":
        return _approvals.paused(agent, state)
    if state.phase == "model":
        return _ask(agent, state, now)
    return _calls(agent, state, now)


def _ask(agent: Agent, state: State, now: datetime) -> list[Event]:
    if state.stop is not None:
        return [PhaseChanged(phase="done", answer=state.answer)]
    stop = _limits.exceeded(state, state.limits)
    if stop is not None:
        return [stop]
    failed = state.failures
    if failed.at is not None:
        if not failed.transient or failed.count >= ASKS_IN_A_ROW:
            return [RunStopped(reason="ModelUnavailable", detail=f"{failed.count} in a row failed: {failed.error}")]
        due = failed.at + _ladder.backoff(failed.count, failed.retry_after)
        if now < due:
            return _ladder.wait(state, due, "model", None)
    ask = request(agent, state, now)
    upto = summary.upto if (summary := _context.wanted(agent.context, state)) is not None else 0
    asked = ModelAsked(
        purpose="turn" if summary is None else "summary",
        n=ask.n,
        upto=upto,
        bound=agent.model.bound(ask),
        digests=_digests(agent, state, ask, upto),
    )
    try:
        replay.encode(asked)
    except replay.NotFaithful as error:
        message = f"the bound that model {agent.model.name} gives can't be logged: {error}"
        raise BadAgent(message) from error
    _limits.priced(agent.model.name, state.limits, asked.bound)
    return [asked]


def request(agent: Agent, state: State, at: datetime | None = None) -> Request:
    """The request that is due in this state: a summary when the context policy wants one, else a turn. Pure.

    `at` is the log's time of the ask, by which it is priced.
    """
    summary = _context.wanted(agent.context, state)
    return Request(
        run=state.run,
        purpose="turn" if summary is None else "summary",
        turn=state.turns + 1,
        n=state.failures.count + 1,
        instructions=agent.instructions if summary is None else summary.instructions,
        tools=agent.specs if summary is None else (),
        messages=_context.sent(state) if summary is None else _context.summarised(state, summary.upto),
        parameters=agent.parameters,
        at=at,
    )


def _digests(agent: Agent, state: State, ask: Request, upto: int) -> Digests:
    """What `ask` is made of: a change of the code that builds requests shows here, whatever the agent says of itself.

    Naming all messages at every ask must cost one message, not the history: their chain, how many are sent, and the one
    that stands for what a summary replaced.
    """
    short = ask.messages[0] if state.summary is not None else None
    return Digests(
        instructions=agent.definitions.instructions
        if ask.instructions == agent.instructions
        else replay.digest(ask.instructions.encode("utf-8", "replace")),
        tools=agent.tools_digest if ask.tools == agent.specs else replay.digest_value([list(s) for s in ask.tools]),
        messages=replay.digest_value([state.conversation, len(ask.messages), short, upto]),
        parameters=agent.definitions.parameters
        if ask.parameters == agent.parameters
        else replay.digest_value(dict(ask.parameters)),
    )


def _calls(agent: Agent, state: State, now: datetime) -> list[Event]:
    if state.waiting:  # asked over several lines, and the process died before the line with the pause
        return [PhaseChanged(phase="paused")]
    pending = [c for c in state.calls if c.result is None]
    if len(pending) == len(state.calls) and not any(c.attempts for c in pending):
        runnable = [c for c in pending if _unrunnable(agent, state, c) is None and _fence.settled(state, c) is None]
        questions = _questions(agent, state, runnable)
        if questions:
            return questions
    first = _call(agent, state, pending[0], now)
    wave = first if _reads(first) else []
    for call in pending[1:] if wave else ():
        more = _call(agent, state, call, now) if len(wave) < WAVE else []
        if not _reads(more):
            break
        wave = wave + more
    return wave or first


def _reads(events: list[Event]) -> bool:
    """Whether these events are the marker of a call that may run side by side with others."""
    return any(isinstance(e, AttemptMarked) and e.effect == "reads" for e in events)


def _call(agent: Agent, state: State, call: CallState, now: datetime) -> list[Event]:
    tool = agent.tool(call.call.tool)
    settled = _fence.settled(state, call)
    if settled is not None:
        return [settled]
    if call.attempts:
        return _fence.guarded(state, tool, call, _ladder.climb(tool, call, state, now))
    unrunnable = _unrunnable(agent, state, call)
    if unrunnable is not None:
        return [unrunnable]
    late = _questions(agent, state, [call])  # today's code wants a yes that the reply's first code did not
    if late:
        return late
    asked = state.questions.get(_approvals.question_id(call.call.id))
    if asked is not None and asked.answer is not None and asked.answer.answer == "refuse":
        reason = f": {asked.answer.text}" if asked.answer.text else "."
        text = f"{asked.answer.who} refused this call{reason}"
        return [ResultRecorded(call=call.call.id, how="refused", text=text)]
    assert tool is not None  # _unrunnable has said so otherwise
    return _ladder.mark(state, tool, call)


def _questions(agent: Agent, state: State, calls: list[CallState]) -> list[Event]:
    """What a person is asked before these calls run: first whether to repeat what a fork's parent did, then for a yes.

    They come with the pause, or with the policy's yes where that answers all of them.
    """
    repeats = _fence.due(agent, state, calls)
    held = {event.call for event in repeats if isinstance(event, QuestionAsked)}
    approvals = _approvals.due(agent, state, [call for call in calls if call.call.id not in held])
    paused = any(isinstance(event, PhaseChanged) for event in approvals)
    return [*repeats, *approvals, *([PhaseChanged(phase="paused")] if repeats and not paused else [])]


def _unrunnable(agent: Agent, state: State, call: CallState) -> ResultRecorded | None:
    """The result of a call that must not be tried: invalid, or its intent already happened (spec row 24)."""

    def invalid(why: str) -> ResultRecorded:
        return ResultRecorded(call=call.call.id, how="invalid", text=f"The call was not run: {why}.")

    last = state.messages[-1]
    if isinstance(last, Replied) and last.reply.stop == "length":
        return invalid("the reply was cut off at its length limit, so its arguments may be incomplete")
    tool = agent.tool(call.call.tool)
    if tool is None:
        known = ", ".join(t.name for t in agent.tools) or "none"
        return invalid(f"there is no tool named {call.call.tool!r} (there are: {known})")
    problem = tool.problem(call.call.arguments)
    if problem is not None:
        return invalid(f"its arguments can't be used, {problem}")
    intent = _ladder.intent(tool, call)
    happened = state.happened.get(intent) if intent is not None else None
    if happened is None:
        return None
    text = f"Not run again: call {happened.call} already did this. Its result was: {happened.text}"
    return ResultRecorded(call=call.call.id, how="refused", text=text, first=happened.call)
